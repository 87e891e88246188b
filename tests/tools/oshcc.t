#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The compiler wrappers: which compiler they run, that they never run themselves, what they add and when,
and what they show.
"""
import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("WEFT_BUILD", "build")).resolve()
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-oshcc-"))
atexit.register(shutil.rmtree, WORK)
OSHCC, OSHCXX, OSHRUN = (BUILD / "bin" / name for name in ("oshcc", "oshc++", "oshrun"))
COMPILE = f"-I{BUILD}/include"
LINK = f"-L{BUILD}/lib -Wl,-rpath,{BUILD}/lib -lweft -lm"
VARIABLES = ("OSHCC", "OSHCXX", "WEFT_CC", "WEFT_CXX", "WEFT_WRAPPING")
(WORK / "ring.c").write_text("""
#include <math.h>
#include <shmem.h>
static volatile double angle;
static uint64_t arrived;
int main(void) {
    shmem_init();
    shmem_uint64_atomic_inc(&arrived, shmem_my_pe());
    return cos(angle) != 1 || arrived != 1;
}
""")
(WORK / "ring.cc").write_text("#include <shmem.h>\n#include <string>\nstatic std::string text = \"x\";\n"
                              "int main() { shmem_init(); return text.size() != 1; }\n")


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def run(*command, **variables):
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment.update({name: str(value) for name, value in variables.items()})
    return subprocess.run(list(map(str, command)), cwd=WORK, capture_output=True, text=True, timeout=60, env=environment)


def expect(problems, what, condition, result):
    if not condition:
        problems.append(f"{what}: status {result.returncode}: {result.stdout[-300:]}{result.stderr[-300:]}")


def builds(problems, *command, npes=2, **variables):
    (WORK / "ring").unlink(missing_ok=True)
    result = run(*command, "-o", "ring", **variables)
    expect(problems, f"{variables} {command}", result.returncode == 0 and not result.stderr, result)
    if (WORK / "ring").exists():
        ran = run(OSHRUN, "-n", npes, WORK / "ring")
        expect(problems, f"what {command} made", ran.returncode == 0, ran)


def never_itself(problems):
    twin = WORK / "twin"
    shutil.copy(OSHCC, twin)
    (WORK / "alias").symlink_to(OSHCC)
    between = script(WORK / "between", f'exec "{OSHCC}" "$@"')
    path = f"{BUILD}/bin:{os.environ['PATH']}"
    for name in ("oshcc", OSHCC, "alias", between, "oshcc -O2", "env oshcc", "nobody/oshcc"):
        builds(problems, "oshcc", "ring.c", OSHCC=name if name != "alias" else WORK / name, PATH=path)
    builds(problems, OSHCXX, "ring.cc", OSHCXX="oshc++", PATH=path)
    builds(problems, OSHCXX, "ring.cc", OSHCXX=OSHCXX, OSHCC="oshcc", PATH=path)
    for name in ("oshcc", OSHCC, between):
        result = run("oshcc", "ring.c", "-o", "ring", WEFT_CC=name, PATH=path)
        expect(problems, f"WEFT_CC={name}", result.returncode == (0 if name == between else 2), result)
    result = run(twin, "ring.c", "-o", "ring", WEFT_WRAPPING=2)
    expect(problems, "three turns", result.returncode == 2 and "calls this script again" in result.stderr, result)


def which_compiler(problems):
    """Each says its name and what it was given, and compiles nothing."""
    for name in "mine", "theirs":
        script(WORK / name, f'echo "{name} $*"')
    for wrapper, own, common in (OSHCC, "WEFT_CC", "OSHCC"), (OSHCXX, "WEFT_CXX", "OSHCXX"):
        for variables, wanted in (({own: WORK / "mine", common: WORK / "theirs"}, "mine -I"),
                                  ({common: WORK / "theirs"}, "theirs -I"),
                                  ({own: f"{WORK}/mine -O1"}, "mine -O1 -I"),
                                  ({own: WORK / "mine", "OSHCC": "clang", "WEFT_WRAPPING": ""}, "mine -I")):
            result = run(wrapper, "-c", "x.c", **variables)
            expect(problems, f"{wrapper.name} {variables}", result.stdout.startswith(wanted), result)
        result = run(wrapper, "-c", "x.c", **{own: "no-such-compiler"})
        expect(problems, "no compiler", result.returncode == 2 and f"set {own} to one" in result.stderr, result)
    builds(problems, OSHCXX, "ring.cc", OSHCC="false")
    if shutil.which("clang++"):
        builds(problems, OSHCXX, "ring.cc", OSHCXX="clang++")


def what_is_linked(problems):
    """Nothing is where no program is made, and the mathematics library always."""
    builds(problems, OSHCC, "ring.c", npes=3)
    builds(problems, OSHCC, "-x", "c", "ring.c")
    builds(problems, OSHCC, "-static-weft", "ring.c")
    echo = script(WORK / "echo", 'echo "$*"')
    for arguments, links in (("-c a.c", 0), ("a.c -S", 0), ("-E a.c", 0), ("-M a.c", 0), ("-MM a.c", 0), ("-v", 0),
                             ("--version", 0), ("", 0), ("-O2 -o a", 0), ("-fsyntax-only a.c", 0), ("-r a.o b.o", 0),
                             ("-print-search-dirs", 0), ("-v a.c", 1), ("-MD a.c", 1), ("a.o -o a", 1), ("-shared a.o", 1),
                             ("-x c -", 1), ("-o -c a.o", 1)):
        result = run(OSHCC, *arguments.split(), WEFT_CC=echo)
        wanted = " ".join(filter(None, [COMPILE, arguments, LINK * links]))
        expect(problems, f"oshcc {arguments}", result.stdout == wanted + "\n", result)
    result = run(OSHCC, "-DTEXT=\"two words\"", "a folder/a.c", "-c", WEFT_CC=script(WORK / "count", 'echo $#; echo "$3"'))
    expect(problems, "words stay whole", result.stdout == "4\na folder/a.c\n", result)


def as_compilers(problems):
    result = run(OSHCC, "--version")
    expect(problems, "--version", result.returncode == 0 and result.stdout, result)
    expect(problems, "-v", run(OSHCC, "-v").returncode == 0, result)
    result = run(OSHCC)
    expect(problems, "no arguments", result.returncode != 0 and "no input files" in result.stderr, result)


def what_is_shown(problems):
    command = run(OSHCC, "--showme:command").stdout.strip()
    whole = f"{command} {COMPILE} {LINK}"
    for arguments, wanted in (
            ("--showme", whole), ("-show", whole), ("-showme", whole), ("--showme:compile", COMPILE),
            ("--showme:link", LINK), ("-showlibs", LINK), ("--showme:incdirs", f"{BUILD}/include"),
            ("--showme:libdirs", f"{BUILD}/lib"), ("--showme:libs", "weft m"),
            ("-compile_info", f"{command} {COMPILE} -c"), ("-compile-info", f"{command} {COMPILE} -c"),
            ("-link_info", f"{command} {LINK}"), ("-link-info", f"{command} {LINK}"),
            ("a.c -o a --showme", f"{command} {COMPILE} a.c -o a {LINK}"),
            ("a.c -showme -c", f"{command} {COMPILE} a.c -c"), ("-O2 --showme:compile a.c", COMPILE)):
        result = run(OSHCC, *arguments.split())
        expect(problems, f"oshcc {arguments}", (result.returncode, result.stdout) == (0, wanted + "\n"), result)
    result = run(OSHCC, "--showme", "-DA='b c'", "a.c")
    expect(problems, "quotes", r"'-DA='\''b c'\''' a.c" in result.stdout, result)
    result = run(OSHCC, "--showme:version")
    expect(problems, "version", result.stdout.startswith("oshcc: Weft 0."), result)
    result = run(OSHCXX, "--showme:help")
    expect(problems, "help", result.returncode == 0 and "WEFT_CXX" in result.stdout, result)
    result = run(OSHCC, "--showme:all-of-it")
    expect(problems, "unknown", result.returncode == 2 and "--showme:help" in result.stderr, result)


def static_programs(problems):
    (WORK / "heap.c").write_text("""
#include <shmem.h>
static uint64_t fixed;
int main(int argc, char **argv) {
    (void)argv;
    shmem_init();
    uint64_t *word = argc > 1 ? &fixed : shmem_malloc(sizeof *word);
    shmem_uint64_atomic_set(word, 7, (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    return *word != 7;
}
""")
    probe = run(OSHCC, "-static", "heap.c", "-o", "heap")
    if probe.returncode and "cannot find" in probe.stderr:
        raise tap.Skip("there is no static C library here")
    expect(problems, "a note", probe.returncode == 0 and "globals and statics are not symmetric" in probe.stderr and
           "shmem_malloc" in probe.stderr, probe)
    result = run(OSHRUN, "-n", 2, WORK / "heap")
    expect(problems, "its heap", result.returncode == 0, result)
    for npes in 1, 2:
        result = run(OSHRUN, "-n", npes, WORK / "heap", "fixed")
        expect(problems, "its statics", result.returncode and "argument dest is 0x" in result.stderr and
               "a global or static variable, which is not symmetric" in result.stderr and
               "-static" in result.stderr and "shmem_malloc" in result.stderr, result)


def other_refusals(problems):
    """Statics are not symmetric either between different programs, and where only a library has Weft."""
    (WORK / "fixed.c").write_text("""
#include <shmem.h>
static char more[MORE];
static uint64_t fixed;
int main(void) {
    shmem_init();
    more[0] = 1;
    shmem_uint64_atomic_set(&fixed, 7, (shmem_my_pe() + 1) % shmem_n_pes());
    return 0;
}
""")
    for size in 1, 99999:
        run(OSHCC, f"-DMORE={size}", "fixed.c", "-o", f"fixed{size}")
    result = run(OSHRUN, "-n", 1, "./fixed1", ":", "-n", 1, "./fixed99999")
    expect(problems, "different programs", result.returncode and
           "a global or static variable, which is not symmetric where PEs run different programs" in result.stderr, result)
    (WORK / "loader.c").write_text("""
#include <dlfcn.h>
#include <stdint.h>
uint64_t mine;
int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
    ((void (*)(void))dlsym(library, "shmem_init"))();
    ((void (*)(uint64_t *, uint64_t, int))dlsym(library, "shmem_uint64_atomic_set"))(&mine, 7, 0);
    return 0;
}
""")
    run("gcc", "loader.c", "-o", "loader", "-ldl")
    result = run(WORK / "loader", BUILD / "lib/libweft.so")
    expect(problems, "a library", result.returncode and "where only a library that the program loads" in result.stderr,
           result)


tap.run([
    ("a wrapper never runs itself", never_itself),
    ("which compiler it runs", which_compiler),
    ("what is linked, and when", what_is_linked),
    ("without a program to make, it is the compiler", as_compilers),
    ("what it shows instead", what_is_shown),
    ("a static program hears what it cannot have", static_programs),
    ("so do different programs, and users of a library", other_refusals),
])
