#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An ordinary user starts a set-user-ID program, or one with capabilities, beside a PE of their own, or with a job in
its environment, for every kind of source: no process can access its memory, it runs alone, says so in one line, and
neither loads nor names what that user has set. Needs root, to make such a program and to become nobody."""
import contextlib
import ctypes.util
import os
import pathlib
import shutil
import subprocess
import tempfile

import starters
from harness import BUILD, ROOT, case, main

NOBODY = 65534
LINE = "joins no job with others: it runs alone"
# The same program is attacker and victim, so that its statics are symmetric.
SOURCE = r"""
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static long secret = 42;
int main(int argc, char **argv) {
    shmem_init();
    if (argc > 1 && shmem_n_pes() > 1)
        shmem_long_p(&secret, 666, 1);
    for (int i = 0; i < 50 && secret == 42 && argc == 1; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    printf("PE %d of %d has %ld\n", shmem_my_pe(), shmem_n_pes(), argc > 1 ? 0 : secret);
    return fflush(stdout) | (argc > 1 ? 0 : (int)(secret - 42));
}
"""
# Asks for peers with a unique id of its own.
ASKS = r"""
#include <shmemx.h>
#include <stdio.h>
int main(void) {
    shmemx_uniqueid_t id;
    shmemx_get_uniqueid(&id);
    shmemx_init_attr_t attr = {.pe = 0, .npes = 2, .uniqueid = &id};
    int two = shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr);
    attr.npes = 1;
    int one = shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr);
    printf("%d %d\n", two, one);
    return 0;
}
"""
# Linked statically with Weft, whose kernels it looks for.
LOOKS = r"""
#include <shmemx.h>
int main(void) {
    shmem_init();
    void *block = shmemx_malloc(SHMEMX_SPACE_DEVICE, 4096);
    return block == NULL;
}
"""
EVIL = r"""
#include <unistd.h>
const long weft_cuda_images[] = {16, 0, 0};
__attribute__((constructor)) static void run(void) { if (write(1, "evil\n", 5)) {} }
"""


def why_not():
    if os.geteuid() != 0:
        return "only root can make a set-user-ID program"
    if os.statvfs(tempfile.gettempdir()).f_flag & os.ST_NOSUID:
        return f"{tempfile.gettempdir()} is mounted nosuid"
    return None


REASON = why_not()
folder = tempfile.TemporaryDirectory(prefix="weft-privileged-")
HERE = pathlib.Path(folder.name)


def compile_here(name, source, *flags):
    includes = [f"-I{BUILD}/include"]
    subprocess.run(["cc", "-std=gnu11", "-pthread", "-x", "c", "-", "-x", "none", "-o", HERE / name, *includes, *flags],
                   input=source, text=True, check=True)


def prepare():
    """Puts into a folder that every user can read: a library of Weft, a program, and the same with privileges."""
    HERE.chmod(0o755)
    shutil.copy(next(BUILD.glob("lib/libweft.so*")).resolve(), HERE / "libweft.so")
    for soname in BUILD.glob("lib/libweft.so.*"):
        shutil.copy(HERE / "libweft.so", HERE / soname.name)
    shutil.copy(BUILD / "bin/oshrun", HERE)
    compile_here("plain", SOURCE, f"-L{HERE}", "-lweft", f"-Wl,-rpath,{HERE}")
    compile_here("asks", ASKS, f"-L{HERE}", "-lweft", f"-Wl,-rpath,{HERE}")
    shutil.copy(HERE / "plain", HERE / "setuid")
    for name in "setuid", "asks":
        (HERE / name).chmod(0o4755)
    shutil.copy(HERE / "plain", HERE / "capable")


def run_as_nobody(command, variables=(), **options):
    return subprocess.run([str(word) for word in command], env={**starters.CLEAN, **dict(variables)}, user=NOBODY, group=NOBODY,
                          extra_groups=[], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, cwd="/", **options)


def privileged_case(title, reason=None):
    reason = REASON or reason
    if not reason:
        return case(title)
    return lambda function: case(f"{title} # SKIP {reason}")(lambda: None)


def check_alone(program):
    script = f'if [ "$WEFT_PE" = 0 ]; then exec {HERE}/plain attack; else exec {program}; fi'
    result = run_as_nobody([HERE / "oshrun", "-n", 2, "sh", "-c", script])
    assert "PE 0 of 1 has 42\n" in result.stdout, result
    assert result.stderr.count(LINE) == 1 and "666" not in result.stdout, result


@privileged_case("beside a PE of an ordinary user under oshrun, a set-user-ID program keeps its memory to itself")
def set_user_id():
    check_alone(HERE / "setuid")


SETCAP = shutil.which("setcap", path=os.environ["PATH"] + ":/usr/sbin:/sbin")


@privileged_case("so does one with capabilities of its file", None if SETCAP else "there is no setcap")
def capabilities():
    subprocess.run([SETCAP, "cap_net_raw+ep", HERE / "capable"], check=True)
    check_alone(HERE / "capable")


@privileged_case("no other launcher's variables are believed, and no library is opened for them")
def announced():
    announcements = [starters.torchrun_variables(2, 29800)[1],
                     {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": "7"},
                     {"PMI_FD": "0", "PMI_RANK": "1", "PMI_SIZE": "2"},
                     {"PMI_PORT": "127.0.0.1:1", "PMI_ID": "1"},
                     {"PMIX_RANK": "1", "PMIX_NAMESPACE": "x"},
                     {"WEFT_LAUNCHER": "pmix", "PMIX_RANK": "1", "PMIX_NAMESPACE": "x"}]
    for variables in announcements:
        result = run_as_nobody([HERE / "setuid"], variables)
        assert result.returncode == 0 and result.stdout == "PE 0 of 1 has 42\n", (variables, result)
        assert result.stderr.count("\n") == 1 and LINE in result.stderr, (variables, result)
    for variables in {}, {"WEFT_LAUNCHER": "pmix"}, {"WEFT_LAUNCHER": "nothing"}:
        result = run_as_nobody([HERE / "setuid"], variables)
        assert (result.returncode, result.stderr) == (0, ""), (variables, result)


@privileged_case("where the program itself asks for others, it is told that it gets none; alone it may be")
def asks():
    result = run_as_nobody([HERE / "asks"])
    assert result.stdout == "-1 0\n" and "init_attr: this program has privileges" in result.stderr, result


@privileged_case("a program that contains Weft loads no kernels from the folder that its caller calls its own")
def kernels():
    driver = HERE / "driver"
    driver.mkdir()
    shutil.copy(BUILD / "tests/gpu/driver/libcuda.so.1", driver)
    compile_here("looks", LOOKS, BUILD / "lib/libweft.a", f"-Wl,-rpath,{driver}", "-ldl", "-lm")
    evil = HERE / "evil"
    evil.mkdir()
    compile_here("evil/libweft_cuda.so", EVIL, "-shared", "-fPIC")
    result = run_as_nobody([evil / "looks"], executable=str(HERE / "looks"))
    assert "evil\n" in result.stdout, f"the way that is to be shut: {result}"  # without privileges nothing changes
    (HERE / "looks").chmod(0o4755)
    for variables in {}, {"LD_LIBRARY_PATH": str(evil)}:
        result = run_as_nobody([evil / "looks"], variables, executable=str(HERE / "looks"))
        assert "evil" not in result.stdout, result


@privileged_case("variables that name files are forgotten before main; without privileges they stay")
def files():
    compile_here("prints", '#include <shmem.h>\n#include <stdio.h>\n#include <stdlib.h>\nint main(void) { shmem_init();'
                 ' puts(getenv("CUDA_INJECTION64_PATH") ? "there" : "gone"); return 0; }', f"-L{HERE}", "-lweft", f"-Wl,-rpath,{HERE}")
    variables = {"CUDA_INJECTION64_PATH": "/tmp/evil.so"}
    assert run_as_nobody([HERE / "prints"], variables).stdout == "there\n"
    (HERE / "prints").chmod(0o4755)
    assert run_as_nobody([HERE / "prints"], variables).stdout == "gone\n"


@privileged_case("a crash says nothing of where things lie in memory")
def crash():
    compile_here("crashes", "#include <shmem.h>\n#include <signal.h>\nint main(void) { shmem_init(); return raise(SIGSEGV); }",
                 f"-L{HERE}", "-lweft", f"-Wl,-rpath,{HERE}")
    assert "crashed by signal 11" in run_as_nobody([HERE / "crashes"]).stderr
    (HERE / "crashes").chmod(0o4755)
    result = run_as_nobody([HERE / "crashes"])
    assert (result.returncode, result.stderr) == (-11, ""), result


if not REASON:
    prepare()
main()
