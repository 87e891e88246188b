# SPDX-License-Identifier: BSD-3-Clause
"""The commands oshrun and weft of an installed package: the programs of C that lie in it."""
import os
import pathlib
import sys
from typing import NoReturn


def _become(name: str) -> NoReturn:
    program = pathlib.Path(__file__).resolve().parent / "bin" / name
    os.execv(program, [name, *sys.argv[1:]])


def oshrun() -> NoReturn:
    _become("oshrun")


def weft() -> NoReturn:
    _become("weft")
