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


def get_library() -> str:
    """The library that the extension has loaded, libweft.so.0."""
    try:
        return _find("libweft.so.0")
    except FileNotFoundError:
        return _find("lib/libweft.so.0")
