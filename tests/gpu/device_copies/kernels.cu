/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel of the test of copies: pieces, each by a thread, a warp or a block. */
#define WEFT_KERNEL_THREADS
#include "base/gpu.cuh"
#include "weft/device.cuh"
#include "gpu/device_copies/task.h"

#define COPY_BY(scope)                                                                             \
    WEFT_DEVICE void copy_##scope(const weft_device_team *t, int kind, char *to, const char *from, \
                                  size_t bytes, int m) {                                           \
        if (kind == COPY_COPY)                                                                     \
            weft_copy_##scope(weft_at(t, to, m), from, bytes);                                     \
        else if (kind == COPY_PUT)                                                                 \
            weft_put_##scope(t, to, from, bytes, m);                                               \
        else                                                                                       \
            weft_get_##scope(t, to, from, bytes, m);                                               \
    }
COPY_BY(t)
COPY_BY(w)
COPY_BY(b)
#undef COPY_BY

/* The `count` pieces are distributed over the scopes round robin. */
extern "C" __global__ void copies_make(const __grid_constant__ weft_device_team t, int kind,
                                       int scope, char *to, const char *from,
                                       const copies_piece *pieces, uint32_t count) {
    uint32_t warps = (weft_block_threads() + 31) / 32, first = (uint32_t)weft_thread_index();
    uint32_t step = (uint32_t)weft_thread_count();
    if (scope == COPY_W)
        first = weft_block_index() * warps + weft_block_thread() / 32,
        step = weft_block_count() * warps;
    else if (scope == COPY_B)
        first = weft_block_index(), step = weft_block_count();
    for (uint32_t i = first; i < count; i += step) {
        const copies_piece piece = pieces[i];
        if (scope == COPY_T)
            copy_t(&t, kind, to + piece.to, from + piece.from, piece.bytes, piece.member);
        else if (scope == COPY_W)
            copy_w(&t, kind, to + piece.to, from + piece.from, piece.bytes, piece.member);
        else
            copy_b(&t, kind, to + piece.to, from + piece.from, piece.bytes, piece.member);
    }
}
