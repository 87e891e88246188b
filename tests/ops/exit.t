#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""exit() while the main thread multiplies, or loads the libraries for a product: the process ends with the exit status,
and does not crash afterwards, neither in Weft's memory nor in a library's."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from harness import BUILD, Result, case, main, start  # noqa: E402

LEAVER = str(BUILD / "tests/ops/leaver")
LEAVES = 3


def what_lacks(dtype):
    """The reason why this type cannot be multiplied here, or None."""
    result = Result(start("-n", 1, LEAVER, dtype, 500), seconds_max=30)
    return result.err.splitlines()[0] if "install" in result.err else None


def register(dtype, reason):
    @case(f"{dtype}" + (f" # SKIP {reason}" if reason else ""))
    def leave():
        for turn in range(0 if reason else 6):
            milliseconds = 30 + 40 * turn
            result = Result(start("-n", 1 + turn % 2, LEAVER, dtype, milliseconds), seconds_max=30)
            assert result.status == LEAVES and "signal" not in result.err, (milliseconds, result.status, result.err)


def register_handlers(reason):
    @case("as oneDNN registers what it takes down in the end" + (f" # SKIP {reason}" if reason else ""))
    def leave():
        for handler in range(4, 0 if reason else 16):
            result = Result(start("-n", 1, LEAVER, "f32", 300, handler), seconds_max=30)
            assert result.status == LEAVES and "signal" not in result.err, (handler, result.status, result.err)


register_handlers(what_lacks("f32"))
for name in "f32", "f64", "bf16":
    register(name, what_lacks(name))
main()
