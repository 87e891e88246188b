/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of bytes by threads: any alignment, any size, either side anywhere within the GPU's reach.
 * Puts and gets are copies to and from the same object of another member.
 *
 * An element that is naturally aligned on both sides is stored by one instruction, so that nobody
 * who waits for it sees half of it. Each thread has several loads under way before it stores. */
#ifndef WEFT_DEVICE_COPY_CUH
#define WEFT_DEVICE_COPY_CUH

#include "weft/device/check.cuh"
#include "weft/device/group.cuh"
#include "weft/device/team.cuh"

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

/* The largest of 1, 2, 4, 8 and 16 that divides a number, or a size that is a power of two and not
 * more. No division: one by a size that is known at run time takes longer than a small copy. */
WEFT_DEVICE uint32_t weft_copy_alignment(uintptr_t number, uint32_t most) {
    uint32_t low = (uint32_t)number | most;
    return low & (0 - low);
}

WEFT_DEVICE void weft_copy_piece(char *to, const char *from, uint32_t bytes) {
    if (bytes == 8)
        weft_copy_one8(to, from);
    else if (bytes == 4)
        weft_copy_one4(to, from);
    else if (bytes == 2)
        weft_copy_one2(to, from);
    else
        weft_copy_one1(to, from);
}

/* Less than a word at either end, in pieces as large as alignment and length allow: the group's
 * threads have them in turn. */
WEFT_DEVICE void weft_copy_pieces(char *to, const char *from, uint32_t bytes,
                                  struct weft_thread_group group) {
    uint32_t turn = 0, piece;
    WEFT_ROLLED
    for (; bytes > 0; to += piece, from += piece, bytes -= piece) {
        piece = weft_copy_alignment((uintptr_t)to | (uintptr_t)from, 8);
        while (piece > bytes)
            piece >>= 1;
        if (turn == group.id)
            weft_copy_piece(to, from, piece);
        turn = turn + 1 < group.count ? turn + 1 : 0;
    }
}

/* By a group, by the largest words that both sides are aligned to: `flight` words of 16 bytes at a
 * time, a constant of WEFT_COPY_FLIGHT_MAX at most, or half as many smaller ones. */
WEFT_DEVICE void weft_copy_by(void *dest, const void *source, size_t bytes,
                              struct weft_thread_group group, int flight) {
    char *to = (char *)dest;
    const char *from = (const char *)source;
    uint32_t word = weft_copy_alignment((uintptr_t)to ^ (uintptr_t)from, 16);
    uint32_t head = (0 - (uint32_t)(uintptr_t)to) & (word - 1);
    if (head > bytes)
        head = (uint32_t)bytes;
    size_t whole = bytes - head;
    uint32_t tail = (uint32_t)whole & (word - 1);
    weft_copy_pieces(to, from, head, group);
    weft_copy_pieces(to + bytes - tail, from + bytes - tail, tail, group);
    to += head;
    from += head;
    if (word == 16)
        weft_copy_words16(to, from, whole / 16, group, flight);
    else if (word == 8)
        weft_copy_words8(to, from, whole / 8, group, flight / 2);
    else if (word == 4)
        weft_copy_words4(to, from, whole / 4, group, flight / 2);
    else if (word == 2)
        weft_copy_words2(to, from, whole / 2, group, flight / 2);
    else
        weft_copy_words1(to, from, whole, group, flight / 2);
}

/* --- The interface -------------------------------------------------------------------------------
 */

/* copy: between any two addresses that the GPU reaches. put: to the object of the device heap that
 * member m has where this one has `dest`; get: from the one that is here at `source`. `dest` and
 * `source` do not overlap.
 *
 * Loads and stores are weak: a put has arrived for whoever sees a signal that was released behind
 * it, and for nobody else. A get is there when its threads have met, for the thread alone at once.
 * Threads of a group are not synchronised: each has done its own part when it returns, so that
 * several copies may be under way. What signals or reads behind it comes behind the group's sync:
 * weft_fence_b, weft_put_signal_b, __syncthreads(). */
enum { WEFT_FLIGHT_t = 4, WEFT_FLIGHT_w = 8, WEFT_FLIGHT_b = 8 };

WEFT_DEVICE void weft_copy_t(void *to, const void *from, size_t bytes) {
    weft_copy_by(to, from, bytes, weft_scope_group(WEFT_SCOPE_t), WEFT_FLIGHT_t);
}
WEFT_DEVICE void weft_copy_w(void *to, const void *from, size_t bytes) {
    weft_copy_by(to, from, bytes, weft_scope_group(WEFT_SCOPE_w), WEFT_FLIGHT_w);
}
WEFT_DEVICE void weft_copy_b(void *to, const void *from, size_t bytes) {
    weft_copy_by(to, from, bytes, weft_scope_group(WEFT_SCOPE_b), WEFT_FLIGHT_b);
}

WEFT_DEVICE void weft_put_t(const weft_device_team *t, void *dest, const void *source, size_t bytes,
                            int m) {
    WEFT_CHECK_OBJECT(t, dest, bytes, m);
    weft_copy_t(weft_at(t, dest, m), source, bytes);
}
WEFT_DEVICE void weft_put_w(const weft_device_team *t, void *dest, const void *source, size_t bytes,
                            int m) {
    WEFT_CHECK_OBJECT(t, dest, bytes, m);
    weft_copy_w(weft_at(t, dest, m), source, bytes);
}
WEFT_DEVICE void weft_put_b(const weft_device_team *t, void *dest, const void *source, size_t bytes,
                            int m) {
    WEFT_CHECK_OBJECT(t, dest, bytes, m);
    weft_copy_b(weft_at(t, dest, m), source, bytes);
}

WEFT_DEVICE void weft_get_t(const weft_device_team *t, void *dest, const void *source, size_t bytes,
                            int m) {
    WEFT_CHECK_OBJECT(t, source, bytes, m);
    weft_copy_t(dest, weft_at(t, source, m), bytes);
}
WEFT_DEVICE void weft_get_w(const weft_device_team *t, void *dest, const void *source, size_t bytes,
                            int m) {
    WEFT_CHECK_OBJECT(t, source, bytes, m);
    weft_copy_w(dest, weft_at(t, source, m), bytes);
}
WEFT_DEVICE void weft_get_b(const weft_device_team *t, void *dest, const void *source, size_t bytes,
                            int m) {
    WEFT_CHECK_OBJECT(t, source, bytes, m);
    weft_copy_b(dest, weft_at(t, source, m), bytes);
}

#endif
