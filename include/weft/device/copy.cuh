/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of bytes by threads: any alignment and size, to and from any memory that the GPU can
 * access. A put or get copies to or from another member's copy of an object.
 *
 * An element of up to 8 bytes that is naturally aligned on both sides is stored by one instruction,
 * so that no reader sees half of it. Each thread has several loads under way before it stores. */
#ifndef WEFT_DEVICE_COPY_CUH
#define WEFT_DEVICE_COPY_CUH

#include "weft/device/check.cuh"
#include "weft/device/group.cuh"
#include "weft/device/team.cuh"

/* --- Words of one size ------------------------------------------------------------------------ */

enum { WEFT_COPY_FLIGHT_MAX = 8 };

/* weft_copy_flight: loads `flight` words, `step` apart, before it stores any of them. If `all` is
 * 0, it copies the first half unconditionally and the rest only up to `left`, the number of words
 * from the first word on. One address advances from word to word: a separate address for each word
 * would take two registers each, and a kernel that copies in a loop would keep them all.
 *
 * weft_copy_words: a copy by a group. The remainder, which does not fill a flight, is one flight
 * that is just large enough, because the warps of a block wait for each other's instructions.
 * `flight` (a power of two) and `all` are compile-time constants. */
#define WEFT_COPY(size)                                                                           \
    WEFT_DEVICE void weft_copy_flight##size(struct weft_bytes##size *to,                          \
                                            const struct weft_bytes##size *from, uint32_t left,   \
                                            uint32_t step, int flight, int all) {                 \
        struct weft_bytes##size words[WEFT_COPY_FLIGHT_MAX];                                      \
        WEFT_UNROLL                                                                               \
        for (int k = 0; k < flight; k++, from += step) {                                          \
            WEFT_FORGET(from);                                                                    \
            if (all || 2 * k < flight - 1 || k * step < left)                                     \
                words[k] = weft_ld_weak_bytes##size(from);                                        \
        }                                                                                         \
        WEFT_UNROLL                                                                               \
        for (int k = 0; k < flight; k++, to += step) {                                            \
            WEFT_FORGET(to);                                                                      \
            if (all || 2 * k < flight - 1 || k * step < left)                                     \
                weft_st_weak_bytes##size(to, words[k]);                                           \
        }                                                                                         \
    }                                                                                             \
    WEFT_DEVICE void weft_copy_words##size(char *to_bytes, const char *from_bytes, size_t nwords, \
                                           struct weft_thread_group group, int flight) {          \
        struct weft_bytes##size *to = (struct weft_bytes##size *)to_bytes + group.id;             \
        const struct weft_bytes##size *from =                                                     \
            (const struct weft_bytes##size *)from_bytes + group.id;                               \
        const uint32_t step = group.count;                                                        \
        const size_t many = (size_t)flight * step;                                                \
        for (; nwords >= many; nwords -= many, to += many, from += many)                          \
            weft_copy_flight##size(to, from, 0, step, flight, 1);                                 \
        uint32_t rest = (uint32_t)nwords, left = rest < group.id ? 0 : rest - group.id;           \
        if (rest <= step)                                                                         \
            weft_copy_flight##size(to, from, left, step, 1, 0);                                   \
        else if (flight <= 2 || rest <= 2 * step)                                                 \
            weft_copy_flight##size(to, from, left, step, 2, 0);                                   \
        else if (flight <= 4 || rest <= 4 * step)                                                 \
            weft_copy_flight##size(to, from, left, step, 4, 0);                                   \
        else                                                                                      \
            weft_copy_flight##size(to, from, left, step, 8, 0);                                   \
    }
WEFT_COPY(8)
WEFT_COPY(16)
#undef WEFT_COPY

/* Loads a unit of 16 bytes from any address as words of 4 bytes, and drops the bytes before and
 * after the unit. */
WEFT_DEVICE struct weft_bytes16 weft_unit_of_words(const char *from) {
    uint32_t beside = (uint32_t)(uintptr_t)from % 4, words[5];
    const struct weft_bytes4 *at = (const struct weft_bytes4 *)(from - beside);
    struct weft_bytes16 unit;
    WEFT_UNROLL
    for (int i = 0; i < 4; i++)
        words[i] = weft_ld_weak_bytes4(at + i).value;
    words[4] = beside ? weft_ld_weak_bytes4(at + 4).value : 0;
    WEFT_UNROLL
    for (int i = 0; i < 4; i++)
        words[i] = (uint32_t)(((uint64_t)words[i + 1] << 32 | words[i]) >> beside * 8);
    unit.low = (uint64_t)words[1] << 32 | words[0];
    unit.high = (uint64_t)words[3] << 32 | words[2];
    return unit;
}

/* Copies units from `from`, at any address, to an aligned address; `flight` is a compile-time
 * constant. */
WEFT_DEVICE void weft_copy_units(char *to_bytes, const char *from, size_t nunits,
                                 struct weft_thread_group group, int flight) {
    struct weft_bytes16 *to = (struct weft_bytes16 *)to_bytes + group.id;
    const size_t step = (size_t)group.count * 16, many = (size_t)flight * group.count;
    size_t left = nunits < group.id ? 0 : nunits - group.id;
    from += (size_t)group.id * 16;
    WEFT_ROLLED
    for (; left > 0; left = left < many ? 0 : left - many) {
        struct weft_bytes16 units[WEFT_COPY_FLIGHT_MAX];
        WEFT_UNROLL
        for (int k = 0; k < flight; k++, from += step) {
            WEFT_FORGET(from);
            if ((size_t)k * group.count < left)
                units[k] = weft_unit_of_words(from);
        }
        WEFT_UNROLL
        for (int k = 0; k < flight; k++, to += group.count) {
            WEFT_FORGET(to);
            if ((size_t)k * group.count < left)
                weft_st_weak_bytes16(to, units[k]);
        }
    }
}

/* --- Bytes ------------------------------------------------------------------------------------ */

/* Returns the largest of 1, 2, 4, 8 and 16 that divides `number` and is at most `most`, a power of
 * two. It does not divide: a division by a run-time size takes longer than a small copy. */
WEFT_DEVICE uint32_t weft_copy_alignment(uintptr_t number, uint32_t most) {
    uint32_t low = (uint32_t)number | most;
    return low & (0 - low);
}

/* Load and store an aligned piece of 8, 4, 2 or 1 bytes. */
WEFT_DEVICE uint64_t weft_copy_load(const char *from, uint32_t piece) {
    return piece == 8   ? weft_ld_weak_bytes8((const struct weft_bytes8 *)from).value
           : piece == 4 ? weft_ld_weak_bytes4((const struct weft_bytes4 *)from).value
           : piece == 2 ? weft_ld_weak_bytes2((const struct weft_bytes2 *)from).value
                        : weft_ld_weak_bytes1((const struct weft_bytes1 *)from).value;
}
WEFT_DEVICE void weft_copy_store(char *to, uint32_t piece, uint64_t value) {
    struct weft_bytes8 of8 = {value};
    struct weft_bytes4 of4 = {(uint32_t)value};
    struct weft_bytes2 of2 = {(uint16_t)value};
    struct weft_bytes1 of1 = {(uint8_t)value};
    if (piece == 8)
        weft_st_weak_bytes8((struct weft_bytes8 *)to, of8);
    else if (piece == 4)
        weft_st_weak_bytes4((struct weft_bytes4 *)to, of4);
    else if (piece == 2)
        weft_st_weak_bytes2((struct weft_bytes2 *)to, of2);
    else
        weft_st_weak_bytes1((struct weft_bytes1 *)to, of1);
}

/* Copies a head or tail of less than a word, in pieces as large as alignment and length allow. The
 * threads of the group take pieces in turn. */
WEFT_DEVICE void weft_copy_pieces(char *to, const char *from, uint32_t bytes,
                                  struct weft_thread_group group) {
    uint32_t turn = 0, piece;
    WEFT_ROLLED
    for (; bytes > 0; to += piece, from += piece, bytes -= piece) {
        piece = weft_copy_alignment((uintptr_t)to | (uintptr_t)from, 8);
        while (piece > bytes)
            piece >>= 1;
        if (turn == group.id)
            weft_copy_store(to, piece, weft_copy_load(from, piece));
        turn = turn + 1 < group.count ? turn + 1 : 0;
    }
}

/* Copies two runs of `first` and `second` bytes in pieces of one size; the second run begins at
 * `behind`. */
WEFT_DEVICE void weft_copy_ends(char *to, const char *from, uint32_t piece, uint32_t first,
                                uint32_t second, size_t behind, struct weft_thread_group group) {
    enum { FLIGHT = 2 };
    const uint32_t step = group.count * piece;
    WEFT_ROLLED
    for (uint32_t begin = group.id * piece; begin < first + second; begin += FLIGHT * step) {
        uint64_t values[FLIGHT];
        WEFT_UNROLL
        for (uint32_t k = 0, at = begin; k < FLIGHT; k++, at += step)
            if (at < first + second)
                values[k] = weft_copy_load(from + at + (at < first ? 0 : behind - first), piece);
        WEFT_UNROLL
        for (uint32_t k = 0, at = begin; k < FLIGHT; k++, at += step)
            if (at < first + second)
                weft_copy_store(to + at + (at < first ? 0 : behind - first), piece, values[k]);
    }
}

/* Copies between sides whose relative alignment is only `piece` (4, 2 or 1); `bytes` is a multiple
 * of it. Reads nothing after the last byte. Copies at most `most` units as such, so that with the
 * constant 0 no code for units is compiled. */
WEFT_DEVICE void weft_copy_unlike(char *to, const char *from, size_t bytes, size_t most,
                                  uint32_t piece, struct weft_thread_group group, int flight) {
    uint32_t head = (0 - (uint32_t)(uintptr_t)to) & 15, slack = piece < 4 ? 3 : 0;
    if (head > bytes)
        head = (uint32_t)bytes;
    size_t rest = bytes - head, nunits = rest < slack ? 0 : (rest - slack) / 16;
    if (nunits > most)
        nunits = most;
    uint32_t tail = (uint32_t)(rest - nunits * 16);
    weft_copy_ends(to, from, piece, head, tail, bytes - tail, group);
    weft_copy_units(to + head, from + head, nunits, group, flight);
}

/* Copies by a group, with the largest words that both sides are aligned to, and `flight` words of
 * 16 bytes at a time (a compile-time constant, at most WEFT_COPY_FLIGHT_MAX). If the sides'
 * relative alignment is less than 8 bytes, stores still have 16 bytes. The code for the most
 * frequent case, 16-byte words only, is contiguous, because all warps of a block fetch it. */
WEFT_DEVICE void weft_copy_by(void *dest, const void *source, size_t bytes,
                              struct weft_thread_group group, int flight) {
    char *to = (char *)dest;
    const char *from = (const char *)source;
    if (WEFT_UNLIKELY(((uint32_t)(uintptr_t)to | (uint32_t)(uintptr_t)from | (uint32_t)bytes) %
                      16)) {
        uint32_t word = weft_copy_alignment((uintptr_t)to ^ (uintptr_t)from, 16);
        uint32_t head = (0 - (uint32_t)(uintptr_t)to) & (word - 1);
        if (head > bytes)
            head = (uint32_t)bytes;
        size_t whole = bytes - head;
        uint32_t tail = (uint32_t)whole & (word - 1);
        if (head | tail) {
            weft_copy_pieces(to, from, head, group);
            weft_copy_pieces(to + bytes - tail, from + bytes - tail, tail, group);
        }
        to += head;
        from += head;
        if (word == 8)
            weft_copy_words8(to, from, whole / 8, group, 2);
        else if (word < 8)
            weft_copy_unlike(to, from, whole - tail, bytes / 16, word, group, flight >= 8 ? 2 : 1);
        if (word < 16)
            return;
        bytes = whole;
    }
    weft_copy_words16(to, from, bytes / 16, group, flight);
}

/* Does the most frequent copy of one thread: an element of 4, 8 or 16 bytes, aligned on both sides.
 * Returns 0 if the arguments are anything else. */
WEFT_DEVICE int weft_copy_element(void *to, const void *from, size_t bytes) {
    uintptr_t both = (uintptr_t)to | (uintptr_t)from;
    if (bytes == 8 && both % 8 == 0)
        weft_st_weak_bytes8((struct weft_bytes8 *)to,
                            weft_ld_weak_bytes8((const struct weft_bytes8 *)from));
    else if (bytes == 16 && both % 16 == 0)
        weft_st_weak_bytes16((struct weft_bytes16 *)to,
                             weft_ld_weak_bytes16((const struct weft_bytes16 *)from));
    else if (bytes == 4 && both % 4 == 0)
        weft_st_weak_bytes4((struct weft_bytes4 *)to,
                            weft_ld_weak_bytes4((const struct weft_bytes4 *)from));
    else
        return 0;
    return 1;
}

/* --- The interface ---------------------------------------------------------------------------- */

/* weft_copy copies between any two addresses that the GPU can access, weft_put to member m's copy
 * of the object at `dest` in the device heap, weft_get from member m's copy of the object at
 * `source`. `dest` and `source` do not overlap.
 *
 * Loads and stores are weak. A put has arrived for a thread that sees a signal which was released
 * after it, and for no other thread. A get finds the data that was stored before a signal for which
 * this thread, or one that it has synced with, has waited. The threads of a group are not
 * synchronised: each has done its own part when it returns, and may read the part that it has
 * fetched. Code that depends on the other threads' parts comes after a sync: weft_fence_b,
 * weft_put_signal_b, __syncthreads(). */
enum { WEFT_FLIGHT_t = 4, WEFT_FLIGHT_w = 8, WEFT_FLIGHT_b = 8 };

WEFT_DEVICE void weft_copy_t(void *to, const void *from, size_t bytes) {
    if (!weft_copy_element(to, from, bytes))
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
