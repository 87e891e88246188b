#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of docs/device.md lists the functions of <weft/device.cuh>: the header defines each of them, and each
frozen name that the header defines is there. {a,b} is one of them."""
import itertools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402


def expanded(name):
    parts = [part[1:-1].split(",") if part[0] == "{" else [part] for part in re.findall(r"\{[^}]*\}|[^{]+", name)]
    return {"".join(choice) for choice in itertools.product(*parts)}


def listed():
    section = (ROOT / "docs/device.md").read_text().split("## 11. All functions")[1]
    return set().union(*(expanded(name) for name in re.findall(r"^\| `(weft_[\w{},]+)\(", section, re.M)))


def defined():
    text = subprocess.run(["gcc", "-E", "-P", "-x", "c", "-D__NVPTX__", "-DWEFT_DEVICE_ARCH=900", f"-I{ROOT / 'include'}", "-"],
                          input="#include <weft/device.cuh>\n", capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\b(weft_\w+) ?\([^;{}]*\) ?\{", text))


def frozen():
    lines = (ROOT / "tests/gpu/bitcode.list").read_text().splitlines()
    return {line.split()[0] for line in lines if line.startswith("weft_")}


def check(problems):
    table, header = listed(), defined()
    problems.extend(f"{name} is in the table, and not in the header" for name in sorted(table - header))
    problems.extend(f"{name} is in the header, and not in the table" for name in sorted((frozen() & header) - table))
    if len(table) < 100:
        problems.append(f"the table lists {len(table)} functions alone")


tap.run([("the table of functions", check)])
