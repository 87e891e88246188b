#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what every PE has received with the inputs, byte by byte.

    verify.py FOLDER PES CASES

FOLDER is that of data_gen.py, in which the example has written case_i/output_PE.bin. Reports the first
wrong byte of each file; the exit status is 1 if there is any."""
import pathlib
import sys


def difference(expected, found):
    """Returns what is wrong, or None."""
    if len(found) != len(expected):
        return f"{len(found)} bytes, not {len(expected)}"
    if found == expected:
        return None
    at = next(i for i, byte in enumerate(found) if byte != expected[i])
    return f"byte {at} is {found[at]}, not {expected[at]}"


def main():
    folder, pes, cases = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    wrong = 0
    for case in range(cases):
        place = folder / f"case_{case}"
        inputs = b"".join((place / f"input_{pe}.bin").read_bytes() for pe in range(pes))
        for name in ["golden.bin", *(f"output_{pe}.bin" for pe in range(pes))]:
            path = place / name
            problem = difference(inputs, path.read_bytes()) if path.exists() else "missing"
            if problem:
                print(f"verify.py: {path}: {problem}", file=sys.stderr)
                wrong += 1
    if not wrong:
        print(f"verify.py: {cases} cases on {pes} PEs: right")
    return wrong != 0


sys.exit(main())
