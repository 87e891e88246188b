/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies by multiprocessors: any alignment, any size, either side anywhere within the GPU's reach.
 *
 * An element that is naturally aligned on both sides is stored by one instruction, so that nobody
 * who waits for it sees half of it. Each thread has several loads under way before it stores. */
#include "base/gpu.cuh"
#include "transport/gpu_kernel.h"

/* What one instruction moves; may alias whatever lies there. */
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
struct weft_crew {
    uint32_t id, count;
};

WEFT_DEVICE struct weft_crew everybody(void) {
    return {(uint32_t)weft_thread(), (uint32_t)weft_threads()};
}

/* `flight` words, `step` apart, are loaded before any is stored; of them those before `end`, unless
 * there are as many for sure. */
template <int flight, bool all, class Word>
WEFT_DEVICE void copy_flight(Word *to, const Word *from, const Word *end, uint32_t step) {
    Word words[flight];
    const Word *next = from;
    WEFT_UNROLL
    for (int k = 0; k < flight; k++, next += step)
        if (all || next < end)
            words[k] = *next;
    WEFT_UNROLL
    for (int k = 0; k < flight; k++, from += step, to += step)
        if (all || from < end)
            *to = words[k];
}

template <int flight, class Word>
WEFT_DEVICE void copy_words(Word *to, const Word *from, size_t nwords, struct weft_crew crew) {
    const Word *end = from + nwords;
    const size_t many = (size_t)flight * crew.count;
    size_t i = crew.id;
    for (; i + many - crew.count < nwords; i += many)
        copy_flight<flight, true>(to + i, from + i, end, crew.count);
    if (i < nwords)
        copy_flight<flight, false>(to + i, from + i, end, crew.count);
}

template <class Word> WEFT_DEVICE void copy_one(char *to, const char *from) {
    *(Word *)to = *(const Word *)from;
}

/* Less than a word at either end, in pieces as large as alignment and length allow. */
WEFT_DEVICE void copy_pieces(char *to, const char *from, size_t bytes, struct weft_crew crew) {
    for (size_t n = 0, piece; bytes > 0; to += piece, from += piece, bytes -= piece, n++) {
        for (piece = 8; piece > bytes || ((uintptr_t)to | (uintptr_t)from) % piece != 0;)
            piece /= 2;
        if (n % crew.count != crew.id)
            continue;
        if (piece == 8)
            copy_one<weft_bytes8>(to, from);
        else if (piece == 4)
            copy_one<weft_bytes4>(to, from);
        else if (piece == 2)
            copy_one<weft_bytes2>(to, from);
        else
            copy_one<weft_bytes1>(to, from);
    }
}

/* By the largest words that begin on both sides together, `flight` of 16 bytes at a time. */
template <int flight>
WEFT_DEVICE void copy_run(char *to, const char *from, size_t bytes, struct weft_crew crew) {
    size_t word = 16;
    while (((uintptr_t)to ^ (uintptr_t)from) % word != 0)
        word /= 2;
    size_t head = -(uintptr_t)to % word;
    if (head > bytes)
        head = bytes;
    size_t nwords = (bytes - head) / word, tail = (bytes - head) % word;
    copy_pieces(to, from, head, crew);
    copy_pieces(to + bytes - tail, from + bytes - tail, tail, crew);
    to += head;
    from += head;
    if (word == 16)
        copy_words<flight>((weft_bytes16 *)to, (const weft_bytes16 *)from, nwords, crew);
    else if (word == 8)
        copy_words<flight / 2>((weft_bytes8 *)to, (const weft_bytes8 *)from, nwords, crew);
    else if (word == 4)
        copy_words<flight / 2>((weft_bytes4 *)to, (const weft_bytes4 *)from, nwords, crew);
    else if (word == 2)
        copy_words<flight / 2>((weft_bytes2 *)to, (const weft_bytes2 *)from, nwords, crew);
    else
        copy_words<flight / 2>((weft_bytes1 *)to, (const weft_bytes1 *)from, nwords, crew);
}

extern "C" __global__ void __launch_bounds__(512, 1)
    weft_copy(struct weft_gpu_abort, void *to, const void *from, size_t bytes) {
    copy_run<8>((char *)to, (const char *)from, bytes, everybody());
}

/* Blocks are dealt to crews of threads, of a size for 64 bytes a thread. */
extern "C" __global__ void __launch_bounds__(512, 1)
    weft_copy_blocks(struct weft_gpu_abort, void *to, ptrdiff_t to_step, const void *from,
                     ptrdiff_t from_step, size_t bytes, size_t nblocks) {
    struct weft_crew all = everybody(), crew = {all.id, 1};
    while (crew.count * 64 < bytes && crew.count * 2 <= all.count)
        crew.count *= 2;
    crew.id = all.id % crew.count;
    size_t crews = all.count / crew.count, block = all.id / crew.count;
    if (block >= crews)
        return;
    for (; block < nblocks; block += crews)
        copy_run<2>((char *)to + (ptrdiff_t)block * to_step,
                    (const char *)from + (ptrdiff_t)block * from_step, bytes, crew);
}

/* One block: its barrier stands between the copy and the signal. */
extern "C" __global__ void __launch_bounds__(512, 1)
    weft_put_signal(struct weft_gpu_abort, void *to, const void *from, size_t bytes, uint64_t *word,
                    uint64_t value, int add) {
    if (weft_block() != 0)
        return;
    struct weft_crew crew = {weft_block_thread(), weft_block_threads()};
    copy_run<8>((char *)to, (const char *)from, bytes, crew);
    weft_block_sync();
    if (crew.id != 0)
        return;
    if (add)
        weft_red_add_sys(word, value);
    else
        weft_st_release_sys(word, value);
}
