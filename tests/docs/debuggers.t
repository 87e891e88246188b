#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The commands of weft(7), DEBUGGING: gdb and valgrind on the PEs of a job, as the page has them."""
import atexit
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("WEFT_BUILD", "build")).resolve()
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-debuggers-"))
atexit.register(shutil.rmtree, WORK)
PAGE = (ROOT / "docs/man/weft.7").read_text().replace(r"\-", "-").replace(r"\(aq", "'")
PROGRAM = r"""
#include <shmem.h>
#include <stdlib.h>
static long arrived, *nowhere;
int main(int argc, char **argv) {
    (void)argv;
    shmem_init();
    int me = shmem_my_pe();
    shmem_long_p(&arrived, me + 5, (me + 1) % shmem_n_pes());
    shmem_barrier_all();
    if (argc == 2 && me == 1)
        *nowhere = 1; /* the crash */
    if (argc == 3 && me == 1)
        shmem_long_p(&arrived, 1, 9); /* the misuse */
    volatile char *private = malloc(3);
    private[3] = 0; /* beyond */
    shmem_barrier_all();
    return 0;
}
"""


def line_of(text):
    return next(i for i, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


def run(problems, command, debugger, wanted, arguments="", **options):
    """A command of the page on the program, and what has to be in its output."""
    if not shutil.which(debugger):
        raise tap.Skip(f"{debugger} is not installed")
    if f"\n{command}\n" not in PAGE:
        problems.append(f"weft.7 has no longer: {command}")
    (WORK / "program.c").write_text(PROGRAM)
    subprocess.run([BUILD / "bin/oshcc", "-g", "-O0", WORK / "program.c", "-o", WORK / "program"], check=True)
    environment = {**os.environ, "PATH": f"{BUILD}/bin:{os.environ['PATH']}", "DEBUGINFOD_URLS": ""}
    done = subprocess.run(command.replace("./program", f"./program {arguments}".strip()), shell=True, cwd=WORK, text=True,
                          capture_output=True, timeout=120, env=environment, **options)
    for pattern in wanted:
        if not re.search(pattern, done.stdout + done.stderr, re.M):
            problems.append(f"{command}: no {pattern}: {(done.stdout + done.stderr)[-1200:]}")


def where_it_fails(problems):
    recipe = "oshrun -n 2 --tag-output gdb -batch -ex 'catch syscall exit_group' -ex run -ex backtrace --args ./program"
    run(problems, recipe, "gdb",
        [rf"^\[1\] #0 .*main \(.*\) at .*program\.c:{line_of('the crash')}$", r"PE 0 .*in shmem_barrier_all: PE 1 "], "crash")
    run(problems, recipe, "gdb", [rf"^\[1\] #\d+ .*main \(.*\) at .*program\.c:{line_of('the misuse')}$"], "misuse there")


def by_hand(problems):
    run(problems, "oshrun -n 2 sh -c '[ $WEFT_PE = 0 ] && exec gdb ./program; exec ./program'", "gdb",
        [r"Breakpoint 1, main", r"\$1 = 6$", "exited normally"],
        input=f"set style enabled off\nbreak {line_of('argc == 2')}\nrun\nprint arrived\ncontinue\nquit\n")


def memory(problems):
    run(problems, "oshrun -n 2 --tag-output valgrind -q ./program", "valgrind",
        [rf"^\[{pe}\] .*Invalid write of size 1\n(?:.*\n)*?\[{pe}\] .*program\.c:{line_of('beyond')}\)" for pe in (0, 1)])


tap.run([
    ("gdb prints where a PE fails", where_it_fails),
    ("gdb by hand, on PE 0", by_hand),
    ("valgrind sees private memory", memory),
])
