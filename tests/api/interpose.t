#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The profiling interface: a tool that defines shmem_X and calls pshmem_X sees every call of the program and none of
the library, wherever it is: in the program, in a library before Weft's, in a preloaded one, and with the static
library."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).resolve()
WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-interpose-"))
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

STRICT = ["-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
ARCHIVE = [str(BUILD / "lib/libweft.a"), "-ldl", "-lpthread", "-lm"]

# Two puts, one of them by its generic name, an allocation, and three barriers. The tool counts its calls; a put arrives
# only if the pshmem_ function does the work.
PROGRAM = r"""
#include <shmem.h>
#include <stdio.h>
static int inbox[2];
int main(void) {
    shmem_init();
    int me = shmem_my_pe(), npes = shmem_n_pes(), value[2] = {me + 1, me + 2};
    long *word = (long *)shmem_malloc(sizeof *word);
    shmem_int_put(&inbox[0], &value[0], 1, (me + 1) % npes);
    shmem_put(SHMEM_CTX_DEFAULT, &inbox[1], &value[1], 1, (me + 1) % npes);
    shmem_barrier_all();
    shmem_free(word);
    shmem_barrier_all();
    int left = (me + npes - 1) % npes;
    if (inbox[0] != left + 1 || inbox[1] != left + 2)
        printf("the puts did not arrive\n");
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
"""

TOOL = r"""
#include <pshmem.h>
#include <stdio.h>
static int puts_, barriers, mallocs;
void shmem_int_put(int *dest, const int *source, size_t nelems, int pe) {
    puts_++;
    pshmem_int_put(dest, source, nelems, pe);
}
void shmem_ctx_int_put(shmem_ctx_t ctx, int *dest, const int *source, size_t nelems, int pe) {
    puts_++;
    pshmem_ctx_int_put(ctx, dest, source, nelems, pe);
}
void shmem_barrier_all(void) {
    barriers++;
    pshmem_barrier_all();
}
void *shmem_malloc(size_t size) {
    mallocs++;
    return pshmem_malloc(size);
}
void shmem_finalize(void) {
    int me = pshmem_my_pe();
    pshmem_finalize();
    printf("PE %d: %d puts, %d mallocs, %d barriers\n", me, puts_, mallocs, barriers);
}
"""

SEEN = ["PE 0: 2 puts, 1 mallocs, 3 barriers", "PE 1: 2 puts, 1 mallocs, 3 barriers"]

MISUSE = """
#include <pshmem.h>
static int inbox;
int main(void) {
    int value = 1;
    shmem_init();
    pshmem_int_put(&inbox, &value, 1, 99);
}
"""


def write(name, text):
    path = WORK / name
    path.write_text(text)
    return str(path)


def compile_with(compiler, *arguments, static=False):
    wrapper = [compiler, f"-I{BUILD}/include"] if static else [str(BUILD / "bin/oshcc")]
    run = subprocess.run([*wrapper, *STRICT, *arguments, *(ARCHIVE if static else [])],
                         capture_output=True, text=True, env={**os.environ, "OSHCC": compiler})
    return run.stderr if run.returncode else ""


def run_pes(program, **environment):
    return subprocess.run([str(BUILD / "bin/oshrun"), "-n", "2", program], capture_output=True,
                          text=True, timeout=60, env={**os.environ, **environment})


def check_seen(problems, compiler, errors, program, wanted=SEEN, **environment):
    if errors:
        problems.append(f"{compiler}: {errors[:400]}")
        return
    run = run_pes(program, **environment)
    if run.returncode != 0 or sorted(run.stdout.splitlines()) != wanted:
        problems.append(f"{compiler}: exit {run.returncode}: {run.stdout[:300]} {run.stderr[:300]}")


def in_program(problems, static=False):
    program = str(WORK / "in_program")
    for compiler in COMPILERS:
        errors = compile_with(compiler, "-o", program, write("program.c", PROGRAM),
                              write("tool.c", TOOL), static=static)
        check_seen(problems, compiler, errors, program)


def in_cxx_program(problems):
    """Also if the second put of the program is an overload."""
    program, member = str(WORK / "in_cxx_program"), str(WORK / "tool.o")
    for compiler, cxx in (("gcc", "g++"), ("clang", "clang++")):
        if compiler in COMPILERS and shutil.which(cxx):
            errors = compile_with(compiler, "-c", "-o", member, write("tool.c", TOOL))
            run = subprocess.run([str(BUILD / "bin/oshc++"), "-std=c++11", "-Wall", "-Wextra", "-Werror", "-o",
                                  program, write("program.cc", PROGRAM), member],
                                 capture_output=True, text=True, env={**os.environ, "OSHCXX": cxx})
            check_seen(problems, cxx, errors or run.stderr, program)


def in_program_static(problems):
    in_program(problems, static=True)


def in_library(problems, static=False):
    """The tool is an archive, before the library on the command line."""
    program, archive, member = (str(WORK / name) for name in ("in_library", "libtool.a", "tool.o"))
    for compiler in COMPILERS:
        errors = compile_with(compiler, "-c", "-o", member, write("tool.c", TOOL))
        pathlib.Path(archive).unlink(missing_ok=True)
        subprocess.run(["ar", "rcs", archive, member], check=True)
        errors = errors or compile_with(compiler, "-o", program, write("program.c", PROGRAM), archive,
                                        static=static)
        check_seen(problems, compiler, errors, program)


def in_library_static(problems):
    in_library(problems, static=True)


def preloaded(problems):
    program, tool = str(WORK / "plain"), str(WORK / "libtool.so")
    for compiler in COMPILERS:
        errors = compile_with(compiler, "-shared", "-fPIC", "-o", tool, write("tool.c", TOOL))
        errors = errors or compile_with(compiler, "-o", program, write("program.c", PROGRAM))
        check_seen(problems, compiler, errors, program, LD_PRELOAD=tool)


def no_tool(problems):
    """The program without the tool: nothing is counted, and the puts arrive."""
    for static in (False, True):
        program = str(WORK / "alone")
        for compiler in COMPILERS:
            errors = compile_with(compiler, "-o", program, write("program.c", PROGRAM), static=static)
            check_seen(problems, compiler, errors, program, wanted=[])


def public_name_in_errors(problems):
    program = str(WORK / "misuse")
    errors = compile_with(COMPILERS[0], "-o", program, write("misuse.c", MISUSE))
    run = run_pes(program) if not errors else None
    if errors or " shmem_int_put: argument pe is 99" not in run.stderr:
        problems.append(errors or run.stderr)


try:
    tap.run([
        ("a tool in the program, shared library", in_program),
        ("a tool in the program, static library", in_program_static),
        ("a tool in a C++ program", in_cxx_program),
        ("a tool in a library, shared library", in_library),
        ("a tool in a library, static library", in_library_static),
        ("a preloaded tool", preloaded),
        ("no tool", no_tool),
        ("errors name the routine without the p", public_name_in_errors),
    ])
finally:
    shutil.rmtree(WORK)
