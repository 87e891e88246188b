# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeAlias, overload

import torch
from torch import Tensor
from torch._C._distributed_c10d import Store
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed._symmetric_memory import _test_mode as _test_mode
from torch.distributed._symmetric_memory import enable_symm_mem_for_group as enable_symm_mem_for_group
from torch.distributed._symmetric_memory import is_nvshmem_available as is_nvshmem_available
from torch.distributed._symmetric_memory import make_contiguous_for_perm as make_contiguous_for_perm
from torch.distributed._symmetric_memory import (
    restride_A_for_fused_matmul_reduce_scatter as restride_A_for_fused_matmul_reduce_scatter,
)
from torch.distributed._symmetric_memory import (
    restride_A_shard_for_fused_all_gather_matmul as restride_A_shard_for_fused_all_gather_matmul,
)

from weft.torch.hyperparallel import SymmetricMemoryHandler as SymmetricMemoryHandler
from weft.torch.hyperparallel import TorchSymmetricMemoryHandler as TorchSymmetricMemoryHandler
from weft.torch.hyperparallel import acquire_symmetric_memory as acquire_symmetric_memory

# Functions with an argument `group` also accept it as `group_name`.
_Group: TypeAlias = str | ProcessGroup | DeviceMesh
_Device: TypeAlias = torch.device | str | int

# Other names of PyTorch's module.
def __getattr__(name: str) -> Any: ...

# --- Settings

def install(force: bool = False) -> None: ...
def installed() -> bool: ...
def counters() -> dict[str, int]: ...
def init_process_group(backend: str | None = None, **options: Any) -> ProcessGroup: ...
def set_backend(name: str) -> None: ...
def get_backend(device: _Device) -> str | None: ...
def set_signal_pad_size(size: int) -> None: ...
def get_signal_pad_size() -> int: ...
def get_mempool_allocator(device: _Device) -> Any: ...
def get_mem_pool(device: _Device) -> torch.cuda.MemPool: ...

# --- Memory

class _SignalPadSize(type):
    signal_pad_size: int

class SymmetricMemory(metaclass=_SignalPadSize):
    rank: int
    world_size: int
    group_name: str
    device: torch.device
    buffer_size: int
    offset: int
    multicast_ptr: int
    signal_pad_size: int
    buffer_ptrs: list[int]
    signal_pad_ptrs: list[int]
    @property
    def buffer_ptrs_dev(self) -> int: ...
    @property
    def signal_pad_ptrs_dev(self) -> int: ...
    def get_buffer(
        self, rank: int, sizes: Sequence[int], dtype: torch.dtype, storage_offset: int = 0
    ) -> Tensor: ...
    def get_remote_tensor(self, peer: int, sizes: Sequence[int], dtype: torch.dtype) -> Tensor: ...
    def get_signal_pad(
        self, rank: int, sizes: Sequence[int] = (), dtype: torch.dtype | None = None, storage_offset: int = 0
    ) -> Tensor: ...
    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None: ...
    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None: ...
    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None: ...
    def get_peer_cft_handle(self, peer: int) -> tuple[int, int]: ...
    def get_multimem_cft_handle(self) -> tuple[int, int]: ...
    def boxed(self) -> Any: ...
    @staticmethod
    def empty_strided_p2p(
        size: Sequence[int],
        stride: Sequence[int],
        dtype: torch.dtype,
        device: _Device,
        group_name: str | None = None,
        alloc_id: int | None = None,
    ) -> Tensor: ...
    @staticmethod
    def rendezvous(tensor: Tensor, group_name: str | None = None) -> SymmetricMemory: ...
    @staticmethod
    def is_symm_mem_tensor(tensor: Tensor) -> bool: ...
    @staticmethod
    def has_multicast_support(device_type: Any, device_idx: int) -> bool: ...
    @staticmethod
    def set_backend(name: str) -> None: ...
    @staticmethod
    def get_backend(device: _Device) -> str | None: ...
    @staticmethod
    def get_mempool_allocator(device: _Device) -> Any: ...
    @staticmethod
    def set_group_info(group_name: str, rank: int, world_size: int, store: Store) -> None: ...
    @staticmethod
    def stream_write_value32(input: Tensor, offset: int, val: int) -> Tensor: ...
    @staticmethod
    def memset32(input: Tensor, offset: int, val: int, count: int = 1) -> Tensor: ...

_SymmetricMemory = SymmetricMemory

@overload
def empty(
    *size: SupportsIndex, dtype: torch.dtype | None = None, device: _Device | None = None
) -> Tensor: ...
@overload
def empty(
    size: Sequence[SupportsIndex], /, *, dtype: torch.dtype | None = None, device: _Device | None = None
) -> Tensor: ...

# None for memory that is not symmetric. PyTorch's annotation omits it, too, so that a program that passes only tensors
# of empty() need not check.
def rendezvous(tensor: Tensor, group: _Group) -> SymmetricMemory: ...
def is_symm_mem_tensor(tensor: Tensor) -> bool: ...
def get_symm_mem_workspace(
    group_name: _Group, min_size: int, device: _Device | None = None
) -> SymmetricMemory: ...
def is_symm_mem_enabled_for_group(group_name: _Group) -> bool: ...
def _get_backend_stream(priority: int = 0) -> torch.Stream: ...

# --- One peer

def put(src: Tensor, hdl: SymmetricMemory, peer: int, offset: int = 0) -> None: ...
def get(dst: Tensor, hdl: SymmetricMemory, peer: int, offset: int = 0) -> None: ...
def put_signal(src: Tensor, hdl: SymmetricMemory, peer: int) -> None: ...
def wait_signal(hdl: SymmetricMemory, peer: int) -> None: ...
def get_remote_tensors(x: Tensor, group: _Group) -> list[Tensor]: ...

# --- Blocks of matrices

def all_to_all_nd(
    input: Tensor, out: Tensor, scatter_dim: int, gather_dim: int, *, group: _Group
) -> None: ...
def reduce_scatter_offset(
    input: Tensor,
    out: Sequence[Tensor],
    group: _Group,
    *,
    dim: int,
    offsets: Sequence[int] | None = None,
    dst_ranks: Sequence[int] | None = None,
    red_op: str = "sum",
) -> None: ...
def reduce_partials(
    partials: Tensor, *, dim: int, reduce_op: str, output_dtype: torch.dtype, group_size: int
) -> Tensor: ...
def triton_reduce_partials_first_dim(
    partials: Tensor, *, reduce_op: str, output_dtype: torch.dtype, group_size: int
) -> Tensor | None: ...

# --- With gradients

# Results of DTensors are DTensors (except all_to_all's, which takes none).

def all_gather(input: Tensor, gather_dim: int, group: _Group) -> Tensor: ...
def reduce_scatter(input: Tensor, reduce_op: str, scatter_dim: int, group: _Group) -> Tensor: ...
def all_reduce(input: Tensor, reduce_op: str, group: _Group) -> Tensor: ...
def all_to_all(
    input: Tensor,
    group: _Group,
    output_splits: Sequence[int] | None = None,
    input_splits: Sequence[int] | None = None,
) -> Tensor: ...
def fused_all_gather_matmul(
    A: Tensor, Bs: Sequence[Tensor], gather_dim: int, group: _Group, *, return_A: bool = True
) -> tuple[Tensor | None, list[Tensor]]: ...
def fused_matmul_reduce_scatter(
    A: Tensor, B: Tensor, reduce_op: str, scatter_dim: int, group: _Group
) -> Tensor: ...
def fused_matmul_all_reduce(A: Tensor, B: Tensor, reduce_op: str, group: _Group) -> Tensor: ...

# --- Without

def fused_all_gather_scaled_matmul(
    A: Tensor,
    Bs: Sequence[Tensor],
    A_scale: Tensor,
    B_scales: Sequence[Tensor],
    gather_dim: int,
    group: _Group,
    biases: Sequence[Tensor | None],
    result_scales: Sequence[Tensor | None],
    out_dtypes: Sequence[torch.dtype | None],
    use_fast_accum: Sequence[bool],
) -> tuple[Tensor, list[Tensor]]: ...
def fused_scaled_matmul_reduce_scatter(
    A: Tensor,
    B: Tensor,
    A_scale: Tensor,
    B_scale: Tensor,
    reduce_op: str,
    orig_scatter_dim: int,
    scatter_dim_after_maybe_reshape: int,
    group: _Group,
    output_shape: Sequence[int] | None,
    bias: Tensor | None = None,
    result_scale: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor: ...
def one_shot_all_reduce(input: Tensor, reduce_op: str, group: _Group) -> Tensor: ...
def one_shot_all_reduce_out(input: Tensor, reduce_op: str, group: _Group, out: Tensor) -> Tensor: ...
def one_shot_all_reduce_copy(
    symm_buffer: Tensor, local_input: Tensor, reduce_op: str, group: _Group
) -> Tensor: ...
def one_shot_all_reduce_copy_out(
    symm_buffer: Tensor, local_input: Tensor, reduce_op: str, group: _Group, out: Tensor
) -> Tensor: ...
def two_shot_all_reduce_(input: Tensor, reduce_op: str, group: _Group) -> Tensor: ...
def two_shot_all_reduce_out(input: Tensor, reduce_op: str, group: _Group, output: Tensor) -> Tensor: ...
def reduce_scatter_out(input: Tensor, group: _Group, split_last_dim: bool, output: Tensor) -> Tensor: ...
def low_contention_all_gather(tensor: Tensor, group: _Group) -> Tensor: ...
def low_contention_reduce_scatter(tensor: Tensor, reduce_op: str, group: _Group) -> Tensor: ...
def all_to_all_vdev(
    input: Tensor, out: Tensor, in_splits: Tensor, out_splits_offsets: Tensor, group: _Group
) -> None: ...
def all_to_all_vdev_2d(
    input: Tensor,
    out: Tensor,
    in_splits: Tensor,
    out_splits_offsets: Tensor,
    group: _Group,
    major_align: int | None = None,
) -> None: ...
def all_to_all_vdev_2d_offset(
    input: Tensor, out: Tensor, in_splits_offsets: Tensor, out_splits_offsets: Tensor, group: _Group
) -> None: ...
def all_reduce_rms_norm(
    x: Tensor,
    weight: Tensor | None = None,
    epsilon: float = 1e-6,
    *,
    residual: Tensor | None = None,
    bias: Tensor | None = None,
    scale: Tensor | None = None,
    group_size: int = 0,
    group: _Group,
) -> tuple[Tensor, ...]: ...
def kv_shuffle(
    caches: Sequence[Tensor],
    peer_and_role: Tensor,
    from_blocks: Tensor | None,
    to_blocks: Tensor | None,
    group: _Group,
) -> None: ...
def stream_write_value32_(input: Tensor, offset: int, val: int) -> Tensor: ...
def memset32_(input: Tensor, offset: int, val: int, count: int = 1) -> Tensor: ...
