# SPDX-License-Identifier: BSD-3-Clause
"""TAP for tests that look for problems: a case is a name and a function that appends to a list."""
import sys


def run(cases):
    failed = 0
    for number, (name, check) in enumerate(cases, 1):
        found = []
        check(found)
        for line in found:
            print(f"# {line}", file=sys.stderr)
        print(f"{'not ' if found else ''}ok {number} - {name}")
        failed += bool(found)
    print(f"1..{len(cases)}")
    sys.exit(failed != 0)
