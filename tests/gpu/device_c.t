#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""base/device.cuh, the instructions that kernels are made of, is C: a clang without CUDA compiles all of it for
GPUs, without a warning, and each function to its instruction."""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

HEADER = ROOT / "src/base/device.cuh"
CLANG = [shutil.which("clang") or "clang", "--target=nvptx64-nvidia-cuda", "-march=sm_80", "-nogpulib", "-ffreestanding",
         "-std=c11", "-O2", "-x", "c", f"-I{ROOT / 'src'}"]
INSTRUCTIONS = ("ld.relaxed.sys.global.u32", "ld.acquire.sys.global.u64", "st.release.sys.global.u64",
                "st.relaxed.sys.global.v4.u32", "ld.relaxed.sys.global.v4.u32", "red.release.sys.global.add.u64",
                "atom.acq_rel.sys.global.cas.b32", "fence.acq_rel.sys", "mov.u32 %r1, %tid.x", "bar.sync 0",
                "barrier.red.or.pred")
CALLER = """
#include "base/device.cuh"
void call(uint32_t *word, uint64_t *wide, struct weft_quad *quad) {
    weft_st_relaxed_sys_quad(quad, weft_ld_relaxed_sys_quad(quad + weft_block_thread()));
    weft_block_sync();
    weft_st_release_sys_u64(wide, weft_ld_acquire_sys_u64(wide) + weft_ld_relaxed_sys_u32(word));
    weft_red_add_sys_u64(wide, weft_atom_cas_sys_u32(word, 1, 2));
    weft_fence_sys();
    *word = weft_block_sync_any(*word);
}
"""


def compile_c(source, *flags):
    return subprocess.run([*CLANG, *flags, "-S", "-o", "-", "-"], input=source, capture_output=True, text=True)


def reason_to_skip():
    if not shutil.which("clang"):
        return "there is no clang here"
    return compile_c("int one;").returncode and "this clang does not compile for GPUs"


skip = reason_to_skip()
if skip:
    print(f"1..0 # SKIP {skip}")
    sys.exit(0)


def check_compiles(problems):
    made = compile_c('#include "base/device.cuh"\n', "-Wall", "-Wextra", "-Wpedantic", "-Werror")
    problems.extend(made.stderr.splitlines())


def check_instructions(problems):
    made = compile_c(CALLER)
    text = re.sub(r"%r\d+, %tid", "%r1, %tid", made.stdout)
    problems.extend(made.stderr.splitlines())
    problems.extend(f"there is no {wanted}" for wanted in INSTRUCTIONS if wanted not in text)


def check_includes(problems):
    included = re.findall(r'#include [<"](.*)[>"]', HEADER.read_text())
    problems.extend(f"it includes {name}" for name in included if name not in ("stddef.h", "stdint.h"))


tap.run([
    ("base/device.cuh compiles as C without a warning", check_compiles),
    ("a function is an instruction", check_instructions),
    ("it includes nothing but stddef.h and stdint.h", check_includes),
])
