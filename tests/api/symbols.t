#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Names: the headers declare, and the library exports, every routine of the specification and its profiling twin, with
the specification's prototypes, and nothing else.

The routines are those of openshmem-1.6-symbols.txt, and the few below; nothing is read from the headers' own tables."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C_COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
CXX_COMPILERS = [c for c in ("g++", "clang++") if shutil.which(c)]
SYMBOLS = pathlib.Path(__file__).with_name("openshmem-1.6-symbols.txt")
ROUTINES = {name: prototype for _, _, name, prototype in
            (line.split("\t") for line in SYMBOLS.read_text().splitlines() if not line.startswith("#"))}
# Programs wait for sets of short integers by the names without a type, which stand for these.
for kind, ctype in (("short", "short"), ("ushort", "unsigned short")):
    for verb, result, indices in (("wait_until_all", "void", ""), ("wait_until_any", "size_t", ""), ("wait_until_some", "size_t", "size_t *indices, "),
                                  ("test_all", "int", ""), ("test_any", "size_t", ""), ("test_some", "size_t", "size_t *indices, ")):
        for form, value in (("", f"{ctype} cmp_value"), ("_vector", f"const {ctype} *cmp_values")):
            name = f"shmem_{kind}_{verb}{form}"
            ROUTINES[name] = f"{result} {name}({ctype} *ivars, size_t nelems, {indices}const int *status, int cmp, {value});"
TWINS = {"p" + name for name in ROUTINES}


def some(names):
    """Returns a readable report."""
    names = sorted(names)
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def compare(problems, found, wanted, verb):
    if wanted - found:
        problems.append(f"{len(wanted - found)} not {verb}: {some(wanted - found)}")
    if found - wanted:
        problems.append(f"{verb}, but not the specification's: {some(found - wanted)}")


# --- Headers -----------------------------------------------------------------------------------------

def declared(header):
    run = subprocess.run(["gcc", "-std=c11", "-E", "-P", f"-I{ROOT}/include", "-x", "c", "-"],
                         input=f"#include <{header}>\n", capture_output=True, text=True, check=True)
    text = re.sub(r"__typeof__\(\w+\)|__attribute__\(\(\w+\)\)", "", run.stdout)
    functions = re.findall(r"\b(\w+)\([^()]*\) *;", text)
    return {name for name in functions + re.findall(r"^extern +(\w+);", text, re.M)
            if not name.startswith("__")}


def header_names(problems):
    compare(problems, declared("shmem.h"), set(ROUTINES), "declared by shmem.h")
    compare(problems, declared("pshmem.h"), set(ROUTINES) | TWINS, "declared by pshmem.h")


def same_prototypes(problems):
    """A second declaration must be compatible with the first, otherwise the compiler reports an error. Names in
    parentheses are not expanded as generic macros."""
    text = "#include <pshmem.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
    for name, prototype in ROUTINES.items():
        for twin in ("", "p"):
            text += re.sub(rf"\b{name}\(", f"({twin}{name})(", prototype, count=1) + "\n"
    text += "#ifdef __cplusplus\n}\n#endif\n"
    compilers = [(c, "c", ["-std=c11", *STRICT]) for c in C_COMPILERS]
    compilers += [(c, "c++", ["-std=c++11"]) for c in CXX_COMPILERS]
    for compiler, language, flags in compilers:
        run = subprocess.run([compiler, f"-I{ROOT}/include", *flags, "-x", language, "-fsyntax-only", "-"],
                             input=text, capture_output=True, text=True)
        if run.returncode:
            problems.append(f"{compiler}: {run.stderr[:600]}")


# --- Library -----------------------------------------------------------------------------------------

def symbols(path, *options):
    """Returns name -> (address, kind) of the defined symbols."""
    run = subprocess.run(["nm", "--defined-only", "--extern-only", *options, str(path)],
                         capture_output=True, text=True, check=True)
    return {line.split()[2]: tuple(line.split()[:2]) for line in run.stdout.splitlines()
            if len(line.split()) == 3}


SHARED = symbols(BUILD / "lib/libweft.so", "-D")
ARCHIVE = symbols(BUILD / "lib/libweft.a")


def is_extension(name):
    return name.startswith(("shmemx_", "weft_"))


def exported_names(problems):
    compare(problems, {name for name in SHARED if not is_extension(name)}, set(ROUTINES) | TWINS, "exported")


def internal_names(problems):
    public = declared("weft.h") | declared("shmemx.h")
    internal = {name for name in SHARED if is_extension(name)} - public
    if internal:
        problems.append(f"internal, but exported: {some(internal)}")
    missing = {name for name in public if is_extension(name)} - set(SHARED)
    if missing:
        problems.append(f"declared, but not exported: {some(missing)}")


def twins(problems):
    """One function: shmem_X is weak, so that a tool's definition replaces it; pshmem_X is strong."""
    for where, table in (("libweft.so", SHARED), ("libweft.a", ARCHIVE)):
        for name in ROUTINES:
            address, kind = table.get(name, (None, "missing"))
            if kind != "W" or table.get("p" + name) != (address, "T"):
                problems.append(f"{where}: {name} is {kind}, p{name} is {table.get('p' + name)}")
    del problems[10:]


def no_own_calls(problems):
    """Weft's own code calls neither name of a routine: a tool would count calls that the program has not made."""
    for path in sorted((BUILD / "obj/src").rglob("*.o")):
        run = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", str(path)],
                             capture_output=True, text=True, check=True)
        used = {name.split("-")[0].split("+")[0] for name in re.findall(r"R_\w+\s+(\S+)", run.stdout)}
        if used & (set(ROUTINES) | TWINS):
            problems.append(f"{path.relative_to(BUILD)} calls {some(used & (set(ROUTINES) | TWINS))}")


tap.run([
    ("the headers declare every routine and its twin, and nothing else", header_names),
    ("every prototype is the specification's, in C and in C++", same_prototypes),
    ("the library exports all of them, and nothing else", exported_names),
    ("of its own names only those that the headers declare", internal_names),
    ("each routine is weak and its twin a strong name of the same code", twins),
    ("the library calls neither", no_own_calls),
])
