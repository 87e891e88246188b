# SPDX-License-Identifier: BSD-3-Clause
"""How a test program that oshrun or torchrun has started n times becomes torch.distributed's ranks."""
import faulthandler
import os

import torch
import torch.distributed as dist


def place():
    """Returns (rank, size) from the launcher; (0, 1) without one."""
    for rank, size in (("WEFT_PE", "WEFT_NPES"), ("RANK", "WORLD_SIZE")):
        if rank in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1


def kind_for(device):
    """Returns the backend: NCCL supports only one rank per GPU."""
    alone = device.type == "cuda" and place()[1] <= torch.cuda.device_count()
    return "nccl" if alone else "gloo"


def start(kind, seconds_max=120):
    """Returns the world, over gloo or nccl. A program that hangs is ended after seconds_max, with its stack."""
    if seconds_max:
        faulthandler.dump_traceback_later(seconds_max, exit=True)
    rank, size = place()
    if "MASTER_PORT" in os.environ:
        dist.init_process_group(kind, rank=rank, world_size=size)
    else:  # oshrun's PEs have the same parent
        meeting = f"file:///tmp/weft-test-{os.getuid()}-{os.getppid()}-{os.environ.get('WEFT_NPES', 1)}"
        dist.init_process_group(kind, rank=rank, world_size=size, init_method=meeting)
    torch.manual_seed(int.from_bytes(os.urandom(4), "little"))
    return dist.group.WORLD


def end():
    """Ends the job on all ranks. A rank that kept a group would keep gloo's threads, which abort a process whose Python
    has ended."""
    dist.barrier()
    dist.destroy_process_group()
    faulthandler.cancel_dump_traceback_later()
