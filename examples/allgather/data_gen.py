#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the input of every PE, and the result that every PE must have.

    data_gen.py FOLDER PES TYPE CASES

Case i has blocks of 16 * 2**i elements. FOLDER/case_i/input_PE.bin is the block of a PE, and
FOLDER/case_i/golden.bin all blocks in the order of the PEs. Elements are random numbers between 0 and 10, rounded to
the type. The same arguments make the same files."""
import array
import pathlib
import random
import struct
import sys


def int32(values):
    return array.array("i", map(int, values)).tobytes()


def float16(values):
    return struct.pack(f"<{len(values)}e", *values)


def bfloat16(values):
    """The upper halves of float32."""
    halves = array.array("H", struct.pack(f"<{len(values)}f", *values))
    return halves[1::2].tobytes()


TYPES = {"int32_t": int32, "float16_t": float16, "bfloat16_t": bfloat16}


def main():
    folder, pes, name, cases = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    numbers = random.Random(42)
    for case in range(cases):
        place = folder / f"case_{case}"
        place.mkdir(parents=True, exist_ok=True)
        with open(place / "golden.bin", "wb") as golden:
            for pe in range(pes):
                block = TYPES[name]([numbers.uniform(0, 10) for _ in range(16 << case)])
                (place / f"input_{pe}.bin").write_bytes(block)
                golden.write(block)


main()
