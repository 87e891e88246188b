#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PE that crashes logs where it was, and dies as it would without Weft's handler."""
from harness import BUILD, Skip, case, main, run
import atexit
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

SOURCE = """
#include <dlfcn.h>
#include <pthread.h>
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int deeper(volatile int level) {
    volatile char room[4096];
    room[0] = (char)level;
    return level < 0 ? 0 : deeper(level + 1) + room[0];
}

static void *touch(void *address) {
    *(volatile int *)address = 1;
    return address;
}

static volatile int hanging;
static int *object; /* in the heap */

/* In place of the C library's, where a lock may be closed for ever. */
int backtrace(void **frames, int count) {
    int (*real)(void **, int) = (int (*)(void **, int))dlsym(RTLD_NEXT, "backtrace");
    while (hanging)
        pause();
    return real(frames, count);
}

static void own(int number) {
    _exit(number + 50);
}

void weft_test_crash_here(const char *how) {
    pthread_t thread;
    int status = 0;
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "raise") == 0)
        raise(SIGFPE);
    if (strcmp(how, "ill") == 0)
        __builtin_trap();
    if (strcmp(how, "bus") == 0)
        touch(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, memfd_create("empty", 0), 0));
    if (strcmp(how, "memory") == 0) { /* as the kernel tells of a page that the machine has lost */
        siginfo_t news = {.si_signo = SIGBUS, .si_code = BUS_MCEERR_AO};
        news.si_addr = (void *)4096;
        syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGBUS, &news);
        return;
    }
    if (strcmp(how, "stack") == 0)
        deeper(1);
    if (strcmp(how, "thread") == 0 && pthread_create(&thread, NULL, touch, (void *)24) == 0)
        pthread_join(thread, NULL);
    if (strcmp(how, "look") == 0) { /* a debugger writes a core file of this process, which goes on */
        char command[128];
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
        snprintf(command, sizeof command, "prlimit --fsize=%d gcore -o looked %d >&2", 128 << 20, getpid());
        if (system(command) != 0)
            shmem_global_exit(9);
        return;
    }
    if (strcmp(how, "heap") == 0) {
        pid_t child = fork();
        if (child == 0)
            touch(object);
        printf("%d %d %p\\n", getpid(), child, (void *)object);
        fflush(stdout);
        wait(&status);
        shmem_global_exit(WIFSIGNALED(status) ? WTERMSIG(status) + 20 : 1);
    }
    if (strcmp(how, "child") == 0) {
        if (fork() == 0)
            touch((void *)24);
        wait(&status);
        _exit(WIFSIGNALED(status) ? WTERMSIG(status) + 20 : 1);
    }
    hanging = strcmp(how, "hang") == 0;
    touch((void *)24);
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[2], "before") == 0)
        signal(SIGSEGV, own);
    shmem_init();
    object = shmem_malloc(sizeof *object);
    if (argc > 2 && strcmp(argv[2], "after") == 0)
        signal(SIGSEGV, own);
    if (shmem_my_pe() == shmem_n_pes() - 1)
        weft_test_crash_here(argv[1]);
    shmem_barrier_all();
    return 0;
}
"""

FOLDER = tempfile.mkdtemp(prefix="weft-crash-")
atexit.register(shutil.rmtree, FOLDER)
PROGRAM = f"{FOLDER}/program"
pathlib.Path(f"{PROGRAM}.c").write_text(SOURCE)
subprocess.run([BUILD / "bin/oshcc", "-D_GNU_SOURCE", "-w", "-O0", f"{PROGRAM}.c", "-o", PROGRAM], check=True)


def crash(how, number, where="weft_test_crash_here", npes=2):
    """Returns the lines of a PE about its crash."""
    result = run("-n", npes, PROGRAM, how).expect(128 + number, None if npes == 1 else f"was killed by signal {number} ")
    lines = [line for line in result.err.split("\n") if line.startswith("weft: ") and "; leaving" not in line]
    name = r"weft: " if npes == 1 else rf"weft: PE {npes - 1} \(pid \d+\): "
    assert re.match(name + rf"crashed by signal {number} \(\w", lines[0]), result.err
    assert 2 < len(lines) < 40 and all(re.match(name + "    ", line) for line in lines[1:]), result.err
    assert where in result.err, result.err
    return lines


CORE_MOST = 64 << 20


def expect_small(pattern):
    sizes = [file.stat().st_size for file in pathlib.Path(FOLDER).glob(pattern)]
    assert sizes and 0 < max(sizes) < CORE_MOST, sizes


@case("a core file has what the PE has in use, and not the address space that it holds in reserve")
def core():
    if pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core":
        raise Skip("core files go elsewhere here (kernel.core_pattern)")
    run("-n", 2, PROGRAM, "abort", below=["prlimit", f"--core={2 * CORE_MOST}"], cwd=FOLDER).expect(128 + signal.SIGABRT)
    expect_small("core*")


@case("nor has the one that gdb's gcore writes of a PE, which goes on")
def looked_at():
    if not shutil.which("gcore"):
        raise Skip("there is no gcore here (package gdb)")
    result = run("-n", 2, PROGRAM, "look", cwd=FOLDER)
    if "ptrace: Operation not permitted" in result.err:
        raise Skip("no process may look at another here")
    result.expect(0)
    expect_small("looked.*")


@case("every crash: its signal, where it was, and one line for each caller")
def every():
    crash("abort", signal.SIGABRT)
    crash("raise", signal.SIGFPE)
    crash("ill", signal.SIGILL)
    crash("bus", signal.SIGBUS)
    assert "at address 0x18; it was in" in crash("segv", signal.SIGSEGV)[0]
    crash("segv", signal.SIGSEGV, npes=1)


@case("memory that the machine has lost: the process dies of that, though none of its instructions failed")
def lost_memory():
    assert "at address 0x1000; it was in" in crash("memory", signal.SIGBUS)[0]


@case("also without room on the stack, and in another thread")
def stack():
    crash("stack", signal.SIGSEGV, "program")
    crash("thread", signal.SIGSEGV, "program")


@case("a program's own handler stays, whether it was set before shmem_init or behind")
def own_handler():
    for when in ("before", "after"):
        result = run("-n", 2, PROGRAM, "segv", when).expect(50 + signal.SIGSEGV, "exited with status 61")
        assert "crashed" not in result.err, result.err


@case("where telling hangs, the crash is final after a second")
def hanging():
    result = run("-n", 2, PROGRAM, "hang").expect(139, "killed by signal 11", seconds_max=3)
    assert result.err.count("crashed by signal 11") == 1, result.err


@case("a child of a PE crashes without a word, of the signal that it was")
def child():
    assert "crashed" not in run("-n", 2, PROGRAM, "child").expect(20 + signal.SIGSEGV).err


@case("unless it was in the heap, which no child has: its line names the PE and the child")
def child_in_heap():
    result = run("-n", 2, PROGRAM, "heap").expect(20 + signal.SIGSEGV)
    pe, child, address = result.out.split()
    lines = [line for line in result.err.splitlines() if "crashed" in line]
    wanted = f"weft: PE 1 (pid {pe}): process {child}, a child of this PE, crashed at address {address}: that is symmetric"
    assert len(lines) == 1 and lines[0].startswith(wanted), result.err


@case("WEFT_BACKTRACE=0 turns it off")
def off():
    result = run("-x", "WEFT_BACKTRACE=0", "-n", 2, PROGRAM, "segv").expect(139, "killed by signal 11")
    assert "crashed" not in result.err, result.err


@case("Python's faulthandler tells instead where it is on")
def faulthandler():
    script = "import ctypes, os; c = ctypes.CDLL(os.environ['WEFT']); c.shmem_init(); ctypes.string_at(24)"
    python = ["-n", 1, "-x", f"WEFT={BUILD}/lib/libweft.so", "python3"]
    result = run(*python, "-X", "faulthandler", "-c", script).expect(139, "Fatal Python error: Segmentation fault")
    assert "weft: crashed" not in result.err, result.err
    run(*python, "-c", script).expect(139, "weft: crashed by signal 11 (Segmentation fault) at address 0x18")


main()
