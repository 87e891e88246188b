# SPDX-License-Identifier: BSD-3-Clause
"""The commands of an installed package: oshrun, weft, oshcc and oshc++. Runs the programs inside the package, or those
of a build folder whose package comes first in PYTHONPATH.
"""
import os
import sys
from typing import NoReturn

from weft import _place


def _become(name: str) -> NoReturn:
    try:
        program = _place._find(f"bin/{name}")
    except FileNotFoundError as error:
        sys.exit(f"{name}: {error} Install the package again, or take PYTHONPATH away if it names another.")
    os.execv(program, [name, *sys.argv[1:]])


def oshrun() -> NoReturn:
    _become("oshrun")


def weft() -> NoReturn:
    _become("weft")


def oshcc() -> NoReturn:
    _become("oshcc")


def oshcxx() -> NoReturn:
    _become("oshc++")
