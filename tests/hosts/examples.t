#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are not written for several hosts run over 2 and 3 of them, and check their results themselves. The rig
itself tells them how to reach hosts."""
import os
import subprocess
import sys

import rig

rig.enter(3)
sys.path.insert(0, str(rig.HERE.parent / "launch"))
from harness import BUILD, OSHRUN, case, main, patience  # noqa: E402

EXAMPLES = rig.HERE.parents[1] / "examples"
PLACES = [("--hosts", "h0,h1"), ("--hosts", "h0:2,h1:1"), ("--hosts", "h0:2,h1:2", "--map-by", "node"),
          ("--hosts", "h0:1,h1:1,h2:1"), ("--hosts", "h2:2,h0:2,h1:2")]


def over(place, *command, below=()):
    """Returns the output of a job over these hosts, which must succeed."""
    words = [*below, OSHRUN, *place, *command]
    result = subprocess.run(words, text=True, capture_output=True, timeout=patience(30))
    assert result.returncode == 0, (words, result.returncode, result.stderr)
    return result.stdout


@case("every PE is on the host that the list gives it")
def placed():
    for place, hosts in zip(PLACES, ("h0 h1", "h0 h0 h1", "h0 h1 h0 h1", "h0 h1 h2", "h2 h2 h0 h0 h1 h1")):
        lines = over((*place, "--tag-output"), "hostname").splitlines()
        assert [line.split()[-1] for line in sorted(lines)] == hosts.split(), (place, lines)


def over_hosts(example):
    @case(f"{example} over 2 and 3 hosts, started beside them and on one of them")
    def check():
        for place in PLACES[::2]:
            over(place, BUILD / "examples" / example)
        over(("--hosts", "h0:1,h1:2"), BUILD / "examples" / example, below=("on", "h1"))


for name in ("counts", "heat", "primes"):
    over_hosts(name)


@case("rdma_demo, allgather and kv_shuffle over 2 hosts, by their scripts")
def scripts():
    for words in (("rdma_demo/run.sh", "-max", "300000"), ("allgather/run.sh", "-cases", "12", "-type", "bfloat16_t"),
                  ("kv_shuffle/run.sh", "-blocks", "48")):
        words = [EXAMPLES / words[0], "-ranks", "4", "-hosts", "h1:2,h2:2", *words[1:]]
        result = subprocess.run(words, text=True, capture_output=True, timeout=patience(60), env={**os.environ, "BUILD": str(BUILD)})
        assert result.returncode == 0 and "right" in result.stdout.splitlines()[-1], (words, result)


main()
