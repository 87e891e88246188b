#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Operators give far members the bits that they give near ones, wherever the members are, and however late and
out of order their letters come."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from harness import BUILD, Result, case, main, start  # noqa: E402

ENGINE = BUILD / "tests/far/libweft_fake_engine.so"
near = {}


def results(pes, **environment):
    """What each operator gave, by its line."""
    words = [f"{name}={value}" for name, value in environment.items()]
    run = Result(start("-n", pes, BUILD / "tests/ops/bits", below=("env", "-u", "WEFT_PRETEND_HOSTS", *words)), seconds_max=60)
    assert run.status == 0, run.err
    lines = [line for line in run.out.splitlines() if ": " in line]
    assert len(lines) > 80, run.out
    return lines


def register(pes, placement):
    @case(f"{pes} PEs on the hosts {placement}")
    def compare():
        if pes not in near:
            near[pes] = results(pes)
        far = results(pes, WEFT_PRETEND_HOSTS=placement, WEFT_ENGINE=str(ENGINE),
                      FAKE_ENGINE=f"seed={pes},reorder=16")
        others = [pair for pair in zip(near[pes], far, strict=True) if pair[0] != pair[1]]
        assert not others, others


for pes, placement in (2, "each"), (3, "2+1"), (4, "cyclic:2"), (4, "list:0,0,1,0"):
    register(pes, placement)
main()
