# SPDX-License-Identifier: BSD-3-Clause
"""Sources in which something is missing, which a test is to notice: what the tables of tests/*/mutations.t go by."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]


def changed(file, changes):
    """The text of a source with each (expression, replacement), of which the expression is there once."""
    text = (ROOT / file).read_text()
    for old, new in changes:
        text, found = re.subn(old, new, text)
        if found != 1:
            raise LookupError(f"{file} has {found} times {old}: the table needs a new line")
    return text


def check_table(problems, mutations):
    """That all of a table, (name, file, changes) each, can be made."""
    for name, file, changes in mutations:
        try:
            changed(file, changes)
        except LookupError as error:
            problems.append(f"{name}: {error}")


def expect_notice(problems, test, seeds, run):
    """One of the runs, run(seed), sees something: a line of what."""
    for seed in seeds:
        seen = run(seed)
        if seen:
            print(f"# seed {seed}: {seen}")
            return
    problems.append(f"{len(seeds)} runs of tests/{test} have not noticed")
