#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One version: include/weft/version.h has it, for the preprocessor, and all else that states one agrees."""
import datetime
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

HEADER = (ROOT / "include/weft/version.h").read_text()
NUMBERS = [int(re.search(rf"^#define WEFT_VERSION_{part} (\d+)$", HEADER, re.M).group(1))
           for part in ("MAJOR", "MINOR", "PATCH")]
VERSION = ".".join(map(str, NUMBERS))
NUMBER = NUMBERS[0] * 10000 + NUMBERS[1] * 100 + NUMBERS[2]

PROGRAM = f"""
#if !defined WEFT_VERSION || WEFT_VERSION != {NUMBER} || WEFT_VERSION_MINOR != {NUMBERS[1]}
#error "no version for the preprocessor"
#endif
const char name[] = SHMEM_VENDOR_STRING, whole[] = "Weft " WEFT_VERSION_STRING;
_Static_assert(sizeof whole == sizeof "Weft {VERSION}" && sizeof name == sizeof whole, "as text");
"""


def preprocessor(problems):
    for header in "shmem.h", "weft.h":
        done = subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "-fsyntax-only",
                               "-x", "c", "-"], input=f"#include <{header}>{PROGRAM}", text=True, capture_output=True)
        if done.returncode:
            problems.append(f"{header}: {done.stderr[:400]}")


def others(problems):
    make = subprocess.run(["make", "-pn", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    stated = [("make", re.search(r"^VERSION := (.*)$", make, re.M).group(1)),
              ("pyproject.toml", re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M).group(1)),
              ("python/weft/__init__.py",
               re.search(r'^__version__ = "(.*)"$', (ROOT / "python/weft/__init__.py").read_text(), re.M).group(1))]
    stated += [(page.name, re.search(r'^\.TH \S+ \S+ \S+ "Weft (.*?)"', page.read_text(), re.M).group(1))
               for page in sorted((ROOT / "docs/man").iterdir())]
    problems += [f"{where} says {version}, version.h {VERSION}" for where, version in stated if version != VERSION]


def change_log(problems):
    """Each section is a version with a date, one of them this version, or at the top "Unreleased"."""
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    released = [heading for heading in headings if heading != "Unreleased"]
    dates = [re.fullmatch(r"(\d+\.\d+\.\d+), (\d{4}-\d\d-\d\d)", heading) for heading in released]
    problems += [f"CHANGELOG.md: '## {heading}' is no version with a date" for heading, date in zip(released, dates) if not date]
    if "Unreleased" in headings[1:]:
        problems.append("CHANGELOG.md: Unreleased is not the first section")
    if all(dates) and VERSION not in [date[1] for date in dates]:
        problems.append(f"CHANGELOG.md has no section '## {VERSION}, YYYY-MM-DD'")
    for date in filter(None, dates):
        datetime.date.fromisoformat(date[2])


tap.run([
    ("the preprocessor sees it", preprocessor),
    ("make, the Python package and the manual have the same", others),
    ("the change log has a section for it, with its date", change_log),
])
