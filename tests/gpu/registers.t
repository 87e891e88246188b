#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kernels without launch bounds that put and signal in loops use at most 64 registers per thread, so that blocks of
1,024 threads can be launched: a multiprocessor has 65,536. nvcc reports the number."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
REGISTERS_MAX = 65536 // 1024
LOOP = "for (int round = 0; round < rounds; round++) for (int m = 0; m < n; m++)"
CALLS = {
    "weft_put_b": "weft_put_b(&t, to, from, bytes, m);",
    "weft_put_w": "weft_put_w(&t, to, from, bytes, m);",
    "weft_put_signal_b": "weft_put_signal_b(&t, to, from, bytes, sig + m, round, WEFT_SIGNAL_SET, m);"
                         "if (!weft_wait_ge_b(&t, sig + m, round)) return;",
    "nvshmemx_put_block": "nvshmemx_float_put_nbi_block((float *)to, (const float *)from, bytes / 4, m);",
    "nvshmemx_put_signal_block": "nvshmemx_putmem_signal_block(to, from, bytes, sig, 1, NVSHMEM_SIGNAL_ADD, m);",
}


def program():
    lines = ["#include <nvshmem.h>", "#include <nvshmemx.h>"]
    for name, call in CALLS.items():
        lines.append(f'extern "C" __global__ void loop_{name}(const __grid_constant__ weft_device_team t, char *dest, '
                     "const char *source, size_t bytes, int rounds, int n, uint64_t *sig) {\n"
                     f"    {LOOP} {{\n        char *to = dest + round * bytes; const char *from = source + m * bytes;\n"
                     f"        {call}\n    }}\n}}")
    return "\n".join(lines)


def check_registers(problems):
    if not NVCC:
        raise tap.Skip("there is no nvcc here")
    with tempfile.TemporaryDirectory(prefix="weft-registers-") as folder:
        source = pathlib.Path(folder) / "loops.cu"
        source.write_text(program())
        made = subprocess.run([NVCC, "-std=c++17", "-arch=sm_90", "-cubin", "-Xptxas", "-v", f"-I{ROOT / 'include'}",
                               f"-I{ROOT / 'include/weft/nvshmem'}", source, "-o", source.with_suffix(".cubin")],
                              capture_output=True, text=True)
    counts = dict(re.findall(r"entry function 'loop_(\w+)'.*?Used (\d+) registers", made.stderr, re.S))
    problems.extend(f"{name} takes {counts.get(name, 'no number of')} registers" for name in CALLS
                    if not 0 < int(counts.get(name, 0)) <= REGISTERS_MAX)
    if made.returncode:
        problems.append(made.stderr[:400])


tap.run([(f"loops of puts take {REGISTERS_MAX} registers at most", check_registers)])
