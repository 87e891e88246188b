# SPDX-License-Identifier: BSD-3-Clause
"""The common part of the tests of weft.torch.hyperparallel: data that every rank can compute for every other rank, new
in each run (HANDLER_SEED repeats one), and symmetric tensors between guard words.
"""
import os
import random
import time

import torch
import weft
from weft.torch.hyperparallel import SymmetricMemoryHandler as symm

GUARD = 8  # elements, on either side
ALL_TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
             torch.float32, torch.float64, torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn]


def _agreed_seed():
    mine = bytearray(int(os.environ.get("HANDLER_SEED", "0"), 0).to_bytes(8, "little"))
    if not any(mine):
        mine = bytearray(os.urandom(8))
    weft.init()
    weft.broadcast(mine, root=0)
    return int.from_bytes(mine, "little")


SEED = _agreed_seed()
if weft.my_pe() == 0:
    print(f"HANDLER_SEED={SEED:#x}")


def data(key, shape, dtype, device="cpu"):
    """Values that are the same on all ranks for the same key, if their GPUs are of one kind."""
    source = torch.Generator(device).manual_seed(random.Random(f"{SEED} {key}").getrandbits(63))
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.float32 if dtype.itemsize < 4 else torch.float64
        return torch.randn(shape, generator=source, dtype=wide, device=device).to(dtype)
    if dtype == torch.bool:
        return torch.randint(2, shape, generator=source, device=device) > 0
    return torch.randint(-90 if dtype.is_signed else 0, 100, shape, generator=source, device=device).to(dtype)


def bits(tensor):
    return tensor.contiguous().view(-1).view(torch.uint8)


def same(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(bits(one), bits(other))


class Guarded:
    """A symmetric tensor in the middle of poison, which nobody may touch."""

    def __init__(self, shape, dtype, device=None):
        self.whole = symm.empty(2 * GUARD + torch.Size(shape).numel(), dtype, device)
        self.inside = self.whole[GUARD:-GUARD].view(shape)
        self.poison()

    def poison(self):
        bits(self.whole).fill_(0xee)

    def intact(self):
        return all(bool((bits(part) == 0xee).all()) for part in (self.whole[:GUARD], self.whole[-GUARD:]))


def dawdle(key):
    """Ranks come at different times: up to 3 ms apart."""
    time.sleep(random.Random(f"{SEED} {key} {weft.my_pe()}").random() * 3e-3)
