# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed._symmetric_memory, for CUDA tensors and, with the same code, for CPU tensors:

    import weft.torch as symm_mem

    t = symm_mem.empty(1024, device="cpu")           # or "cuda"
    handle = symm_mem.rendezvous(t, group)           # a name or a ProcessGroup
    handle.get_buffer(peer, t.shape, t.dtype)        # the peer's t, by loads and stores
    y = symm_mem.fused_all_gather_matmul(x, [w], 0, group)

Names, arguments and results are PyTorch's; names that this module lacks are taken from PyTorch's module. CUDA tensors
are in Weft's memory through its backend in PyTorch's registry (weft.torch.install()), and PyTorch's operators run on
them. On CPU tensors Weft's operators run. torch.ops.symm_mem.* run on both; torch.ops.weft.* also have gradients.

Modules import downwards only (tests/tree/python.t):

    _library                                  registration of the operators
    _collectives*, _exchange*, _fused, ...    the operators
    _operators, _matrices, _peers             the functions of this module
    _dtensors                                 the operators on DTensors
    _eager, _products, _kernels               whether Weft multiplies or sums ordinary tensors, and the shortest way there
    _memory, _handle, _groups                 allocation, rendezvous, process groups
    _process_group                            the backend "weft" of torch.distributed
    _backend, _shim, _job                     PyTorch's registry, the C++ shim, joining the job
    hyperparallel                             HyperParallel's interface, above all of them
    moe, deep_ep                              mixtures of experts, DeepEP's interface; not imported here
"""
from weft import _folder
_folder.refuse_others()

from weft.torch import _versions
_versions.warn_if_untested()  # first, so that the warning precedes errors caused by an untested PyTorch

import torch.distributed._symmetric_memory as _torch_symm_mem
from torch.distributed._symmetric_memory import (  # noqa: F401
    _test_mode, enable_symm_mem_for_group, is_nvshmem_available, make_contiguous_for_perm,
    restride_A_for_fused_matmul_reduce_scatter, restride_A_shard_for_fused_all_gather_matmul)

from weft.torch import _backend, _compiler, _library, _module, _nvshmem, _process_group, _views  # noqa: F401
from weft.torch._backend import counters, install, installed  # noqa: F401
from weft.torch._groups import init_process_group  # noqa: F401
from weft.torch._matrices import all_to_all_nd, reduce_scatter_offset  # noqa: F401
from weft.torch._memory import (  # noqa: F401
    SymmetricMemory, empty, get_backend, get_mem_pool, get_mempool_allocator, get_signal_pad_size,
    is_symm_mem_tensor, rendezvous, set_backend, set_signal_pad_size)
from weft.torch._operators import (  # noqa: F401
    all_gather, all_reduce, all_reduce_rms_norm, all_to_all, all_to_all_vdev, all_to_all_vdev_2d,
    all_to_all_vdev_2d_offset, fused_all_gather_matmul, fused_all_gather_scaled_matmul,
    fused_matmul_all_reduce, fused_matmul_reduce_scatter, fused_scaled_matmul_reduce_scatter, get_remote_tensors,
    kv_shuffle, low_contention_all_gather, low_contention_reduce_scatter, memset32_, one_shot_all_reduce,
    one_shot_all_reduce_copy, one_shot_all_reduce_copy_out, one_shot_all_reduce_out, reduce_scatter,
    reduce_scatter_out, stream_write_value32_, two_shot_all_reduce_, two_shot_all_reduce_out)
from weft.torch._partials import reduce_partials, triton_reduce_partials_first_dim  # noqa: F401
from weft.torch._peers import get, put, put_signal, wait_signal  # noqa: F401
from weft.torch._workspace import (  # noqa: F401
    _get_backend_stream, get_symm_mem_workspace, is_symm_mem_enabled_for_group)
from weft.torch.hyperparallel import (  # noqa: F401
    SymmetricMemoryHandler, TorchSymmetricMemoryHandler, acquire_symmetric_memory)

_SymmetricMemory = SymmetricMemory
_process_group.register()
_backend.patches += (_nvshmem.install, _views.install, _module.install, _compiler.install)


def __getattr__(name):
    """Returns PyTorch's attribute for names that this module lacks."""
    try:
        return getattr(_torch_symm_mem, name)
    except AttributeError:
        raise AttributeError(f"module 'weft.torch' has no attribute {name!r}, nor has "
                             "torch.distributed._symmetric_memory") from None
