# SPDX-License-Identifier: BSD-3-Clause
"""Links kernels of @weft.triton.jit with libweft_device.bc when Triton compiles them. Triton itself is not patched, and
loaded modules need no set-up.
"""
import functools

import triton
from triton.runtime.jit import JITFunction

from weft._place import get_device_library

HOPPER = 90


def built_for(arch: int) -> int:
    """Returns the compute capability of the bitcode for `arch`."""
    return HOPPER if arch >= HOPPER else 80


def libs(arch: "int | None" = None) -> "dict[str, str]":
    """Returns extern_libs= for a launch of a kernel that calls weft.triton, for this process's GPU or for compute
    capability arch (80, 90, ...): kernel[grid](..., extern_libs=weft.triton.libs()).
    """
    if arch is None:
        arch = _arch_of(triton.runtime.driver.active.get_current_device())
    return {"weft": _path(built_for(arch))}


@functools.cache
def _arch_of(device):
    return triton.runtime.driver.active.get_current_target().arch


@functools.cache
def _path(sm):
    return get_device_library(sm)


class Kernel(JITFunction):
    """A JITFunction whose launches link the library."""

    def run(self, *args, **kwargs):
        kwargs["extern_libs"] = {**libs(), **(kwargs.get("extern_libs") or {})}
        return super().run(*args, **kwargs)


def jit(function=None, **options):
    """triton.jit for kernels that call weft.triton; launches link libweft_device.bc."""
    if function is None:
        return functools.partial(jit, **options)
    return Kernel(function, **options)
