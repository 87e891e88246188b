# SPDX-License-Identifier: BSD-3-Clause
"""How a process becomes a PE: by arguments, through torch.distributed, or through its launcher.

torch is used only if the program has imported it.
"""
import os
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from weft import _core

_rounds = 0  # counts init() through torch's store in this process: the same number on all ranks
_starting = threading.Lock()  # one thread at a time joins the job; weft.torch.install() has a thread for it


def _torch_group() -> Any:
    """Returns torch.distributed if the program has initialised it in this process, otherwise None."""
    dist = getattr(sys.modules.get("torch"), "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return dist


def _from_torch(dist: Any) -> None:
    """Sends the unique id through the store of torch's world, whose ranks become the PEs."""
    global _rounds
    store = dist.distributed_c10d._get_default_store()
    rank, size = dist.get_rank(), dist.get_world_size()
    key = f"weft/uid/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}/{_rounds}"
    _rounds += 1
    if rank == 0:
        store.set(key, _core.uniqueid().hex())
    _core.init(rank, size, bytes.fromhex(store.get(key).decode()))


def _check_ranks(dist: Any) -> None:
    got = _core.my_pe(), _core.n_pes()
    expected = dist.get_rank(), dist.get_world_size()
    if got != expected:
        raise RuntimeError(f"init: this process is PE {got[0]} of {got[1]}, but rank {expected[0]} of {expected[1]} "
                           "in torch.distributed: start both in one way, or let weft.init() follow torch")


def _show_whole(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints a traceback in a single write, so that those of several PEs do not mix."""
    text = "".join(traceback.format_exception(kind, error, trace))
    print(text, end="", file=sys.stderr, flush=True)


def _keep_lines() -> None:
    """Makes each line of output a single write, even with PYTHONUNBUFFERED. PEs share a terminal, and a PE whose job
    ends is killed at once, without flushing."""
    if _core.n_pes() == 1:
        return
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True, write_through=False)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show_whole


def init(rank: int | None = None, size: int | None = None, uniqueid: bytes | None = None,
         allgather: Callable[[bytes], Sequence[bytes]] | None = None) -> None:
    """Joins a job. Collective over its PEs; does nothing if the process has joined already.

    Without arguments: the ranks of torch.distributed if the program has initialised it and WEFT_LAUNCHER is not set,
    else the launcher's job (oshrun, mpirun, srun, torchrun), else a job of one PE. With rank, size and uniqueid: PE
    `rank` of `size`; all pass the id that weft.uniqueid() returned in one of them. With rank, size and allgather: a
    function that takes bytes and returns a list with the bytes of all PEs, in order of rank.

    ValueError for arguments; RuntimeError if there is no such job, if the process is a different PE already, or if PEs
    and ranks of torch.distributed differ.
    """
    with _starting:
        _start(rank, size, uniqueid, allgather)
    _keep_lines()


def _start(rank: int | None, size: int | None, uniqueid: bytes | None,
           allgather: Callable[[bytes], Sequence[bytes]] | None) -> None:
    dist = _torch_group()
    given = (rank, size, uniqueid, allgather) != (None, None, None, None)
    if given or _core.initialized() or dist is None or os.environ.get("WEFT_LAUNCHER"):
        _core.init(rank, size, uniqueid, allgather)
    else:
        _from_torch(dist)
    if dist is not None:
        _check_ranks(dist)
