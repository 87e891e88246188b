/* SPDX-License-Identifier: BSD-3-Clause */
/* All of it is done by this PE's processor, under the lock of letters. A place is found, which
 * checks it, before anything is touched; NULL says that the letter has been refused. */
#include "core/far_apply.h"
#include <string.h>
#include "base/amo_apply.h"
#include "base/futex.h"
#include "core/far_meet.h"
#include "core/far_text.h"
#include "core/strided.h"

/* A letter as it is read, from its beginning on. */
struct reader {
    int from;
    const char *at;
    size_t left;
};

static const char *const window_names[WEFT_FAR_WINDOWS] = {"heap", "statics", "scratch"};

/* --- Reading --------------------------------------------------------------------------------- */

/* Copies the next part; false: the letter is too short, and has been refused. */
static bool reader_take(struct reader *reader, void *part, size_t bytes) {
    if (bytes > reader->left) {
        weft_letter_refuse(reader->from, "it ends %zu bytes too early", bytes - reader->left);
        return false;
    }
    memcpy(part, reader->at, bytes);
    reader->at += bytes;
    reader->left -= bytes;
    return true;
}

/* [place + low, + bytes) of this PE; the place itself. */
static char *place_find_around(const struct reader *reader, const struct weft_far_place *place,
                               int64_t low, size_t bytes) {
    const struct weft_segment *segment = weft_far_segment(place->window);
    if (!segment || place->slot != segment->mine) {
        weft_letter_refuse(reader->from, "it names window %u, slot %u, which is not this PE's",
                           place->window, place->slot);
        return NULL;
    }
    uint64_t lowest = place->offset + (uint64_t)low;
    size_t now = weft_far_segment_bytes(place->window);
    if (!weft_window_fits(now, lowest, bytes)) {
        weft_letter_refuse(reader->from,
                           "it names %zu bytes at offset %#lx of the %s, which has %zu", bytes,
                           (unsigned long)lowest, window_names[place->window], now);
        return NULL;
    }
    return (char *)segment->window.local + place->offset;
}

static char *place_find(const struct reader *reader, const struct weft_far_place *place,
                        size_t bytes) {
    return place_find_around(reader, place, 0, bytes);
}

static char *blocks_find(const struct reader *reader, const struct weft_far_place *place,
                         const struct weft_far_blocks *blocks) {
    struct weft_strided shape = {.elem_bytes = 1, .bsize = blocks->bytes, .nblocks = blocks->count};
    struct weft_strided_side side;
    if (!weft_strided_is_empty(&shape) && weft_strided_lay_out(&shape, blocks->step, &side))
        return place_find_around(reader, place, side.low, side.span);
    weft_letter_refuse(reader->from, "it names %lu blocks that are %ld bytes apart",
                       (unsigned long)blocks->count, (long)blocks->step);
    return NULL;
}

/* A word of the program or the library, which must lie as words do. */
static void *word_find(const struct reader *reader, const struct weft_far_place *place,
                       size_t bytes) {
    char *word = place_find(reader, place, bytes);
    if (!word || (uintptr_t)word % bytes == 0)
        return word;
    weft_letter_refuse(reader->from, "it names a word at %p, which is not aligned to its %zu bytes",
                       (void *)word, bytes);
    return NULL;
}

/* --- Stores and loads ------------------------------------------------------------------------ */

/* What lies as a word does is stored or loaded whole, for those that look meanwhile. It may be the
 * flag of data in another letter, so a load acquires and a store releases. */
#define WORD_COPY(BITS)                                                                         \
    case BITS / 8:                                                                              \
        if (((uintptr_t)to | (uintptr_t)from) % (BITS / 8) == 0) {                              \
            __atomic_store_n((weft_alias##BITS *)to,                                            \
                             __atomic_load_n((const weft_alias##BITS *)from, __ATOMIC_ACQUIRE), \
                             __ATOMIC_RELEASE);                                                 \
            return;                                                                             \
        }                                                                                       \
        break;
static void bytes_copy(void *to, const void *from, size_t bytes) {
    switch (bytes) {
        WORD_COPY(8)
        WORD_COPY(16)
        WORD_COPY(32)
        WORD_COPY(64)
    }
    memcpy(to, from, bytes);
}
#undef WORD_COPY

/* Blocks come one after the other in a letter, so a word may lie across its alignment there. */
static void blocks_store(char *to, int64_t step, size_t bytes, size_t count, const char *from) {
    for (size_t i = 0; i < count; i++, from += bytes) {
        uint64_t word = 0;
        bool small = bytes <= sizeof word;
        if (small)
            memcpy(&word, from, bytes);
        bytes_copy(to + (int64_t)i * step, small ? (const char *)&word : from, bytes);
    }
}

static void blocks_load(char *to, const char *from, int64_t step, size_t bytes, size_t count) {
    for (size_t i = 0; i < count; i++, to += bytes)
        bytes_copy(to, from + (int64_t)i * step, bytes);
}

/* --- What letters say ------------------------------------------------------------------------ */

static bool put_apply(struct reader *reader, const struct weft_far_text *text) {
    char *to = place_find(reader, &text->place, reader->left);
    if (to)
        blocks_store(to, 0, reader->left, 1, reader->at);
    return to != NULL;
}

/* Release: who sees the word sees the data. */
static void word_apply(enum weft_far_word_op op, void *to, uint64_t value) {
    switch (op) {
    case WEFT_FAR_WORD:
        weft_word_set(to, (uint32_t)value);
        break;
    case WEFT_FAR_SIGNAL_SET:
        __atomic_store_n((uint64_t *)to, value, __ATOMIC_RELEASE);
        break;
    case WEFT_FAR_SIGNAL_ADD:
        __atomic_fetch_add((uint64_t *)to, value, __ATOMIC_RELEASE);
        break;
    }
}

static bool put_word_apply(struct reader *reader, const struct weft_far_text *text) {
    struct weft_far_word word;
    if (!reader_take(reader, &word, sizeof word))
        return false;
    if (text->detail > WEFT_FAR_SIGNAL_ADD)
        return weft_letter_refuse(reader->from, "it changes a word by %u", text->detail);
    size_t bytes = text->detail == WEFT_FAR_WORD ? sizeof(struct weft_word) : sizeof(uint64_t);
    void *at = word_find(reader, &word.place, bytes);
    char *to = at && reader->left ? place_find(reader, &text->place, reader->left) : NULL;
    if (!at || (reader->left && !to))
        return false;
    if (to)
        blocks_store(to, 0, reader->left, 1, reader->at);
    word_apply(text->detail, at, word.value);
    return true;
}

static bool put_blocks_apply(struct reader *reader, const struct weft_far_text *text) {
    struct weft_far_blocks blocks;
    if (!reader_take(reader, &blocks, sizeof blocks))
        return false;
    if (blocks.bytes > reader->left || blocks.bytes * blocks.count != reader->left)
        return weft_letter_refuse(reader->from, "it has %zu bytes for %lu blocks of %lu",
                                  reader->left, (unsigned long)blocks.count,
                                  (unsigned long)blocks.bytes);
    char *to = blocks_find(reader, &text->place, &blocks);
    if (to)
        blocks_store(to, blocks.step, blocks.bytes, blocks.count, reader->at);
    return to != NULL;
}

/* One block goes as it lies in memory; several are packed first. */
static bool get_apply(struct reader *reader, const struct weft_far_text *text) {
    struct weft_far_blocks blocks;
    char packed[WEFT_FAR_PACKED_BYTES] __attribute__((aligned(8)));
    if (!reader_take(reader, &blocks, sizeof blocks))
        return false;
    char *from = blocks_find(reader, &text->place, &blocks);
    if (!from)
        return false;
    bool whole = blocks.count == 1 && blocks.bytes > sizeof(uint64_t);
    size_t most = whole ? weft_link_room() : sizeof packed;
    if (blocks.bytes > most || blocks.count > most || blocks.bytes * blocks.count > most)
        return weft_letter_refuse(reader->from, "it wants %lu blocks of %lu bytes at once",
                                  (unsigned long)blocks.count, (unsigned long)blocks.bytes);
    if (!whole)
        blocks_load(packed, from, blocks.step, blocks.bytes, blocks.count);
    struct iovec answer = {whole ? from : packed, blocks.bytes * blocks.count};
    weft_letter_answer(reader->from, &answer, 1);
    return true;
}

static bool amo_apply(struct reader *reader, const struct weft_far_text *text) {
    struct weft_far_amo_text amo;
    enum weft_amo_op op = text->detail & 0xff;
    size_t bytes = text->detail >> WEFT_FAR_AMO_BYTES_SHIFT & 0xff;
    if (!reader_take(reader, &amo, sizeof amo))
        return false;
    if (op > WEFT_AMO_XOR || (bytes != sizeof(uint32_t) && bytes != sizeof(uint64_t)))
        return weft_letter_refuse(reader->from, "it wants atomic %d on %zu bytes", (int)op, bytes);
    void *word = word_find(reader, &text->place, bytes);
    if (!word)
        return false;
    uint64_t before = weft_amo_apply(op, bytes, word, amo.value, amo.cond);
    if (text->detail & WEFT_FAR_AMO_WAKES)
        weft_futex_wake(word, WEFT_FUTEX_ALL);
    if (text->detail & WEFT_FAR_AMO_FETCHES)
        weft_letter_answer(reader->from, &(struct iovec){&before, bytes}, 1);
    return true;
}

static bool text_apply(struct reader *reader, const struct weft_far_text *text) {
    switch ((enum weft_far_kind)text->kind) {
    case WEFT_FAR_PUT:
        return put_apply(reader, text);
    case WEFT_FAR_PUT_WORD:
        return put_word_apply(reader, text);
    case WEFT_FAR_PUT_BLOCKS:
        return put_blocks_apply(reader, text);
    case WEFT_FAR_GET:
        return get_apply(reader, text);
    case WEFT_FAR_AMO:
        return amo_apply(reader, text);
    case WEFT_FAR_MEET:
        return weft_far_meet_keep(reader->from, text->place.offset, reader->at, reader->left);
    }
    return weft_letter_refuse(reader->from, "it is of kind %u, and there is no such", text->kind);
}

void weft_far_apply(int from, const void *letter, size_t bytes) {
    struct reader reader = {from, letter, bytes};
    struct weft_far_text text;
    atomic_thread_fence(memory_order_release); /* a flag may also stand at the end of much data */
    if (reader_take(&reader, &text, sizeof text))
        text_apply(&reader, &text);
}

void weft_far_answered(int from, const struct weft_letter_request *request, const void *text,
                       size_t bytes) {
    size_t wanted = request->block_bytes * request->nblocks;
    if (bytes == wanted)
        blocks_store(request->dest, request->step, request->block_bytes, request->nblocks, text);
    else
        weft_letter_refuse(from, "it answers %zu bytes, and %zu were asked for", bytes, wanted);
}
