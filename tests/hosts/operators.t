#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Operators on several hosts give the bits of one host, however PEs are placed, and also over a slow network: then data
of other hosts arrives late, in the middle of products."""
import os
import pathlib
import sys

import rig

rig.enter(3)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from harness import BUILD, Result, case, main, start  # noqa: E402
import verbs  # noqa: E402

PLACES = {"2 hosts with 2 PEs": ("--hosts", "h0:2,h1:2"),
          "2 hosts with 2 PEs, in turn": ("--hosts", "h0:2,h1:2", "--map-by", "node"),
          "3 hosts with 1 PE": ("--hosts", "h0,h1,h2"),
          "2 hosts with 3 PEs": ("--hosts", "h0:3,h1:3"),
          "3 hosts with 1, 2 and 1 PE": ("--hosts", "h0:1,h1:2,h2:1")}

SHORT = "2 hosts with 2 PEs, in turn", "3 hosts with 1, 2 and 1 PE"
CHOSEN = PLACES if os.environ.get("WEFT_TEST_LONG") else {name: PLACES[name] for name in SHORT}

one_host = {}


def results(pes, *options):
    """Returns the results of each operator, by its line."""
    run = Result(start("-n", pes, *options, BUILD / "tests/ops/bits", below=["env", "WEFT_SSH=fakessh"]), seconds_max=60)
    assert run.status == 0, run.err
    return [line for line in run.out.splitlines() if ": " in line]


def compare(place):
    pes = sum(int(host.partition(":")[2] or 1) for host in place[1].split(","))
    if pes not in one_host:
        one_host[pes] = results(pes)
    others = [pair for pair in zip(one_host[pes], results(pes, *place), strict=True) if pair[0] != pair[1]]
    assert not others, others


def register(name, place):
    @case(name)
    def over():
        compare(place)


for words, where in CHOSEN.items():
    register(words, where)


@case("with WEFT_BITS=any hosts add their own products first, and sums are right")
def any_bits():
    words = ["env", "WEFT_SSH=fakessh", "WEFT_TEST_HOSTS=some", "WEFT_BITS=any"]
    for place in CHOSEN.values():
        for program in "matmul_reduce", "scaled_matmul":
            run = Result(start(*place, BUILD / "tests/ops" / program, below=words), seconds_max=60)
            assert run.status == 0, (place, run.err)


@case("a WEFT_BITS that differs, or is none, is refused on all PEs")
def wrong_bits():
    words = ["env", "WEFT_SSH=fakessh", "WEFT_TEST_HOSTS=some"]
    for value, text in ("any", "WEFT_BITS differs between PE 0 and PE 1"), ("none", "WEFT_BITS is 'none': set it to"):
        command = f'[ "$WEFT_PE" != 1 ] || export WEFT_BITS={value}; exec {BUILD}/tests/ops/matmul_reduce'
        run = Result(start("--hosts", "h0,h1", "sh", "-c", command, below=words), seconds_max=60)
        assert run.status != 0 and run.err.count(text) >= 2, run.err


@case("what comes from other hosts comes late")
def late():
    for host in "h0", "h1":
        verbs.slow(host, "200mbit")
    compare(PLACES["2 hosts with 2 PEs"])


main()
