#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A barrier or a wait with a timeout, whose peers never come and leave meanwhile, raises RuntimeError, and a
program that catches it and goes on to its end exits with 0.

    python tests/python/gpu_timeouts.py --ranks 2             on GPUs, which ranks may share
    python tests/python/gpu_timeouts.py --ranks 3 --cpu [--registry]

Processes are spawned, without any launcher, as PyTorch's own tests do. Peers leave at once, by os._exit(0),
or like any program. A line for each case, in TAP.
"""
import argparse
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

import weft.torch as symm_mem

CALLS = {"barrier": lambda handle, ms: handle.barrier(timeout_ms=ms),
         "wait_signal": lambda handle, ms: handle.wait_signal(1, timeout_ms=ms)}
TIMEOUT_MS, LEAVES_S, GOES_ON_S, NOT_RAISED = 1000, 0.2, 1.0, 3


def waits(call, handle, device):
    """Returns whether the call raised RuntimeError; on a GPU at the latest when the stream is synchronised."""
    try:
        CALLS[call](handle, TIMEOUT_MS)
        if device.type == "cuda":
            torch.cuda.synchronize()
    except RuntimeError as error:
        print(f"# {call}: {type(error).__name__}: {str(error).splitlines()[0][:120]}", flush=True)
        return True
    return False


def rank_main(rank, size, path, args, call, leave):
    device = torch.device("cpu") if args.cpu else torch.device("cuda", rank % torch.cuda.device_count())
    if not args.cpu:
        torch.cuda.set_device(device)
    dist.init_process_group("gloo", init_method=path, rank=rank, world_size=size)
    if args.registry:
        symm_mem.install()
    handle = symm_mem.rendezvous(symm_mem.empty(16, device=device), dist.group.WORLD)
    handle.barrier()
    if not args.cpu:
        torch.cuda.synchronize()
    if rank == 0:
        if not waits(call, handle, device):
            sys.exit(NOT_RAISED)
        time.sleep(GOES_ON_S)
        print(f"# {call}: rank 0 goes on to its end", flush=True)
    elif leave == "at once":
        time.sleep(LEAVES_S)  # rank 0 has left the barrier by then
        os._exit(0)


def case(number, args, call, leave):
    """Runs one job; all its processes must exit with 0."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=rank_main, args=(rank, args.ranks, f"file://{folder}/store", args, call, leave))
                 for rank in range(args.ranks)]
        for each in ranks:
            each.start()
        for each in ranks:
            each.join(args.patience)
            if each.is_alive():
                each.kill()
                each.join()
    status = [each.exitcode for each in ranks]
    good = status == [0] * args.ranks
    print(f"{'ok' if good else 'not ok'} {number} - {call} with a timeout, peers leave {leave}"
          + ("" if good else f": statuses {status}"), flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--cpu", action="store_true", help="on CPU tensors")
    parser.add_argument("--registry", action="store_true", help="on CPU tensors through PyTorch's registry")
    parser.add_argument("--patience", type=float, default=120, help="seconds for a process")
    args = parser.parse_args()
    cases = [(call, leave) for call in CALLS for leave in ("at once", "like any program")]
    print(f"1..{len(cases)}")
    good = [case(number, args, *each) for number, each in enumerate(cases, 1)]
    print(f"# {sum(good)} of {len(good)} cases, {args.ranks} ranks, torch {torch.__version__}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
