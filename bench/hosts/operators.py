#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures how much of the transfer between two hosts is hidden by the products that need it: the matmul operators of
bench/operators.c, over a network that takes about as long as the product.

    tests/hosts/rig.py bench/hosts/operators.py BUILD RESULTS [ROUNDS]       (make bench-operators)

Each host has a processor, for one PE or for two. Each operator runs over the unlimited network, which shows how long
the product alone takes, then over a network so slow that the transfer to a host takes as long. Leaves JSON lines, and
prints a table: times in ms, and `hidden`, the part of the transfer time that the operator does not take in addition to
the product's."""
import json
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/hosts"))
import rig  # noqa: E402
import verbs  # noqa: E402

BUILD, RESULTS = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 3
HOSTS = 2
ELEMENT = 4  # bytes of an f32
PLACES = {"2 x 1": ("h0,h1", 1), "2 x 2": ("h0:2,h1:2", 2)}
SHAPES = {"all_gather_matmul": (2048, 8192, 2048), "matmul_reduce_scatter": (2048, 2048, 8192),
          "matmul_all_reduce": (2048, 2048, 8192)}
SECONDS = "3"  # of a row


def far_bytes(operator, here):
    """Returns the bytes that a host must receive; its sums contain the products of all far PEs."""
    m, n, k = SHAPES[operator]
    if operator == "all_gather_matmul":
        return m * k * ELEMENT // HOSTS
    sums = here * m * n * ELEMENT // HOSTS
    return sums + (m * n * ELEMENT // HOSTS if operator == "matmul_all_reduce" else 0)


def measure(place, operator):
    shape = "x".join(map(str, SHAPES[operator]))
    words = ["env", "WEFT_SSH=fakessh", BUILD / "bin/oshrun", "--hosts", place, BUILD / "bench/operators", SECONDS, operator,
             "real", shape]
    done = subprocess.run(words, text=True, capture_output=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(f"{' '.join(map(str, words))} failed: {done.stderr.strip()[-400:]}")
    return json.loads(lines[0])


def slow(rate=None):
    for number in range(HOSTS):
        verbs.slow(f"h{number}", *([f"{rate // 1000}kbit"] if rate else []))


def rows(placement, operator):
    place, here = PLACES[placement]
    slow()
    fast = measure(place, operator)
    product_s = fast["matmul_us"] * 1e-6
    rate = int(far_bytes(operator, here) * 8 / product_s)
    slow(rate)
    late = measure(place, operator)
    transfer_us = far_bytes(operator, here) * 8e6 / rate
    late["hidden"] = 1 - (late["fused_us"] - late["matmul_us"]) / transfer_us
    for row, network in (fast, "as it is"), (late, f"{rate / 1e6:.0f} Mbit/s"):
        yield {**row, "hosts": placement, "network": network, "rate": 0 if row is fast else rate}


def table(found):
    print("| operator | hosts x PEs | network | product | fused | / product | gather or reduce apart | hidden |\n|---|---|---|---|---|---|---|---|")
    for key in dict.fromkeys((row["operator"], row["hosts"], row["rate"] > 0) for row in found):
        same = [row for row in found if (row["operator"], row["hosts"], row["rate"] > 0) == key]
        ms = {name: statistics.median(row[f"{name}_us"] for row in same) / 1000 for name in ("matmul", "fused", "unfused")}
        hidden = f"{statistics.median(row['hidden'] for row in same):.0%}" if key[2] else ""
        network = f"{statistics.median(row['rate'] for row in same) / 1e6:.0f} Mbit/s" if key[2] else "as it is"
        print(f"| {key[0]} | {key[1]} | {network} | {ms['matmul']:.0f} | {ms['fused']:.0f} | {ms['fused'] / ms['matmul']:.2f} | "
              f"{ms['unfused']:.0f} | {hidden} |")


def main():
    RESULTS.mkdir(parents=True, exist_ok=True)
    for number in range(HOSTS):
        verbs.pin(f"h{number}", str(rig.processors_of(number, HOSTS)[0]))
    found = []
    for _ in range(ROUNDS):
        for placement in PLACES:
            for operator in SHAPES:
                found += rows(placement, operator)
    (RESULTS / "operators-over-hosts.json").write_text("".join(json.dumps(row) + "\n" for row in found))
    table(found)


main()
