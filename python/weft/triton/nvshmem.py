# SPDX-License-Identifier: BSD-3-Clause
"""Triton kernels that call NVSHMEM's functions through PyTorch's helpers, like Helion's remote copies, on Weft:

    import weft.triton.nvshmem
    weft.triton.nvshmem.install()          # before the first symmetric tensor

PyTorch links such a kernel with the library that its NvshmemLibFinder names, and sets the module up after loading.
install() replaces both: the library is libweft_nvshmem, and the set-up copies two addresses into the module, those of
the world's handle and of a table of the symmetric tensors that had a rendezvous. Triton is not patched.
"""
import ctypes
import os
import threading

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory._nvshmem_triton as nvshmem_triton
from torch._C import _distributed_c10d
from torch._C._distributed_c10d import _SymmetricMemory

import weft
from weft._place import find_library
from weft.triton._library import built_for

REGIONS_MAX = 1024
CHANNELS = 1024     # the limit of programs in a grid that synchronise
_NOT_FOUND = 500    # CUDA's error for a module that lacks the symbol
_lock = threading.RLock()
_job = None


class _Job:
    """The job's state for kernels, on the GPU that is current when it is made. Collective over all PEs."""

    def __init__(self):
        self.team = weft.device_team(channels=CHANNELS, slot_bytes=0)
        self.regions = {}
        self.table = torch.zeros(1 + 3 * REGIONS_MAX, dtype=torch.int64, device="cuda")

    def add(self, handle, pes):
        """Adds the memory of a PyTorch handle, data and signal pad, in place of earlier memory at that address."""
        begin, end = handle.buffer_ptrs[handle.rank], handle.signal_pad_ptrs[handle.rank] + handle.signal_pad_size
        places = dict(zip(pes, handle.buffer_ptrs))
        known = self.regions.get(begin)
        if known and known[0] == end and places.items() <= known[1].items():
            return
        if known and known[0] == end:
            places = known[1] | places  # also the tensor of another group
        self.regions = {b: region for b, region in self.regions.items() if region[0] <= begin or b >= end}
        if len(self.regions) == REGIONS_MAX:
            raise RuntimeError(f"weft.triton.nvshmem: more than {REGIONS_MAX} symmetric tensors are in use")
        row = torch.tensor([places.get(pe, 0) for pe in range(self.team.n)], dtype=torch.int64, device=self.table.device)
        self.regions[begin] = (end, places, row)
        self._write()

    def _write(self):
        """Updates the table. Kernels must not read it meanwhile."""
        rows = [word for begin, (end, _, row) in self.regions.items() for word in (begin, end, row.data_ptr())]
        torch.cuda.synchronize(self.table.device)
        self.table[:1 + len(rows)].copy_(torch.tensor([len(self.regions), *rows], device="cpu"))
        torch.cuda.synchronize(self.table.device)

    def words(self):
        return (ctypes.c_uint64 * 2)(self.team.address, self.table.data_ptr())


def _job_of(members):
    global _job
    with _lock:
        if _job is None:
            if not weft.initialized():
                weft.init()
            if members != weft.n_pes():
                raise RuntimeError("weft.triton.nvshmem: the first rendezvous has to be one of the group of all ranks, which "
                                   f"are {weft.n_pes()}, not of {members}")
            _job = _Job()
        return _job


def _rendezvous_before(theirs):
    """Returns PyTorch's rendezvous, which also makes the tensor symmetric for kernels."""
    def rendezvous(tensor, group_name=None):
        handle = theirs(tensor, group_name)
        if handle is not None and tensor.device.type == "cuda":
            group = dist.group.WORLD if group_name is None else dist.distributed_c10d._resolve_process_group(group_name)
            pes = dist.get_process_group_ranks(group)
            with torch.cuda.device(tensor.device):
                _job_of(len(pes)).add(handle, pes)
        return handle
    rendezvous.is_of_weft = True
    return rendezvous


def _checked(name, status):
    if status:
        raise RuntimeError(f"weft.triton.nvshmem: {name}: CUDA's error {status}")


def _set_up_module(module):
    """Replaces NVSHMEM's set-up: writes the job's two addresses to the module, if its kernels need them."""
    driver, at, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_size_t()
    status = driver.cuModuleGetGlobal_v2(ctypes.byref(at), ctypes.byref(size), ctypes.c_void_p(module), b"weft_nvshmem_job")
    if status == _NOT_FOUND:
        return
    _checked("cuModuleGetGlobal", status)
    if _job is None:
        raise RuntimeError("weft.triton.nvshmem: a kernel that calls NVSHMEM's functions comes before the first rendezvous "
                           "of a symmetric tensor")
    words = _job.words()
    _checked("cuMemcpyHtoD", driver.cuMemcpyHtoD_v2(at, words, ctypes.c_size_t(ctypes.sizeof(words))))


def bitcode_path(arch):
    """Returns the file of NVSHMEM's functions for compute capability arch."""
    return find_library(f"libweft_nvshmem_sm{built_for(arch)}.bc")


def install():
    """Makes Weft the implementation of PyTorch's NVSHMEM helpers for Triton, and PyTorch's backend for symmetric
    memory, also under the name NVSHMEM. May be called again; all ranks call it, but it waits for none of them.
    """
    os.environ.setdefault("WEFT_TORCH_ALIAS", "NVSHMEM")
    import weft.torch
    weft.torch.install()
    with _lock:
        if torch.cuda.is_available():
            major, minor = torch.cuda.get_device_capability()
            nvshmem_triton.NvshmemLibFinder.found_device_lib_path = bitcode_path(10 * major + minor)
        _distributed_c10d._nvshmemx_cumodule_init = _set_up_module
        if not hasattr(_SymmetricMemory.rendezvous, "is_of_weft"):
            _SymmetricMemory.rendezvous = staticmethod(_rendezvous_before(_SymmetricMemory.rendezvous))
