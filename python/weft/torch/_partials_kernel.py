# SPDX-License-Identifier: BSD-3-Clause
"""The sum over the first dimension, in Triton, which comes with PyTorch. Imported only where it is used."""
import triton
import triton.language as tl


@triton.jit
def _reduce(partials, out, elements, PARTS: tl.constexpr, AVERAGE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = at < elements
    total = tl.zeros((BLOCK,), tl.float32)
    offset = at  # 64 bits, because all parts together may have more than 2**31 elements
    for _ in tl.static_range(PARTS):
        total += tl.load(partials + offset, mask=live, other=0).to(tl.float32)
        offset += elements
    if AVERAGE:
        total = total / PARTS
    tl.store(out + at, total.to(out.dtype.element_ty), mask=live)


def reduce(partials, out, parts, average, block):
    _reduce[(triton.cdiv(out.numel(), block),)](partials, out, out.numel(), PARTS=parts, AVERAGE=average, BLOCK=block)
