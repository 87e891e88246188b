# SPDX-License-Identifier: BSD-3-Clause
"""Runs the cases of a test and prints TAP. A case is a name and a function that appends its problems to a list. It
raises Skip with a reason if it cannot run here; any other exception is a problem of that case alone.
WEFT_TEST_CASES, a regular expression, selects cases by name.
"""
import concurrent.futures
import os
import re
import sys
import traceback


class Skip(Exception):
    pass


def chosen(cases):
    """Returns the cases that WEFT_TEST_CASES selects by their first field, the name."""
    asked = os.environ.get("WEFT_TEST_CASES", "")
    found = [case for case in cases if re.search(asked, case[0])]
    return found or sys.exit(f"no case is like WEFT_TEST_CASES={asked}")


def ahead(cases, width=2):
    """Runs cases that mostly wait, `width` at a time; their problems are reported in order."""
    pool = concurrent.futures.ThreadPoolExecutor(width)

    def begin(case):
        found = []
        future = pool.submit(case, found)

        def finish(problems):
            exception = future.exception()  # when the case is over
            if isinstance(exception, Skip):
                raise exception
            problems.extend(found)
            problems.extend([repr(exception)] * (exception is not None))
        return finish
    started = [(name, begin(case)) for name, case in chosen(cases)]
    pool.shutdown(wait=False)
    return started


def run(cases):
    cases, failed = chosen(cases), 0
    for number, (name, check) in enumerate(cases, 1):
        found, skipped = [], ""
        try:
            check(found)
        except Skip as reason:
            skipped = f" # SKIP {reason}"
        except Exception:
            found += traceback.format_exc().splitlines()
        for line in found:
            print(f"# {line}", file=sys.stderr)
        print(f"{'not ' if found else ''}ok {number} - {name}{skipped}", flush=True)
        failed += bool(found)
    print(f"1..{len(cases)}")
    sys.exit(failed != 0)
