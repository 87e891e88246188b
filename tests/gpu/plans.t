#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The choice of cuBLASLt's algorithms, on the pretended driver: the fastest is found, and kept for later runs; what is
kept may be damaged, of another library, or impossible to store."""
import pathlib

import memo
import tap
from memo import KEY, NUMBER, VALUE, checked, lines, with_cache, words

ALGORITHMS = 3
TIMES = 50  # each multiplies so often, the slow ones four times that, so that the times of launches do not matter


def run(cache, pes=1, **settings):
    return memo.run("tests/gpu/plans", cache, pes, **{"WEFT_FAKE_ALGORITHMS": str(ALGORITHMS),
                                                       "WEFT_FAKE_TIMES": str(TIMES), "WEFT_PRODUCTS": "cublaslt",
                                                       **settings})


def keys(cache):
    return {words(line)[KEY] for line in lines(cache)}


@with_cache
def fastest(cache):
    run(cache, pes=2)
    assert all(words(line)[VALUE][NUMBER] == ALGORITHMS - 1 for line in lines(cache)), lines(cache)
    assert all(checked(words(line)).split("#")[0] == line.split("#")[0] for line in lines(cache)), lines(cache)
    assert len(keys(cache)) == 6 * 2, lines(cache)  # the pretended GPUs of the PEs have different names
    assert memo.file(cache).stat().st_mode & 0o777 == 0o600


@with_cache
def kept(cache):
    run(cache)
    before = lines(cache)
    run(cache)
    assert lines(cache) == before, "nothing is timed again"


@with_cache
def own(cache):
    """Weft's kernel is faster than all algorithms where it fits: the three shapes of bf16."""
    run(cache, WEFT_PRODUCTS="auto", WEFT_FAKE_TIMES="2000", WEFT_FAKE_ALGORITHMS="1")
    before = lines(cache)
    assert [any(words(line)[VALUE]) for line in before].count(False) == 3, before
    run(cache, WEFT_PRODUCTS="auto")
    assert lines(cache) == before
    run(cache)
    assert all(any(words(line)[VALUE]) for line in lines(cache)[len(before):]), lines(cache)


@with_cache
def last(cache):
    """What was kept last holds, also if it is slower."""
    run(cache)
    slower = [words(line) for line in lines(cache)]
    for entry in slower:
        entry[1 + NUMBER], entry[1 + NUMBER + 1] = 0, 4 * TIMES
    file = memo.file(cache)
    file.write_text(file.read_text() + "\n".join(map(checked, slower)) + "\n")
    before = lines(cache)
    run(cache)
    assert lines(cache) == before


@with_cache
def damaged(cache):
    run(cache)
    all_keys, file = keys(cache), memo.file(cache)
    for change in (lambda text: text[:len(text) // 3], lambda text: text.replace(" 3", " 4").replace("a", "b"),
                   lambda text: "\n\n#\n" + "f" * 5000 + "\n", lambda text: "\0" * 100):
        file.write_text(change(file.read_text()))
        run(cache)
        good = [line for line in lines(cache) if line.count("#") == 1 and len(line.split("#")[0].split()) == 10]
        assert {words(line)[KEY] for line in good} >= all_keys, lines(cache)
        file.write_text("\n".join(good) + "\n")


@with_cache
def foreign(cache):
    """An algorithm that the library does not take."""
    run(cache)
    entries = [words(line) for line in lines(cache)]
    for entry in entries:
        entry[1 + NUMBER] = 1000
    memo.file(cache).write_text("\n".join(map(checked, entries)) + "\n")
    run(cache)
    assert {words(line)[KEY] for line in lines(cache) if words(line)[VALUE][NUMBER] == ALGORITHMS - 1} == keys(cache)


@with_cache
def nowhere(cache):
    place = pathlib.Path(cache) / "file"
    place.write_text("")
    run(place)
    run("relative", HOME="")
    assert not pathlib.Path("relative").exists()


@with_cache
def recommended(cache):
    run(cache, WEFT_DETERMINISTIC="1")
    assert not list(pathlib.Path(cache).iterdir())


@with_cache
def uncaptured(cache):
    """An algorithm that fails in a capture is not chosen; without the recommended one nothing is timed."""
    run(cache, WEFT_FAKE_UNCAPTURED=str(ALGORITHMS - 1))
    assert lines(cache) and all(words(line)[VALUE][NUMBER] < ALGORITHMS - 1 for line in lines(cache)), lines(cache)
    memo.file(cache).unlink()
    try:
        run(cache, WEFT_FAKE_UNCAPTURED="0")  # which the product in a graph needs
    except AssertionError as failed:
        assert "ok 1 - products of several shapes" in str(failed) and "not ok 2" in str(failed), failed
    assert not lines(cache)


tap.run([("the fastest algorithm is found, and kept", fastest), ("a later run takes it without timing", kept),
         ("so is Weft's kernel", own),
         ("an algorithm that cannot be captured is left out", uncaptured),
         ("of two lines for a shape the last one holds", last), ("damaged lines count as missing", damaged),
         ("an algorithm that the library refuses is found anew", foreign),
         ("without a place to keep it, products work", nowhere),
         ("with WEFT_DETERMINISTIC=1 nothing is timed or kept", recommended)])
