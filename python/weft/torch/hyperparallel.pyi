# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from weft.torch import SymmetricMemory

_Number: TypeAlias = int | Tensor
_Shape: TypeAlias = int | Sequence[int]
_Device: TypeAlias = torch.device | str

class Owner:
    def __init__(self, group: ProcessGroup | None = None) -> None: ...
    @property
    def closed(self) -> bool: ...
    def empty(self, shape: _Shape, dtype: torch.dtype, device: _Device | None = None) -> Tensor: ...
    def aligned_empty(
        self, shape: _Shape, dtype: torch.dtype, alignment: int, device: _Device | None = None
    ) -> Tensor: ...
    def free(self, tensor: Tensor) -> None: ...
    def barrier(self) -> None: ...
    def close(self) -> None: ...

def acquire_symmetric_memory(group: ProcessGroup | None = None) -> Owner: ...

class SymmetricMemoryHandler:
    @classmethod
    def close(cls) -> None: ...
    @staticmethod
    def is_shmem_available() -> bool: ...
    @classmethod
    def empty(cls, shape: _Shape, dtype: torch.dtype, device: _Device | None = None) -> Tensor: ...
    @classmethod
    def free(cls, tensor: Tensor) -> None: ...
    @staticmethod
    def rendezvous(tensor: Tensor, group: str | ProcessGroup | None = None) -> SymmetricMemory: ...
    @staticmethod
    def set_signal_pad_size(size: int) -> None: ...
    @staticmethod
    def get_signal_pad_size() -> int: ...
    @classmethod
    def barrier(cls) -> None: ...
    @staticmethod
    def shmem_put(
        target: Tensor, target_offset: _Number, src: Tensor, src_offset: _Number, size: _Number, target_rank: int
    ) -> None: ...
    @staticmethod
    def shmem_get(
        target: Tensor, target_offset: _Number, src: Tensor, src_offset: _Number, size: _Number, target_rank: int
    ) -> None: ...
    @staticmethod
    def shmem_signal_op(
        signal: Tensor,
        signal_offset: _Number,
        signal_value: _Number,
        signal_op: Literal[0, 1] = 0,
        target_rank: int = 0,
    ) -> None: ...
    @staticmethod
    def shmem_wait_for_signal(
        depend_tensor: Tensor | None,
        signal: Tensor,
        signal_offset: _Number,
        compare_value: _Number,
        compare_op: Literal[0, 1, 2],
    ) -> None: ...
    @staticmethod
    def shmem_put_with_signal(
        target: Tensor,
        target_offset: _Number,
        src: Tensor,
        src_offset: _Number,
        size: _Number,
        signal: Tensor,
        signal_offset: _Number,
        signal_value: _Number,
        signal_op: Literal[0, 1],
        target_rank: int,
    ) -> None: ...
    @staticmethod
    def shmem_allgather(output_tensor: Tensor, input_tensor: Tensor) -> None: ...
    @staticmethod
    def shmem_alltoall(
        send_tensor_list: Sequence[Tensor], receive_tensor: Tensor, receive_list: Sequence[int] | Tensor
    ) -> None: ...
    @staticmethod
    def fused_all_gather_matmul(
        a: Tensor, b: Tensor, c: Tensor, gather_out: Tensor, signal: Tensor, block_size: int | None = None
    ) -> tuple[Tensor, Tensor]: ...
    @staticmethod
    def fused_matmul_reduce_scatter(
        x1: Tensor, x2: Tensor, symm_tensor: Tensor, signal: Tensor, reduce_op: str = "sum"
    ) -> Tensor: ...

TorchSymmetricMemoryHandler = SymmetricMemoryHandler
