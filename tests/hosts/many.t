#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A job over forty hosts that oshrun has not started, which all connect to PE 0's host: PEs reach each other, and all
others name a PE that dies."""
import rig

COUNT = 40
rig.enter(COUNT)
from by_hand import CLEAN, SOON, Processes, expect_empty  # noqa: E402
from harness import case, main  # noqa: E402

HOSTS = rig.names_of(COUNT)
CLEAN.update(WEFT_HOST_TIMEOUT="5")  # the default
PATIENCE = 6 * SOON  # more processes than a few take longer to be scheduled


@case("PEs of forty hosts do all that PEs of one host do")
def work():
    Processes([*HOSTS, "h7", "h0"], "work").expect(0)


@case("a PE that dies, the first of its host, is named by all others, and nothing is left")
def death():
    job = Processes([*HOSTS, "h20", "h0"], "wait").running()
    job.kill(20)
    job.expect_named(rf"PE 20 \(pid {job.pids[20]} on h20\) died", PATIENCE, 20)
    expect_empty()


main()
