#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The programs of examples/cuda have right results, at 1 to 4 PEs: compiled for the host, on the pretended driver,
also with weak memory. If nvcc is installed they compile without a warning, as make compiles them, with the flags of
pkg-config, with checks and for a debugger. docs/device.md quotes them.

With GPU_REAL=1 the programs that make has built run on this machine's GPUs; GPU_PES is the number of PEs."""
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

REAL = bool(os.environ.get("GPU_REAL"))
PES = [int(number) for number in os.environ.get("GPU_PES", "1 2 3 4").split()]
SOURCES = sorted((ROOT / "examples/cuda").glob("*.cu"))
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
LEAST = {"tensor_map": 90}  # compute capability; 80 otherwise
SECONDS = 60


def run(problems, program, npes, **settings):
    command = [BUILD / "bin/oshrun", "-n", str(npes), program]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings}, timeout=SECONDS)
    right = len(re.findall(r": (?:right|skipped\b.*)$", ran.stdout, re.M))
    if ran.returncode or right == 0 or "WRONG" in ran.stdout:
        problems.append(f"{program.name} on {npes} PEs: status {ran.returncode}: {ran.stdout}{ran.stderr}")


def pretended(**settings):
    def check(problems):
        programs = sorted((BUILD / "tests/gpu/examples").glob("*"))
        if len(programs) != len(SOURCES) - 1:  # all but tensor_map
            problems.append(f"make has built {[program.name for program in programs]}")
        for program in programs:
            for npes in PES if not settings else PES[1:2]:
                run(problems, program, npes, LD_LIBRARY_PATH=str(BUILD / "tests/gpu/driver"), **settings)
    return check


def real(source):
    def check(problems):
        program = BUILD / "examples/cuda" / source.stem
        if not program.exists():
            raise tap.Skip("there was no nvcc to build it")
        for npes in PES:
            run(problems, program, npes)
    return check


def compiles(*flags):
    def check(problems):
        if not NVCC:
            raise tap.Skip("there is no nvcc here")
        with tempfile.TemporaryDirectory(prefix="weft-examples-") as work:
            for source in SOURCES:
                sm = LEAST.get(source.stem, 80)
                command = [NVCC, "-std=c++17", "-Werror", "all-warnings", "-Wno-deprecated-gpu-targets", *flags,
                           "-gencode", f"arch=compute_{sm},code=compute_{sm}", source, "-o", f"{work}/program"]
                made = subprocess.run(command, capture_output=True, text=True)
                if made.returncode:
                    problems.append(f"{source.name}: {made.stderr[:600]}")
    return check


def find_library():
    """As docs/device.md describes it for builds with pkg-config."""
    return [f"-I{BUILD}/include", f"-L{BUILD}/lib", "-lweft", "-Xlinker", f"-rpath={BUILD}/lib"]


def shown(problems):
    """Listings are whole lines of the programs, in their order."""
    page = (ROOT / "docs/device.md").read_text()
    programs = "".join(source.read_text() for source in SOURCES)
    listings = re.findall(r"^```cuda\n(.*?)^```", page, re.M | re.S)
    problems += [f"no program has\n{listing}" for listing in listings if listing not in programs]
    problems += [f"docs/device.md does not speak of {source.name}" for source in SOURCES if source.stem not in page]
    print(f"# {len(listings)} listings")


if REAL:
    tap.run([(f"{source.stem} is right", real(source)) for source in SOURCES])
tap.run([
    ("examples are right on the pretended driver", pretended()),
    ("and where stores come late and loads early", pretended(WEFT_FAKE_WEAK="1", WEFT_FAKE_DELAY_US="200")),
    ("they compile by what pkg-config says, with checks and for a debugger", compiles("-DWEFT_CHECK", "-G", *find_library())),
    ("docs/device.md shows them", shown),
])
