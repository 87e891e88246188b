#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Includes go down only: a file may include its own room and the rooms below it.

Reads every #include line of src/ and include/. Inside core and device, files have ranks of their own,
and no room may have a circle of includes. Core knows no driver: devices are the room above it.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/tree")]
import tap  # noqa: E402
from ranks import RANKS, rank  # noqa: E402

BELOW = {
    "base": set(),
    "boot": {"base"},
    "transport": {"base", "boot"},
    "tcp": {"base", "transport"},
    "core": {"base", "boot", "transport", "tcp"},
    "device": {"base", "boot", "transport", "core"},
    "coll": {"base", "boot", "transport", "core", "device"},
    "ops": {"base", "boot", "transport", "core", "device", "coll"},
    "api": {"base", "boot", "transport", "core", "device", "coll"},
    "without_gpu": {"base", "boot", "transport", "core", "device", "coll", "ops"},
    "launch": {"base", "boot"},
    "ucx": {"transport"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.M)


def includes(path):
    return INCLUDE.findall(path.read_text())


def check_room_edges(problems):
    for path in sorted((ROOT / "src").glob("*/*.[ch]*")):
        room = path.parent.name
        for name in includes(path):
            target = name.split("/")[0]
            if target in BELOW and "/" in name and target != room and target not in BELOW[room]:
                problems.append(f"{path.relative_to(ROOT)} includes {name}: {room} is not above {target}")
            if name.startswith(".."):
                problems.append(f"{path.relative_to(ROOT)} includes {name}: paths start at src/ or include/")


def check_ranks(problems):
    for room in RANKS:
        for path in sorted((ROOT / "src" / room).glob("*.[ch]")):
            if rank(room, path) is None:
                problems.append(f"src/{room}/{path.name} has no rank in ranks.py")
            for name in includes(path):
                if name.startswith(room + "/") and (rank(room, name) or 0) > (rank(room, path) or 0):
                    problems.append(f"src/{room}/{path.name} includes {name}, which ranks above it")


def check_no_driver(problems):
    """No line of core speaks to a GPU or its driver."""
    for path in sorted((ROOT / "src/core").glob("*.[ch]")):
        for word in re.findall(r'"transport/gpu\w*\.h"|\bweft_(?:cuda|gpu)\w*|\bcu[A-Z]\w+', path.read_text()):
            problems.append(f"src/core/{path.name} has {word}: that belongs to src/device")


def check_public_headers(problems):
    for path in sorted((ROOT / "include").rglob("*.*")):
        for name in includes(path):
            if name.split("/")[0] in BELOW:
                problems.append(f"{path.relative_to(ROOT)} includes {name}: public headers stand alone")


def check_circles(problems):
    """Header -> header edges, and source -> header of another noun of the same room."""
    edges = {}
    for path in (ROOT / "src").glob("*/*.[ch]"):
        node = f"{path.parent.name}/{path.stem}"
        for name in includes(path):
            target = name.rsplit(".", 1)[0]
            if target != node and (ROOT / "src" / name).exists():
                edges.setdefault(node, set()).add(target)
    seen, stack = {}, []

    def visit(node):
        seen[node] = "open"
        stack.append(node)
        for target in sorted(edges.get(node, ())):
            if seen.get(target) == "open":
                problems.append("circle: " + " -> ".join(stack[stack.index(target):] + [target]))
            elif target not in seen:
                visit(target)
        stack.pop()
        seen[node] = "done"

    for node in sorted(edges):
        if node not in seen:
            visit(node)


def check_python(problems):
    """The package is a user: public headers and its own."""
    for path in sorted(p for p in (ROOT / "python").rglob("*.[ch]*") if "__pycache__" not in p.parts):
        for name in includes(path):
            own = (path.parent / name).exists()
            if "/" in name.removeprefix("weft/") and name.split("/")[0] in BELOW or \
                    not own and (ROOT / "src").joinpath(name).exists():
                problems.append(f"{path.relative_to(ROOT)} includes {name}, which is not public")


tap.run([
    ("no include goes up or sideways between rooms", check_room_edges),
    ("inside core and device, includes follow the ranks", check_ranks),
    ("core calls no driver", check_no_driver),
    ("public headers include no room", check_public_headers),
    ("there is no circle", check_circles),
    ("the Python package includes public headers alone", check_python),
])
