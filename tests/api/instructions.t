#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The hottest routines have at most the instructions that instructions.txt lists, for the compiler and flags that it
names. A call of another function counts as one; cold parts that the compiler moves away do not count."""
import os
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("WEFT_BUILD", "build")).resolve()
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

TABLE = pathlib.Path(__file__).with_name("instructions.txt")
COMPILER = re.search(r"^# compiler: (.*)$", TABLE.read_text(), re.M).group(1)
FLAGS = {"-O2", "-fPIC", "-std=c11", "-march=x86-64"}
LINE = re.compile(r"(\w+) +(\d+)(?: +(\S.*))?")


def entries(problems):
    """Returns routine -> the count of its last line; a raised count gives its reason."""
    limits = {}
    for line in TABLE.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            problems.append(f"not 'routine count reason': {line}")
            continue
        name, count, reason = match.group(1), int(match.group(2)), match.group(3)
        if count > limits.get(name, count) and not reason:
            problems.append(f"{name} is raised from {limits[name]} to {count} without a reason")
        limits[name] = count
    if len(limits) < 8:
        problems.append(f"only {len(limits)} routines")
    return limits


def output(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


def built_by():
    """Returns the compiler's note in the object file of puts: its name, version and flags."""
    return output("objdump", "--dwarf=info", "--dwarf-depth=1", BUILD / "obj/src/api/rma.o").partition("DW_AT_producer")[2].split("\n")[0]


def check_build():
    if platform.machine() != "x86_64":
        raise tap.Skip(f"the table is for x86_64, this is {platform.machine()}")
    producer = built_by()
    words = set(producer.split())
    if f": {COMPILER} " not in producer or not FLAGS <= words or any("-fsanitize" in word or "-flto" in word for word in words):
        raise tap.Skip(f"the table is for {COMPILER} {' '.join(sorted(FLAGS))}, this build is by "
                       f"{producer.partition('): ')[2].strip() or 'a compiler that leaves no note (-g)'}")


def instructions(name):
    text = output("objdump", "-d", "--no-show-raw-insn", f"--disassemble=p{name}", BUILD / "lib/libweft.so")
    body = text.partition(f"<p{name}>:")[2].split("\n\n")[0]
    lines = [line.split("\t")[1] for line in body.splitlines() if re.match(r" +[0-9a-f]+:\t", line)]
    return sum(not re.match(r"(data16 |cs )*(nop|xchg +%ax,%ax)|endbr64", line) for line in lines)


def counts(problems):
    check_build()
    for name, limit in entries([]).items():
        count = instructions(name)
        if count > limit or not count:
            problems.append(f"{name} has {count} instructions, {limit} in {TABLE.relative_to(ROOT)}: "
                            "mend it, or add a line with the new count and the reason")
        elif count < limit:
            print(f"# {name} has {count} instructions now: the table may say so instead of {limit}")


tap.run([
    ("every raised entry of the table has its reason", entries),
    ("no hot routine has more instructions than its entry", counts),
])
