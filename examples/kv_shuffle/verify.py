#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the caches of every PE after the shuffle with the expected caches, byte by byte.

    verify.py FOLDER PES BLOCKS

FOLDER is that of data_gen.py, in which the example has written k_output_PE.bin and v_output_PE.bin. Reports the first
wrong byte of each file; the exit status is 1 if there is any."""
import pathlib
import sys


def difference(expected, found, blocks):
    """Returns what is wrong, or None."""
    if len(found) != len(expected):
        return f"{len(found)} bytes, not {len(expected)}"
    if found == expected:
        return None
    at = next(i for i, byte in enumerate(found) if byte != expected[i])
    return f"byte {at} is {found[at]}, not {expected[at]} (block {at // (len(expected) // blocks)})"


def main():
    folder, pes, blocks = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    wrong = 0
    for pe in range(pes):
        for name in "k", "v":
            expected, path = folder / f"{name}_golden_{pe}.bin", folder / f"{name}_output_{pe}.bin"
            problem = difference(expected.read_bytes(), path.read_bytes(), blocks) if path.exists() else "missing"
            if problem:
                print(f"verify.py: {path}: {problem}", file=sys.stderr)
                wrong += 1
    if not wrong:
        print(f"verify.py: K and V caches of {pes} PEs: right")
    return wrong != 0


sys.exit(main())
