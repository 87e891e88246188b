# SPDX-License-Identifier: BSD-3-Clause
"""Where Triton finds the functions: kernels of @weft.triton.jit are linked with libweft_device.bc when Triton
compiles them. Triton itself is left as it is, and modules need no set-up after they are loaded.
"""
import functools

import triton
from triton.runtime.jit import JITFunction

from weft._place import get_device_library

HOPPER = 90


def built_for(arch: int) -> int:
    """The compute capability whose bitcode one of `arch` takes."""
    return HOPPER if arch >= HOPPER else 80


def libs(arch: "int | None" = None) -> "dict[str, str]":
    """What a launch of a kernel that calls weft.triton takes as extern_libs=, for this process's GPU or for
    compute capability arch (80, 90, ...): kernel[grid](..., extern_libs=weft.triton.libs()).
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
    """A JITFunction whose launches bring the library along."""

    def run(self, *args, **kwargs):
        kwargs["extern_libs"] = {**libs(), **(kwargs.get("extern_libs") or {})}
        return super().run(*args, **kwargs)


def jit(function=None, **options):
    """triton.jit for kernels that call weft.triton: the same, and launches link libweft_device.bc."""
    if function is None:
        return functools.partial(jit, **options)
    return Kernel(function, **options)
