/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges rows whose numbers are in GPU memory:
 *
 *   tell    this member's splits to all members; then the members meet
 *   place   finds where each part begins in this member's source and in the receiver's dest, a
 * block for each receiver push    the rows; then the members meet */
#define WEFT_KERNEL_THREADS
#include "fused/row_exchange.h"
#include "fused/warps.cuh"

/* --- Lists ------------------------------------------------------------------------------------ */

WEFT_DEVICE uint64_t *list_of(const struct weft_exchange_task &task, int at, int from) {
    return (uint64_t *)(weft_array_of(&task.halves, at) + (size_t)from * task.list_bytes);
}

/* Returns the entry of part k for, or from, a member in the caller's arrays. */
WEFT_DEVICE size_t entry_of(const struct weft_exchange_task &task, bool by_part, int member,
                            uint32_t k) {
    return by_part ? (size_t)k * (uint32_t)task.n + (uint32_t)member
                   : (size_t)member * task.nparts + k;
}

WEFT_DEVICE uint64_t rows_of_dest(const struct weft_exchange_task &task, int member) {
    return weft_ld_weak(list_of(task, task.me, member));
}

/* Returns the rows that one member sends to another; 0 for a number that no dest has room for,
 * which its sender reports. */
WEFT_DEVICE uint64_t split_of(const struct weft_exchange_task &task, int from, int to, uint32_t k) {
    const uint64_t *splits = list_of(task, task.me, from) + 1;
    uint64_t rows = weft_ld_weak(&splits[(size_t)to * task.nparts + k]);
    return rows <= UINT32_MAX ? rows : 0;
}

extern "C" __global__ void __launch_bounds__(WEFT_EXCHANGE_THREADS, 1)
    weftk_exchange_tell(struct weft_gpu_abort, struct weft_exchange_task task) {
    weft_dependency_wait();
    size_t entries = (size_t)task.n * task.nparts;
    for (int distance = 0; distance < task.n; distance++) {
        uint64_t *list = list_of(task, (task.me + distance) % task.n, task.me);
        if (weft_thread_index() == 0)
            weft_st_weak(list, (uint64_t)task.dest_rows);
        for (size_t i = weft_thread_index(); i < entries; i += weft_thread_count()) {
            size_t entry = entry_of(task, task.source_by_part, (int)(i / task.nparts),
                                    (uint32_t)(i % task.nparts));
            weft_st_weak(&list[1 + i], (uint64_t)weft_ld_weak(&task.splits[entry]));
        }
    }
}

/* --- Place ------------------------------------------------------------------------------------ */

WEFT_DEVICE struct weft_exchange_part *part_for(const struct weft_exchange_task &task, int member,
                                                uint32_t k) {
    return &task.parts[(size_t)member * task.nparts + k];
}

/* Finds where the parts for a receiver begin in source. Block-wide sums go over all entries, in the
 * order of the caller's arrays. */
WEFT_DEVICE void place_in_source(struct weft_gpu_abort abort, const struct weft_exchange_task &task,
                                 int receiver, uint64_t *sums) {
    size_t entries = (size_t)task.n * task.nparts;
    uint64_t before = 0, total;
    for (size_t base = 0; base < entries; base += weft_block_threads()) {
        size_t i = base + weft_block_thread();
        int64_t rows = i < entries ? weft_ld_weak(&task.splits[i]) : 0;
        uint64_t valid = (uint64_t)rows <= UINT32_MAX ? (uint64_t)rows : 0;
        uint64_t from = before + sum_before(sums, valid, &total);
        before += total;
        if (i >= entries)
            continue;
        if (task.offsets)
            from = (uint64_t)weft_ld_weak(&task.offsets[i]);
        int member = (int)(task.source_by_part ? i % (uint32_t)task.n : i / task.nparts);
        uint32_t k = (uint32_t)(task.source_by_part ? i / (uint32_t)task.n : i % task.nparts);
        bool fits = rows == 0 ||
                    (valid > 0 && from <= task.source_rows && valid <= task.source_rows - from);
        if (!fits)
            weft_fault(abort, WEFT_GPU_EXCHANGE_SOURCE, (uint32_t)i);
        if (member == receiver) {
            weft_st_weak(&part_for(task, member, k)->from, fits ? from : 0);
            weft_st_weak(&part_for(task, member, k)->rows, fits ? valid : 0);
        }
    }
}

/* A part for `receiver` from `sender`, which begins at row `to` of its dest. */
WEFT_DEVICE void place_part(struct weft_gpu_abort abort, const struct weft_exchange_task &task,
                            int receiver, int sender, uint32_t k, uint64_t to, uint64_t rows) {
    uint64_t room = rows_of_dest(task, receiver);
    bool fits = rows == 0 || (to <= room && rows <= room - to);
    if (sender == task.me) {
        weft_st_weak(&part_for(task, receiver, k)->to, to);
        if (!fits)
            weft_st_weak(&part_for(task, receiver, k)->rows, (uint64_t)0);
    }
    if (receiver != task.me)
        return;
    size_t entry = entry_of(task, task.dest_by_part, sender, k);
    weft_st_weak(&task.dest_splits[entry], (int64_t)rows);
    weft_st_weak(&task.dest_offsets[entry], (int64_t)to);
    if (!fits)
        weft_fault(abort, WEFT_GPU_EXCHANGE_DEST, (uint32_t)receiver);
}

/* The entries of a dest are ordered by majors, then minors: parts and members, or the reverse. A
 * thread adds the minors of a major. */
WEFT_DEVICE uint64_t rows_of_major(const struct weft_exchange_task &task, int receiver,
                                   uint32_t major) {
    uint64_t rows = 0;
    if (task.dest_by_part)
        for (int sender = 0; sender < task.n; sender++)
            rows += split_of(task, sender, receiver, major);
    else
        for (uint32_t k = 0; k < task.nparts; k++)
            rows += split_of(task, (int)major, receiver, k);
    if (!task.dest_by_part || task.align == 0)
        return rows;
    rows = (rows + task.align - 1) / task.align * task.align;
    return rows > 0 ? rows : task.align;
}

WEFT_DEVICE void place_in_dest(struct weft_gpu_abort abort, const struct weft_exchange_task &task,
                               int receiver, uint64_t *sums) {
    uint32_t majors = task.dest_by_part ? task.nparts : (uint32_t)task.n;
    uint32_t minors = task.dest_by_part ? (uint32_t)task.n : task.nparts;
    uint64_t before = 0, total;
    for (uint32_t base = 0; base < majors; base += weft_block_threads()) {
        uint32_t major = base + weft_block_thread();
        uint64_t rows = major < majors ? rows_of_major(task, receiver, major) : 0;
        uint64_t to = before + sum_before(sums, rows, &total);
        before += total;
        for (uint32_t minor = 0; major < majors && minor < minors; minor++) {
            int sender = (int)(task.dest_by_part ? minor : major);
            uint32_t k = task.dest_by_part ? major : minor;
            rows = split_of(task, sender, receiver, k);
            place_part(abort, task, receiver, sender, k, to, rows);
            to += rows;
        }
    }
}

/* Numbers the pieces of the parts for a receiver. */
WEFT_DEVICE void number_pieces(const struct weft_exchange_task &task, int receiver,
                               uint64_t *sums) {
    uint64_t before = 0, total;
    for (uint32_t base = 0; base < task.nparts; base += weft_block_threads()) {
        uint32_t k = base + weft_block_thread();
        uint64_t pieces = 0;
        if (k < task.nparts)
            pieces = (weft_ld_weak(&part_for(task, receiver, k)->rows) * task.row_bytes +
                      WEFT_EXCHANGE_PIECE_BYTES - 1) /
                     WEFT_EXCHANGE_PIECE_BYTES;
        uint64_t first = before + sum_before(sums, pieces, &total);
        before += total;
        if (k < task.nparts)
            weft_st_weak(&part_for(task, receiver, k)->pieces, first + pieces);
    }
}

extern "C" __global__ void __launch_bounds__(WEFT_EXCHANGE_THREADS, 1)
    weftk_exchange_place(struct weft_gpu_abort abort, struct weft_exchange_task task) {
    weft_dependency_wait();
    WEFT_SHARED(uint64_t, sums, WEFT_EXCHANGE_THREADS);
    for (int receiver = (int)weft_block_index(); receiver < task.n;
         receiver += (int)weft_block_count()) {
        place_in_source(abort, task, receiver, sums);
        place_in_dest(abort, task, receiver, sums);
        weft_block_sync(); /* parts that do not fit have no rows now */
        number_pieces(task, receiver, sums);
    }
}

/* --- Push ------------------------------------------------------------------------------------- */

WEFT_DEVICE uint64_t pieces_until(const struct weft_exchange_task &task, int member, uint32_t k) {
    return k == 0 ? 0 : weft_ld_weak(&part_for(task, member, k - 1)->pieces);
}

/* Returns the part for a member that contains one of its pieces. */
WEFT_DEVICE uint32_t part_of_piece(const struct weft_exchange_task &task, int member,
                                   uint64_t piece) {
    uint32_t low = 0, high = task.nparts - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (piece < weft_ld_weak(&part_for(task, member, middle)->pieces))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

WEFT_DEVICE void push_piece(const struct weft_exchange_task &task, int member, uint64_t piece) {
    uint32_t k = part_of_piece(task, member, piece);
    const struct weft_exchange_part *part = part_for(task, member, k);
    uint64_t begin = (piece - pieces_until(task, member, k)) * WEFT_EXCHANGE_PIECE_BYTES;
    uint64_t left = weft_ld_weak(&part->rows) * task.row_bytes - begin;
    char *to = member == task.me ? task.dest : weft_array_of(&task.dests, member);
    weft_copy_w(to + weft_ld_weak(&part->to) * task.row_bytes + begin,
                task.source + weft_ld_weak(&part->from) * task.row_bytes + begin,
                left < WEFT_EXCHANGE_PIECE_BYTES ? left : WEFT_EXCHANGE_PIECE_BYTES);
}

/* Pieces are numbered over all receivers, from the next member on, so that the members do not all
 * push to the same one. */
extern "C" __global__ void __launch_bounds__(WEFT_EXCHANGE_THREADS, 1)
    weftk_exchange_push(struct weft_gpu_abort, struct weft_exchange_task task) {
    weft_dependency_wait();
    uint64_t piece = warp_index();
    for (int distance = 1; distance <= task.n; distance++) {
        int member = (task.me + distance) % task.n;
        uint64_t pieces = pieces_until(task, member, task.nparts);
        for (; piece < pieces; piece += warp_count())
            push_piece(task, member, piece);
        piece -= pieces;
    }
}
