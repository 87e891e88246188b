#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Options of Open MPI's and MPICH's launchers, which users' scripts contain."""
from harness import BUILD, ENVIRONMENT, PE, ROOT, Result, Skip, case, main, preloaded, run, start
import os
import pathlib
import re
import socket
import subprocess
import tempfile


def words(*arguments, **options):
    return sorted(run(*arguments, **options).expect(0).out.split())


@case("a number stands in every way that getopt allows, and options end at the program")
def spellings():
    for spelling in (["-n2"], ["-n", 2], ["-n=2"], ["--n", 2], ["--n=2"], ["-np", 2], ["-np=2"], ["--np", 2], ["-c", 2]):
        assert words(*spelling, "printf", "a ") == ["a"] * 2, spelling
    run("echo", "--tag-output", "-v").expect(0, out="--tag-output -v\n")


@case("an unknown option is named with the nearest known one, a value too few or too many with its option")
def mistakes():
    run("--bind-too", "core", "true").expect(2, "unknown option --bind-too; did you mean --bind-to?")
    run("-gen", "A", "1", "true").expect(2, "unknown option -gen; did you mean --genv?")
    run("--zzzzzz", "true").expect(2, "unknown option --zzzzzz; see")
    run("-Z", "true").expect(2, "unknown option -Z; see")
    run("--mca", "a").expect(2, "--mca takes NAME VALUE")
    run("-x").expect(2, "a value is missing after -x")
    run("--report-bindings=no", "true").expect(2, "--report-bindings takes no value")


@case("-x, -env and -genv set variables, and -envlist and the like keep few")
def environment():
    names = ["printenv", "A", "B"]
    assert words("-x", "A=1", "-x", "B=x=y", *names) == ["1", "x=y"]
    assert words("-env", "A", "1", "--env", "B=2", *names) == ["1", "2"]
    assert words("-genv", "A", "1", "-n", 1, *names[:2], ":", "-n", 1, "-x", "A=2", *names[:2]) == ["1", "2"]
    result = run("-x", "WEFT_TEST_MARK", "-x", "NO_SUCH_VARIABLE", "true").expect(0, "-x NO_SUCH_VARIABLE: ")
    assert result.err.count("\n") == 1, result.err
    ours = {"WEFT_PE", "WEFT_NPES", "WEFT_HUB_FD", "WEFT_CONTROL_FD", "WEFT_LIFE_FD"}
    for option in ("-envlist", "-genvlist"):
        left = {line.split("=")[0] for line in words(option, "PATH,WEFT_TEST_MARK", "env")}
        assert left == ours | {"PATH", "WEFT_TEST_MARK"}, left
    assert all(line.startswith("WEFT_") for line in words("-genvnone", "/usr/bin/env"))
    run("-x", "=1", "true").expect(2, "-x =1")
    run("-x", "WEFT_PE=7", "sh", "-c", "echo $WEFT_PE").expect(0, out="0\n")


@case("-wdir is where the program starts, and is named if it cannot be")
def folder():
    for option in ("-wdir", "--wdir", "-wd"):
        run(option, "/", "pwd").expect(0, out="/\n")
    result = run("-n", 2, "-wdir", "/no-such-folder", "pwd").expect(127)
    assert result.err == "oshrun: cannot start in '/no-such-folder': No such file or directory\n", result.err


@case("programs between colons are one job, each with its options")
def programs():
    with tempfile.TemporaryDirectory() as here:
        result = run("-n", 1, PE, "join", "exchange", "npes", "leave", ":", "-n", 2, "-x", "A=5", "-wdir", here, "sh", "-c",
                     f"echo $A in $PWD; exec {PE} join exchange print leave").expect(0)
        assert sorted(result.out.split("\n")[:-1]) == sorted(["npes 3", "PE 1", "PE 2"] + [f"5 in {here}"] * 2), result.out
    assert words("-n", 1, "echo", "a", ":", "echo", "b") == ["a", "b"]
    run("-n", 1, "--", "echo", ":", "b").expect(0, out=": b\n")
    run("-n", 1, "true", ":").expect(2, "no program")
    run("-n", 1, "true", ":", "-n", 1).expect(2, "no program")
    run("-n", 4000, "true", ":", "-n", 97, "true").expect(2, "4097 PEs are too many")
    run("-n", 1, "true", ":", "no-such-program").expect(127, "cannot run 'no-such-program'")


@case("hosts: this one by any name and with slots; others are looked for by ssh")
def hosts():
    here = socket.gethostname()
    assert words("-H", f"localhost:2,{here},127.0.0.1:1", "printf", "a ") == ["a"] * 4
    assert words("--host", here, "-n", 2, "printf", "a ") == ["a"] * 2
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"# ours\nlocalhost slots=2 max_slots=9\n\n  {here}:1 # once more\n")
        file.flush()
        for option in ("--hostfile", "-f", "-machinefile"):
            assert words(option, file.name, "printf", "a ") == ["a"] * 3
    elsewhere = Result(start("-H", "elsewhere:2", "true", below=["env", "WEFT_SSH=sh -c false"]))
    elsewhere.expect(71, "oshrun: cannot start on host elsewhere: ")
    for wrong in ("localhost:0", "localhost:x", "", ","):
        run("-H", wrong, "true").expect(2, "-H: ")
    run("--hostfile", "/no/such/file", "true").expect(2, "/no/such/file: No such file")
    run("--hostfile", "/dev/null", "true").expect(2, "names no host")
    assert words("-ppn", 2, "printf", "a ") == words("-N", 2, "-n", 2, "printf", "a ") == ["a"] * 2
    run("-n", 3, "-N", 2, "true").expect(2, "3 PEs at 2 per host")
    run("-n", 2, "-pernode", "true").expect(2, "2 PEs at 1 per host")
    run("-n", 1, "-pernode", "--nooversubscribe", "true").expect(0, err="")
    run("-n", 1000, "--nooversubscribe", "true").expect(2, "1000 PEs are more than the ")


def in_slurm(*arguments, **variables):
    environment = {**{name: value for name, value in ENVIRONMENT.items() if not name.startswith("SLURM")}, **variables}
    return Result(start(*arguments, below=["env", "-i", *[f"{name}={value}" for name, value in environment.items()]]))


@case("an allocation of Slurm says how many, where -n does not")
def slurm():
    job = dict(SLURM_JOB_ID="7", SLURM_JOB_NUM_NODES="1")
    program = ["sh", "-c", "echo $WEFT_NPES"]
    for variables in (dict(SLURM_NTASKS="3"), dict(SLURM_NPROCS="3"), dict(SLURM_TASKS_PER_NODE="3"),
                      dict(SLURM_NTASKS="3", SLURM_STEP_ID="4294967290", SLURM_PROCID="0")):
        in_slurm(*program, **job, **variables).expect(0, out="3\n" * 3)
    in_slurm("-n", 1, *program, **job, SLURM_NTASKS="3").expect(0, out="1\n")
    in_slurm(*program, **job).expect(0, out="1\n")
    in_slurm(*program, **job, SLURM_NTASKS="3", SLURM_STEP_ID="0", SLURM_PROCID="1").expect(0, out="1\n")
    in_slurm(*program, SLURM_NTASKS="3").expect(0, out="1\n")
    in_slurm(*program, SLURM_JOB_ID="7", SLURM_NNODES="2", SLURM_NTASKS="4").expect(2, "2 hosts")
    in_slurm(*program, **job, SLURM_NTASKS="99999").expect(2, "too many")


@case("--timeout ends the job with 124 and a line, and no job that is faster")
def timeout():
    result = run("-n", 2, "--timeout", 1, PE, "join", "exchange", "0@exchange", "spin").expect(124, seconds_max=3)
    assert result.err.count("oshrun: the job has had its 1 s (--timeout); ending the job") == 1, result.err
    run("--timeout=5", "-n", 2, PE, "join", "exchange", "leave").expect(0, err="")
    run("--timeout", "soon", "true").expect(2, "--timeout soon: ")


@case("what means nothing here is taken, with a note under -v; what cannot be done is an error that says why")
def others():
    harmless = ["--oversubscribe", "--allow-run-as-root", "--mca", "btl", "self,vader", "-mca", "a", "b", "--prefix", "/opt", "-q",
                "--use-hwthread-cpus", "-genvall", "--display-map", "-iface", "eth0"]
    assert run("-n", 2, *harmless, "true").expect(0).err == ""
    notes = run("-v", "-n", 2, *harmless, "true").expect(0).err
    for name in ("--oversubscribe", "--allow-run-as-root", "--mca", "-q"):
        assert notes.count(f"oshrun: {name} has no effect: ") == 1, notes
    assert "PEs 0 to 1 run 'true'" in notes, notes
    for refused in (["--rankfile", "x"], ["-configfile", "x"], ["--nolocal"], ["--gdb"], ["--stdin", "all"]):
        run(*refused, "true").expect(2, f"{refused[0]} cannot be done: ")


@case("output into files of each PE, and tags under every name")
def output():
    for option in (["-l"], ["-prepend-rank"], ["--tag-output"], ["--output", "tag"]):
        assert words(*option, "-n", 2, "echo", "a") == ["[0]", "[1]", "a", "a"]
    with tempfile.TemporaryDirectory() as here:
        script = "echo out $WEFT_PE; echo err $WEFT_PE >&2"
        result = run("-n", 2, "--output-filename", f"{here}/a/b", "sh", "-c", script).expect(0, out="")
        assert result.err == "", result.err
        for pe in (0, 1):
            for name in ("out", "err"):
                assert pathlib.Path(f"{here}/a/b/rank.{pe}/std{name}").read_text() == f"{name} {pe}\n"
        pathlib.Path(f"{here}/file").touch()
        run("--output-filename", f"{here}/file/b", "true").expect(71, "Not a directory")


@case("the manual tells of every option that does something")
def manual():
    told = (ROOT / "docs/man/oshrun.1").read_text().replace("\\-", "-")
    help_text = run("--help").expect(0).out
    effective = help_text[:help_text.index("Accepted without an effect")]
    names = set(re.findall(r"(?<=[ ,]) --?([a-zA-Z][\w-]*)", effective))
    assert {"n", "np", "timeout", "genvlist"} <= names, names
    missing = [name for name in names if not re.search(rf"-{name}\b(?!-)", told)]
    assert not missing, missing


MACHINE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
FILE *fopen(const char *path, const char *mode) {
    char other[4096];
    FILE *(*real)(const char *, const char *) = (FILE *(*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen");
    if (strncmp(path, "/sys/devices/system/", 20) == 0)
        snprintf(other, sizeof other, "%s/%s", getenv("MACHINE"), path + 20);
    return real(strncmp(path, "/sys/devices/system/", 20) == 0 ? other : path, mode);
}
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set) {
    memset(set, 0, bytes);
    for (int cpu = 0; cpu < 16 + 0 * pid; cpu++)
        CPU_SET_S((size_t)cpu, bytes, set);
    return 0;
}
int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set) {
    return 0 * (pid + (int)bytes + CPU_COUNT(set));
}
"""


def write_machine(folder):
    """Writes /sys of a machine with two sockets, four cores each with two hardware threads, and a cache per two
    cores."""
    def listing(cores):
        return ",".join(str(cpu) for core in cores for cpu in (core, core + 8)) + "\n"
    for cpu in range(16):
        core = cpu % 8
        own = folder / f"cpu/cpu{cpu}"
        for name, text in (("topology/thread_siblings_list", listing([core])),
                           ("topology/core_siblings_list", listing(range(core // 4 * 4, core // 4 * 4 + 4))),
                           ("cache/index3/shared_cpu_list", listing([core // 2 * 2, core // 2 * 2 + 1]))):
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            (own / name).write_text(text)
    for node in (0, 1):
        (folder / f"node/node{node}").mkdir(parents=True)
        (folder / f"node/node{node}/cpulist").write_text(listing(range(4 * node, 4 * node + 4)))
    (folder / "node/online").write_text("0-1\n")


SOCKETS = ["0-3,8-11", "4-7,12-15"]


@case("PEs are placed and bound by parts of the machine, here of one that is pretended")
def binding():
    wanted = {
        "-n 4 --bind-to core": ["0,8", "1,9", "2,10", "3,11"],
        "-n 4 --bind-to hwthread": ["0", "1", "2", "3"],
        "-n 3 --bind-to socket": [SOCKETS[0]] * 3,
        "-n 3 --map-by socket": [SOCKETS[0], SOCKETS[1], SOCKETS[0]],
        "-n 3 --map-by numa": [SOCKETS[0], SOCKETS[1], SOCKETS[0]],
        "-n 4 --map-by socket --bind-to core": ["0,8", "4,12", "1,9", "5,13"],
        "--map-by ppr:2:socket --bind-to core": ["0,8", "1,9", "4,12", "5,13"],
        "-npersocket 1 --bind-to l3cache": ["0-1,8-9", "4-5,12-13"],
        "-n 2 --map-by slot:PE=2": ["0-1,8-9", "2-3,10-11"],
        "-n 2 --cpus-per-rank 3 --map-by socket --bind-to core:overload-allowed": ["0-2,8-10", "4-6,12-14"],
        "-n 2 -bind-to core:2": ["0-1,8-9", "2-3,10-11"],
        "-n 8 --bind-to core --rank-by socket": ["0,8", "4,12", "1,9", "5,13", "2,10", "6,14", "3,11", "7,15"],
        "-n 8 --rank-by socket": ["0,8", "4,12", "1,9", "5,13", "2,10", "6,14", "3,11", "7,15"],
        "-n 2 --bind-to core --cpu-set 4-7,12-15": ["4,12", "5,13"],
        "-n 1 --cpu-set 3": ["3"],
    }
    with tempfile.TemporaryDirectory() as folder, preloaded(MACHINE) as below:
        write_machine(pathlib.Path(folder))
        below = [*below, f"MACHINE={folder}"]
        for options, sets in wanted.items():
            result = run(*options.split(), "--report-bindings", "true", below=below).expect(0)
            lines = [f"oshrun: PE {pe} is bound to processors {one}" for pe, one in enumerate(sets)]
            assert result.err.split("\n")[:-1] == lines, (options, result.err)
        run("-n", 9, "--bind-to", "core", "true", below=below).expect(0, "too few cores for them among the 16 processors")
        result = run("-n", 9, "--bind-to", "none", "--report-bindings", "true", below=below).expect(0)
        assert result.err.count("is not bound, and may use processors 0-15") == 9, result.err


@case("wrong parts of a machine are named")
def wrong_binding():
    for options in ("--bind-to moon", "--map-by seq", "--map-by ppr:0:core", "--map-by ppr:x:core", "--map-by slot:PE=0",
                    "--bind-to core:sideways", "--rank-by moon", "--cpu-set 3-1", "--cpu-set x", "--cpu-set 99999",
                    "--cpus-per-rank 0"):
        run(*options.split(), "true").expect(2, options + ": ")


@case("a PE is really bound")
def bound():
    allowed = sorted(os.sched_getaffinity(0))
    result = run("-n", 1, "--cpu-set", allowed[-1], "sh", "-c", "grep Cpus_allowed_list /proc/self/status").expect(0)
    assert result.out.split() == ["Cpus_allowed_list:", str(allowed[-1])], result.out


@case("an oshrun that knows 300 options more than ours knows each of them")
def many_options():
    rows = "".join(f'    {{HARMLESS, FRONT, "option{i:03}", "", NULL, "a test has it"}},\n' for i in range(300))
    source = (ROOT / "src/launch/option_table.c").read_text().replace("struct weft_option_row weft_option_table[] = {\n", "struct weft_option_row weft_option_table[] = {\n" + rows)
    sources = [path for room in ("launch", "base", "boot") for path in (ROOT / "src" / room).glob("*.c") if path.stem != "option_table"]
    objects = [BUILD / "obj" / path.relative_to(ROOT).with_suffix(".o") for path in sources]
    if any(b"__asan_init" in path.read_bytes() or b"__tsan_init" in path.read_bytes() for path in objects[:1]):
        raise Skip("a build with sanitizers")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cc", "-D_GNU_SOURCE", f"-I{ROOT}/src", f"-I{BUILD}/include", "-x", "c", "-", "-x", "none", *objects, "-o", f"{folder}/oshrun", "-pthread", "-ldl"],
                       input=source, text=True, check=True)
        for option in "--option000", "--option299", "--oversubscribe":
            result = subprocess.run([f"{folder}/oshrun", "-v", option, "echo", "here"], capture_output=True, text=True, env=ENVIRONMENT)
            assert result.returncode == 0 and result.stdout == "here\n" and f"{option} has no effect" in result.stderr, (option, result)


main()
