#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A misuse names the calls of the program that led to it, however the program was linked, and none of Weft's own."""
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

WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-place-"))
atexit.register(shutil.rmtree, WORK)
STATUS_ERROR = 71
PROGRAM = r"""
#include <pthread.h>
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <string.h>
static int flag;
static __attribute__((noinline)) void *inner(void *unused) {
    shmem_int_p(&flag, 1, 7); /* the call */
    flag += unused != NULL;
    return NULL;
}
static void where(char *text, size_t bytes) {
    snprintf(text, bytes, "loop.f90:12");
}
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    pthread_t thread;
    shmem_init();
    if (strcmp(how, "crash") == 0)
        *(volatile int *)8 = 1; /* the crash */
    if (strcmp(how, "where") == 0)
        shmemx_set_where_handler(where);
    if (strcmp(how, "thread") == 0 && pthread_create(&thread, NULL, inner, NULL) == 0)
        pthread_join(thread, NULL);
    inner(NULL); /* the call of it */
    return 0;
}
"""
(WORK / "program.c").write_text(PROGRAM)


def compiled(name, *options):
    subprocess.run([BUILD / "bin/oshcc", "-g", "-O1", *options, WORK / "program.c", "-o", WORK / name], check=True, capture_output=True)
    return WORK / name


def stripped(program):
    subprocess.run(["strip", "-o", f"{program}-stripped", program], check=True)
    return pathlib.Path(f"{program}-stripped")


def places(problems, program, *arguments, npes=1, status=STATUS_ERROR, **environment):
    """The places that the last PE of a job has named."""
    done = subprocess.run([BUILD / "bin/oshrun", "-n", str(npes), program, *arguments], capture_output=True, text=True,
                          timeout=60, env={**os.environ, **environment})
    if done.returncode != status:
        problems.append(f"status {done.returncode}: {done.stderr}")
    found = [re.findall(rf"^weft: {speaker}    (.*)$", done.stderr, re.M)
             for speaker in ([rf"PE {pe} \(pid \d+\): " for pe in range(npes)] if npes > 1 else [""])]
    if any(one != found[0] for one in found):
        problems.append(f"PEs differ: {done.stderr}")
    return found[0]


def check_lines(problems, program, found, *wanted):
    """Each place is the line of the source that has this comment, by addr2line."""
    for place, comment in zip(found, wanted):
        offset = place.split("+")[1].split()[0]
        said = subprocess.run(["addr2line", "-e", program, offset], capture_output=True, text=True, check=True).stdout
        line = next(i for i, text in enumerate(PROGRAM.splitlines(), 1) if f"/* {comment} */" in text)
        if f"program.c:{line}" not in said:
            problems.append(f"{place} is {said.strip()}, not line {line}")


def expect(problems, found, *patterns, more=False):
    if len(found) < len(patterns) or (len(found) > len(patterns) and not more) or \
            not all(re.fullmatch(pattern, place) for pattern, place in zip(patterns, found)):
        problems.append(f"{found}, not {patterns}")


def named(*options):
    def case(problems):
        program = compiled("named", *options)
        found = places(problems, program)
        expect(problems, found, r"named\+0x[0-9a-f]+ \(inner\)", r"named\+0x[0-9a-f]+ \(main\)")
        check_lines(problems, program, found, "the call", "the call of it")
        without = places(problems, stripped(program))
        expect(problems, without, *(rf"named-stripped\+{re.escape(place.split()[0].split('+')[1])}" for place in found), more=True)
    return case


def every_pe(problems):
    expect(problems, places(problems, compiled("every"), npes=2), r"every\+\S+ \(inner\)", r"every\+\S+ \(main\)")


def thread(problems):
    found = places(problems, compiled("threads"), "thread")
    expect(problems, found, r"threads\+\S+ \(inner\)", r"libc\.so\S+", more=True)


def handler(problems):
    expect(problems, places(problems, compiled("handler"), "where"), r"loop\.f90:12")


def off(problems):
    expect(problems, places(problems, compiled("off"), WEFT_BACKTRACE="0"))


def crash(problems):
    program = compiled("crash")
    found = places(problems, program, "crash", status=139)
    expect(problems, found, r"crash\+\S+ \(main\)", more=True)
    check_lines(problems, program, found, "the crash")


tap.run([
    ("a program with the shared library: names, or offsets where it is stripped", named()),
    ("a program that contains Weft: the same", named("-static-weft")),
    ("a program without a dynamic loader: the same", named("-static-pie")),
    ("a program at a fixed address: the same", named("-no-pie")),
    ("each PE that misuses names its own", every_pe),
    ("another thread than main's", thread),
    ("the program's where handler speaks instead", handler),
    ("WEFT_BACKTRACE=0 turns it off", off),
    ("a crash names functions that are not exported, and the very instruction", crash),
])
