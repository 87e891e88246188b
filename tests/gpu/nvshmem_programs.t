#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs for NVSHMEM compile and link unchanged if weft/nvshmem is on the compiler's path: nvcc, host compilers, and
clang without CUDA."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).resolve()
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-nvshmem-"))
WEFT = [f"-I{ROOT / 'include/weft/nvshmem'}", f"-I{ROOT / 'include'}"]
PROGRAMS = sorted((ROOT / "tests/gpu/nvshmem_programs").glob("*.cu"))
PLAIN = """#include <nvshmem.h>
#include <nvshmemx.h>
int main(void) {
    nvshmem_init();
    int *p = (int *)nvshmem_malloc(sizeof *p);
    nvshmem_int_p(p, 3, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
    nvshmemx_barrier_all_on_stream(0);
    int found = nvshmem_int_g(p, nvshmem_my_pe());
    nvshmem_free(p);
    assert(NVSHMEMX_SUCCESS == 0 && NVSHMEMX_ERROR_INVALID_VALUE == 1 && NVSHMEMX_ERROR_OUT_OF_MEMORY == 2 &&
           NVSHMEMX_ERROR_NOT_SUPPORTED == 3 && NVSHMEMX_ERROR_SYMMETRY == 4 && NVSHMEMX_ERROR_GPU_NOT_SELECTED == 5 &&
           NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED == 6 && NVSHMEMX_ERROR_INTERNAL == 7);
    if (found != 3)
        NVSHMEMI_ERROR_PRINT("found %d", found);
    nvshmem_finalize();
    return found != 3;
}
"""
# Other functions that NVSHMEM's own programs call, and the headers that they do not include themselves.
OTHER = """#include <nvshmem.h>
#include <nvshmemx.h>
__global__ void other(int *p) {
    assert(p);
    *p = nvshmem_my_pe();
}
__global__ void reduce(double2 *locations, int *numbers, size_t n) {
    nvshmemx_double2_maxloc_reduce_block(NVSHMEM_TEAM_WORLD, locations, locations, n);
    nvshmemx_int_sum_reducescatter_block(NVSHMEM_TEAM_WORLD, numbers, numbers, n);
}
CUresult use(CUmodule module, void *buffer, size_t bytes) {
    enum nvshmemx_status status = NVSHMEMX_ERROR_INTERNAL;
    void *symmetric = nvshmemx_buffer_register_symmetric(buffer, bytes, 0);
    if (!symmetric || nvshmemx_buffer_unregister_symmetric(symmetric, bytes) == status)
        NVSHMEMI_ERROR_PRINT("status %d", status);
    return nvshmemx_cumodule_init(module) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
"""

# As much of MPI as a job of one process needs.
MPI = """#pragma once
#include <string.h>
#define MPI_VERSION 4
typedef struct { int rank; } *MPI_Comm;
typedef int MPI_Datatype;
enum { MPI_BYTE = 1 };
static inline int MPI_Comm_rank(MPI_Comm comm, int *rank) { *rank = comm->rank; return 0; }
static inline int MPI_Comm_size(MPI_Comm comm, int *size) { *size = comm->rank + 1; return 0; }
static inline int MPI_Allgather(const void *mine, int n, MPI_Datatype, void *all, int, MPI_Datatype, MPI_Comm) {
    memcpy(all, mine, (size_t)n);
    return 0;
}
"""
BY_MPI = """#include <mpi.h>
#include <nvshmem.h>
#include <nvshmemx.h>
int main() {
    static struct MPI_Comm_of_one { int rank; } one;
    MPI_Comm comm = reinterpret_cast<MPI_Comm>(&one);
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    attr.mpi_comm = &comm;
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attr) || nvshmem_my_pe() != 0 || nvshmem_n_pes() != 1)
        return 1;
    nvshmem_finalize();
    return 0;
}
"""


def compile_by(problems, *command, source=None):
    made = subprocess.run([str(part) for part in command], input=source, capture_output=True, text=True)
    if made.returncode or "warning" in made.stderr:
        problems.append(f"{' '.join(str(part) for part in command[:1])}: {(made.stdout + made.stderr)[:400]}")


def by_hosts(problems):
    for compiler, language in (("gcc", "c"), ("clang", "c"), ("g++", "c++"), ("clang++", "c++")):
        if shutil.which(compiler):
            compile_by(problems, compiler, *WEFT, "-Wall", "-Wextra", "-x", language, "-", "-o", WORK / compiler,
                       f"-L{BUILD / 'lib'}", "-lweft", source=PLAIN)


def by_mpi(problems):
    (WORK / "mpi.h").write_text(MPI)
    compile_by(problems, "g++", f"-I{WORK}", *WEFT, "-Wall", "-Wextra", "-x", "c++", "-", "-o", WORK / "by_mpi",
               f"-L{BUILD / 'lib'}", "-lweft", f"-Wl,-rpath,{BUILD / 'lib'}", source=BY_MPI)
    if not problems:
        ran = subprocess.run([WORK / "by_mpi"], capture_output=True, text=True, timeout=20)
        problems.extend([f"exit {ran.returncode}", *ran.stderr.splitlines()][:5] if ran.returncode else [])


def by_nvcc(problems):
    """With a second unit, which has a state of its own. PTX suffices, because assembling it takes longest."""
    (WORK / "other.cu").write_text(OTHER)
    target = ["-Werror", "all-warnings", "-gencode", "arch=compute_80,code=compute_80", "-Wno-deprecated-gpu-targets"]
    whole, pieces = PROGRAMS
    compile_by(problems, NVCC, "-std=c++17", *target, *WEFT, whole, WORK / "other.cu", "-o", WORK / whole.stem,
               f"-L{BUILD / 'lib'}", "-lweft")
    compile_by(problems, NVCC, "-std=c++20", *target, "-dc", *WEFT, pieces, "-o", WORK / "pieces.o")


def benchmark(problems):
    """A program of this tree for NVSHMEM, without kernels."""
    include = pathlib.Path(NVCC).resolve().parents[1] / "include"
    compile_by(problems, "g++", "-std=c++17", *WEFT, "-isystem", include, ROOT / "bench/gpu/nvshmem.cc", "-c", "-o",
               WORK / "nvshmem.o")


def bitcode(problems):
    compile_by(problems, "clang", "--target=nvptx64-nvidia-cuda", "-march=sm_80", "-nogpulib", "-ffreestanding",
               "-std=c11", "-Wall", "-Wextra", *WEFT, "-x", "c", "-", "-S", "-o", WORK / "names.s",
               source="#include <nvshmem.h>\n")


CASES = [("compilers of C and C++ for the host", by_hosts), ("a job begins by a communicator of MPI", by_mpi)]
if NVCC:
    CASES.append(("nvcc: device code as a whole, or in pieces", by_nvcc))
    CASES.append(("the benchmark of NVSHMEM's host interface", benchmark))
if shutil.which("clang") and not subprocess.run(
        ["clang", "--target=nvptx64-nvidia-cuda", "-nogpulib", "-fsyntax-only", "-x", "c", "-"], input="", text=True,
        capture_output=True).returncode:
    CASES.append(("clang without CUDA", bitcode))
try:
    tap.run(CASES)
finally:
    shutil.rmtree(WORK)
