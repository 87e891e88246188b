#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft.triton and examples/python/triton, as far as Triton compiles without a GPU: triton_code.py."""
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402

PYTHON = interpreter.find("triton")
if not PYTHON:
    print("1..0 # SKIP no Python here has Triton")
elif not (interpreter.BUILD / "lib/libweft_device_sm90.bc").exists():
    print("1..0 # SKIP this build has no libweft_device: there was no clang for GPUs")
else:
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(os.spawnve(os.P_WAIT, "/usr/bin/env", ["env", PYTHON, str(HERE / "triton_code.py")],
                            interpreter.environment(TRITON_CACHE_DIR=folder)))
