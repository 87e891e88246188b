# SPDX-License-Identifier: BSD-3-Clause
"""Weft: symmetric memory for CPUs and GPUs.

Every processing element (PE) of a job owns symmetric buffers, and any PE can read, write, signal and wait on the
buffers of any other PE:

    import weft
    weft.init()
    inbox = weft.zeros(4)                      # one on every PE
    weft.put(inbox, source, pe=right)          # source: any array of this PE
    weft.all_reduce(gradient)                  # in place, over all PEs

Start it with `oshrun -n 4 python app.py`, torchrun or mpirun; without a launcher it is a job of one PE. Only memory of
weft.empty and weft.zeros is symmetric; the program's variables are not, because Python itself is not linked with the
library.
"""
from weft import _folder
_folder.refuse_others()

from weft._core import (  # noqa: E402
    Block, Buffer, Ctx, DeviceTeam, MoE, Share, Team, addr_accessible, all_gather, all_gather_matmul,
    all_gather_scaled_matmul, all_reduce, all_reduce_rms_norm, all_to_all, all_to_alls, all_to_allv,
    all_to_allv_on_device, atomic_add, atomic_and, atomic_compare_swap, atomic_compare_swap_nbi, atomic_fetch,
    atomic_fetch_add, atomic_fetch_add_nbi, atomic_fetch_and, atomic_fetch_and_nbi, atomic_fetch_inc,
    atomic_fetch_inc_nbi, atomic_fetch_nbi, atomic_fetch_or, atomic_fetch_or_nbi, atomic_fetch_xor,
    atomic_fetch_xor_nbi, atomic_inc, atomic_or, atomic_set, atomic_swap, atomic_swap_nbi, atomic_xor, barrier,
    block_of, broadcast, clear_lock, collect, device, device_team, empty, exscan, fence, finalize, g, get, get_nbi,
    get_slice, global_exit, ibget, ibput, iget, info_get_name, info_get_version, initialized, inscan, iput,
    kv_shuffle, matmul_all_reduce, matmul_reduce_scatter, my_pe, n_pes, network, p, pad_barrier, pad_put, pad_wait,
    pe_accessible, ptr, put, put_nbi, put_signal, put_signal_nbi, put_slice, put_slice_signal, quiet, reduce_scatter,
    reserve, scaled_matmul_reduce_scatter, session_start, session_stop, set_engine, set_lock, signal, signal32,
    signal_fetch, sync, team, test, test_all, test_any, test_lock, test_some, uniqueid, wait, wait32, wait_until,
    wait_until_all, wait_until_any, wait_until_some, world, zeros)
from weft._lock import Lock
from weft._place import get_device_library, get_include, get_library
from weft._start import init

__version__ = "0.1.0"
for _function in Lock, init, get_device_library, get_include, get_library:
    _function.__module__ = __name__


def __dir__() -> list[str]:
    return [name for name in globals() if not name.startswith("_") or name.startswith("__")]


__all__ = [
    "Block", "Buffer", "Ctx", "DeviceTeam", "Lock", "MoE", "Share", "Team", "addr_accessible", "all_gather",
    "all_gather_matmul", "all_gather_scaled_matmul", "all_reduce", "all_reduce_rms_norm", "all_to_all", "all_to_alls",
    "all_to_allv", "all_to_allv_on_device", "atomic_add", "atomic_and", "atomic_compare_swap",
    "atomic_compare_swap_nbi", "atomic_fetch", "atomic_fetch_add", "atomic_fetch_add_nbi", "atomic_fetch_and",
    "atomic_fetch_and_nbi", "atomic_fetch_inc", "atomic_fetch_inc_nbi", "atomic_fetch_nbi", "atomic_fetch_or",
    "atomic_fetch_or_nbi", "atomic_fetch_xor", "atomic_fetch_xor_nbi", "atomic_inc", "atomic_or", "atomic_set",
    "atomic_swap", "atomic_swap_nbi", "atomic_xor", "barrier", "block_of", "broadcast", "clear_lock", "collect",
    "device", "device_team", "empty", "exscan", "fence", "finalize", "g", "get", "get_device_library", "get_include",
    "get_library", "get_nbi", "get_slice", "global_exit", "ibget", "ibput", "iget", "info_get_name",
    "info_get_version", "init", "initialized", "inscan", "iput", "kv_shuffle", "matmul_all_reduce",
    "matmul_reduce_scatter", "my_pe", "n_pes", "network", "p", "pad_barrier", "pad_put", "pad_wait", "pe_accessible",
    "ptr", "put", "put_nbi", "put_signal", "put_signal_nbi", "put_slice", "put_slice_signal", "quiet",
    "reduce_scatter", "reserve", "scaled_matmul_reduce_scatter", "session_start", "session_stop", "set_engine",
    "set_lock", "signal", "signal32", "signal_fetch", "sync", "team", "test", "test_all", "test_any", "test_lock",
    "test_some", "uniqueid", "wait", "wait32", "wait_until", "wait_until_all", "wait_until_any", "wait_until_some",
    "world", "zeros"]
