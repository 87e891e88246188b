#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The code's habits that a machine can see: lengths, licence lines, words that must not stay."""
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

FUNCTION_LINES_MAX = 60
FILE_LINES_MAX = 500
MEDIAN_FUNCTION_LINES_MAX = 13
INCLUDES_MAX = 12
INCLUDES_MEAN_MAX = 3.6
FLOORS = ["weft", "base", "boot", "transport", "tcp", "ucx", "job", "far", "core", "device", "coll", "fused", "ops", "api", "without_gpu", "launch"]
# (file in src, words of the line): why a line with strerror() has no weft_remedy().
WITHOUT_REMEDY = {
    ("api/init_attr.c", "a line on stderr says why"): "that line has the remedy",
    ("boot/exchange.c", "PE %d has failed"): "another PE's error, and its own line has the remedy",
    ("boot/host_link.c", "%s port %u: %s"): "an attempt that is repeated, for a text of 256 bytes",
    ("boot/meet.c", "is gone before all PEs had arrived"): "another process has ended",
    ("boot/pmi.c", "no answer to"): "another program's mistake, which the line quotes",
    ("boot/pmi.c", "does not answer"): "another program has ended",
    ("boot/tcpstore.c", "waiting for the store"): "an attempt that is repeated; the line about its end has the remedy",
    ("boot/tls_listener.c", "pending_refuse"): "for another process, whose limits it does not concern",
    ("far/channel.c", "cannot be reached, but no process"): "the engine's reason, which is of the network",
    ("launch/end.c", "cannot %s '%s'%s"): "another process's error, which has its remedy beside it",
    ("launch/help.c", "cannot write to standard output"): "the user's own file",
    ("launch/hosts.c", "%s %s: %s"): "the user's own file",
    ("launch/lines.c", "further output of PEs"): "the user's own file",
    ("ops/matmul.c", "the library could not multiply"): "another library's reason",
}
ROOMS_OF_ERRORS = ["base", "boot", "transport", "tcp", "device", "coll", "api", "ops", "launch"]


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".c", ".h", ".cc", ".cu", ".cuh"}:
                yield path


def functions(path):
    """(name, lines) of every function whose body opens at the end of an unindented line."""
    begin, name = None, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if begin is None:
            match = re.match(r"^[A-Za-z_].*?(\w+)\(.*", line)
            if match and not line.startswith(("#", "typedef", "struct ", "enum ", "union ")):
                name = match.group(1)
            if line.endswith("{") and name and not re.match(r"^(struct|enum|union|extern)\b[^(]*$", line):
                begin = number
            elif line.endswith(";") and not line.startswith((" ", "\t")):
                name = None
        elif line.startswith("}"):
            yield name, number - begin + 1
            begin, name = None, None


def function_lengths(problems):
    lengths = []
    for path in sources("src", "examples", "python"):
        for name, lines in functions(path):
            lengths.append(lines)
            if lines > FUNCTION_LINES_MAX:
                problems.append(f"{path.relative_to(ROOT)}: {name} has {lines} lines")
    median = sorted(lengths)[len(lengths) // 2]
    if median > MEDIAN_FUNCTION_LINES_MAX:
        problems.append(f"the median function has {median} lines")
    print(f"# {len(lengths)} functions, median {median}, longest {max(lengths)} lines")


def file_lengths(problems):
    for path in sources("src", "include", "examples", "python"):
        lines = len(path.read_text().splitlines())
        if lines > FILE_LINES_MAX:
            problems.append(f"{path.relative_to(ROOT)} has {lines} lines")


def licence_lines(problems):
    for path in sources("src", "include", "examples", "python", "tests", "bench"):
        head = path.read_text().split("\n", 2)
        if "SPDX-License-Identifier: BSD-3-Clause" not in head[0]:
            problems.append(f"{path.relative_to(ROOT)} does not open with its licence line")


def quoted_includes(path):
    return re.findall(r'^#include "([^"]+)"', path.read_text(), re.M)


def include_order(problems):
    """A file includes its own header first, then those of the system, then those of the rooms: from the
    ground up, and by name in each.
    """
    def place(path, name):
        if name.split(".")[0] == f'"{path.parent.name}/{path.stem}':
            return (0,)
        return (1,) if name[0] == "<" else (2, FLOORS.index(name[1:].split("/")[0]), name)

    for path in sources("src"):
        places = [place(path, name) for name in re.findall(r'^#include (["<][^">]+)', path.read_text(), re.M)]
        if places != sorted(places):
            problems.append(f"{path.relative_to(ROOT)}: own header, system headers, headers of rooms from the ground up")


def include_once(problems):
    """A header brings what its declarations need, and a room's first header what all its files stand on;
    a file that includes it does not repeat that. Its own header is named all the same.
    """
    brings = {}

    def all_of(name):
        path = ROOT / "src" / name
        if name not in brings:
            direct = quoted_includes(path) if path.exists() else []
            brings[name] = set(direct).union(*map(all_of, direct))
        return brings[name]

    for path in sources("src"):
        names = quoted_includes(path)
        for name in names:
            by = next((other for other in names if name in all_of(other)), None)
            if by and name.split(".")[0] != f"{path.parent.name}/{path.stem}":
                problems.append(f"{path.relative_to(ROOT)} repeats {name}, which {by} brings")
    mean = statistics.mean(counts := [len(quoted_includes(p)) for p in sources("src") if p.suffix in {".c", ".cu"}])
    print(f"# {mean:.2f} includes a source, {max(counts)} at most")
    if mean > INCLUDES_MEAN_MAX or max(counts) > INCLUDES_MAX:
        problems.append(f"{mean:.2f} includes of rooms a source, {max(counts)} at most: "
                        f"{INCLUDES_MEAN_MAX} and {INCLUDES_MAX} are allowed")


def names_of_errors(problems):
    """A negative errno is called `error`, so that grep finds it."""
    for path in sources(*(f"src/{room}" for room in ROOMS_OF_ERRORS)):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"\brc\b", re.sub(r'"[^"]*"', "", line.split("/*")[0].split(" * ")[0])):
                problems.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")


def remedies(problems):
    """A line that gives an errno in words also says what to do about it: weft_remedy() knows limits of the process and of
    the machine, and a sandbox. WITHOUT_REMEDY has the other lines."""
    missing = dict(WITHOUT_REMEDY)
    for path in sources("src"):
        name = str(path.relative_to(ROOT / "src"))
        text = re.sub(r"/\*.*?\*/", lambda comment: re.sub(r"[^\n]", " ", comment[0]), path.read_text(), flags=re.S)
        strings = re.sub(r'"[^"\n]*"', lambda m: re.sub("[;{}]", ",", m[0]), text)
        for found in re.finditer(r"\bstrerror\(", text):
            begin = max(strings.rfind(mark, 0, found.start()) for mark in ";{}") + 1
            statement = text[begin:strings.index(";", found.start())]
            known = [key for key in WITHOUT_REMEDY if key[0] == name and key[1] in statement]
            if "_remedy(" not in statement and not known:
                problems.append(f"src/{name}:{text.count(chr(10), 0, found.start()) + 1}: the line has no weft_remedy()")
            for key in known:
                missing.pop(key, None)
    problems += [f"src/{name}: no line without a remedy has '{words}' any more" for name, words in missing]


def leftover_words(problems):
    words = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
    for path in sources("src", "include", "examples", "python", "tests", "bench"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if words.search(line):
                problems.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")


def kernels_wait_first(problems):
    """A kernel may start before the one before it in the stream has ended (transport/gpu_kernel.h)."""
    for path in sources("src"):
        text = path.read_text()
        kernels = re.findall(r"__global__ void[^{;]*?\b(weftk_[\w#]+)\([^{;]*\{([^;]*;)", text)
        if len(kernels) != text.count("__global__ void"):
            problems.append(f"{path.relative_to(ROOT)}: a kernel has a form that this test does not read")
        for name, statement in kernels:
            if statement.strip(" \\\n") != "weft_dependency_wait();":
                problems.append(f"{path.relative_to(ROOT)}: {name} does not begin with weft_dependency_wait()")


def formatting(problems):
    files = [str(p) for p in sources("src", "include", "examples", "python", "tests", "bench")]
    try:
        version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True)
        if " 14." not in version.stdout:
            raise tap.Skip("clang-format is not version 14, whose output counts: formatting not checked")
        run = subprocess.run(["clang-format", "--dry-run", "-Werror", *files],
                             capture_output=True, text=True, cwd=ROOT)
    except FileNotFoundError:
        raise tap.Skip("clang-format is not installed: formatting not checked")
    if run.returncode:
        problems += sorted({line.split(": error")[0] for line in run.stderr.splitlines()
                            if ": error" in line})[:20] + ["run: make format"]


tap.run([
    (f"functions have at most {FUNCTION_LINES_MAX} lines", function_lengths),
    (f"files have at most {FILE_LINES_MAX} lines", file_lengths),
    ("every file opens with its licence", licence_lines),
    ("includes are the own header, the system's, the rooms'", include_order),
    ("no include is repeated, and they are few", include_once),
    ("a negative errno is called error", names_of_errors),
    ("a line with an errno has a remedy, or a reason to have none", remedies),
    ("no promise is left in a comment", leftover_words),
    ("every kernel begins with weft_dependency_wait", kernels_wait_first),
    ("clang-format changes nothing", formatting),
])
