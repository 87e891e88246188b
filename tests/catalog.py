# SPDX-License-Identifier: BSD-3-Clause
"""The tests by name: the files of each, what its head says, and what make builds for it.

A test is a program in C or C++ (tests/core/sync.c), a script (tests/boot/death.t) or a module of pytest
(tests/python/test_rma.py). A script needs the library, its tools, and the programs that it or a module that
it imports names.
"""
import difflib
import functools
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent
PROGRAMS = ".c", ".cc"


def fail(text):
    print(f"tests: {text}", file=sys.stderr)
    sys.exit(2)


@functools.cache
def all_tests():
    """room/name -> its files: a program and a script may share a name."""
    found = {}
    for pattern in "*/*.c", "*/*.cc", "*/*.t", "python/test_*.py":
        for path in sorted(TESTS.glob(pattern)):
            found.setdefault(f"{path.parent.name}/{path.stem}", []).append(path)
    return dict(sorted(found.items()))


def program(name):
    """The source of the program with that name, or None."""
    return next((path for path in all_tests()[name] if path.suffix in PROGRAMS), None)


def is_helper(path):
    """Returns whether other tests run this program, and nobody else."""
    return path.suffix in PROGRAMS and any("PEs: none" in line for line in head(path))


@functools.cache
def head(path):
    lines = path.read_text().splitlines()[:15]
    for line in lines:
        if re.search(r"(PEs|Far): *$", line):
            fail(f"{path}: what {line.split()[-1]} says has to stand on the same line")
    return lines


def pes_of(path):
    """The numbers of PEs in the head's line "PEs: 2 3", or None if there is no such line."""
    found = next(filter(None, (re.search(r"PEs: *([\d ]*)", line) for line in head(path))), None)
    return [int(number) for number in found[1].split()] or None if found else None


def staged(path):
    return any(re.search("PEs: .*also staged", line) for line in head(path))


def far_lines(path):
    """(placement, settings of the engine, variable) of each line "Far: ..." of a program's head."""
    lines = (re.search(r".*Far: *(\S*) *(\S*) *(\S*)", re.sub(r" *\*/.*$", "", line)) for line in head(path))
    return [match.groups() for match in lines if match]


def resolve(asked):
    """The name of the test that the user means, or an error that names similar ones."""
    tests = all_tests()
    if not asked:
        fail("which test? T=core/sync, for example; rooms: " + " ".join(sorted({name.split("/")[0] for name in tests})))
    name = re.sub(r"^(\./)?tests/|\.(c|cc|t|py)$", "", asked)
    if name not in tests:
        base = name.split("/")[-1]
        near = [known for known in tests if known.split("/")[1] == base]
        near += [known for known in difflib.get_close_matches(name, tests, 5, 0.6) if known not in near]
        near = near or [known for known in tests if known.startswith(name.split("/")[0] + "/")][:40]
        fail(f"there is no test {asked}" + (f"; similar names: {' '.join(near)}" if near else ""))
    if all(map(is_helper, tests[name])):
        users = [known for known, paths in tests.items()
                 if any(path.suffix == ".t" and name in programs_of(path) for path in paths)]
        fail(f"{name} is a program of other tests" + (f": {' '.join(users)}" if users else ""))
    return name


def check_pes(pes, name):
    counts = [pes_of(path) for path in all_tests()[name] if path.suffix in PROGRAMS]
    if not re.fullmatch(r"[1-9]\d*", pes):
        fail(f"N={pes} is not a number of PEs")
    if counts and all(some and int(pes) not in some for some in counts):
        fail(f"{name} does not run on {pes} PEs, but on {' '.join(map(str, sum(counts, [])))}")


def text_of(path, seen):
    """The text of a script and of our modules that it imports."""
    seen.add(path)
    text = path.read_text()
    if not text.startswith("#!/bin/sh"):
        for module in re.findall(r"^\s*(?:import|from) (\w+)", text, re.M):
            for file in TESTS.glob(f"*/{module}.py"):
                text += text_of(file, seen) if file not in seen else ""
    return text


def programs_of(script):
    """The names of the programs that a script runs."""
    text = text_of(script, set())
    named = set(re.findall(r"(?=\b([a-z]\w*/[a-z]\w*)\b)", text))
    rooms = set(re.findall(r"\btests/(\w+)/\*\.c", text))
    return {name for name in all_tests() if program(name)
            and (name in named or name.split("/")[0] in rooms or '"tests/*/*"' in text)}


def driver(build):
    return {f"{build}/tests/gpu/driver/{name}" for name in ("libcuda.so.1", "libweft_cuda.so", "libcublasLt.so.13")}


def engine(build):
    return f"{build}/tests/far/libweft_fake_engine.so"


def needs(name, build):
    """The targets of make for a test."""
    targets = {f"{build}/bin/oshrun"}
    for path in all_tests()[name]:
        if path.suffix in PROGRAMS:
            targets |= {f"{build}/tests/{name}", engine(build)}  # it may run far, too
        else:
            targets |= {"all"} | {f"{build}/tests/{program}" for program in programs_of(path)}
            text = text_of(path, set())
            if "python" in (path.parent.name, *re.findall(r'"(python)"', text)) or "import interpreter" in text:
                targets.add("python")
            if "gpu/driver" in text:
                targets |= driver(build)
    if name.startswith("ucx/"):
        targets.add("all")
    return targets | (driver(build) if name.startswith("gpu/") else set())
