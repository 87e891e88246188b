#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the cost of a PE in a job of eight hosts with 1, 2, 4 and 8 PEs each: memory, descriptors, a barrier, the
start, and how soon all notice a death; beside the estimates that were made before the first measurement.

    tests/hosts/rig.py -n 8 bench/hosts/scale.py BUILD RESULTS [VARIABLE=VALUE...]     (make bench-hosts SCALE=1)

Leaves JSON lines and prints a table. All hosts share this machine's processors, so times are those of many more PEs
than processors; memory and channels are the same everywhere. Variables are set for all PEs, such as
WEFT_PROXIES=host."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

BUILD, RESULTS = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
GIVEN = dict(word.split("=", 1) for word in sys.argv[3:])
HOSTS, PES_A_HOST = 8, (1, 2, 4, 8)
STARTS, DEATHS = 3, 3
PATIENCE = 120  # seconds

# MiB of a worker (4.4) and of its connections (130 KiB each), as measured of UCX 1.13 over TCP by itself.
OWN_PROXIES_MIB = {8: 5.3, 16: 6.2, 32: 8.0, 64: 11.5}
HOST_PROXIES_MIB = 5.3


def run(hosts, pes, program, *arguments):
    """Returns the output, and the seconds from the start to the end of all PEs."""
    names = ",".join(f"h{number}:{pes}" for number in range(hosts))
    begin = time.monotonic()
    done = subprocess.run(["timeout", str(PATIENCE), BUILD / "bin/oshrun", "--hosts", names, BUILD / "bench" / program,
                           *map(str, arguments)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, **GIVEN, "WEFT_SSH": "fakessh"})
    return done, time.monotonic() - begin, time.monotonic()


def whole(done, what):
    if done.returncode:
        sys.exit(f"scale.py: {what} failed with {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


def start_ms(hosts, pes):
    taken = []
    for _ in range(STARTS):
        done, seconds, _ = run(hosts, pes, "empty")
        whole(done, "an empty job")
        taken.append(seconds * 1e3)
    return statistics.median(taken)


def death_ms(hosts, pes):
    """Returns the time from the death of the last PE to the end of the job, on all hosts."""
    taken, path = [], RESULTS / "death"
    for _ in range(DEATHS):
        path.unlink(missing_ok=True)
        _, _, end = run(hosts, pes, "footprint", "kill", path)
        taken.append((end - float(path.read_text())) * 1e3)
    path.unlink()
    return statistics.median(taken)


def measure(hosts, pes):
    done, _, _ = run(hosts, pes, "footprint")
    stages = [json.loads(line) for line in whole(done, f"{hosts} hosts of {pes} PEs").splitlines()]
    times = {"start_ms": start_ms(hosts, pes), "death_ms": death_ms(hosts, pes)} if hosts > 1 else {}
    return {"hosts": hosts, "pes_a_host": pes, **times, "stages": stages}


def cells(row):
    """Returns one line for each stage; in the last stage there is a channel to each PE."""
    for stage in row["stages"]:
        npes, far = stage["pes"], row["hosts"] > 1
        last = stage is row["stages"][-1]
        yield [npes, f"{row['hosts']} x {row['pes_a_host']}", stage["stage"],
               *(f"{stage[name] / 1024:.1f} ({stage[name + '_most'] / 1024:.1f})" for name in ("pss_kib", "own_kib")),
               *(f"{stage[name]:.0f} ({stage[name + '_most']:.0f})" for name in ("descriptors", "sockets")),
               f"{stage['barrier_us']:.0f}", f"{row['start_ms']:.0f}" if far and last else "",
               f"{row['death_ms']:.0f}" if far and last else "",
               f"{OWN_PROXIES_MIB[npes]} / {HOST_PROXIES_MIB}" if far and last else ""]


def main():
    RESULTS.mkdir(parents=True, exist_ok=True)
    heads = ["PEs", "hosts", "behind", "MiB a PE, shared ones divided (most)", "own MiB", "descriptors", "sockets",
             "barrier us", "start and end ms", "death to end ms", "reckoned MiB: channels of each PE / of host proxies"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", flush=True)
    with open(RESULTS / "scale.jsonl", "w") as file:
        for hosts, pes in ((1, 8), *((HOSTS, pes) for pes in PES_A_HOST)):
            row = measure(hosts, pes)
            file.write(json.dumps({**row, "variables": GIVEN}) + "\n")
            for line in cells(row):
                print("| " + " | ".join(map(str, line)) + " |", flush=True)


main()
