#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""libweft.a: it exports the same names as the shared library and nothing else, programs work with it, and a program may
define functions with the names of internal ones."""
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

WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-archive-"))
atexit.register(shutil.rmtree, WORK)
ARCHIVE = BUILD / "lib/libweft.a"
PROGRAM = """
#include <shmem.h>
#include <weft.h>
static long sum, terms[4];
int main(void) {
    shmem_init();
    int me = shmem_my_pe(), npes = shmem_n_pes();
    long *heap = shmem_malloc(sizeof(long));
    *heap = 0;
    shmem_barrier_all();
    shmem_long_atomic_add(heap, me + 1, (me + 1) % npes);
    shmem_barrier_all();
    terms[0] = *heap;
    int rc = shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, terms, 1);
    shmem_free(heap);
    shmem_finalize();
    return rc || sum != npes * (npes + 1) / 2;
}
"""

PLUGIN = """
#include <shmem.h>
int plugin_run(int calls) {
    static int sum;
    if (!calls)
        return 0;
    shmem_init();
    int *value = shmem_calloc(1, sizeof *value);
    shmem_int_atomic_add(value, shmem_my_pe() + 1, 0);
    shmem_barrier_all();
    sum = shmem_int_g(value, 0);
    shmem_finalize();
    return sum != 3;
}
"""
HOST = """
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    for (int round = 0; round < 2; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int (*run)(int) = (int (*)(int))dlsym(plugin, "plugin_run");
        if (run(argc > 2) || dlclose(plugin))
            return 1;
    }
    pid_t child = fork();
    if (child == 0)
        exit(0);
    int status = 1;
    return waitpid(child, &status, 0) != child || status;
}
"""


def names(path, *options):
    text = subprocess.run(["nm", "-P", *options, str(path)], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in text.splitlines() if len(line.split()) > 2}


def internal_functions():
    """Returns the hidden functions of the objects of which the archive is made."""
    found = set()
    for path in (BUILD / "obj/src").rglob("*.o"):
        text = subprocess.run(["readelf", "-sW", str(path)], capture_output=True, text=True, check=True).stdout
        found |= set(re.findall(r" FUNC +GLOBAL +HIDDEN +\d+ (\w+)$", text, re.M))
    return sorted(name for name in found if name.startswith("weft_"))


def exports(problems):
    shared = names(BUILD / "lib/libweft.so", "-D", "--defined-only")
    archive = names(ARCHIVE, "--extern-only", "--defined-only")
    if archive != shared:
        problems.append(f"only in libweft.a: {sorted(archive - shared)[:12]}; only in libweft.so: {sorted(shared - archive)[:12]}")


def one_object(problems):
    members = subprocess.run(["ar", "t", str(ARCHIVE)], capture_output=True, text=True, check=True).stdout.split()
    if members != ["weft.o"]:
        problems.append(f"it has {members[:12]}")


def run_with(problems, *link, source="", npes=(1, 3)):
    (WORK / "program.c").write_text(PROGRAM + source)
    made = subprocess.run([str(BUILD / "bin/oshcc"), "-w", *link, "-o", "program", "program.c"],
                          cwd=WORK, capture_output=True, text=True)
    if made.returncode:
        problems.append(f"{' '.join(link)}: {made.stderr[:600]}")
        return
    for count in npes:
        ran = subprocess.run([str(BUILD / "bin/oshrun"), "-n", str(count), str(WORK / "program")],
                             capture_output=True, text=True, timeout=60)
        if ran.returncode:
            problems.append(f"{' '.join(link)}, {count} PEs: status {ran.returncode}: {ran.stderr[:400]}")


def works(problems):
    run_with(problems, "-static-weft")


def names_of_ours(problems):
    """If the library called any of them, the program would end."""
    internal = internal_functions()
    if len(internal) < 100 or "weft_init" not in internal:
        problems.append(f"found {len(internal)} internal functions only")
    source = "#include <stdlib.h>\n" + "".join(f"void {name}(void) {{ abort(); }}\n" for name in internal)
    for way in ["-static-weft"], ["-static-weft", "-rdynamic"], ["-rdynamic"]:
        run_with(problems, *way, source=source, npes=[2])


def plugin_closed(problems):
    (WORK / "plugin.c").write_text(PLUGIN)
    (WORK / "host.c").write_text(HOST)
    subprocess.run(["gcc", "-shared", "-fPIC", f"-I{ROOT / 'include'}", f"-I{BUILD / 'include'}", "-o", "plugin.so",
                    "plugin.c", str(ARCHIVE), "-ldl", "-lpthread", "-lm"], cwd=WORK, check=True)
    subprocess.run(["gcc", "-o", "host", "host.c", "-ldl"], cwd=WORK, check=True)
    for args in [], ["calls"]:
        ran = subprocess.run([str(BUILD / "bin/oshrun"), "-n", "2", "./host", "./plugin.so", *args], cwd=WORK,
                             capture_output=True, text=True, timeout=60)
        if ran.returncode or ran.stderr:
            problems.append(f"{args}: status {ran.returncode}: {ran.stderr[:400]}")


tap.run([
    ("libweft.a exports the names of libweft.so, and no other", exports),
    ("it is one object", one_object),
    ("a program that has it inside works", works),
    ("a plugin with it inside may be closed, and opened again", plugin_closed),
    ("a program may have functions by the names of internal ones", names_of_ours),
])
