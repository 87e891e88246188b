#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/nvshmem.md lists NVSHMEM's names that the headers have, no more and no fewer: in the tables of its kernels and
of its hosts. There [x] is there or not, {a,b} is one of them, TYPE, SIZE and OP stand for what a table has."""
import itertools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

PAGE = (ROOT / "docs/nvshmem.md").read_text()
TYPES = (r"(?:u?(?:int|long|longlong|short|char)|schar|u?int(?:8|16|32|64)|size|ptrdiff|float|double|half|bfloat16)")


def shape(name):
    name = re.sub(rf"^(nvshmemx?_){TYPES}_", r"\1TYPE_", name)
    name = re.sub(r"_(?:sum|prod|max|min|and|or|xor)_(reduce)", r"_OP_\1", name)
    return re.sub(r"(put|get)(?:8|16|32|64|128)", r"\1SIZE", name)


def defined(*flags):
    text = subprocess.run(["gcc", "-E", "-P", "-x", "c", f"-I{ROOT / 'include'}", *flags, "-"],
                          input="#include <weft/nvshmem.cuh>\n", capture_output=True, text=True, check=True).stdout
    return {shape(name) for name in re.findall(r"\b(nvshmemx?_\w+) ?\(", text)}


def expanded(name):
    parts = [part[1:-1].split(",") if part[0] == "{" else ["", part[1:-1]] if part[0] == "[" else [part]
             for part in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^\[{]+", name)]
    return {"".join(choice) for choice in itertools.product(*parts)}


def listed(heading):
    section = re.search(rf"^## {heading}\n(.*?)(?=^## )", PAGE, re.M | re.S)[1]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return set().union(*(expanded(name) for row in rows for name in re.findall(r"`([^`]+)`", row)))


def compare(problems, page, header):
    problems.extend(f"{name} is on the page, and not in the headers" for name in sorted(page - header))
    problems.extend(f"{name} is in the headers, and not on the page" for name in sorted(header - page))
    if len(page) < 50:
        problems.append(f"the page lists {len(page)} names alone")


def for_kernels(problems):
    compare(problems, listed("In kernels"), defined("-D__NVPTX__"))


def for_hosts(problems):
    """collective_launch needs CUDA's runtime."""
    compare(problems, listed("On the host"), defined("-DCUDART_VERSION=12040", "-D_GNU_SOURCE"))


tap.run([("names for kernels", for_kernels), ("names for the host", for_hosts)])
