/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of bytes by threads: any alignment, any size, either side anywhere within the GPU's reach.
 * Puts and gets are copies to and from the same object of another member.
 *
 * An element that is naturally aligned on both sides is stored by one instruction, so that nobody
 * who waits for it sees half of it. Each thread has several loads under way before it stores. */
#ifndef WEFT_DEVICE_COPY_CUH
#define WEFT_DEVICE_COPY_CUH

#include "weft/device/ptx.cuh"
#include "weft/device/team.cuh"

/* Threads that share a copy: this one's number among so many. */
struct weft_thread_group {
    uint32_t id, count;
};

WEFT_DEVICE struct weft_thread_group weft_group_thread(void) {
    struct weft_thread_group group = {0, 1};
    return group;
}

/* A block's last warp may have fewer lanes than the others. */
WEFT_DEVICE struct weft_thread_group weft_group_warp(void) {
    uint32_t lane = weft_lane(), left = weft_block_size() - (weft_block_rank() - lane);
    struct weft_thread_group group = {lane,
                                      left < WEFT_WARP_LANES ? left : (uint32_t)WEFT_WARP_LANES};
    return group;
}

WEFT_DEVICE struct weft_thread_group weft_group_block(void) {
    struct weft_thread_group group = {weft_block_rank(), weft_block_size()};
    return group;
}

/* --- Words of one size ---------------------------------------------------------------------------
 */

enum { WEFT_COPY_FLIGHT_MAX = 8 };

/* flight: that many words, `step` apart, are loaded before any is stored; of them those before
 * `end`, unless all are there for sure. words: by a group. `flight` and `all` are constants. */
#define WEFT_COPY(size)                                                                            \
    WEFT_DEVICE void weft_copy_flight##size(                                                       \
        struct weft_bytes##size *to, const struct weft_bytes##size *from,                          \
        const struct weft_bytes##size *end, uint32_t step, int flight, int all) {                  \
        struct weft_bytes##size words[WEFT_COPY_FLIGHT_MAX];                                       \
        const struct weft_bytes##size *next = from;                                                \
        WEFT_UNROLL                                                                                \
        for (int k = 0; k < flight; k++, next += step)                                             \
            if (all || next < end)                                                                 \
                words[k] = weft_ld_weak_bytes##size(next);                                         \
        WEFT_UNROLL                                                                                \
        for (int k = 0; k < flight; k++, from += step, to += step)                                 \
            if (all || from < end)                                                                 \
                weft_st_weak_bytes##size(to, words[k]);                                            \
    }                                                                                              \
    WEFT_DEVICE void weft_copy_words##size(char *to_bytes, const char *from_bytes, size_t nwords,  \
                                           struct weft_thread_group group, int flight) {           \
        struct weft_bytes##size *to = (struct weft_bytes##size *)to_bytes;                         \
        const struct weft_bytes##size *from = (const struct weft_bytes##size *)from_bytes;         \
        const struct weft_bytes##size *end = from + nwords;                                        \
        const size_t many = (size_t)flight * group.count;                                          \
        size_t i = group.id;                                                                       \
        for (; i + many - group.count < nwords; i += many)                                         \
            weft_copy_flight##size(to + i, from + i, end, group.count, flight, 1);                 \
        if (i < nwords)                                                                            \
            weft_copy_flight##size(to + i, from + i, end, group.count, flight, 0);                 \
    }                                                                                              \
    WEFT_DEVICE void weft_copy_one##size(char *to, const char *from) {                             \
        weft_st_weak_bytes##size((struct weft_bytes##size *)to,                                    \
                                 weft_ld_weak_bytes##size((const struct weft_bytes##size *)from)); \
    }
WEFT_COPY(1)
WEFT_COPY(2)
WEFT_COPY(4)
WEFT_COPY(8)
WEFT_COPY(16)
#undef WEFT_COPY

/* --- Bytes ---------------------------------------------------------------------------------------
 */

/* Less than a word at either end, in pieces as large as alignment and length allow. */
WEFT_DEVICE void weft_copy_pieces(char *to, const char *from, size_t bytes,
                                  struct weft_thread_group group) {
    for (size_t n = 0, piece; bytes > 0; to += piece, from += piece, bytes -= piece, n++) {
        for (piece = 8; piece > bytes || ((uintptr_t)to | (uintptr_t)from) % piece != 0;)
            piece /= 2;
        if (n % group.count != group.id)
            continue;
        if (piece == 8)
            weft_copy_one8(to, from);
        else if (piece == 4)
            weft_copy_one4(to, from);
        else if (piece == 2)
            weft_copy_one2(to, from);
        else
            weft_copy_one1(to, from);
    }
}

/* By a group, by the largest words that both sides are aligned to: `flight` words of 16 bytes at a
 * time, a constant of WEFT_COPY_FLIGHT_MAX at most, or half as many smaller ones. */
WEFT_DEVICE void weft_copy_by(void *dest, const void *source, size_t bytes,
                              struct weft_thread_group group, int flight) {
    char *to = (char *)dest;
    const char *from = (const char *)source;
    size_t word = 16;
    while (((uintptr_t)to ^ (uintptr_t)from) % word != 0)
        word /= 2;
    size_t head = -(uintptr_t)to % word;
    if (head > bytes)
        head = bytes;
    size_t nwords = (bytes - head) / word, tail = (bytes - head) % word;
    weft_copy_pieces(to, from, head, group);
    weft_copy_pieces(to + bytes - tail, from + bytes - tail, tail, group);
    to += head;
    from += head;
    if (word == 16)
        weft_copy_words16(to, from, nwords, group, flight);
    else if (word == 8)
        weft_copy_words8(to, from, nwords, group, flight / 2);
    else if (word == 4)
        weft_copy_words4(to, from, nwords, group, flight / 2);
    else if (word == 2)
        weft_copy_words2(to, from, nwords, group, flight / 2);
    else
        weft_copy_words1(to, from, nwords, group, flight / 2);
}

/* --- The interface -------------------------------------------------------------------------------
 */

/* copy: between any two addresses that the GPU reaches. put, get: of an object of the device heap,
 * to member m's `dest` and from its `source`. Loads and stores are weak: nothing tells when a put
 * has arrived, but a signal that is released behind it. No threads are synchronised: each has
 * stored its own part when it returns, and what a warp or block has put is ordered by one thread
 * behind their sync (weft_fence_b, weft_put_signal_b). dest and source do not overlap. */
#define WEFT_COPIES(suffix, group, flight)                                                        \
    WEFT_DEVICE void weft_copy_##suffix(void *to, const void *from, size_t bytes) {               \
        weft_copy_by(to, from, bytes, group(), flight);                                           \
    }                                                                                             \
    WEFT_DEVICE void weft_put_##suffix(const weft_device_team *t, void *dest, const void *source, \
                                       size_t bytes, int m) {                                     \
        weft_copy_by(weft_at(t, dest, m), source, bytes, group(), flight);                        \
    }                                                                                             \
    WEFT_DEVICE void weft_get_##suffix(const weft_device_team *t, void *dest, const void *source, \
                                       size_t bytes, int m) {                                     \
        weft_copy_by(dest, weft_at(t, source, m), bytes, group(), flight);                        \
    }
WEFT_COPIES(t, weft_group_thread, 4)
WEFT_COPIES(w, weft_group_warp, 8)
WEFT_COPIES(b, weft_group_block, 8)
#undef WEFT_COPIES

#endif
