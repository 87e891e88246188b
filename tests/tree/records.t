#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Decision records are numbered from 1 on without holes, their titles say the number of their file, and what
refers to one names a file that is there, by its number.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

FILES = sorted(path.name for path in (ROOT / "docs/adr").iterdir())


def numbers(problems):
    for number, name in enumerate(FILES, 1):
        if not name.startswith(f"{number:04d}-"):
            problems.append(f"docs/adr/{name} is where {number:04d} should be")
            return


def titles(problems):
    for name in FILES:
        title = (ROOT / "docs/adr" / name).read_text().split("\n")[0]
        if not re.match(rf"# {name[:4]}: \S", title):
            problems.append(f"docs/adr/{name} begins with '{title}', not with '# {name[:4]}: ...'")


def references(problems):
    known = {name[:4] for name in FILES}
    for folder in "docs", "src", "python", "tests", "bench":
        for path in (ROOT / folder).rglob("*.*"):
            if path.suffix not in {".md", ".c", ".h", ".cuh", ".cu", ".py", ".t"}:
                continue
            text = path.read_text()
            shown = re.findall(r"\[(\d+)\]\((?:adr/)?(\d{4})(-[\w-]+\.md)\)", text)
            problems += [f"{path.relative_to(ROOT)}: [{number}] is {file}{rest}" for number, file, rest in shown
                         if int(number) != int(file) or file + rest not in FILES]
            problems += [f"{path.relative_to(ROOT)}: there is no docs/adr/{number}"
                         for number in re.findall(r"docs/adr/(\d{4})", text) if number not in known]


tap.run([
    ("records are numbered without holes", numbers),
    ("titles say the number of the file", titles),
    ("references are to records that are there", references),
])
