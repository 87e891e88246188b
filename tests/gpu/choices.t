#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The choice between copy engines and Weft's kernel, on the pretended driver: the members time both and take the
faster one, which is kept for later runs; one team of a GPU alone has the kernel."""
import os
import re
import subprocess

import memo
import tap
from memo import TIMES, VALUE, checked, with_cache, words

ENGINES, KERNEL = 0, 1
# The graph's shape; all-reduce; reduce-scatter and all-gather, each with a transposed and with a row-major b.
SHAPES = 6


def run(cache, pes=2, **settings):
    memo.run("tests/gpu/choices", cache, pes, **settings)


def lines(cache):
    """Returns the lines of choices; others are of single products."""
    return [line for line in memo.lines(cache) if " of " in line.split("#")[1]]


def ways(cache):
    return [words(line)[VALUE][0] for line in lines(cache)]


def slow_down(cache):
    """Forgets the choices, and lets what was the fastest algorithm of each product be slow."""
    products = [words(line) for line in memo.lines(cache) if line not in lines(cache)]
    for entry in products:
        entry[1 + TIMES] = 300
    memo.file(cache).write_text("".join(checked(entry) + "\n" for entry in products))


@with_cache
def engines(cache):
    """The pretended GPU runs the kernel slowly."""
    assert "  nothing: " in plan(cache, 128, 16, 24).stdout
    run(cache)
    assert ways(cache) == [ENGINES] * SHAPES, lines(cache)
    said = plan(cache, 128, 16, 24).stdout
    for operation in ("reduce-scatter of 2, b by columns", "reduce-scatter of 2, b by rows", "all-reduce of 2, b by columns"):
        assert f"  engines       128 x 16, {operation}: " in said, said
    assert "1 tiles of 256 x 168, in 1 rounds of 66, b by columns" in said and "all-gather" not in said, said
    assert "1 tiles of 256 x 192, in 1 rounds of 66, b by rows" in said, said
    assert "  engines       130 x 24, all-gather of 2, b by columns: " in plan(cache, 260, 16, 24).stdout


def faster(line):
    """Returns the way that the times of a line are for."""
    by_engines, by_kernel = map(float, re.findall(r"([0-9.]+) us by", line))
    return KERNEL if by_kernel < 0.99 * by_engines else ENGINES


@with_cache
def kernel(cache):
    """If a busy machine has delayed the kernel, it is tried again."""
    run(cache)
    for _ in range(3):
        slow_down(cache)
        run(cache)
        assert ways(cache) == list(map(faster, lines(cache))), lines(cache)
        if ways(cache) == [KERNEL] * SHAPES:
            break
    assert ways(cache) == [KERNEL] * SHAPES, lines(cache)


@with_cache
def kept(cache):
    run(cache, pes=3)
    assert ways(cache) == [ENGINES] * SHAPES, lines(cache)
    for line in lines(cache):  # the other way, which a trial would not choose
        entry = words(line)
        entry[1] = KERNEL
        memo.file(cache).write_text("\n".join([*memo.lines(cache), checked(entry), ""]))
    before = lines(cache)
    run(cache, pes=3)
    assert lines(cache) == before, "nothing is timed again"


@with_cache
def fixed(cache):
    for settings in ({"WEFT_DETERMINISTIC": "1"}, {"WEFT_PRODUCTS": "cublaslt"}, {"WEFT_PRODUCTS": "own"}):
        run(cache, **settings)
        assert not lines(cache), lines(cache)


def plan(cache, *sizes):
    return subprocess.run([memo.BUILD / "bin/weft", "info", "--plan", *map(str, sizes)], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "XDG_CACHE_HOME": str(cache)})


@with_cache
def wrong_sizes(cache):
    for sizes in (("0", 1, 1), ("x", 1, 1), (1, 1, "1x"), (1, 1, 2 ** 40)):
        refused = plan(cache, *sizes)
        assert refused.returncode == 2 and "are not three sizes" in refused.stderr, refused


tap.run([("the engines, where they are faster, as weft info --plan prints", engines), ("the kernel, where it is", kernel),
         ("a later run takes the same ways without timing", kept),
         ("settings that decide alone: nothing is kept", fixed), ("weft info --plan refuses wrong sizes", wrong_sizes)])
