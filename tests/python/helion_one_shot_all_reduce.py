#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Helion's documented example of a one-shot all-reduce in a kernel that synchronises with its peers and
loads from them, as its page has it since 1.0 (Copyright Meta Platforms and contributors, BSD-3-Clause).
Only the choice of a backend and the report are ours:

    torchrun --standalone --nproc-per-node 4 --no-python python3 tests/python/helion_one_shot_all_reduce.py

with BACKEND=WEFT in the environment, or without: then on PyTorch's own memory, or, where Weft is
installed by pip and WEFT_TORCH_BACKEND=1, on Weft's.
"""
from __future__ import annotations

import os

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

import helion
from helion._testing import DEVICE
from helion._testing import run_example
import helion.language as hl
from helion.runtime.triton.dist_utils import symm_mem_sync

if os.environ.get("BACKEND") == "WEFT":
    import weft.torch

    weft.torch.install()


@helion.kernel(
    config=helion.Config(
        block_sizes=[8192],
        num_warps=32,
    ),
    static_shapes=True,
)
def one_shot_all_reduce_kernel(
    signal_pad_ptrs_dev: torch.Tensor,
    a_shared: torch.Tensor,
    my_rank: hl.constexpr,
    group_name: hl.constexpr,
    world_size: hl.constexpr,
) -> torch.Tensor:
    """
    Helion JIT-compiled kernel for one-shot all-reduce operation.
    This kernel implements a distributed all-reduce using symmetric memory and signal pads
    for cross-device synchronization. It performs element-wise summation across all devices
    in the distributed group using tiled computation for memory efficiency.
    Args:
        signal_pad_ptrs_dev: Address of the array of all devices' signal pads
        a_shared: This device's part, in symmetric memory
        my_rank: Current device's rank in the distributed group
    Returns:
        Tensor containing the all-reduced result (sum across all devices)
    """
    out = torch.empty_like(a_shared)
    N = out.size(0)
    a_shared_tuple = torch.ops.symm_mem.get_remote_tensors(a_shared, group_name)

    for tile_n in hl.tile(N):
        # Sync all devices through signal_pad to make sure
        # all previous writes to the shared tensor are visible
        hl.triton_kernel(
            symm_mem_sync,
            args=(signal_pad_ptrs_dev, None, my_rank, world_size, False, True),
            output_like=None,
        )

        acc = hl.zeros([tile_n], dtype=a_shared.dtype, device=a_shared.device)

        for a in a_shared_tuple:
            acc += a[tile_n]

        out[tile_n] = acc

        # No rank overwrites a tensor that a peer still reads.
        hl.triton_kernel(
            symm_mem_sync,
            args=(signal_pad_ptrs_dev, None, my_rank, world_size, True, False),
            output_like=None,
        )

    return out


def helion_one_shot_all_reduce(a_shared: torch.Tensor) -> torch.Tensor:
    """
    Prepares symmetric memory tensors for Helion one-shot all-reduce kernel.
    Args:
        a_shared: Input tensor to be all-reduced across all devices
    Returns:
        Tensor containing the all-reduced result (sum across all devices)
    """
    assert dist.group.WORLD is not None
    group_name = dist.group.WORLD.group_name
    symm_mem_hdl = symm_mem.rendezvous(a_shared, group_name)

    return one_shot_all_reduce_kernel(
        symm_mem_hdl.signal_pad_ptrs_dev,
        a_shared,
        my_rank=symm_mem_hdl.rank,
        group_name=group_name,
        world_size=symm_mem_hdl.world_size,
    )


def reference_one_shot_all_reduce(a_shared: torch.Tensor) -> torch.Tensor:
    """
    Reference implementation using the symmetric memory one-shot primitive.
    """
    dist_group = dist.group.WORLD
    if dist_group is None:
        raise RuntimeError("No distributed group available")

    a_shared_clone = symm_mem.empty(
        a_shared.shape,
        dtype=a_shared.dtype,
        device=a_shared.device,
    )
    symm_mem.rendezvous(a_shared_clone, dist_group.group_name)
    a_shared_clone.copy_(a_shared)
    return torch.ops.symm_mem.one_shot_all_reduce(
        a_shared_clone, "sum", dist_group.group_name
    )


def test(N: int, device: torch.device, dtype: torch.dtype) -> None:
    """
    Test the Helion all-reduce implementation against PyTorch's reference implementation.
    Args:
        N: Total number of elements to test (will be divided by world_size per device)
        device: CUDA device to run the test on
        dtype: Data type for the test tensors
    """
    dist_group = dist.group.WORLD
    assert dist_group is not None
    world_size = dist.get_world_size()

    # Create symmetric memory tensor for Helion implementation
    symm_mem.enable_symm_mem_for_group(dist_group.group_name)
    a_shared = symm_mem.empty(N // world_size, dtype=dtype, device=device).normal_()

    run_example(
        helion_one_shot_all_reduce,
        reference_one_shot_all_reduce,
        (a_shared,),
        atol=1e-3,
        rtol=1e-3,
    )
    report(a_shared, helion_one_shot_all_reduce(a_shared), reference_one_shot_all_reduce(a_shared), device)


def report(mine: torch.Tensor, ours: torch.Tensor, reference: torch.Tensor, device: torch.device) -> None:
    """Added for Weft: prints the backend, and the errors of both results against the sum in float64."""
    wanted = mine.double()
    dist.all_reduce(wanted)
    errors = [((x.double() - wanted).abs().max() / wanted.abs().max()).item() for x in (ours, reference)]
    print(f"rank {dist.get_rank()}: backend {symm_mem.get_backend(device)}, error of Helion's sum "
          f"{errors[0]:.2e}, of PyTorch's {errors[1]:.2e}", flush=True)
    if symm_mem.get_backend(device) == "WEFT":
        import weft.torch

        print(f"rank {dist.get_rank()}: {weft.torch.counters()}", flush=True)


def main() -> None:
    """
    Main entry point for the all-reduce example.
    Sets up the distributed environment, initializes CUDA devices, and runs the
    all-reduce test, and then clean up.
    """
    rank = int(os.environ["LOCAL_RANK"])
    torch.manual_seed(42 + rank)
    device = torch.device(f"cuda:{rank}")
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    test(16384, device, torch.bfloat16)

    dist.destroy_process_group()


if __name__ == "__main__":
    """
    Run with:
    python -m torch.distributed.run --standalone \
    --nproc-per-node 4 \
    --rdzv-backend c10d --rdzv-endpoint localhost:0 \
    --no_python python3 examples/distributed/all_reduce.py
    """
    assert DEVICE.type == "cuda", "Requires CUDA device"
    main()
