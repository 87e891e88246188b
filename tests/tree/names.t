#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One name, one thing: names inside the library, and inside the Python extension, are neither public names,
names for kernels of users, nor names of something else inside."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

PROTOTYPE = re.compile(r"\b((?:shmemx?|weft)_\w+) ?\(")
KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)[\s\\]*)?([\w#]+)\(")
STRUCTURE = re.compile(r"^(?:static |typedef |__extension__ )*(?:struct|union)\s+(?:__attribute__\(.*?\)\)\s*)?(\w+)\s*\{",
                       re.M)
FUNCTION = re.compile(r"^(?:[\w*]+[ *]+)+\*?(weft_\w+)\(", re.M)


def code(path):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)


def sources(folder, *suffixes):
    return [(path, code(path)) for path in sorted((ROOT / folder).rglob("*")) if path.suffix in suffixes]


INSIDE = sources("src", ".c", ".h", ".cu", ".cuh")
PYTHON = sources("python/weft", ".c", ".h", ".cpp")
# The interface for kernels, <weft/device.cuh>: names that the inside stays away from. Those that it makes of tables
# stand in comments, and here.
KERNELS = {name for _, text in sources("include/weft", ".cuh") for name in FUNCTION.findall(text)}
KERNELS |= {f"weft_{name}{bits}" for bits in (32, 64) for name in "p g wait_until test_until atomic_add".split()}
OF_ENGINES = {"weft_engine_end", "weft_engine_link"}  # each engine has its own
PUBLIC = {name for _, text in sources("include", ".h") for name in PROTOTYPE.findall(text)}


def check_public(problems):
    for path, text in INSIDE:
        if path.suffix in (".h", ".cuh"):
            for name in set(FUNCTION.findall(text)) & PUBLIC:
                problems.append(f"{path.relative_to(ROOT)} declares {name}, which is public")


def check_device(problems):
    for path, text in INSIDE:
        if path.name.startswith("gpu_host"):  # what hosts have in the interface's stead
            continue
        for name in set(FUNCTION.findall(text)) & (KERNELS - PUBLIC):
            problems.append(f"{path.relative_to(ROOT)} has {name}, a name for kernels of users")
    if len(KERNELS) < 100:
        problems.append(f"only {len(KERNELS)} functions for kernels were found")


def check_kernels(problems):
    kernels = [(path, name) for path, text in INSIDE for name in KERNEL.findall(text)]
    problems += [f"{path.relative_to(ROOT)}: kernel {name} is no weftk_" for path, name in kernels
                 if not name.startswith("weftk_")]
    if len(kernels) < 17:
        problems.append(f"only {len(kernels)} kernels were found")
    others = {name for _, text in INSIDE for name in FUNCTION.findall(text)}
    problems += [f"{name} is a kernel and something else" for _, name in kernels if name in others]


def check_structures(problems):
    where = collections.defaultdict(set)
    for path, text in INSIDE + PYTHON + sources("include", ".h", ".cuh"):
        for name in STRUCTURE.findall(text):
            where[name].add(str(path.relative_to(ROOT)))
    problems += [f"struct {name} is in {' and in '.join(sorted(paths))}" for name, paths in sorted(where.items())
                 if len(paths) > 1 and name not in OF_ENGINES]
    if len(where) < 100:
        problems.append(f"only {len(where)} structures were found")


def check_python(problems):
    """Every other name of the extension that looks like the library's is one that the public headers declare."""
    library = re.compile(r"\b(?:weft|WEFT)_\w+")
    public = {name for _, text in sources("include", ".h", ".cuh") for name in library.findall(text)}
    for path, text in PYTHON:
        names = set(library.findall(re.sub(r'"(?:[^"\\\n]|\\.)*"', "", text)))
        for name in sorted(names - public):
            own = name.replace("weft", "pyweft").replace("WEFT", "PYWEFT")
            problems.append(f"{path.relative_to(ROOT)} has {name}, which no public header declares: call it {own}")
    if len(PYTHON) < 80:
        problems.append(f"only {len(PYTHON)} sources of the extension were found")


tap.run([
    ("no function inside is named like a public one", check_public),
    ("no function inside is named like one for kernels of users", check_device),
    ("kernels are weftk_, and nothing else is named like one", check_kernels),
    ("no two structures share a name", check_structures),
    ("the Python extension uses public names, and pyweft_ for its own", check_python),
])
