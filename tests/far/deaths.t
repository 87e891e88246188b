#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A far PE dies at one of its messages, sent or received, in every kind of call: the survivors name it and end within
a second, and nothing is left. It dies at the first and the last message and at some random ones in between, with
WEFT_TEST_LONG at many. A PE that only stops is waited for.
"""
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from strike import LONG, SPEECHLESS_AFTER, check_remains  # noqa: E402
from harness import BUILD, Result, case, far, main, patience, start  # noqa: E402

SCENES = str(BUILD / "tests/far/scenes")
STRIKES = 40 if LONG else 2
SECONDS_MAX = 1.0  # after a death
random.seed(os.environ.get("WEFT_TEST_SEED"))

# The repetitions of each scene.
TURNS = {"put": 5, "flood": 2, "get": 5, "fetch_add": 50, "quiet": 20, "fence": 100, "signal": 20, "barrier": 20, "locks": 20,
         "malloc": 10, "reduce": 6, "broadcast": 20, "teams": 3, "idle": 20}


def begin(scene, npes, placement, settings):
    return start("-n", npes, *far(placement, settings), SCENES, scene, TURNS[scene])


def run(*scene):
    return Result(begin(*scene), seconds_max=30)


def census(scene, npes, victim, placement, settings):
    """Returns the number of messages that the victim sends and receives in a whole run, and the seconds of the run."""
    result = run(scene, npes, placement, f"{settings};tell=1").expect(0, seconds_max=20)
    sent, received = re.search(rf"fake engine: PE {victim}: (\d+) messages sent, (\d+) received", result.err).groups()
    return int(sent) + int(received), result.seconds


def check_death(scene, npes, victim, placement, settings, message, seconds):
    """Checks the death at that message. Returns False if the victim had fewer messages."""
    where = f"{scene}: PE {victim} of {npes} ({placement}) dies at message {message}, {settings}"
    result = run(scene, npes, placement, f"{settings};pe={victim},die_after={message}")
    check_remains(result, f"{where}: {result.err}")
    if result.status == 0:
        return False
    assert result.status == 137, f"{where}: status {result.status}: {result.err}"
    pids = dict(re.findall(r"^pid (\d+) (\d+)$", result.out, re.M))
    named = re.search(rf"^oshrun: PE {victim} \(pid (\d+)\) was killed by signal 9 .*; ending the job$", result.err, re.M)
    assert named and pids.get(str(victim), named[1]) == named[1], f"{where}: {result.err}"
    said = re.findall(r"^weft: PE (\d+) \(pid \d+\): (.*)$", result.err, re.M)
    others = [text for _, text in said if not re.search(rf"PE {victim} \(pid {named[1]}\)", text)]
    assert not others, f"{where}: another line was logged: {result.err}"
    assert result.seconds < patience(seconds + SECONDS_MAX), f"{where}: took {result.seconds} s, not {seconds}"
    return True


def strike_scene(scene, npes, victim, placement, settings=""):
    messages, seconds = census(scene, npes, victim, placement, settings)
    points = {1, messages} | set(random.sample(range(1, messages + 1), min(STRIKES, messages)))
    for point in sorted(points):
        # The number of messages differs from run to run, as PEs meet: if there were fewer, an earlier one is tried.
        while not check_death(scene, npes, victim, placement, settings, point, seconds):
            assert point > 1, f"{scene}: PE {victim} has lived through its first message"
            point = random.randint(1, point // 2)


def check_scenes(npes, victim, placement, scenes, settings=""):
    for scene in scenes:
        strike_scene(scene, npes, victim, placement, settings)


@case("PE 1 of 2 dies")
def one_of_two():
    check_scenes(2, 1, "each", TURNS)


@case("PE 0 of 3 dies, and one of the others is near to it")
def first_of_three():
    check_scenes(3, 0, "list:0,0,1", TURNS if LONG else ["flood", "barrier", "locks", "reduce", "signal"])


@case("messages are late and out of order")
def late():
    check_scenes(3, 2, "each", TURNS if LONG else ["put", "quiet", "teams"], "reorder=16,delay_us=100")


@case("a PE that is stopped for a while only delays the others")
def stopped():
    settings = "limit=1600000,ring=8388608"
    job = begin("flood", 3, "each", settings)
    pids = dict(re.match(r"pid (\d) (\d+)", job.stdout.readline()).groups() for _ in range(3))
    os.kill(int(pids["1"]), signal.SIGSTOP)
    time.sleep(0.3)
    assert job.poll() is None, f"the others have ended without it: {job.stderr.read()}"
    os.kill(int(pids["1"]), signal.SIGCONT)
    Result(job, seconds_max=30).expect(0, seconds_max=20)


@case("the channels are full")
def full():
    check_scenes(2, 1, "each", ["flood", "put"], "ring=32768,slow_read_us=20,refuse=10")


main()
