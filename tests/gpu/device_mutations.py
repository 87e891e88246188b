# SPDX-License-Identifier: BSD-3-Clause
"""Mutations of the functions of weft/device.cuh. For each kernel file of a test: what is missing, a file, the original
(an expression that occurs once) and its replacement, as in mutations.t. The short form tries the first of each."""

SIGNAL = "include/weft/device/signal.cuh"
BARRIER = "include/weft/device/barrier.cuh"
PACKET = "include/weft/device/packet.cuh"


def body(function, old):
    """Matches `old` in a function of this name, and keeps everything before it."""
    return rf"(\b{function}\([^;{{]*\)\s*(?:\\\s*)?{{(?:(?!\n}}).)*?){old}"


def without(name, file, function, old, new=""):
    return (name, file, "(?s)" + body(function, old), r"\g<1>" + new)


RELAXED = r"weft_ld_relaxed_sys"
SIGNALS = [
    without("a signal is no release", SIGNAL, "weft_signal", "weft_st_release", "weft_st_relaxed"),
    without("a signal that adds is no release", SIGNAL, "weft_signal_add", r"weft_red_add_sys_u64(\([^;]*), value\);",
            r"weft_st_relaxed_sys_u64\2, weft_ld_relaxed_sys_u64\2) + value);"),
    ("a word's signal does not wait for the word", SIGNAL, r"weft_await_u##bits\(\s*(?:\\\s*)?weft_atom_exch_relaxed_sys_u##bits\(\(uint##bits##_t \*\)weft_at\(t, dest, m\), value\)\);",
     "weft_st_relaxed_sys_u##bits((uint##bits##_t *)weft_at(t, dest, m), value);"),
    without("a warp's signal does not wait for all lanes", SIGNAL, "weft_put_signal_w", r"weft_scope_sync\([^;]*;"),
    without("a block's signal does not wait for all threads", SIGNAL, "weft_put_signal_b", r"weft_scope_sync\([^;]*;"),
    without("a thread's fence is none", SIGNAL, "weft_fence", r"weft_fence_sys\(\);"),
    without("a thread's quiet is none", SIGNAL, "weft_quiet", r"weft_fence_sys\(\);"),
    without("a block's fence is none", SIGNAL, "weft_fence_b", r"weft_fence_sys\(\);", ";"),
    without("a block's fence does not wait for all threads", SIGNAL, "weft_fence_b", r"weft_block_sync\(\);"),
    without("a signal is fetched without an acquire", SIGNAL, "weft_signal_fetch", "weft_ld_acquire_sys", RELAXED),
    ("waits and tests do not acquire", SIGNAL, r"WEFT_WAITS\(, 64, acquire\)", "WEFT_WAITS(, 64, relaxed)"),
    ("waits and tests of 32 bits do not acquire", SIGNAL, r"WEFT_WAITS\(32, 32, acquire\)", "WEFT_WAITS(32, 32, relaxed)"),
    ("a wait that polls does not acquire behind", SIGNAL, r"weft_polled_##order\(\);", ""),
    without("a warp waits by one lane, of which the others do not hear", SIGNAL, "weft_wait_until_w",
            r"!weft_scope_sync_any\([^;]*;", "!over;"),
    without("a block waits by one thread, of which the others do not hear", SIGNAL, "weft_wait_until_b",
            r"!weft_scope_sync_any\([^;]*;", "!over;"),
    ("a compare_swap does not compare", SIGNAL, r"\bcond,\s*(?:\\\s*)?value\);", "value, value);"),
    ("words that are put are lost", SIGNAL, r"weft_st_relaxed_sys_u##bits\(\(uint##bits##_t \*\)weft_at\(t, dest, m\), value\);", ";"),
]
MEETINGS = [
    without("a barrier is no release", BARRIER, "weft_barrier_tell", r"weft_fence_sys\(\);", ";"),
    without("a barrier does not wait for the group's other threads", BARRIER, "weft_barrier_tell", r"weft_scope_sync\(scope\);"),
    without("barriers are not counted", BARRIER, "weft_barrier_tell", r"weft_st_relaxed_sys_u64\(word, epoch\);", ";"),
    without("a member is not told", BARRIER, "weft_barrier_tell", r"m != t->me\)", "m != t->me && m != 0)"),
    without("barriers do not acquire", BARRIER, "weft_barrier_await", r"weft_polled_acquire\(\);", ";"),
    without("a barrier does not wait", BARRIER, "weft_barrier_await", r"weft_barrier_look\([^)]*\) < epoch", "0"),
    without("threads do not hear that the others have met", BARRIER, "weft_barrier_await",
            r"!weft_scope_sync_any\([^;]*;", "!over;"),
    without("threads depart before the first one has counted", BARRIER, "weft_barrier_depart", r"weft_scope_sync\(scope\);"),
    without("a grid's barrier does not wait for a block's threads", BARRIER, "weft_barrier_grid", r"weft_block_sync\(\);"),
    without("blocks of a grid are told without a release", BARRIER, "weft_grid_meet", "weft_st_release_gpu", "weft_st_relaxed_sys"),
    without("blocks of a grid are not counted anew", BARRIER, "weft_grid_meet", r"weft_st_relaxed_sys_u64\([^;]*;"),
    without("blocks of a grid go without an acquire", BARRIER, "weft_barrier_grid", "weft_ld_acquire_gpu", RELAXED),
    without("blocks of a grid do not wait", BARRIER, "weft_barrier_grid", r"weft_ld_acquire_gpu_u64\(&head->epoch\) < epoch", "0"),
    without("threads do not hear that the grids have met", BARRIER, "weft_barrier_grid",
            r"!weft_block_sync_any\(\(uint32_t\)over\)", "!over"),
    without("half of a packet's flags is not looked at", PACKET, "weft_packet_look", r"quad\.b != flag \|\| quad\.d != flag", "quad.b != flag"),
    without("packets of all calls are sent to one slot", PACKET, "weft_ll_send", "epoch & 1", "0"),
    without("calls by packets are not counted", PACKET, "weft_ll_epoch_end", r"weft_st_relaxed_sys_u64\([^;]*;", ";"),
    without("a call by packets ends before all threads have received", PACKET, "weft_ll_epoch_end", r"weft_block_sync\(\);"),
    without("a call by packets begins before the last one has been counted", PACKET, "weft_ll_epoch_begin", r"weft_block_sync\(\);"),
    without("inboxes keep what has flags that come round", PACKET, "weft_ll_epoch_end", r"weft_gpu_epoch_is_last\(epoch\)", "0"),
]
COPY = "include/weft/device/copy.cuh"
COPIES = [
    ("the bytes behind the last word are not copied", COPY, r"weft_copy_pieces\(to \+ bytes - tail,[^;]*;", ";"),
    ("places are taken for aligned that are not", COPY, r"\(uintptr_t\)to \^ \(uintptr_t\)from, 16\)", "0, 16)"),
    ("the bytes before the first word are not copied", COPY, r"weft_copy_pieces\(to, from, head, group\);", ";"),
    without("what a warp gets is its own", COPY, "weft_get_w", r"weft_at\(t, source, m\)", "source"),
]
BULK_H = "tests/gpu/driver/bulk.h"
BULK = [
    ("tiles are put that threads have not made known", BULK_H, r"(async_shared\(void\) {\s*)kernel_fence_async\(true\);", r"\1"),
    ("tiles are loaded as they were before", BULK_H, r"kernel_fence_async\(false\);", ";"),
    ("an mbarrier is not made known", BULK_H, r"(kernel_mbarrier_init\([^;]*;\s*)kernel_fence_async\(true\);", r"\1"),
    ("a signal is given when tiles have been read", BULK_H, r"kernel_bulk_wait\(false, 0\);", "kernel_bulk_wait(true, 0);"),
    ("tiles are made while they are read", BULK_H, r"kernel_bulk_wait\(true, 1\);", ";"),
    ("a tile is told of when it has been read", BULK_H, r"kernel_bulk_wait\(false, 1\);", "kernel_bulk_wait(true, 1);"),
    ("puts are not committed", BULK_H, r"kernel_bulk_commit\(\);", ";"),
    ("tiles are looked at before they are loaded", "include/weft/device/bulk.cuh", r"!weft_mbarrier_test\(mbarrier, parity\)", "false"),
    ("the first phase is waited for again", "include/weft/device/bulk.cuh", r"weft_mbarrier_test\(mbarrier, parity\)", "weft_mbarrier_test(mbarrier, 0)"),
]
KERNELS = [("tests/gpu/device_copies/kernels.cu", "gpu/device_copies", COPIES),
           ("tests/gpu/device_bulk/kernels.cu", "gpu/device_bulk", BULK),
           ("tests/gpu/device_signals/kernels.cu", "gpu/device_signals", SIGNALS),
           ("tests/gpu/device_meetings/kernels.cu", "gpu/device_meetings", MEETINGS)]
