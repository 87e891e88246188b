#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the documents point to is there: links, files of the tree, targets of make."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

DOCUMENTS = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
ROOMS = r"(?:src|include|tests|tools|docs|bench|examples)"


def links(problems):
    for document in DOCUMENTS:
        text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)  # a[i](x) is no link in a program
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target and not (document.parent / target).exists():
                problems.append(f"{document.relative_to(ROOT)} links to {target}")


def files(problems):
    """Paths in back quotes. `.[ch]` and the like are patterns; records of decisions tell of old times."""
    for document in DOCUMENTS:
        if document.parent.name == "adr":
            continue
        for path in re.findall(rf"`({ROOMS}/[\w./\[\]*+-]+)`", document.read_text()):
            if not list(ROOT.glob(path)):
                problems.append(f"{document.relative_to(ROOT)} names {path}")


def targets(problems):
    makefiles = [ROOT / "Makefile", *(ROOT / "mk").glob("*.mk")]
    known = {target for file in makefiles for target in re.findall(r"^([a-z-]+):", file.read_text(), re.M)}
    for document in DOCUMENTS:
        for target in re.findall(r"`make ([a-z-]+)", document.read_text()):
            if target not in known:
                problems.append(f"{document.relative_to(ROOT)} names make {target}")


tap.run([
    ("links lead somewhere", links),
    ("files that are named are there", files),
    ("so are targets of make", targets),
])
