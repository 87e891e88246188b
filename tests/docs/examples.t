#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Examples in the documents are programs: they compile without a warning and run on two PEs with
status 0; kernels compile.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"]
PES = 2


def unescape(text):
    return text.replace(r"\-", "-").replace(r"\e", "\\").replace(r"\(aq", "'").replace(r"\&", "")


def programs():
    """(where, source) of every listing that has a main."""
    for page in sorted((ROOT / "docs/man").glob("*.[1-9]")):
        for listing in re.findall(r"^\.EX\n(.*?)^\.EE", page.read_text(), re.M | re.S):
            if "int main(" in listing:
                yield page.name, unescape(listing)
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "tests/README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for listing in re.findall(r"^```c\n(.*?)^```", page.read_text(), re.M | re.S):
            if "int main(" in listing:
                yield page.name, listing


def run(problems, where, source, work, suffix=".c", flags=(*FLAGS, f"-I{ROOT}/tests"), compiler=""):
    program, file = work / "program", (work / "program").with_suffix(suffix)
    file.write_text(source)
    made = subprocess.run([BUILD / "bin/oshcc", *flags, file, "-o", program], cwd=work, capture_output=True, text=True,
                          env={**os.environ, "WEFT_CC": compiler})
    if made.returncode:
        problems.append(f"{where}: {made.stderr[:600]}")
        return
    # GPUs are pretended ones: what is shown is that the program is right, not that one is here.
    env = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "tests/gpu/driver")}
    ran = subprocess.run([BUILD / "bin/oshrun", "-n", str(PES), program], capture_output=True, text=True, env=env,
                         timeout=120)
    if ran.returncode:
        problems.append(f"{where}: status {ran.returncode}: {ran.stdout[:300]}{ran.stderr[:300]}")


def kernels():
    """(where, source) of every listing of the manual that has a kernel."""
    for page in sorted((ROOT / "docs/man").glob("*.[1-9]")):
        for listing in re.findall(r"^\.EX\n(.*?)^\.EE", page.read_text(), re.M | re.S):
            if "__global__ void" in listing:
                yield page.name, unescape(listing)


def kernels_compile(problems):
    """By the pretended driver's compiler; and by CUDA's, where it is."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    pretended = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-DWEFT_KERNEL_THREADS", "-D__shared__=static"]
    pretended += [f"-I{ROOT / folder}" for folder in (".", "include", "src", "tests", "tests/gpu/driver")]
    cuda = [nvcc, "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", f"-I{ROOT}/include", "-ptx", "-o", os.devnull]
    found = list(kernels())
    with tempfile.TemporaryDirectory(prefix="weft-kernels-") as work:
        for where, source in found:
            program = pathlib.Path(work) / "program.cu"
            program.write_text(source)
            for command in [[*pretended, "-include", "device.h", "-x", "c++"], *([cuda] if nvcc else [])]:
                made = subprocess.run([*command, program], capture_output=True, text=True)
                if made.returncode:
                    problems.append(f"{where}, {command[0]}: {made.stderr[:600]}")
    print(f"# {len(found)} kernels")


def examples_run(problems):
    found = list(programs())
    with tempfile.TemporaryDirectory(prefix="weft-examples-") as work:
        for where, source in found:
            run(problems, where, source, pathlib.Path(work))
    print(f"# {len(found)} programs")


def fortran_runs(problems):
    """Compiled by oshcc without a warning, and by the document's own line for gfortran, with a linker that takes libraries
    only for what stands before them, as Ubuntu's does."""
    if not shutil.which("gfortran"):
        raise tap.Skip("gfortran is not installed")
    page = (ROOT / "docs/fortran.md").read_text()
    listing, = re.findall(r"^```fortran\n(.*?)^```", page, re.M | re.S)
    flags = ["-std=f2018", "-O2", "-Wall", "-Wextra", "-Werror"]
    with tempfile.TemporaryDirectory(prefix="weft-fortran-") as folder:
        work = pathlib.Path(folder)
        run(problems, "docs/fortran.md", listing, work, ".f90", flags, "gfortran")
        if not shutil.which("pkg-config"):
            print("# no pkg-config, which the document's line for gfortran needs")
            return
        line, = re.findall(r"gfortran [^`]*pkg-config[^`\n]*", page)
        (work / "ring.f90").write_text(listing)
        env = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "lib/pkgconfig")}
        script = f"set -e\n{line.replace('gfortran ', 'gfortran -Wl,--as-needed ', 1)}\n{BUILD}/bin/oshrun -n {PES} ./ring"
        done = subprocess.run(["sh", "-c", script], cwd=work, env=env, capture_output=True, text=True, timeout=120)
        problems += [f"{line}: status {done.returncode}: {done.stderr[:600]}"] if done.returncode else []


def routine_pages_have_one(problems):
    shown = {where for where, _ in [*programs(), *kernels()]}
    problems += [f"{page.name} has no example" for page in sorted((ROOT / "docs/man").glob("*.3"))
                 if page.name not in shown]


tap.run([
    ("every page of routines has an example", routine_pages_have_one),
    (f"examples compile and run on {PES} PEs", examples_run),
    ("the program in Fortran compiles and runs", fortran_runs),
    ("kernels of examples compile", kernels_compile),
])
