# SPDX-License-Identifier: BSD-3-Clause
"""Where the package's C side lies: installed, beside the extension; in a build folder, two folders
up from it.
"""
import pathlib

_HERE = pathlib.Path(__file__).absolute().parent


def _find(name: str) -> str:
    for folder in (_HERE, _HERE.parents[1]):
        if (folder / name).exists():
            return str(folder / name)
    raise FileNotFoundError(f"{name} is neither in {_HERE} nor in {_HERE.parents[1]}: is the package whole?")


def get_include() -> str:
    """The folder of shmem.h, shmemx.h and weft.h, for code that is compiled against Weft."""
    return _find("include")


def find_library(name: str) -> str:
    try:
        return _find(name)
    except FileNotFoundError:
        return _find(f"lib/{name}")


def get_library() -> str:
    """The library that the extension has loaded, libweft.so.0."""
    return find_library("libweft.so.0")


def get_device_library(sm: int = 80, form: str = "bc") -> str:
    """The functions of weft/device.cuh for kernels that are not written in CUDA C: for GPUs from sm_80 or from
    sm_90 on, as LLVM's bitcode ("bc") or as PTX ("ptx").
    """
    if sm not in (80, 90) or form not in ("bc", "ptx"):
        raise ValueError(f"get_device_library: there are 80 and 90, bc and ptx, not {sm!r}, {form!r}")
    try:
        return find_library(f"libweft_device_sm{sm}.{form}")
    except FileNotFoundError as lacks:
        raise FileNotFoundError(f"{lacks} It is left out where it is built without clang") from None
