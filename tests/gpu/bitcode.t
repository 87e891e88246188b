#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""libweft_device_sm80 and _sm90, as bitcode and as PTX: they export exactly the names of bitcode.list, with those
arguments; no symbol is left undefined; and CUDA's assembler, if installed, accepts the PTX."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

LIST = pathlib.Path(__file__).with_suffix(".list")
LIB = ROOT / "build/lib"
FUNCTION = re.compile(r"^\.visible \.func +(?:\(\.param \.b(\d+) \w+\) )?(\w+)\(([^)]*)\)", re.M)
PTXAS = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
HOPPER = " sm_90"
NVSHMEM = {"nvshmem_my_pe", "nvshmem_n_pes", "nvshmem_fence", "nvshmem_quiet", "nvshmem_ptr", "nvshmemx_mc_ptr",
           "nvshmem_team_my_pe", "nvshmem_team_n_pes", "nvshmem_team_translate_pe", "nvshmem_barrier", "nvshmem_sync",
           "nvshmem_barrier_all", "nvshmem_sync_all", "nvshmem_int_p", "nvshmemx_signal_op",
           "nvshmem_signal_wait_until", "nvshmem_int_wait_until", "nvshmemx_alltoallmem_block",
           "nvshmemx_broadcastmem_block", "weft_nvshmem_job"}
KINDS = ["half", "bfloat16", "float", "double", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))]
for x, group in (("", ""), ("x", "_warp"), ("x", "_block")):
    NVSHMEM |= {f"nvshmem{x}_{what}{form}{group}" for what in ("putmem", "getmem", "putmem_signal") for form in ("", "_nbi")}
    NVSHMEM |= {f"nvshmem{x}_{kind}_{what}{group}" for what in ("broadcast", "fcollect") for kind in KINDS}
    NVSHMEM |= {f"nvshmem{x}_{what}{group}" for what in ("barrier", "barrier_all", "sync_all")}
NVSHMEM |= {"nvshmemx_team_sync_warp", "nvshmemx_team_sync_block"}
NVSHMEM |= {f"nvshmem_{kind}_{operation}_reduce" for operation in ("sum", "prod", "max", "min") for kind in KINDS}


def ptx(sm):
    return (LIB / f"libweft_device_sm{sm}.ptx").read_text()


def exported(sm):
    """Returns a line for each function: its name, the bits of its arguments, and those of its result."""
    return {" ".join([name, *re.findall(r"\.b(\d+)", arguments), "->", result or "nothing"])
            for result, name, arguments in FUNCTION.findall(ptx(sm))}


def expected(sm):
    lines = {line for line in LIST.read_text().splitlines() if line and not line.startswith("#")}
    return {line.removesuffix(HOPPER) for line in lines if sm >= 90 or not line.endswith(HOPPER)}


def check_list(problems):
    for sm in 80, 90:
        problems.extend(f"sm_{sm} lacks {line}" for line in sorted(expected(sm) - exported(sm)))
        problems.extend(f"sm_{sm} has {line}, which is not in the list" for line in sorted(exported(sm) - expected(sm)))


def check_whole(problems):
    for sm in 80, 90:
        problems.extend(f"sm_{sm}: {line}" for line in ptx(sm).splitlines() if line.startswith(".extern"))
        problems.extend(f"sm_{sm}: {line}" for line in ptx(sm).splitlines()
                        if re.match(r"\.(visible )?\.?(global|const)\b", line))


def check_bitcode(problems):
    """The bitcode has the same names, if a tool that reads it is installed."""
    nm = shutil.which("llvm-nm")
    if not nm:
        raise tap.Skip("there is no llvm-nm here")
    for sm in 80, 90:
        lines = subprocess.run([nm, "-g", LIB / f"libweft_device_sm{sm}.bc"], capture_output=True, text=True, check=True).stdout
        names = {line.split()[-1] for line in lines.splitlines()}
        problems.extend(f"sm_{sm}: {name} is in one of both" for name in names ^ {line.split()[0] for line in exported(sm)})


def check_nvshmem(problems):
    """The functions that PyTorch's helpers for NVSHMEM, Helion and Triton-distributed call, and the job to which they
    belong."""
    nm = shutil.which("llvm-nm")
    if not nm:
        raise tap.Skip("there is no llvm-nm here")
    for sm in 80, 90:
        lines = subprocess.run([nm, "-g", LIB / f"libweft_nvshmem_sm{sm}.bc"], capture_output=True, text=True, check=True).stdout
        names = {line.split()[-1] for line in lines.splitlines()}
        problems.extend(f"sm_{sm}: {name} is in one of both" for name in names ^ NVSHMEM)


def check_assembles(problems):
    if not PTXAS:
        raise tap.Skip("there is no ptxas here")
    targets = subprocess.run([PTXAS, "--help"], capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        for sm, target in (80, 80), (80, 90), (90, 90), (90, 100):
            if f"sm_{target}" in targets:
                done = subprocess.run([PTXAS, "-c", f"-arch=sm_{target}", LIB / f"libweft_device_sm{sm}.ptx",
                                       "-o", f"{folder}/cubin"], capture_output=True, text=True)
                problems.extend(f"sm_{sm} for sm_{target}: {line}" for line in done.stderr.splitlines()[:10])


if not (LIB / "libweft_device_sm90.ptx").exists():
    print("1..0 # SKIP this build has no libweft_device: there was no clang for GPUs")
    sys.exit(0)
tap.run([
    ("what is exported is in the list, and nothing else", check_list),
    ("it needs nothing from elsewhere and has no data", check_whole),
    ("the bitcode has the same names", check_bitcode),
    ("NVSHMEM's names for Triton are there, and nothing else", check_nvshmem),
    ("the assembler takes the PTX as it is", check_assembles),
])
