#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Operators give the same bits to far and near members, wherever the members are, and however late and out of order
their messages arrive."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from harness import BUILD, Result, case, far, main, start  # noqa: E402

near = {}


def results(pes, below):
    """Returns the results of each operator, by its line."""
    run = Result(start("-n", pes, BUILD / "tests/ops/bits", below=below), seconds_max=60)
    assert run.status == 0, run.err
    lines = [line for line in run.out.splitlines() if ": " in line]
    assert len(lines) > 80, run.out
    return lines


def register(pes, placement):
    @case(f"{pes} PEs on the hosts {placement}")
    def compare():
        if pes not in near:
            near[pes] = results(pes, ["env", "-u", "WEFT_PRETEND_HOSTS"])
        found = results(pes, far(placement, f"seed={pes},reorder=16"))
        others = [pair for pair in zip(near[pes], found, strict=True) if pair[0] != pair[1]]
        assert not others, others


for pes, placement in (2, "each"), (3, "2+1"), *([(4, "cyclic:2")] if os.environ.get("WEFT_TEST_LONG") else []), (4, "list:0,0,1,0"):
    register(pes, placement)


@case("members whose processors are of two kinds agree on how they cut")
def kinds():
    command = f'[ "$WEFT_PE" != 1 ] || export ONEDNN_MAX_CPU_ISA=AVX2; exec {BUILD}/tests/ops/bits'
    run = Result(start("-n", 3, "sh", "-c", command, below=far("2+1", "seed=7,reorder=16")), seconds_max=60)
    assert run.status == 0, run.err


main()
