/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of bytes by threads: any alignment, any size, either side anywhere within the GPU's reach.
 *
 * An element that is naturally aligned on both sides is stored by one instruction, so that nobody
 * who waits for it sees half of it. Each thread has several loads under way before it stores. */
#ifndef WEFT_TRANSPORT_GPU_COPY_CUH
#define WEFT_TRANSPORT_GPU_COPY_CUH

#include "base/gpu.cuh"

/* Types of the sizes that one instruction moves; they may alias any object. */
struct __attribute__((may_alias)) weft_bytes1 {
    uint8_t value;
};
struct __attribute__((may_alias)) weft_bytes2 {
    uint16_t value;
};
struct __attribute__((may_alias)) weft_bytes4 {
    uint32_t value;
};
struct __attribute__((may_alias)) weft_bytes8 {
    uint64_t value;
};
struct __attribute__((may_alias, aligned(16))) weft_bytes16 {
    uint64_t low, high;
};

/* Threads that share a copy: this one's number among so many. */
struct weft_thread_group {
    uint32_t id, count;
};

WEFT_DEVICE struct weft_thread_group weft_thread_group_all(void) {
    return {(uint32_t)weft_thread_index(), (uint32_t)weft_thread_count()};
}

WEFT_DEVICE struct weft_thread_group weft_thread_group_block(void) {
    return {weft_block_thread(), weft_block_threads()};
}

/* `flight` words, `step` apart, are loaded before any is stored; of them those before `end`, unless
 * there are as many for sure. */
template <int flight, bool all, class Word>
WEFT_DEVICE void weft_copy_flight(Word *to, const Word *from, const Word *end, uint32_t step) {
    Word words[flight];
    const Word *next = from;
    WEFT_UNROLL
    for (int k = 0; k < flight; k++, next += step)
        if (all || next < end)
            words[k] = weft_ld_weak(next);
    WEFT_UNROLL
    for (int k = 0; k < flight; k++, from += step, to += step)
        if (all || from < end)
            weft_st_weak(to, words[k]);
}

template <int flight, class Word>
WEFT_DEVICE void weft_copy_words(Word *to, const Word *from, size_t nwords,
                                 struct weft_thread_group group) {
    const Word *end = from + nwords;
    const size_t many = (size_t)flight * group.count;
    size_t i = group.id;
    for (; i + many - group.count < nwords; i += many)
        weft_copy_flight<flight, true>(to + i, from + i, end, group.count);
    if (i < nwords)
        weft_copy_flight<flight, false>(to + i, from + i, end, group.count);
}

template <class Word> WEFT_DEVICE void weft_copy_one(char *to, const char *from) {
    weft_st_weak((Word *)to, weft_ld_weak((const Word *)from));
}

/* Less than a word at either end, in pieces as large as alignment and length allow. */
WEFT_DEVICE void weft_copy_pieces(char *to, const char *from, size_t bytes,
                                  struct weft_thread_group group) {
    for (size_t n = 0, piece; bytes > 0; to += piece, from += piece, bytes -= piece, n++) {
        for (piece = 8; piece > bytes || ((uintptr_t)to | (uintptr_t)from) % piece != 0;)
            piece /= 2;
        if (n % group.count != group.id)
            continue;
        if (piece == 8)
            weft_copy_one<weft_bytes8>(to, from);
        else if (piece == 4)
            weft_copy_one<weft_bytes4>(to, from);
        else if (piece == 2)
            weft_copy_one<weft_bytes2>(to, from);
        else
            weft_copy_one<weft_bytes1>(to, from);
    }
}

/* Copies by the largest words that both sides are aligned to, `flight` words of 16 bytes at a time.
 */
template <int flight>
WEFT_DEVICE void weft_copy_run(char *to, const char *from, size_t bytes,
                               struct weft_thread_group group) {
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
        weft_copy_words<flight>((weft_bytes16 *)to, (const weft_bytes16 *)from, nwords, group);
    else if (word == 8)
        weft_copy_words<flight / 2>((weft_bytes8 *)to, (const weft_bytes8 *)from, nwords, group);
    else if (word == 4)
        weft_copy_words<flight / 2>((weft_bytes4 *)to, (const weft_bytes4 *)from, nwords, group);
    else if (word == 2)
        weft_copy_words<flight / 2>((weft_bytes2 *)to, (const weft_bytes2 *)from, nwords, group);
    else
        weft_copy_words<flight / 2>((weft_bytes1 *)to, (const weft_bytes1 *)from, nwords, group);
}

#endif
