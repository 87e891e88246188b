#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Includes go down only: a file may include its own room and the rooms below it.

Reads every #include line of src/ and include/. Inside device, files have ranks of their own,
and no room may have a circle of includes. Rooms below device name no driver of GPUs.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/tree")]
import tap  # noqa: E402
from circles import find_circle  # noqa: E402
from ranks import RANKS, rank  # noqa: E402

# From the ground up; the rooms that a room may include.
BELOW = {
    "base": set(),
    "boot": {"base"},
    "transport": {"base", "boot"},
    "tcp": {"base", "transport"},
    "job": {"base", "boot"},
    "far": {"base", "boot", "transport", "tcp", "job"},
    "core": {"base", "boot", "job", "far"},
    "device": {"base", "boot", "transport", "job", "far", "core"},
    "coll": {"base", "boot", "transport", "job", "far", "core", "device"},
    "fused": {"base", "boot", "transport", "job", "far", "core", "device", "coll"},
    "ops": {"base", "boot", "transport", "job", "far", "core", "device", "coll", "fused"},
    "api": {"base", "boot", "transport", "job", "far", "core", "device", "coll"},
    "without_gpu": {"base", "boot", "transport", "job", "far", "core", "device", "coll", "fused", "ops"},
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
    """No line below device names a GPU or its driver; transport, the room of the driver, apart."""
    for path in sorted(path for room in ("job", "far", "core") for path in (ROOT / "src" / room).glob("*.[ch]")):
        for word in re.findall(r'"transport/gpu\w*\.h"|\bweft_(?:cuda|gpu)\w*|\bcu[A-Z]\w+', path.read_text()):
            problems.append(f"{path.relative_to(ROOT)} has {word}: that belongs to src/device")


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
    if circle := find_circle(edges):
        problems.append("circle: " + " -> ".join(circle))


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
    ("inside device, includes follow the ranks", check_ranks),
    ("job, far and core name no driver", check_no_driver),
    ("public headers include no room", check_public_headers),
    ("there is no circle", check_circles),
    ("the Python package includes public headers alone", check_python),
])
