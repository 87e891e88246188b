# SPDX-License-Identifier: BSD-3-Clause
"""Whose functions gpu_pairs.py calls: PyTorch's or Weft's, by the names that weft.torch has for them.

    on GPUs         PyTorch's module and operators over its backend CUDA; Weft's over WEFT, in turns
    on CPU tensors  PyTorch's fallbacks, and functional collectives over gloo for what it has no kernel for
    --registry      PyTorch's module and operators on CPU tensors over WEFT, as after install(): a trial of
                    what runs on GPUs
"""
import contextlib
import gc

import torch
import torch.distributed._functional_collectives as funcol
import torch.distributed._symmetric_memory as torch_symm_mem
from torch._C._distributed_c10d import _SymmetricMemory

import weft.torch

OPS = torch.ops.symm_mem
MADE_BY_WEFT = ("put", "get", "is_symm_mem_tensor")  # no functions of PyTorch's in every version


def wait(tensor):
    return funcol.wait_tensor(tensor)


# --- Collectives that PyTorch has for any group: what the names mean ---------------------------------

def all_gather(tensor, dim, group):
    return wait(funcol.all_gather_tensor(tensor.contiguous(), dim % max(tensor.dim(), 1), group))


def reduce_scatter(tensor, op, dim, group):
    return wait(funcol.reduce_scatter_tensor(tensor.contiguous(), op, dim % max(tensor.dim(), 1), group))


def all_reduce(tensor, op, group):
    return wait(funcol.all_reduce(tensor.contiguous(), op, group))


def all_to_all(tensor, group, output_splits=None, input_splits=None):
    return wait(funcol.all_to_all_single(tensor.contiguous(), output_splits, input_splits, group))


COLLECTIVES = {function.__name__: function for function in (all_gather, reduce_scatter, all_reduce, all_to_all)}


def all_reduce_out(tensor, op, group, out):
    return out.copy_(all_reduce(tensor, op, group))


def reduce_scatter_out(tensor, group, split_last_dim, out):
    return out.copy_(reduce_scatter(tensor, "sum", tensor.dim() - 1, group))


def fused_all_gather_scaled_matmul(x, bs, x_scale, scales, dim, group, biases, results, dtypes, fast):
    """PyTorch's fallback gathers 8-bit floats, which gloo does not know: here they travel as bytes."""
    bytes_of_all = all_gather(x.movedim(dim, 0).contiguous().view(torch.uint8), 0, group)
    rows = bytes_of_all.view(x.dtype)
    products = [torch._scaled_mm(rows.flatten(0, -2), b, x_scale, scale, bias, result, dtype, quick)
                for b, scale, bias, result, dtype, quick in zip(bs, scales, biases, results, dtypes, fast)]
    return rows.movedim(0, dim), [each.unflatten(0, rows.shape[:-1]).movedim(0, dim) for each in products]


STAND_INS = {
    **COLLECTIVES,
    "fused_all_gather_matmul": torch_symm_mem._fused_all_gather_matmul_fallback,
    "fused_matmul_reduce_scatter": torch_symm_mem._fused_matmul_reduce_scatter_fallback,
    "fused_all_gather_scaled_matmul": fused_all_gather_scaled_matmul,
    "fused_scaled_matmul_reduce_scatter": torch_symm_mem._fused_scaled_matmul_reduce_scatter_fallback,
    "one_shot_all_reduce": all_reduce,
    "one_shot_all_reduce_out": all_reduce_out,
    "one_shot_all_reduce_copy": lambda buffer, x, op, group: all_reduce(x, op, group),
    "one_shot_all_reduce_copy_out": lambda buffer, x, op, group, out: all_reduce_out(x, op, group, out),
    "two_shot_all_reduce_": lambda x, op, group: x.copy_(all_reduce(x, op, group)),
    "two_shot_all_reduce_out": all_reduce_out,
    "reduce_scatter_out": reduce_scatter_out,
    "low_contention_all_gather": lambda x, group: all_gather(x, 0, group),
    "low_contention_reduce_scatter": lambda x, op, group: reduce_scatter(x, op, 0, group),
    "nvshmem_broadcast": lambda x, root, group: x.copy_(wait(funcol.broadcast(x, root, group))),
    "nvshmem_all_to_all": lambda x, out, group: out.copy_(all_to_all(x.view(-1), group).view(out.shape)),
}
OF_THE_MODULE = ("make_contiguous_for_perm", "restride_A_for_fused_matmul_reduce_scatter",
                 "restride_A_shard_for_fused_all_gather_matmul", "is_nvshmem_available", "set_backend",
                 "set_signal_pad_size", "get_signal_pad_size", "get_mempool_allocator", "get_mem_pool", "_test_mode",
                 "is_symm_mem_enabled_for_group", "enable_symm_mem_for_group", "Work", "reduce_partials",
                 "triton_reduce_partials_first_dim")
CHECKERS = {name: getattr(torch_symm_mem, f"_{name}") for name in STAND_INS if name.startswith("fused_")}


def of_pytorch(name):
    """Returns a function of the module or one of the operators."""
    if name in MADE_BY_WEFT:
        return None
    if name.startswith("handle_"):
        return getattr(_SymmetricMemory, name.removeprefix("handle_"), None)
    if name in COLLECTIVES:
        return COLLECTIVES[name]
    if hasattr(torch_symm_mem, name) and not name.startswith(("_low", "_fused")):
        return getattr(torch_symm_mem, name)
    return getattr(OPS, name, None) or getattr(OPS, f"_{name}", None)


class Functions:
    """A context in which the functions of find() may be called. name: the side's; none: the reason why a function may
    be missing."""
    handle = _SymmetricMemory
    none = f"PyTorch {torch.__version__} has no such function here: against what is stated"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def checking(self):
        """Within it only wrong arguments are given."""
        return contextlib.nullcontext()

    def refuses(self, name, kind):
        return self.find(name) is not None and name not in COLLECTIVES


class OnBackend(Functions):
    """One of the two backends of one process, which are used in turns: see bench/python_gpu.py."""
    now = None
    kept = {"CUDA": ({}, {}), "WEFT": ({}, {})}

    def __init__(self, name):
        self.name = f"PyTorch's backend {name}"
        self.backend = name
        self.empty = lambda shape, dtype, device: torch_symm_mem.empty(shape, dtype=dtype, device=device)

    def __enter__(self):
        if OnBackend.now != self.backend:
            self._switch()
        return self

    def _switch(self):
        from weft.torch import _backend
        caches = torch_symm_mem._group_name_to_workspace_tensor, torch_symm_mem._symm_mem_pools
        if OnBackend.now:
            OnBackend.kept[OnBackend.now] = tuple(map(dict, caches))
        for cache, kept in zip(caches, OnBackend.kept[self.backend]):
            cache.clear()
            cache.update(kept)
        if self.backend == "WEFT":
            weft.torch.install(force=True)
        elif OnBackend.now:
            _backend._shim.pyweft_torch_restore()
        OnBackend.now = self.backend

    def close(self):
        """A pool frees through whichever backend is in use then."""
        with self:
            torch_symm_mem._group_name_to_workspace_tensor.clear()
            torch_symm_mem._symm_mem_pools.clear()
            gc.collect()

    def find(self, name):
        return of_pytorch(name)


class Registry(Functions):
    name = "PyTorch's registry"

    def empty(self, shape, dtype, device):
        return torch_symm_mem.empty(shape, dtype=dtype, device=device)

    def find(self, name):
        return of_pytorch(name)

    def refuses(self, name, kind):
        return super().refuses(name, kind) and not name.startswith("_get_backend")


class StandIns(Functions):
    name, none = "PyTorch without a GPU", "PyTorch has none for CPU tensors: against what is stated"
    table = STAND_INS

    def empty(self, shape, dtype, device):
        return torch.empty(shape, dtype=dtype, device=device)

    def find(self, name):
        if name in OF_THE_MODULE:
            return getattr(torch_symm_mem, name, None)
        return self.table.get(name)

    @contextlib.contextmanager
    def checking(self):
        """What looks at arguments is in the functions for CUDA."""
        self.table = CHECKERS
        yield
        self.table = STAND_INS

    def refuses(self, name, kind):
        return self.find(name) is not None and name in OF_THE_MODULE or (name in CHECKERS and kind is ValueError)


class OfWeft(OnBackend):
    """weft.torch, and the operators that it has no function for."""
    handle = weft.torch._SymmetricMemory

    def __init__(self, gpu):
        super().__init__("WEFT")
        self.name, self.gpu = "Weft", gpu
        self.empty = lambda shape, dtype, device: weft.torch.empty(shape, dtype=dtype, device=device)

    def __enter__(self):
        return super().__enter__() if self.gpu else self

    def find(self, name):
        if name.startswith("handle_"):
            return getattr(weft.torch._SymmetricMemory, name.removeprefix("handle_"), None)
        if hasattr(weft.torch, name):
            return getattr(weft.torch, name)
        return getattr(OPS, name, None) or getattr(OPS, f"_{name}", None)


def both(gpu, registry):
    """PyTorch's and Weft's. On GPUs PyTorch's own has to be used first."""
    theirs = OnBackend("CUDA") if gpu else Registry() if registry else StandIns()
    if registry and not gpu:
        weft.torch.install()
    return theirs, OfWeft(gpu)
