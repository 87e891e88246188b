# SPDX-License-Identifier: BSD-3-Clause
"""The backend "weft" of torch.distributed: process groups whose operations on CPU tensors are Weft's collectives.

The operations are C++ (shim/process_group.cpp). Each group has a team of its own, because the operators of weft.torch,
which use the group's other team, may run while a thread runs the group's asynchronous calls.
"""
import ctypes
import itertools
import zlib

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from weft.torch import _backend, _job
from weft.torch._groups import kept_team

NAME = "weft"
_TEXT_BYTES = 1024
_CPU = torch.device("cpu")
_numbers = itertools.count()


def register():
    """Makes "weft" known to torch.distributed, for CPU tensors."""
    dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])


def _create(given, options):
    """Returns the backend of a new process group. Collective over its members; with the default group over all ranks."""
    ranks = list(given.global_ranks_in_group)
    shim = _backend.shim()
    if dist.is_initialized():
        _join_later(ranks)
    else:
        _job.join_through(given.store, given.group_rank, given.group_size)
    pes = tuple(ranks or range(given.group_size))
    team = kept_team(pes, zlib.crc32(f"{NAME}/{given.group_id}".encode()))
    return _backend_of(shim, team, given)


def _join_later(ranks):
    """Becomes a PE for a group that is made beside a default group of another backend."""
    if ranks and len(ranks) < dist.get_world_size() and not _job.begun():
        raise RuntimeError(f"weft.torch: a group of ranks {ranks} with the backend \"weft\" is the first use of Weft, which "
                           "all ranks have to join: call weft.torch.install() on all ranks before new_group(), or "
                           "init_process_group(\"weft\")")
    _job.join()


def _backend_of(shim, team, given):
    """Returns the backend that C++ has made. It is passed in a process group that lives for this purpose, because C++ has no
    Python objects here."""
    carrier, name = dist.ProcessGroup(given.store, given.group_rank, given.group_size), f"{NAME}/{next(_numbers)}"
    text = ctypes.create_string_buffer(_TEXT_BYTES)
    c10d._register_process_group(name, carrier)
    try:
        timeout_ms = int(given.timeout.total_seconds() * 1000)
        if shim.pyweft_torch_process_group(name.encode(), team.handle, timeout_ms, text, _TEXT_BYTES):
            raise RuntimeError(f"weft.torch: {text.value.decode(errors='replace')}")
        return carrier._get_backend(_CPU)
    finally:
        c10d._unregister_process_group(name)
