# SPDX-License-Identifier: BSD-3-Clause
"""Python with library and extension under the address and undefined-behaviour sanitizers, as `make
check` builds them: WRAPPER in front of the interpreter, ENVIRONMENT around the job.
"""
import subprocess

import interpreter

BUILD = interpreter.ROOT / "build/san-address-undefined"
_RUNTIMES = ":".join(subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
                     for name in ("libasan.so", "libubsan.so"))
WRAPPER = ["env", f"LD_PRELOAD={_RUNTIMES}"]
# CPython itself leaks by design, so leaks are not asked for (test_leaks.py does).
ENVIRONMENT = {"PYTHONMALLOC": "malloc", "ASAN_OPTIONS": "detect_leaks=0"}


def is_built():
    return (BUILD / "python/weft/_core.abi3.so").exists()
