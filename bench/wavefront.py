#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs jobs of bench/wavefront.c with each library in turn, beside processes that compute half of the time.

    bench/wavefront.py BUILD... [--hogs 1] [--jobs 21] [--pes 2]

Each BUILD is a build folder of Weft. PEER names a folder with another library's oshcc and oshrun; without it the first
oshcc in PATH is used. Medians over the jobs, and quartiles; microseconds per row."""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HOG = """import time
while True:
    end = time.monotonic() + 0.004
    while time.monotonic() < end:
        pass
    time.sleep(0.004)
"""
SOURCE = pathlib.Path(__file__).with_suffix(".c")
PEER_FLAGS = os.environ.get("PEER_FLAGS", "--allow-run-as-root --oversubscribe --bind-to none").split()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("builds", type=pathlib.Path, nargs="+")
    parser.add_argument("--hogs", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=21)
    parser.add_argument("--pes", type=int, default=2)
    return parser.parse_args()


def launchers(options, folder):
    """Returns each library's command of a job."""
    commands = {}
    peer = os.environ.get("PEER", shutil.which("oshcc") and str(pathlib.Path(shutil.which("oshcc")).parent))
    for build in options.builds:
        program = f"{folder}/weft-{len(commands)}"
        subprocess.run([build / "bin/oshcc", "-O2", SOURCE, "-o", program], check=True)
        commands[str(build)] = [build / "bin/oshrun", "-n", str(options.pes), program]
    if peer:
        subprocess.run([f"{peer}/oshcc", "-O2", "-D_GNU_SOURCE", SOURCE, "-o", f"{folder}/peer"], check=True)
        commands["peer"] = [f"{peer}/oshrun", *PEER_FLAGS, "-np", str(options.pes), f"{folder}/peer"]
    return commands


def measure(command, rows):
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120)
    for line in run.stdout.splitlines():
        row = json.loads(line)
        rows.setdefault(row["row"], []).append(row["value"])
        rows.setdefault("limit", []).append(row["limit"])


def main():
    options = arguments()
    hogs = [subprocess.Popen([sys.executable, "-c", HOG]) for _ in range(options.hogs)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            commands = launchers(options, folder)
            rows = {library: {} for library in commands}
            for job in range(options.jobs):
                for library in sorted(commands, reverse=job % 2):
                    measure(commands[library], rows[library])
    finally:
        for hog in hogs:
            hog.kill()
    for row in next(iter(rows.values())):
        for library in commands:
            low, middle, high = statistics.quantiles(rows[library][row], n=4)
            print(f"{row:22} {library:24} {middle:8.2f} us   ({low:.2f} to {high:.2f})")


main()
