#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program of Helion's with a PyTorch older than Helion wants:

    python3 tests/python/helion_run.py tests/python/helion_one_shot_all_reduce.py

Helion 1.5.1 imports the name of one error of Inductor's that PyTorch 2.11 does not have, and uses it only to
tell errors apart. Nothing raises it there.
"""
import runpy
import sys

import torch._inductor.runtime.triton_compat as compat

if not hasattr(compat, "IntelGPUError"):
    compat.IntelGPUError = type("IntelGPUError", (RuntimeError,), {})

if __name__ == "__main__":
    sys.argv.pop(0)
    runpy.run_path(sys.argv[0], run_name="__main__")
