#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""<weft/device.cuh>, the interface for kernels, is C: a clang without CUDA compiles all of it for GPUs, without a
warning, and each function to its instruction. Its first part, the handle, is for hosts as well."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

HEADERS = [ROOT / "include/weft/device.cuh", *sorted((ROOT / "include/weft/device").glob("*.cuh"))]
CLANG = [shutil.which("clang") or "clang", "--target=nvptx64-nvidia-cuda", "-march=sm_80", "-nogpulib", "-ffreestanding",
         "-std=c11", "-O2", "-x", "c", f"-I{ROOT / 'include'}"]
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
INSTRUCTIONS = ("ld.relaxed.sys.global.u32", "ld.acquire.sys.global.u64", "st.release.sys.global.u64",
                "st.relaxed.sys.global.v4.u32", "ld.relaxed.sys.global.v4.u32", "red.release.sys.global.add.u64",
                "atom.acq_rel.sys.global.cas.b32", "fence.acq_rel.sys", "mov.u32 %r1, %tid.x", "bar.sync 0",
                "barrier.red.or.pred", "bar.warp.sync", "vote.sync.any.pred", "shfl.sync.idx.b32",
                "red.relaxed.sys.global.xor.b32", "atom.relaxed.sys.global.exch.b64", "st.v2.u64", "ld.v2.u64")
CALLER = """
#include <weft/device.cuh>
void call(uint32_t *word, uint64_t *wide, struct weft_quad *quad) {
    weft_st_relaxed_sys_quad(quad, weft_ld_relaxed_sys_quad(quad + weft_block_thread()));
    weft_block_sync();
    weft_st_release_sys_u64(wide, weft_ld_acquire_sys_u64(wide) + weft_ld_relaxed_sys_u32(word));
    weft_red_add_sys_u64(wide, weft_atom_cas_sys_u32(word, 1, 2));
    weft_fence_sys();
    *word = weft_block_sync_any(*word);
}
int use(const weft_device_team *t, char *dest, const char *source, uint32_t *word, uint64_t *sig) {
    uint64_t epoch = weft_ll_epoch_begin(t, 1), data = weft_atomic_swap64(t, sig, 5, 1);
    weft_put_signal_w(t, dest, source, 1000, sig, 1, WEFT_SIGNAL_ADD, 1);
    weft_atomic_xor32(t, word, weft_warp_broadcast_u32(3, 1), 0);
    weft_ll_bcast(t, 1, 0, data, epoch);
    weft_ll_epoch_end(t, 1, epoch);
    return weft_wait_ge_w(t, sig, 2) && weft_barrier_b(t, 0) && weft_barrier_grid(t);
}
"""
BULK_INSTRUCTIONS = ("mbarrier.init.shared::cta.b64", "fence.proxy.async.shared::cta", "fence.proxy.async.global",
                     "mbarrier.arrive.expect_tx.shared::cta.b64", "cp.async.bulk.shared::cluster.global.mbarrier",
                     "cp.async.bulk.global.shared::cta.bulk_group", "cp.async.bulk.commit_group",
                     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16",
                     "cp.async.bulk.wait_group.read 1", "cp.async.bulk.wait_group 0", "mbarrier.inval.shared::cta.b64")
BULK_CALLER = """
#include <weft/device.cuh>
int call(void *to, void *tile, uint64_t *bar) {
    weft_mbarrier_init(bar, 1);
    weft_fence_async();
    weft_mbarrier_expect(bar, 16);
    weft_bulk_load(tile, to, 16, bar);
    weft_bulk_put(to, tile, 16);
    weft_bulk_add_bf16(to, tile, 16);
    weft_bulk_commit();
    weft_bulk_wait_read_but_one();
    weft_bulk_wait();
    weft_mbarrier_inval(bar);
    return weft_mbarrier_test(bar, 0);
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
    for header in HEADERS:
        made = compile_c(f'#include "{header.relative_to(ROOT / "include")}"\nextern int one;\n', *WARNINGS)
        problems.extend(made.stderr.splitlines())


def check_instructions(problems):
    made = compile_c(CALLER)
    text = re.sub(r"%r\d+, %tid", "%r1, %tid", made.stdout)
    problems.extend(made.stderr.splitlines())
    problems.extend(f"there is no {wanted}" for wanted in INSTRUCTIONS if wanted not in text)


def check_bulk(problems):
    """Bulk copies are instructions of sm_90; for older targets ptxas does not know them."""
    made = compile_c(BULK_CALLER, "-DWEFT_DEVICE_ARCH=900"), compile_c(BULK_CALLER)
    for of in made:
        problems.extend(of.stderr.splitlines())
    problems.extend(f"there is no {wanted}" for wanted in BULK_INSTRUCTIONS if f"\t{wanted}" not in made[0].stdout)
    for wanted in BULK_INSTRUCTIONS:
        if f"\tbulk_copies_need_sm_90; // {wanted}" not in made[1].stdout:
            problems.append(f"there is a {wanted} for sm_80")


def check_cuda(problems):
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        raise tap.Skip("there is no nvcc here")
    kernel = CALLER.replace("void call(", "__global__ void call(").replace("int use(", "__device__ int use(")
    for flags in ["-arch=sm_80", "-rdc=true"], ["-arch=sm_90a"], ["-arch=sm_90a", "-DWEFT_CHECK"]:
        made = subprocess.run([nvcc, "-std=c++17", "-Werror", "all-warnings", "-Wno-deprecated-gpu-targets", *flags,
                               f"-I{ROOT / 'include'}", "-x", "cu", "-ptx", "-o", "/dev/null", "-"],
                              input=kernel, capture_output=True, text=True)
        problems.extend(made.stderr.splitlines())


def check_page(problems):
    """The command of docs/device.md, in a folder with a program and with this tree's headers."""
    page = (ROOT / "docs/device.md").read_text()
    commands = re.findall(r"^clang\+\+ .*$", page, re.M)
    if len(commands) != 1:
        problems.append(f"docs/device.md has {len(commands)} commands of clang++")
    if not shutil.which("clang++"):
        raise tap.Skip("there is no clang++ here")
    program = CALLER.replace("void call(", 'extern "C" void call(').replace("int use(", 'extern "C" int use(')
    for command in commands:
        with tempfile.TemporaryDirectory(prefix="weft-clang-") as folder:
            (pathlib.Path(folder) / "include").symlink_to(ROOT / "include")
            (pathlib.Path(folder) / "kernels.cc").write_text(program)
            made = subprocess.run(["sh", "-c", command], cwd=folder, env=dict(os.environ, PREFIX=folder), capture_output=True,
                                  text=True)
            problems.extend(made.stderr.splitlines())
            if made.returncode or (pathlib.Path(folder) / "kernels.bc").read_bytes()[:4] != b"BC\xc0\xde":
                problems.append(f"status {made.returncode}, or no bitcode, of: {command}")


def check_host(problems):
    for compiler, language, standard in ("cc", "c", "c11"), ("c++", "c++", "c++17"):
        made = subprocess.run([compiler, *WARNINGS, f"-std={standard}", f"-I{ROOT / 'include'}", "-x", language,
                               "-fsyntax-only", "-"], input="#include <weft/device.cuh>\nextern weft_device_team team;\n",
                              capture_output=True, text=True)
        problems.extend(made.stderr.splitlines())


def check_includes(problems):
    for header in HEADERS:
        included = re.findall(r'#include [<"](.*)[>"]', header.read_text())
        problems.extend(f"{header.name} includes {name}" for name in included if not name.startswith("weft/") and (header.name, name) != ("check.cuh", "stdio.h"))


tap.run([
    ("each part compiles as C without a warning", check_compiles),
    ("a function is an instruction", check_instructions),
    ("bulk copies are for sm_90 alone", check_bulk),
    ("nvcc takes it without a warning, as C++", check_cuda),
    ("clang++ compiles a program as docs/device.md says", check_page),
    ("hosts have the handle, in C and in C++", check_host),
    ("the parts include nothing but each other and weft/addr.h", check_includes),
])
