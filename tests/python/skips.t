#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Without PyTorch or pytest, each case of the tests that need them is a SKIP with the reason, not a plain ok, so that a
test that has not run is not mistaken for a passed one.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import tap  # noqa: E402

SKIPPED = re.compile(r"ok \d+ - .* # SKIP \S.*|1\.\.0 # SKIP \S.*|1\.\.\d+")


def bare(script):
    """With an interpreter that sees the standard library alone."""
    def check(problems):
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder) / "python"
            python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
            python.chmod(0o755)
            done = subprocess.run([HERE / script], capture_output=True, text=True, timeout=100,
                                  env={**os.environ, "WEFT_PYTHON": str(python)})
        plain = [line for line in done.stdout.splitlines() if not SKIPPED.fullmatch(line)]
        if done.returncode or plain or "# SKIP" not in done.stdout:
            problems += [f"status {done.returncode}", *plain, *done.stderr.splitlines()[-20:]]
    return check


tap.run([(script, bare(script)) for script in
         ("torch.t", "torch_backend.t", "torch_handler.t", "tutorial.t", "pes.t")])
