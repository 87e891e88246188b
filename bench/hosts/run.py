#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts with one PE each, and a processor for each host: Weft, also over UCX, beside bare TCP, UCX's own calls and
Open MPI's OpenSHMEM, in turns; and calls to a near PE in a job of two hosts beside a job of one.

    tests/hosts/rig.py bench/hosts/run.py BUILD RESULTS [ROUNDS]       (make bench-hosts)

Leaves JSON lines, for bench/table.py."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/hosts"))
import rig  # noqa: E402
import verbs  # noqa: E402

BUILD, RESULTS = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
PATIENCE = 40  # seconds
ENGINE = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def outputs(*commands, **environment):
    """Returns the output of commands that run concurrently; reports a failure, and keeps the rows before it."""
    started = [subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, **environment}) for command in commands]
    try:
        heard = [process.communicate(timeout=PATIENCE) for process in started]
    except subprocess.TimeoutExpired:
        for process in started:
            process.kill()
        say(f"{commands[0][0]} ... was not over after {PATIENCE} s")
        return ""
    if any(process.returncode for process in started):
        say(f"{' '.join(map(str, commands[0]))} failed: " + "".join(errors for _, errors in heard).strip()[-400:])
    return "".join(out for out, _ in heard)


def pair(program):
    """Runs a program of two sides without a launcher, in sessions of their own, so that the kernel schedules both
    alike."""
    words = ["env", *(f"{name}={value}" for name, value in ENGINE.items()), program, "h0"]
    return lambda: outputs(*(["fakessh", host, *words, str(side)] for side, host in enumerate(("h0", "h1"))))


def weft(hosts, program, engine="tcp"):
    return lambda: outputs([BUILD / "bin/oshrun", "--hosts", hosts, BUILD / "bench" / program], WEFT_SSH="fakessh",
                           WEFT_ENGINE=engine)


def open_mpi(program):
    settings = [("plm", "rsh"), ("plm_rsh_agent", ROOT / "tests/hosts/bin/fakessh"), ("oob_tcp_if_include", "10.77.0.0/24"),
                ("btl_tcp_if_include", "10.77.0.0/24")]
    words = ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "-np", "2", "--host", "h0:1,h1:1"]
    words += [word for name, value in settings for word in ("--mca", name, str(value))]
    words += [word for name, value in ENGINE.items() for word in ("-x", f"{name}={value}")]
    return lambda: outputs([*words, program], OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def compiled(target, *command):
    """Returns the program, or None if its library is not installed."""
    (BUILD / "bench/peer").mkdir(parents=True, exist_ok=True)
    path = BUILD / "bench/peer" / target
    found = shutil.which(command[0]) and subprocess.run([*command, "-o", path], cwd=ROOT, capture_output=True)
    return path if found and found.returncode == 0 else None


def contestants():
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2"]
    yield "tcp", pair(compiled("tcp", "cc", *flags, "bench/hosts/tcp.c"))
    ucx = compiled("ucx", "cc", *flags, "bench/hosts/ucx.c", "-lucp", "-lucs")
    if ucx:
        yield "ucx", pair(ucx)
    else:
        say("UCX's own calls are left out: libucx-dev is not here")
    yield "weft", weft("h0:1,h1:1", "far")
    if (BUILD / "lib/libweft_ucx.so").exists():
        yield "weft-ucx", weft("h0:1,h1:1", "far", "ucx")
    other = shutil.which("mpirun.openmpi") and compiled("osh", "oshcc", *flags, "-Ibench", "bench/far.c")
    if other:
        yield "open-mpi", open_mpi(other)
    else:
        say("Open MPI's OpenSHMEM is left out: openmpi-bin or libopenmpi-dev is not here")
    yield "near-two", weft("h0:2,h1:1", "near")
    yield "near-one", weft("h0:3", "near")


def keep(name, number, text):
    """Keeps the lines of one round; a job of one host, and one over UCX, each has a column of its own."""
    libraries = {"near-one": "Weft on one host", "weft-ucx": "Weft over UCX"}
    with open(RESULTS / f"hosts-{name}-{number}.jsonl", "w") as file:
        for line in filter(lambda line: line.startswith("{"), text.splitlines()):
            if name in libraries:
                line = json.dumps({**json.loads(line), "library": libraries[name]})
            file.write(line + "\n")


def main():
    RESULTS.mkdir(parents=True, exist_ok=True)
    for number, host in enumerate(("h0", "h1")):
        verbs.pin(host, str(rig.processors_of(number, 2)[0]))
    measured = list(contestants())
    for number in range(1, ROUNDS + 1):
        say(f"round {number} of {ROUNDS}")
        for name, measure in measured:
            keep(name, number, measure())


main()
