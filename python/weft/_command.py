# SPDX-License-Identifier: BSD-3-Clause
"""The commands oshrun and weft of an installed package: the programs of C that lie in it."""
import os
import pathlib
import sys


def _become(name):
    program = pathlib.Path(__file__).resolve().parent / "bin" / name
    os.execv(program, [name, *sys.argv[1:]])


def oshrun():
    _become("oshrun")


def weft():
    _become("weft")
