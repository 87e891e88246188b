#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Where carriers send for all PEs of their host (WEFT_CARRIERS=relay): programs of other rooms run as ever, carriers
alone open an engine, a dead link of theirs ends the job, and hosts that do not all relay do not relay at all.
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from harness import BUILD, Result, case, far, main, start  # noqa: E402

RELAY, LATE, NPES = "WEFT_CARRIERS=relay", "seed=5,reorder=16,refuse=5", 4
STATUS = 71  # of a job that a PE ends with an error


def run(settings, program, *arguments, placement="2+2", carriers=(RELAY,), status=0):
    """One word for all PEs, or one for those of each half."""
    words = []
    for word in carriers:
        words += [":"] * bool(words) + ["-n", NPES // len(carriers), *far(placement, settings), word, BUILD / "tests" / program, *arguments]
    result = Result(start(*words), seconds_max=60)
    assert result.status == status, f"{program} ended with {result.status}: {result.err}"
    return result.err


def ends(said):
    """PEs that have had an end of the engine."""
    return sorted(int(pe) for pe in re.findall(r"^fake engine: PE (\d+): \d+ letters sent", said, re.M))


@case("puts, gets and atomics of all types and shapes")
def memory():
    run(LATE, "api/rma")
    run(LATE, "api/amo", placement="cyclic:2")


@case("reductions have the bits of one host")
def bits():
    run(LATE, "coll/bits", placement="list:0,1,1,0")


@case("a random program")
def anything():
    run(LATE, "random/random", "--seed", "7", "--ops", "20000")


@case("carriers alone open an engine")
def carriers():
    for placement, first in (("2+2", [0, 2]), ("cyclic:2", [0, 1]), ("each", [0, 1, 2, 3])):
        found = ends(run("tell=1", "far/order", placement=placement))
        assert found == first, f"{placement}: PEs {found} have opened one, not {first}"


@case("a link between carriers dies, though the PEs live")
def dead_links():
    for settings, error in (("pe=0,fail_letter=32", 32), ("pe=2,fail_connect=111", 111)):
        said = run(settings, "far/scenes", "put", "5", status=STATUS)
        assert re.search(rf"PE \d cannot be reached, though .*{os.strerror(error)}", said), said


@case("where a host does not relay, none does")
def other_hosts():
    found = ends(run("tell=1", "far/order", carriers=(RELAY, "WEFT_CARRIERS=pe")))
    assert found == [0, 1, 2, 3], f"PEs {found} have opened an engine"


@case("a setting that there is not is named")
def nonsense():
    said = run("", "far/order", carriers=("WEFT_CARRIERS=relays",), status=STATUS)
    assert "WEFT_CARRIERS is 'relays': set it to auto, pe, host or relay" in said, said


main()
