# SPDX-License-Identifier: BSD-3-Clause
"""Finds the package's C files: beside the extension if installed, two folders above it in a build folder."""
import pathlib

_HERE = pathlib.Path(__file__).absolute().parent


def _find(name: str) -> str:
    for folder in (_HERE, _HERE.parents[1]):
        if (folder / name).exists():
            return str(folder / name)
    raise FileNotFoundError(f"{name} is neither in {_HERE} nor in {_HERE.parents[1]}: is the package whole?")


def get_include() -> str:
    """Returns the folder of shmem.h, shmemx.h and weft.h, to compile code against Weft."""
    return _find("include")


def find_library(name: str) -> str:
    try:
        return _find(name)
    except FileNotFoundError:
        return _find(f"lib/{name}")


def get_library() -> str:
    """Returns the library that the extension has loaded, libweft.so.0."""
    return find_library("libweft.so.0")


def get_device_library(sm: int = 80, form: str = "bc") -> str:
    """Returns the library of weft/device.cuh's functions for kernels that are not written in CUDA C: for GPUs from
    sm_80 or from sm_90 on, as LLVM bitcode ("bc") or as PTX ("ptx").
    """
    if sm not in (80, 90) or form not in ("bc", "ptx"):
        raise ValueError(f"get_device_library: there are 80 and 90, bc and ptx, not {sm!r}, {form!r}")
    try:
        return find_library(f"libweft_device_sm{sm}.{form}")
    except FileNotFoundError as lacks:
        raise FileNotFoundError(f"{lacks} Builds without clang leave it out") from None
