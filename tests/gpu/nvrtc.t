#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""nvrtc compiles kernels that include <weft/device.cuh>, without another folder of headers: those of the examples for
nvrtc and CuPy, for each of these kinds of GPU that it supports. And NVSHMEM's names."""
import ctypes
import glob
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

ARCHITECTURES = (80, 90, 100)


def load():
    """Returns the toolkit's libnvrtc, or None."""
    for name in ("libnvrtc.so", *sorted(glob.glob("/usr/local/cuda*/lib64/libnvrtc.so"), reverse=True)):
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    return None


NVRTC = load()
if NVRTC is None:
    print("1..0 # SKIP there is no libnvrtc here")
    sys.exit(0)


def known():
    count = ctypes.c_int()
    NVRTC.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    found = (ctypes.c_int * count.value)()
    NVRTC.nvrtcGetSupportedArchs(found)
    return [arch for arch in ARCHITECTURES if arch in list(found)]


def log_of(source, arch, *more):
    """Returns nvrtc's messages, or None if it has compiled the source without any."""
    program, bytes_of_log = ctypes.c_void_p(), ctypes.c_size_t()
    NVRTC.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    words = [f"--gpu-architecture=sm_{arch}".encode(), f"-I{ROOT / 'include'}".encode(), *more]
    status = NVRTC.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
    NVRTC.nvrtcGetProgramLogSize(program, ctypes.byref(bytes_of_log))
    log = ctypes.create_string_buffer(bytes_of_log.value)
    NVRTC.nvrtcGetProgramLog(program, log)
    return None if status == 0 and not log.value.strip() else log.value.decode() or f"status {status}"


def example(name):
    text = (ROOT / "examples/python" / name).read_text()
    source = re.search(r'SOURCE = \w*"""(.*?)"""', text, re.S)[1]

    def check(problems):
        for arch in known():
            for dialect in (b"--std=c++17", b"--std=c++20"):
                problems.extend((log_of(source, arch, dialect) or "").splitlines()[:12])
    return check


def names(problems):
    """<nvshmem.h>, whose state the host finds by its name."""
    source = """
#include <nvshmem.h>
extern "C" __global__ void kernel(int *words) {
    words[nvshmem_int_wait_until_any(words, 8, nullptr, NVSHMEM_CMP_NE, 0)] = nvshmem_my_pe();
    nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, words, words, 8);
}
"""
    folder = f"-I{ROOT / 'include/weft/nvshmem'}".encode()
    for arch in known():
        problems.extend((log_of(source, arch, b"--std=c++17", folder) or "").splitlines()[:12])


tap.run([
    ("a kernel in NVSHMEM's names is compiled", names),
    ("the kernel of device_nvrtc.py is compiled", example("device_nvrtc.py")),
    ("the kernel of device_cupy.py is compiled", example("device_cupy.py")),
])
