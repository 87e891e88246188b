#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One name, one thing: what is inside shares no name with what is public, with what kernels of users
will call, or with anything else inside."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

# The interface for kernels, <weft/device.cuh>: names that the inside stays away from.
DEVICE = set()
for names in (
    "at abort epoch over fence quiet fence_async fence_async_shared",
    *(f"{verb}_{width}" for verb in ("put", "get", "put_signal") for width in "twb"),
    *(f"{verb}{bits}" for verb in ("p", "g") for bits in (32, 64)),
    "bulk_load bulk_put bulk_add bulk_commit bulk_wait_read bulk_wait",
    "signal signal_add wait wait_ge wait_eq wait_until test_ge test_eq test_until",
    *(f"{verb}_b" for verb in ("arrive", "depart", "barrier", "sync")),
    "arrive depart barrier sync barrier_grid dependency_wait dependency_trigger",
    "ll_send ll_recv ll_bcast ll_epoch_begin ll_epoch_end",
    "put get fetch set swap compare_swap add and or xor push_rows device_team",
):
    DEVICE |= {"weft_" + name for name in names.split()}

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
        for name in set(FUNCTION.findall(text)) & (DEVICE - PUBLIC):
            problems.append(f"{path.relative_to(ROOT)} has {name}, a name for kernels of users")


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
    for path, text in INSIDE + sources("include", ".h", ".cuh"):
        for name in STRUCTURE.findall(text):
            where[name].add(str(path.relative_to(ROOT)))
    problems += [f"struct {name} is in {' and in '.join(sorted(paths))}" for name, paths in sorted(where.items())
                 if len(paths) > 1]
    if len(where) < 100:
        problems.append(f"only {len(where)} structures were found")


tap.run([
    ("no function inside is named like a public one", check_public),
    ("no function inside is named like one for kernels of users", check_device),
    ("kernels are weftk_, and nothing else is named like one", check_kernels),
    ("no two structures share a name", check_structures),
])
