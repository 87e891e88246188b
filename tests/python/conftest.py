# SPDX-License-Identifier: BSD-3-Clause
"""The job that all tests share. All PEs begin and end every test together. A PE with a failed test exits, and ends the
job (run.py).
"""
import collections
import os
import pathlib

import pytest
import weft

weft.init()
_failed = False


def pytest_runtest_logreport(report):
    global _failed
    _failed |= report.failed


@pytest.fixture(autouse=True)
def together():
    weft.barrier()
    yield
    if not _failed:
        weft.barrier()


@pytest.fixture
def me():
    return weft.my_pe()


@pytest.fixture
def n():
    return weft.n_pes()


@pytest.fixture(scope="session")
def far():
    """Returns the PEs whose memory is not mapped here: none, unless the job is on several hosts, or pretends to be."""
    buffer = weft.empty(1, "uint8")
    several = "WEFT_INTERFACE" in os.environ or "WEFT_PRETEND_HOSTS" in os.environ
    return [pe for pe in range(weft.n_pes()) if several and weft.ptr(buffer, pe) is None]


@pytest.fixture
def mapped(far):
    """For tests of peers' memory. All PEs skip together: if one PE is far from another one, every PE has a far PE."""
    if far:
        pytest.skip(f"the memory of the PEs {far} is not mapped here")


AREAS = {"operators": "operators", "dtensors": "operators", "exchange": "operators", "matrices": "operators",
         "gradients": "gradients", "memory": "memory", "devices": "memory", "names": "names", "stubs": "names",
         "handler": "handler", "backend": "registry", "moe": "operators", "deep": "operators",
         "process": "groups"}


def area_of(nodeid):
    """Returns the column in the table of docs/torch.md that counts a test of weft.torch; None for other tests."""
    if "WEFT_TEST_BACKEND" in os.environ:
        return "registry"
    file, _, name = nodeid.partition("::")
    for word in ("opcheck", "compile", "graphs"):
        if word in name:
            return "compile" if word == "graphs" else word
    words = pathlib.Path(file).stem.split("_")
    return AREAS.get(words[1]) if words[0] == "torch" else None


def pytest_terminal_summary(terminalreporter):
    """Prints a line for each area, for check_torch.py."""
    counts = collections.defaultdict(collections.Counter)
    for outcome in ("passed", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            if report.when == "call" or outcome == "skipped":
                counts[area_of(report.nodeid)][outcome] += 1
    for area in sorted(filter(None, counts)):
        terminalreporter.line(f"area {area}: {counts[area]['passed']} passed, {counts[area]['skipped']} skipped")


def pytest_sessionfinish(exitstatus):
    if exitstatus == 0:
        weft.finalize()
