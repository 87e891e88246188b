# SPDX-License-Identifier: BSD-3-Clause
"""Weft: symmetric memory for CPUs and GPUs.

Every processing element (PE) of a job owns symmetric buffers, and any PE can read, write, signal
and wait on any other PE's:

    import weft
    weft.init()
    inbox = weft.zeros(4)                      # one on every PE
    weft.put(inbox, source, pe=right)          # source: any array of this PE's
    weft.all_reduce(gradient)                  # in place, over all PEs

Start it with `oshrun -n 4 python app.py`, torchrun or mpirun; without any, it is a job of one PE.
Symmetric is what weft.empty and weft.zeros make; variables of the program are not, since Python
itself is not linked with the library.
"""
from weft import _folder
_folder.refuse_others()

from weft._core import (  # noqa: E402
    Block, Buffer, Share, Team, all_gather, all_gather_matmul, all_gather_scaled_matmul, all_reduce, all_to_all,
    all_to_allv, barrier, block_of, broadcast, device, empty, fence, finalize, get, get_slice, initialized,
    matmul_all_reduce, matmul_reduce_scatter, my_pe, n_pes, pad_barrier, pad_put, pad_wait, put, put_signal,
    put_slice, put_slice_signal, quiet, reduce_scatter, reserve, scaled_matmul_reduce_scatter, set_engine, signal,
    signal32, sync, team, uniqueid, wait, wait32, world, zeros)
from weft._place import get_include, get_library
from weft._start import init

__version__ = "0.1.0"

__all__ = [
    "Block", "Buffer", "Share", "Team", "all_gather", "all_gather_matmul", "all_gather_scaled_matmul", "all_reduce",
    "all_to_all", "all_to_allv", "barrier", "block_of", "broadcast", "device", "empty", "fence", "finalize", "get",
    "get_include", "get_library", "get_slice", "init", "initialized", "matmul_all_reduce", "matmul_reduce_scatter",
    "my_pe", "n_pes", "pad_barrier", "pad_put", "pad_wait", "put", "put_signal", "put_slice", "put_slice_signal",
    "quiet", "reduce_scatter", "reserve", "scaled_matmul_reduce_scatter", "set_engine", "signal", "signal32",
    "sync", "team", "uniqueid", "wait", "wait32", "world", "zeros"]
