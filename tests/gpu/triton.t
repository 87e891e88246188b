#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of Triton, nvrtc and CuPy that call weft/device.cuh, on this machine's GPUs (GPU_REAL=1, with GPU_PES PEs):
the programs of examples/python, and the end of a job in which a PE dies while the others wait in a Triton kernel.
Compiling without a GPU is tested by tests/python/triton.t and tests/gpu/nvrtc.t."""
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/python")]
import interpreter  # noqa: E402
import tap  # noqa: E402

NPES = os.environ.get("GPU_PES", "2")
SURVIVORS_S = 1.0
SECONDS = 100  # a first run compiles

if not os.environ.get("GPU_REAL"):
    print("1..0 # SKIP it needs a GPU (make check-gpu)")
    sys.exit(0)


def start(python, *command):
    return subprocess.Popen([interpreter.BUILD / "bin/oshrun", "-n", NPES, python, *command], env=interpreter.environment(),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def python_with(*modules):
    python = interpreter.find(*modules)
    if not python:
        raise tap.Skip(f"no Python here has {' and '.join(modules)}")
    if "triton" in modules and not (interpreter.BUILD / "lib/libweft_device_sm90.bc").exists():
        raise tap.Skip("this build has no libweft_device: there was no clang for GPUs")
    return python


def program(path, *modules):
    """The program succeeds and prints so. helion_run.py supplies what Helion needs with an older PyTorch."""
    def check(problems):
        before = [ROOT / "tests/python/helion_run.py"] if "helion" in path else []
        job = start(python_with(*modules), *before, ROOT / path)
        try:
            out, err = job.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            job.kill()
            out, err = job.communicate()
            problems.append(f"it was not done after {SECONDS} s")
        if job.returncode or not out:
            problems += [f"status {job.returncode}", *(out + err).splitlines()[-30:]]
    return check


def check_helion(problems):
    python = python_with("torch", "triton")
    if subprocess.run([python, "-c", "import importlib.metadata as m; m.version('helion')"], capture_output=True).returncode:
        raise tap.Skip("Helion is not installed")
    program("tests/python/helion_ring_all_gather.py", "torch", "triton")(problems)


def check_death(problems):
    """All PEs except the last wait in a kernel for a signal that never arrives; the last reports its death, and they
    end within a second."""
    job = start(python_with("torch", "triton"), ROOT / "tests/gpu/triton_wait.py")
    out, err = job.communicate(timeout=SECONDS)
    took = time.time() - float(re.search(r"dies at (\S+)", out)[1])
    last = int(NPES) - 1
    said = re.findall(rf"^weft: PE (\d+) \(pid \d+\): .*PE {last} \(pid \d+\) .*", err, re.M)
    print(f"# the job was over {took:.2f} s after the death")
    if sorted(map(int, said)) != list(range(last)) or took > SURVIVORS_S:
        problems += [f"{took:.2f} s, expected {SURVIVORS_S} at most; lines of PEs {said}", *(out + err).splitlines()[-30:]]


tap.run([
    ("a ring with signals in Triton", program("examples/python/triton/ring.py", "torch", "triton")),
    ("an all-reduce in Triton", program("examples/python/triton/all_reduce.py", "torch", "triton")),
    ("an all-gather that feeds a product in Triton", program("examples/python/triton/all_gather_matmul.py", "torch", "triton")),
    ("a kernel by nvrtc", program("examples/python/device_nvrtc.py", "cuda.bindings")),
    ("a kernel by CuPy", program("examples/python/device_cupy.py", "cupy")),
    ("PyTorch's helpers for NVSHMEM", program("tests/gpu/triton_nvshmem.py", "torch", "triton")),
    ("Helion's remote copies", check_helion),
    ("a PE dies while the others wait in a Triton kernel", check_death),
])
