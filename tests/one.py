#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One test by its name: builds what it needs, and runs it. `make test T=core/sync N=2 FAR=each` calls this.

    tests/one.py ROOM/NAME PES PLACEMENT BUILD MAKE...

PES may be empty: all that the test has; so may PLACEMENT: near.

A test is a program in C or C++ (tests/core/sync.c), a script (tests/boot/death.t) or a module of pytest
(tests/python/test_rma.py). A script needs the library, its tools, and the programs that it names, itself
or in a module that it imports.
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent


def fail(text):
    sys.exit(f"make test: {text}")


def is_helper(path):
    return "PEs: none" in path.read_text() if path.suffix in (".c", ".cc") else False


def all_tests():
    """room/name -> the files that are tests by that name: a program and a script may share one."""
    found = {}
    for pattern in "*/*.c", "*/*.cc", "*/*.t", "python/test_*.py":
        for path in TESTS.glob(pattern):
            found.setdefault(f"{path.parent.name}/{path.stem}", []).append(path)
    return found


def resolve(asked, tests):
    if not asked:
        fail("which one? T=core/sync, say; rooms: " + " ".join(sorted({name.split("/")[0] for name in tests})))
    name = re.sub(r"^(\./)?tests/|\.(c|cc|t|py)$", "", asked)
    if name not in tests:
        base = name.split("/")[-1]
        near = [known for known in sorted(tests) if known.split("/")[1] == base]
        near += [known for known in difflib.get_close_matches(name, tests, 5, 0.6) if known not in near]
        near = near or [known for known in sorted(tests) if known.startswith(name.split("/")[0] + "/")][:40]
        fail(f"there is no test {asked}" + (f"; near it: {' '.join(near)}" if near else ""))
    if all(is_helper(path) for path in tests[name]):
        users = [known for known, paths in sorted(tests.items())
                 if any(path.suffix == ".t" and name in programs(path, tests) for path in paths)]
        fail(f"{name} is a program of other tests" + (f": {' '.join(users)}" if users else ""))
    return name


def text_of(path, seen):
    """A script's text, and that of the modules of ours that it imports."""
    seen.add(path)
    text = path.read_text()
    if not text.startswith("#!/bin/sh"):
        for module in re.findall(r"^\s*(?:import|from) (\w+)", text, re.M):
            for file in TESTS.glob(f"*/{module}.py"):
                text += text_of(file, seen) if file not in seen else ""
    return text


def programs(script, tests):
    text = text_of(script, set())
    named = set(re.findall(r"(?=\b([a-z]\w*/[a-z]\w*)\b)", text))
    rooms = set(re.findall(r"\btests/(\w+)/\*\.c", text))
    return {name for name, paths in tests.items() if any(path.suffix in (".c", ".cc") for path in paths)
            and (name in named or name.split("/")[0] in rooms or '"tests/*/*"' in text)}


def needs(name, tests, build):
    """The targets of make."""
    targets = {f"{build}/bin/oshrun"}
    for path in tests[name]:
        if path.suffix in (".c", ".cc"):
            targets |= {f"{build}/tests/{name}", engine(build)}  # prove.sh may run it far, too
        else:
            targets |= {"all"} | {f"{build}/tests/{program}" for program in programs(path, tests)}
            text = text_of(path, set())
            if "python" in (path.parent.name, *re.findall(r'"(python)"', text)) or "import interpreter" in text:
                targets.add("python")
            if "gpu/driver" in text:
                targets |= driver(build)
    if name.startswith("ucx/"):
        targets.add("all")
    return targets | (driver(build) if name.startswith("gpu/") else set())


def check_pes(pes, name, tests):
    """The line "PEs: 2 3" of a program's head says which numbers it can run on."""
    if not re.fullmatch(r"[1-9]\d*", pes):
        fail(f"N={pes} is not a number of PEs")
    heads = ["\n".join(path.read_text().splitlines()[:15]) for path in tests[name] if path.suffix in (".c", ".cc")]
    counts = [re.search(r"PEs: *(\d[\d ]*)", head) for head in heads]
    if heads and all(match and pes not in match.group(1).split() for match in counts):
        fail(f"{name} does not run on {pes} PEs, but on {' '.join(match.group(1).strip() for match in counts)}")


def driver(build):
    return {f"{build}/tests/gpu/driver/libcuda.so.1", f"{build}/tests/gpu/driver/libweft_cuda.so"}


def engine(build):
    return f"{build}/tests/far/libweft_fake_engine.so"


def main():
    asked, pes, placement, build, *make = sys.argv[1:]
    tests = all_tests()
    name = resolve(asked, tests)
    if pes:
        check_pes(pes, name, tests)
    quiet = [] if os.environ.get("V", "0") != "0" else ["-s"]  # or else make says what is up to date
    wanted = sorted(needs(name, tests, build))
    done = subprocess.run([*make, *quiet, f"BUILD={build}", *wanted], close_fds=False)
    if done.returncode:
        sys.exit(done.returncode)
    os.execv(TESTS / "prove.sh", ["prove.sh", "-1", name, *(["-n", pes] if pes else []),
                                  *(["-p", placement] if placement else []), build])


if __name__ == "__main__":
    main()
