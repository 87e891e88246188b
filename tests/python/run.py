# SPDX-License-Identifier: BSD-3-Clause
"""One PE of a run of pytest: the PEs go through the same tests together. PE 0 prints the results. Another PE prints
only if a test fails there, which ends the job, because its peers would wait for it.

    oshrun -n 2 python tests/python/run.py [pytest's arguments]
"""
import contextlib
import io
import os
import sys

import pytest

FIRST = ["-q", "-x", "-rs", "-p", "no:cacheprovider", "--tb=short"]


def main():
    pe = int(os.environ.get("WEFT_PE", "0"))
    arguments = FIRST + sys.argv[1:]
    if pe == 0:
        return pytest.main(arguments)
    quietly = io.StringIO()
    with contextlib.redirect_stdout(quietly):
        status = pytest.main(arguments)
    if status:
        print(f"PE {pe}:\n{quietly.getvalue()}", file=sys.stderr, flush=True)
    return status


sys.exit(main())
