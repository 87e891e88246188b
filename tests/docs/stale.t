#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The documents say nothing that was true of an older version alone: phrases that a new capability has made false do
not return, limits, defaults and listings are those of the source, and decision records say whether they are in force."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

# Decision records tell of their time; the change log tells of each version.
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "tests/README.md", *sorted((ROOT / "docs").glob("*.md")),
             *sorted((ROOT / "docs/man").iterdir())]
# Regular expressions on text whose white space is folded, and what made them false.
PHRASES = {
    r"one Linux host": "jobs run on several hosts",
    r"this version (has no others|is for)": "jobs run on several hosts",
    r"in this version, between PEs of one host": "jobs run on several hosts",
    r"cannot be done on one host": "jobs run on several hosts",
    r"no counterpart yet: one host": "TLS between hosts is always on",
    r"(TEAM_SHARED\S* \|.*|: )all PEs(: each can load| share memory)": "far PEs share no memory",
    r"no call can be made inside a kernel": "weft/device.cuh",
    r"shmem_ptr\S* \| is never NULL": "it is NULL for far PEs",
    r"each variable has a deprecated name": "four have one, which begins with SMA_",
    r"there are no headers of UCX here": "UCX is optional",
    r"UCX is (the|needed) .{0,20}between hosts": "TCP is the default engine",
}


def text_of(path):
    text = re.sub(r'^\.\\".*$', "", path.read_text(), flags=re.M)
    return " ".join(re.sub(r"^\.(B|BR|I|IR|TP|PP|IP|EX|EE)\b ?", "", text, flags=re.M).split())


def phrases(problems):
    for path in DOCUMENTS:
        for line in text_of(path).split(". "):
            for phrase, why in PHRASES.items():
                if re.search(phrase, line, re.I):
                    problems.append(f"{path.relative_to(ROOT)}: '{phrase}' is out of date: {why}")


def constant(path, name):
    return int(re.search(rf"\b{name}(?: =)? +(\d+)", (ROOT / path).read_text()).group(1))


def limits(problems):
    manual, hosts = text_of(ROOT / "docs/man/weft.7"), text_of(ROOT / "docs/hosts.md")
    standard = text_of(ROOT / "docs/openshmem.md")
    pes = constant("src/boot/wire.h", "WEFT_WIRE_PES_MAX")
    teams, contexts = constant("src/core/sync.h", "WEFT_TEAMS_MAX"), constant("src/core/ctx.h", "WEFT_CTXS_MAX")
    name = constant("include/shmem.h", "SHMEM_MAX_NAME_LEN")
    launcher, hint_ms = text_of(ROOT / "docs/man/oshrun.1"), constant("src/launch/remote.c", "HINT_MS")
    expected = [("oshrun.1", launcher, f"on a host after {hint_ms // 1000} seconds"), ("weft.7", manual, f"{pes} PEs"),
                # Two of each are the library's own.
                ("weft.7", manual, f"{teams - 2} teams and {contexts - 2} contexts"),
                ("hosts.md", hosts, f"{pes} PEs"),
                ("openshmem.md", standard, f"`SHMEM_MAX_NAME_LEN` ({name})"), ("openshmem.md", standard, f"| PEs | {pes} |"),
                ("openshmem.md", standard, f"| Teams at once | {teams}, with the two predefined ones |"),
                ("openshmem.md", standard, f"| Contexts at once | {contexts - 2}, and the default context |")]
    problems += [f"{page} does not say '{words}'" for page, text, words in expected if words not in text]


def defaults(problems):
    """Of variables that are numbers."""
    manual = (ROOT / "docs/man/weft.7").read_text()
    table = re.findall(r'X\(\w+, \w+, "(\w+)",\s+(?:NULL|"\w+"),\s+([\d.]+),', (ROOT / "src/base/env.h").read_text())
    if len(table) < 5:
        problems.append(f"src/base/env.h: only {len(table)} numbers were found")
    for name, value in table:
        section = re.search(rf"^\.TP\n\.B {name}\n(.*?)^\.TP$", manual, flags=re.M | re.S)
        if not section or f"{float(value):g} by default" not in section.group(1):
            problems.append(f"weft(7): {name} is {float(value):g} by default, and the page does not say so")


def length_of_check(problems):
    """mk/tests.mk prints how long `make check` takes."""
    minutes = re.search(r"'(\d+ to \d+ minutes) on two idle processors'", (ROOT / "mk/tests.mk").read_text()).group(1)
    for name in "README.md", "docs/building.md", "CONTRIBUTING.md":
        said = re.findall(r"\d+ to \d+ minutes", text_of(ROOT / name))
        if said != [minutes]:
            problems.append(f"{name} says {said}, and `make check` that it takes {minutes}")


def sizes(problems):
    """The size of a library or a package is another one with each compiler: no number would stay true."""
    for entry in re.split(r"\n(?:- |#|\n)", (ROOT / "CHANGELOG.md").read_text()):
        if re.search(r"\d ?([kKMG]i?B|bytes)\b", entry) and re.search(r"librar|wheel|package|bitcode", entry, re.I):
            problems.append(f"CHANGELOG.md gives a size: {' '.join(entry.split())}")


def listing(problems):
    """A fragment of docs/torch.md is lines of the complete program that runs, in its order."""
    page, example = "docs/torch.md", "examples/python/async_tensor_parallel.py"
    section = (ROOT / page).read_text().partition(f"]({'../' + example})")[2]
    fragment = [line.strip() for line in section.partition("```python\n")[2].partition("```")[0].splitlines()]
    program = iter([line.strip() for line in (ROOT / example).read_text().splitlines()])
    if not fragment:
        problems.append(f"{page} has no listing after the link to {example}")
    problems += [f"{page}: {example} has no '{line}', or has it earlier" for line in fragment if line not in program]


def records(problems):
    for record in sorted((ROOT / "docs/adr").glob("[0-9]*.md")):
        status = record.read_text().split("\n", 3)[2]
        if not re.match(r"Date: \d{4}-\d\d-\d\d\. Status: (in force|superseded .*by \[)", status):
            problems.append(f"docs/adr/{record.name}: the third line says neither 'in force' nor by what it is superseded")


tap.run([
    ("no document says what only an older version could not do", phrases),
    ("limits in documents are those of the source", limits),
    ("defaults in weft(7) are those of the source", defaults),
    ("documents and make check say the same about how long it takes", length_of_check),
    ("the change log gives no sizes of libraries", sizes),
    ("docs/torch.md shows lines of the program that it names", listing),
    ("decision records have a date and a status", records),
])
