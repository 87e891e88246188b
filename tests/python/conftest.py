# SPDX-License-Identifier: BSD-3-Clause
"""The job that all tests share. Every test begins and ends with all PEs together, unless it fails:
then this PE ends, and the job with it (run.py).
"""
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


def pytest_sessionfinish(exitstatus):
    if exitstatus == 0:
        weft.finalize()
