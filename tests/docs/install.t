#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `make install` leaves behind: every routine has a manual page, headers come along, and programs
compile and run with what was installed, by the wrapper and by the flags of weft.pc.
"""
import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("WEFT_BUILD", "build")
SYMBOLS = ROOT / "tests/api/openshmem-1.6-symbols.txt"
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-install-"))
atexit.register(shutil.rmtree, WORK)
PREFIX = WORK / "prefix"
PROGRAM = "#include <shmem.h>\nint main(void) { shmem_init(); return shmem_n_pes() != 2; }\n"


def run(problems, *command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        problems.append(f"{' '.join(map(str, command))}: {done.stdout[-300:]}{done.stderr[-300:]}")
    return done.stdout


def installs(problems):
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    run(problems, "make", f"BUILD={BUILD}", "install", f"PREFIX={PREFIX}", cwd=ROOT, env=environment)


def pages(problems):
    routines = [line.split("\t")[2] for line in SYMBOLS.read_text().splitlines() if not line.startswith("#")]
    wanted = [f"man3/{name}.3" for name in routines] + ["man1/oshrun.1", "man1/oshc++.1", "man7/weft.7"]
    problems += [f"no page {page}" for page in wanted if not (PREFIX / "share/man" / page).exists()][:10]
    problems += [f"{path.name} leads nowhere" for path in (PREFIX / "share/man").rglob("*") if not path.exists()]


def headers(problems):
    for header in (ROOT / "include").rglob("*"):
        if not (PREFIX / "include" / header.relative_to(ROOT / "include")).exists():
            problems.append(f"{header.relative_to(ROOT)} is not installed")


def programs(problems):
    (WORK / "program.c").write_text(PROGRAM)
    flags = []
    if shutil.which("pkg-config"):
        flags = run(problems, "pkg-config", "--cflags", "--libs", "weft",
                    env={**os.environ, "PKG_CONFIG_PATH": str(PREFIX / "lib/pkgconfig")}).split()
    else:
        print("# pkg-config is not installed: weft.pc is not tried")
    for compiler in [[PREFIX / "bin/oshcc"]] + ([["gcc", *flags]] if flags else []):
        program = WORK / "program"
        run(problems, compiler[0], WORK / "program.c", "-o", program, *compiler[1:])
        run(problems, PREFIX / "bin/oshrun", "-n", "2", program, timeout=60)


tap.run([
    ("make install", installs),
    ("every routine has a page, no link is broken", pages),
    ("all headers come along", headers),
    ("programs compile and run with what is installed", programs),
])
