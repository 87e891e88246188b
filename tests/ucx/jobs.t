#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs over UCX (tests/engine_jobs.py), also as the engine for far PEs."""
import pathlib
import re
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[1] / "launch")]
from harness import BUILD, case, main  # noqa: E402

if not (BUILD / "lib/libweft_ucx.so").exists():
    print("1..0 # SKIP there is no engine over UCX here")
    sys.exit(0)
import engine_jobs as jobs  # noqa: E402


@case("it is used where it is named, or told by what to go, and says by what it goes")
def choice():
    for environment in {}, {"WEFT_ENGINE": "auto", "UCX_TLS": "tcp,self"}, {"WEFT_ENGINE": "auto", "UCX_NET_DEVICES": "lo"}:
        said = jobs.reached_by(**environment)
        assert re.match(r"UCX 1\.\d+\.\d+, transports tcp,self on lo; TCP is neither encrypted", said), said


@case("a network that is none")
def network():
    said = jobs.run(2, jobs.program, "return", UCX_NET_DEVICES="nowhere0")
    assert said.status == jobs.STATUS_ERROR and "no network interface of 'nowhere0'" in said.err, said.err


main()
