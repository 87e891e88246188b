#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Environment variables: the effect of each, under either name; the effect of a wrong value; that the list that
SHMEM_INFO and `weft info` print is complete and true; and that the source reads no others."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).resolve()
WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-environment-"))
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

STATUS_ERROR = 71
FLAGS = {"VERSION": "off", "INFO": "off", "DEBUG": "off"}
DEFAULTS = {**FLAGS, "SYMMETRIC_SIZE": "0 bytes"}
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("SHMEM_", "SMA_"))}

PROGRAM = r"""
#include <shmem.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int provided;
    setlocale(LC_ALL, "");
    if (argc > 1) {
        shmem_init();
    } else {
        int result = shmem_init_thread(SHMEM_THREAD_SINGLE, &provided);
        if (result != 0) {
            printf("init_thread returned %s\n", result < 0 ? "an error" : "something");
            return 3;
        }
    }
    char *large = shmem_malloc(16 << 20);
    if (!large)
        return 4;
    large[(16 << 20) - 1] = 1;
    shmem_free(large);
    shmem_finalize();
    printf("done\n");
    return 0;
}
"""


def run(npes=1, arguments=(), **settings):
    return subprocess.run([str(BUILD / "bin/oshrun"), "-n", str(npes), str(WORK / "program"), *arguments],
                          capture_output=True, text=True, timeout=60, env={**PLAIN, **settings})


def expect(problems, what, condition, result):
    if not condition:
        problems.append(f"{what}: exit {result.returncode}: {result.stdout[:600]} | {result.stderr[:600]}")


def version(problems):
    line = re.compile(r"^Weft [0-9.]+, OpenSHMEM 1\.6$", re.M)
    for name in ("SHMEM_VERSION", "SMA_VERSION"):
        for value in ("1", "", "0", "no"):
            for npes in (1, 3):
                result = run(npes, **{name: value})
                expect(problems, f"{name}={value}", len(line.findall(result.stdout)) == 1, result)
                expect(problems, f"{name}={value}", result.stdout.count("\n") == npes + 1, result)
    result = run(2)
    expect(problems, "not set", result.stdout == "done\n" * 2, result)


def rows(text):
    """Returns name -> value and remarks of the printed table."""
    return dict(re.findall(r"^  (SHMEM_\w+) +(.*)$", text, re.M))


def info(problems):
    for name in ("SHMEM_INFO", "SMA_INFO"):
        for npes in (1, 3):
            result = run(npes, **{name: ""})
            table = rows(result.stdout)
            wanted = {f"SHMEM_{field}": f"{value} (default)" for field, value in DEFAULTS.items()}
            wanted["SHMEM_INFO"] = f"on ({name}=; default: off)"
            expect(problems, f"{name} lists {table}", table == wanted, result)
            for field in DEFAULTS:
                expect(problems, f"{name} has SMA_{field}", f"deprecated name: SMA_{field}\n" in result.stdout, result)
            expect(problems, name, result.stdout.count("environment\n") == 1 and "Weft " in result.stdout, result)


def origins(problems):
    table = rows(run(SHMEM_INFO="1", SMA_DEBUG="x", SHMEM_SYMMETRIC_SIZE="3.1m").stdout)
    wanted = {"SHMEM_VERSION": "off (default)", "SHMEM_INFO": "on (SHMEM_INFO=1; default: off)",
              "SHMEM_DEBUG": "on (SMA_DEBUG=x; default: off)",
              "SHMEM_SYMMETRIC_SIZE": "3.10 MiB (SHMEM_SYMMETRIC_SIZE=3.1m; default: 0 bytes)"}
    if table != wanted:
        problems.append(str(table))


def weft_info(problems):
    result = subprocess.run([str(BUILD / "bin/weft"), "info"], capture_output=True, text=True, timeout=60,
                            env={**PLAIN, "SMA_SYMMETRIC_SIZE": "1e3k"})
    table = rows(result.stdout)
    wanted = {f"SHMEM_{field}": f"{value} (default)" for field, value in DEFAULTS.items()}
    wanted["SHMEM_SYMMETRIC_SIZE"] = "1000 KiB (SMA_SYMMETRIC_SIZE=1e3k; default: 0 bytes)"
    expect(problems, str(table), table == wanted, result)


NUMBERS = {"SHMEM_SYMMETRIC_SIZE": "0 bytes", "WEFT_HANG_SECONDS": "10 s", "WEFT_START_TIMEOUT": "60 s",
           "WEFT_HOST_TIMEOUT": "5 s", "WEFT_FAN_OUT": "32", "WEFT_BACKTRACE": "1", "WEFT_TF32": "0",
           "WEFT_DETERMINISTIC": "0"}


def units(problems):
    """Every default that is a number has its unit: only sizes have bytes, only times seconds."""
    result = subprocess.run([str(BUILD / "bin/weft"), "info"], capture_output=True, text=True, timeout=60,
                            env={name: value for name, value in PLAIN.items() if name not in NUMBERS})
    found = dict(re.findall(r"^  ((?:SHMEMX?|WEFT)_\w+) +(\d.*) \(default\)$", result.stdout, re.M))
    expect(problems, str(found), found == NUMBERS, result)
    for value in ("0", "-1", "2k", "1025", "many", ""):
        result = run(WEFT_FAN_OUT=value)
        expect(problems, f"WEFT_FAN_OUT={value}", result.returncode != 0 and f"WEFT_FAN_OUT is '{value}'" in result.stderr
               and "a whole number from 1 to 1024" in result.stderr, result)


def precedence(problems):
    result = run(SHMEM_SYMMETRIC_SIZE="2m", SMA_SYMMETRIC_SIZE="none", SHMEM_INFO="1")
    expect(problems, "the standard's name is right", result.returncode == 0, result)
    expect(problems, "the value", rows(result.stdout).get("SHMEM_SYMMETRIC_SIZE", "").startswith("2 MiB "), result)
    expect(problems, "the other is named", "SMA_SYMMETRIC_SIZE=none has no effect" in result.stdout, result)
    result = run(SHMEM_SYMMETRIC_SIZE="none", SMA_SYMMETRIC_SIZE="2m")
    expect(problems, "the standard's name is wrong", result.returncode == 3, result)


def sizes(problems):
    for npes in (1, 4):
        for size in ("0", "1", "20k", "20kk", "3.1M", ".5m", "1e6", "1.5e3K", "0.001g"):
            result = run(npes, SHMEM_SYMMETRIC_SIZE=size)
            expect(problems, size, result.returncode == 0 and result.stdout == "done\n" * npes, result)


def wrong_sizes(problems):
    for name in ("SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE"):
        for size in ("", "many", "-1", "5x", "1e5000"):
            line = rf"^weft: .*{name} is '{re.escape(size)}', which is not a size: set it to a number"
            result = run(2, **{name: size})
            expect(problems, f"init_thread, {name}={size}",
                   result.returncode == 3 and result.stdout == "init_thread returned an error\n" * 2
                   and len(re.findall(line, result.stderr, re.M)) == 2, result)
            result = run(2, ["init"], **{name: size})
            expect(problems, f"init, {name}={size}",
                   result.returncode == STATUS_ERROR and re.search(line, result.stderr, re.M), result)


def commitment(problems):
    for value in "now", "auto":
        result = run(2, WEFT_COMMIT=value)
        expect(problems, value, result.returncode == 0 and result.stdout == "done\n" * 2, result)
    result = run(2, WEFT_COMMIT="later")
    expect(problems, "later", result.returncode == 3 and "WEFT_COMMIT is 'later': set it to auto or now" in result.stderr, result)


def proxies(problems):
    result = run(2, WEFT_PRETEND_HOSTS="each", WEFT_PROXIES="hosts")
    expect(problems, "hosts", result.returncode == 3 and "WEFT_PROXIES is 'hosts': set it to auto, pe or host" in result.stderr, result)


def too_large(problems):
    """More memory than the machine has: all PEs fail together, with a line; the heap is really committed."""
    total = int(re.search(r"MemTotal: +(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1))
    for size in (f"{total + 1}k", "1000t"):
        for npes in (1, 3):
            result = run(npes, SHMEM_SYMMETRIC_SIZE=size)
            expect(problems, f"{size} at {npes} PEs",
                   result.returncode == 3 and result.stdout.count("init_thread returned an error") == npes
                   and "SHMEM_SYMMETRIC_SIZE" in result.stderr, result)


def locale(problems):
    """A program whose locale has a decimal comma: values of variables still have a point."""
    made = shutil.which("localedef") and subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", str(WORK / "de_DE.UTF-8")], capture_output=True).returncode == 0
    if not made:
        raise tap.Skip("no sources of locales on this machine (package locales)")
    result = run(LOCPATH=str(WORK), LC_ALL="de_DE.UTF-8", SHMEM_SYMMETRIC_SIZE="1.5m", SHMEM_INFO="1")
    expect(problems, "1.5m", rows(result.stdout).get("SHMEM_SYMMETRIC_SIZE", "").startswith("1.50 MiB"), result)


def one_table(problems):
    """Only base/env.c reads settings. Variables that a launcher passes are not settings, and boot reads them; nor are
    the variables that oshrun gets from a batch system or the shell, or forwards. UCX's variables belong to UCX, but the
    engine, and the code that selects it, look whether the user has set them."""
    told = {'"PATH"', '"SLURM_JOB_ID"', '"SLURM_STEP_ID"', '"SLURM_TASKS_PER_NODE"', "name", "use->value"}
    for path in sorted((ROOT / "src").rglob("*.c")):
        found = set(re.findall(r"\bgetenv\((.*?)\)", path.read_text()))
        found -= {'"UCX_TLS"', '"UCX_NET_DEVICES"'} if path == ROOT / "src/far/engine.c" else set()
        found -= told if path.parent.name == "launch" else set()
        found -= {'"UCX_TLS"', '"UCX_TCP_AF_PRIO"', '"UCX_NET_DEVICES"', "name"} if path.parent.name == "ucx" else set()
        if path.parent.name != "boot" and path.name != "env.c" and found - {'"OPENBLAS_CORETYPE"'}:
            problems.append(f"{path.relative_to(ROOT)} reads {found}")


(WORK / "program.c").write_text(PROGRAM)
subprocess.run([str(BUILD / "bin/oshcc"), "-std=c11", "-o", str(WORK / "program"), str(WORK / "program.c")], check=True)
try:
    tap.run([
        ("SHMEM_VERSION", version),
        ("SHMEM_INFO", info),
        ("the list says where each value is from", origins),
        ("weft info has the same list", weft_info),
        ("numbers have their units, and a count is a whole number", units),
        ("the standard's names win over SMA_", precedence),
        ("SHMEM_SYMMETRIC_SIZE, and the heap grows beyond it", sizes),
        ("what is no size is an error", wrong_sizes),
        ("WEFT_COMMIT", commitment),
        ("WEFT_PROXIES", proxies),
        ("a heap that the machine cannot hold is an error", too_large),
        ("numbers are the same in every locale", locale),
        ("all settings are in one table", one_table),
    ])
finally:
    shutil.rmtree(WORK)
