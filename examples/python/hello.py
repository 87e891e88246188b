# SPDX-License-Identifier: BSD-3-Clause
"""Every PE prints its number, and leaves a greeting on the next PE.

    oshrun -n 4 python examples/python/hello.py
"""
import weft

weft.init()
me, n = weft.my_pe(), weft.n_pes()

note = weft.zeros(32, "uint8")  # one on every PE
greeting = f"hello from PE {me} of {n}".encode().ljust(32)
weft.put(note, greeting, (me + 1) % n)  # into the next PE's copy
weft.barrier()  # all PEs have put theirs

print(f"PE {me} found: {bytes(memoryview(note)).decode().rstrip()}")
