#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs over TCP (tests/engine_jobs.py), by default, and with a low limit of descriptors."""
import pathlib
import re
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[1] / "launch")]
import engine_jobs as jobs  # noqa: E402
from harness import case, main  # noqa: E402


@case("it is what reaches far PEs by default, and says by what it goes")
def choice():
    for environment in {}, {"WEFT_ENGINE": "auto"}:
        said = jobs.reached_by(**environment)
        assert said == "TCP on lo (127.0.0.1), for PEs of the job alone; not encrypted", said


@case("PEs that may open too few files say so")
def files():
    said = jobs.run(12, jobs.program, "few files")
    assert said.status == jobs.STATUS_ERROR, f"status {said.status}: {said.err}"
    assert re.search(r"cannot open a connection to PE \d+ on another host: Too many open files; ulimit -n is \d+: raise it, or set", said.err), said.err


main()
