# SPDX-License-Identifier: BSD-3-Clause
"""How this process becomes a PE of Weft's job, which all processes join together.

begin_joining() joins in a thread of its own, so that some ranks can have a rendezvous before the others have reached
theirs; join() waits for the thread.
"""
import os
import threading

import torch.distributed as dist

import weft

_LAUNCHERS = ("WEFT_PE", "PMIX_RANK", "PMI_RANK", "PMI_ID", "SLURM_STEP_NUM_TASKS")
_joining = None  # the thread that joins


class _Joining(threading.Thread):
    """A thread for weft.init(), which waits for all PEs."""

    def __init__(self):
        super().__init__(name="weft-join", daemon=True)
        self.error = None

    def run(self):
        try:
            weft.init()
        except BaseException as error:  # raised by join()
            self.error = error


def _knows_its_job():
    """Returns whether the process can know which PE it is, and of how many."""
    torchrun = all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    return dist.is_initialized() or torchrun or any(name in os.environ for name in _LAUNCHERS)


def begin_joining():
    global _joining
    if _joining is None and not weft.initialized() and _knows_its_job():
        _joining = _Joining()
        _joining.start()


def begun():
    """Returns whether this process is a PE, or is becoming one in a thread."""
    return _joining is not None or weft.initialized()


def join_through(store, rank, size):
    """Becomes PE `rank` of `size` while torch.distributed is being initialised with this store. PEs of a launcher keep
    their numbers, which must be their ranks. Collective over all ranks."""
    if begun() or any(name in os.environ for name in _LAUNCHERS):
        join()
    else:
        weft.init(rank, size, _unique_id(store, rank))
    if (weft.my_pe(), weft.n_pes()) != (rank, size):
        raise RuntimeError(f"weft.torch: this process is PE {weft.my_pe()} of {weft.n_pes()}, but rank {rank} of {size} in "
                           "torch.distributed: expected the same numbers; start both by one launcher")


def _unique_id(store, rank):
    if rank == 0:
        store.set("weft/uid", weft.uniqueid().hex())
    return bytes.fromhex(store.get("weft/uid").decode())


def join():
    """Blocks until this process is a PE, whose number is its rank."""
    global _joining
    thread = _joining
    if thread is not None:
        thread.join()
        _joining = None
        if thread.error is not None:
            raise thread.error
    weft.init()
