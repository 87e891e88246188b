# SPDX-License-Identifier: BSD-3-Clause
"""Answers the questions that PyTorch's compiler asks before it uses symmetric memory.

Inductor's asynchronous tensor parallelism (torch._inductor.config._micro_pipeline_tp) replaces a gather and the
products after it, or a product and the reduction after it, by torch.ops.symm_mem's fused operators. It requires that
the group has symmetric memory, which PyTorch detects only on accelerators (or, before 2.15, for groups that were
enabled by name), and that PyTorch was built with NCCL, which CPU builds are not. Weft's operators need neither, so
install() replaces both checks. Compiled graphs are cached on disk under keys that do not include the answers, so a tag
in the keys separates graphs compiled after install() from others.
"""
import functools
import sys

import torch.compiler.config
import torch.distributed as dist
import torch.distributed._symmetric_memory as torch_symm_mem
import torch.distributed.distributed_c10d as c10d
from torch._C._distributed_c10d import _SymmetricMemory

_TAG = "weft"
_PASS = "torch._inductor.fx_passes.micro_pipeline_tp"
# These passes make an input a symmetric buffer, which works only on an accelerator with an index.
_FOR_ACCELERATORS = ("torch._inductor.comm_lowering", "torch._inductor.fx_passes.reinplace")


def _caller():
    """Returns the name of the module that called the function that asks."""
    return sys._getframe(2).f_globals.get("__name__")


def _is_served(group_name):
    """Returns whether the group exists and Weft provides the symmetric memory of one of its devices."""
    try:
        group = c10d._resolve_process_group(group_name)
    except (RuntimeError, ValueError):
        return False
    return any(_SymmetricMemory.get_backend(device) == "WEFT" for device in group._device_types)


def _before_enabled(theirs):
    @functools.wraps(theirs)
    def is_symm_mem_enabled_for_group(group_name):
        if theirs(group_name):
            return True
        return not torch_symm_mem._is_test_mode and _caller() not in _FOR_ACCELERATORS and _is_served(group_name)
    return is_symm_mem_enabled_for_group


def _before_nccl(theirs):
    @functools.wraps(theirs)
    def is_nccl_available():
        return theirs() or _caller() == _PASS
    return is_nccl_available


def _put_before(module, name, ours):
    theirs = getattr(module, name)
    if not hasattr(theirs, "is_of_weft"):
        function = ours(theirs)
        function.is_of_weft = True
        setattr(module, name, function)


def install():
    """Takes effect once, as in _module.py."""
    _put_before(torch_symm_mem, "is_symm_mem_enabled_for_group", _before_enabled)
    if not dist.is_nccl_available():
        _put_before(dist, "is_nccl_available", _before_nccl)
    config = torch.compiler.config
    if _TAG not in config.cache_key_tag:
        config.cache_key_tag += _TAG
