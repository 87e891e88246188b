#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Helion's kernels (helion_*.py) over Weft's memory, compiled for an H200 where no GPU is needed:

    oshrun -n 2 python3 tests/python/helion_code.py

A line for each in TAP.
"""
import importlib.util
import os
import sys
import tempfile

import torch

try:
    import helion_run  # noqa: F401  supplies what Helion lacks in PyTorch 2.11
    import helion_all_gather_matmul as product
    import helion_one_shot_all_reduce as total
    import helion_ring_all_gather as ring
except ImportError as reason:
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import weft.torch as symm_mem

there_is_a_gpu, torch.utils._triton.has_triton = torch.utils._triton.has_triton, lambda: True  # or PyTorch lacks helpers
from weft.triton import nvshmem  # noqa: E402
torch.utils._triton.has_triton = there_is_a_gpu

H200 = GPUTarget("cuda", 90, 32)


def load(code):
    """Imports Helion's Triton code as a module, because Triton reads sources from files."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.py")
        with open(path, "w") as file:
            file.write(code)
        spec = importlib.util.spec_from_file_location("kernel", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def ptx(kernel, arguments, types, constants):
    """Returns the PTX, which has been assembled, too. Arguments that `types` does not name point to bfloat16."""
    config = kernel.configs[0]
    device = getattr(load(kernel.bind(arguments).to_triton_code(config)), f"_helion_{kernel.name}")
    libraries = getattr(device, "extern_libs", {})  # of a kernel that calls NVSHMEM's functions
    device = getattr(device, "jit_func", device)
    named = {name: "constexpr" if name in constants else types.get(name, "*bf16") for name in device.arg_names}
    values = {(device.arg_names.index(name),): value for name, value in constants.items() if name in named}
    compiled = triton.compile(ASTSource(device, named, values), target=H200,
                              options={"num_warps": config.num_warps, "num_stages": config.num_stages,
                                       "extern_libs": libraries})
    return compiled.asm["ptx"]


def all_reduce(group):
    mine = symm_mem.empty(8192, dtype=torch.bfloat16, device="cpu")
    handle = symm_mem.rendezvous(mine, group)
    arguments = (handle.signal_pad_ptrs_dev, mine, handle.rank, group.group_name, handle.world_size)
    text = ptx(total.one_shot_all_reduce_kernel, arguments, {"signal_pad_ptrs_dev": "i64"}, {"_NUM_SM": 132})
    return {"a put with release": ".release.sys.cas" in text, "a wait with acquire": ".sys.acquire.cas" in text}


def matmul(_):
    a, b = (torch.empty(shape, dtype=torch.bfloat16) for shape in ((512, 256), (256, 512)))
    progress = torch.zeros(2, dtype=torch.uint32)
    text = ptx(product.helion_matmul_w_progress, (a, a[:256], b, progress, 1, 0),
               {"progress": "*u32", "SPLITS_PER_RANK": "i32"}, {"_NUM_SM": 132})
    return {"a wait with acquire": ".gpu.acquire." in text, "products by the tensor cores": "wgmma" in text}


def remote_copies(group):
    """The names that Helion calls are Weft's, and no symbol is unresolved."""
    nvshmem.nvshmem_triton.NvshmemLibFinder.found_device_lib_path = nvshmem.bitcode_path(90)
    arguments = (*ring.arguments(group.rank(), group.size(), device="cpu"), group.group_name)
    types = {"local_values": "*fp32", "gathered": "*fp32", "peers": "*i32", "slots": "*i32", "remote_copy_scratch": "*fp32",
             "remote_barrier_signal": "*i64", "remote_copy_signal": "*i64"}
    text = ptx(ring.ring_all_gather, arguments, types,
               {"_NUM_SM": 132, "_RDIM_SIZE_1": 8, "_RDIM_SIZE_2": 128, "_RDIM_SIZE_3": 2})
    return {"all functions": ".extern .func" not in text, "a signal behind the copy": "red.release.sys" in text,
            "the job's addresses": "weft_nvshmem_job" in text, "stores of 16 bytes": ".v2.u64" in text or ".v2.b64" in text}


def main():
    group = symm_mem.init_process_group()
    symm_mem.install()
    print_here = print if group.rank() == 0 else lambda *_: None
    print_here("1..3")
    failed = 0
    for number, kernel in enumerate((all_reduce, matmul, remote_copies), 1):
        lacking = [what for what, is_there in kernel(group).items() if not is_there]
        failed += bool(lacking)
        print_here(f"{'not ok' if lacking else 'ok'} {number} - {kernel.__name__} is compiled"
                   + (f", without {lacking}" if lacking else ""))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
