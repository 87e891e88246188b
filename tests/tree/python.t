#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""No circle of files in the Python package: neither do the objects of its C extension need each other in a circle,
nor do its modules import each other in one, imports inside functions included.
"""
import ast
import collections
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python"
OBJECTS = ROOT / "build/obj/python/weft"
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402
from circles import find_circle  # noqa: E402


def report(edges, problems):
    if len(edges) < 20 or not any(edges.values()):
        problems.append(f"only {len(edges)} files were found")
    if circle := find_circle(edges):
        problems.append(" -> ".join(circle))


def check_extension(problems):
    objects = [path for path in sorted(OBJECTS.glob("*.o")) if (PACKAGE / "weft" / path.name).with_suffix(".c").exists()]
    if not objects:
        raise tap.Skip("the extension is not built here: make python")
    owner, wanted = {}, collections.defaultdict(set)
    for line in subprocess.run(["nm", "-gA", *objects], text=True, capture_output=True, check=True).stdout.splitlines():
        path, rest = line.split(":", 1)
        *_, kind, name = rest.split()
        file = pathlib.Path(path).stem
        if kind == "U":
            wanted[file].add(name)
        else:
            owner[name] = file
    report({file: {owner[name] for name in names if owner.get(name, file) != file} for file, names in wanted.items()},
           problems)


def module_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path, modules):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules else node.module


def check_modules(problems):
    paths = {module_of(path): path for path in PACKAGE.rglob("*.py")}
    modules = {*paths, "weft._core"}
    report({module: {name for name in imports(path, modules) if name in paths and name != module}
            for module, path in paths.items()}, problems)


tap.run([
    ("there is no circle of files in the C extension", check_extension),
    ("nor of modules in the package", check_modules),
])
