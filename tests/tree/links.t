#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the objects need of each other goes down only, as includes do (floors.t): a function that is declared
in one place and defined in another, above, is found here. Inside a room no two files need each other, not even
by way of others.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OBJECTS = ROOT / "build/obj/src"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/tree")]
import tap  # noqa: E402
from circles import find_circle  # noqa: E402
from ranks import RANKS, rank  # noqa: E402

ROOMS = ["base", "boot", "transport", "tcp", "job", "far", "core", "device", "coll", "fused", ("api", "ops", "launch")]
RANK = {name: rank for rank, names in enumerate(ROOMS) for name in ([names] if isinstance(names, str) else names)}


def symbols(option):
    """Of each object: the names that it defines, or needs."""
    found = collections.defaultdict(set)
    paths = [path for room in RANK for path in sorted((OBJECTS / room).glob("*.o"))
             if (ROOT / "src" / room / path.name).with_suffix(".c").exists()]
    lines = subprocess.run(["nm", "-A", option, *paths], text=True, capture_output=True, check=True).stdout
    for line in lines.splitlines():
        path, rest = line.split(":", 1)
        kind, name = rest.split()[-2:]
        if kind.isupper() or kind == "w":
            found[str(pathlib.Path(path).relative_to(OBJECTS))[:-2]].add(name)
    return found


def edges():
    owner = {name: path for path, names in DEFINED.items() for name in names}
    return {path: {owner[name]: name for name in sorted(names) if owner.get(name, path) != path}
            for path, names in NEEDED.items()}


def check_rooms(problems):
    for path, needed in EDGES.items():
        room = path.split("/")[0]
        for other, name in needed.items():
            target = other.split("/")[0]
            if room != target and RANK[target] >= RANK[room]:
                problems.append(f"{path} needs {name} of {other}: {room} is not above {target}")


def check_ranks(problems):
    """Device's headers are one index, so that there includes say nothing of ranks."""
    for path, needed in EDGES.items():
        room = path.split("/")[0]
        for other, name in needed.items():
            if room in RANKS and other.startswith(room + "/") and rank(room, other) > rank(room, path):
                problems.append(f"{path} needs {name} of {other}, which ranks above it")


def check_circles(problems):
    inside = {path: {other for other in needed if other.split("/")[0] == path.split("/")[0]}
              for path, needed in EDGES.items()}
    if circle := find_circle(inside):
        problems.append("circle: " + " -> ".join(circle))


def check_local(problems):
    """A function may also be used by an inline function or a macro of its own header."""
    needed = set().union(*NEEDED.values())
    alone = {name: path for path, names in DEFINED.items() for name in names - needed if name.startswith("weft_")}
    texts = {path.relative_to(ROOT): path.read_text() for room in ("src", "include", "python", "tests", "tools")
             for path in (ROOT / room).rglob("*.[ch]*") if path.suffix in (".c", ".h", ".cc", ".cu", ".cuh")}
    for name, path in sorted(alone.items()):
        source, header = pathlib.Path(f"src/{path}.c"), pathlib.Path(f"src/{path}.h")
        word = re.compile(rf"\b{name}\b")
        if len(word.findall(texts.get(header, ""))) < 2 and not any(
                word.search(text) for at, text in texts.items() if at not in (source, header)):
            problems.append(f"{source}: nothing else uses {name}, so it should be static")


if not OBJECTS.is_dir():
    print("1..0 # SKIP nothing is built here: make")
    sys.exit(0)
DEFINED, NEEDED = symbols("--defined-only"), symbols("-u")
EDGES = edges()
tap.run([
    ("no object needs what is above its room", check_rooms),
    (f"nor what ranks above it in {' and '.join(RANKS)}", check_ranks),
    ("there is no circle of files", check_circles),
    ("a function that only its own file uses is static", check_local),
])
