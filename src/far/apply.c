/* SPDX-License-Identifier: BSD-3-Clause */
/* All of it is done by a processor of the target's host, under the lock of messages, or begun by it
 * where memory is another space's. A place is found, which checks it, before anything is touched;
 * NULL says that the message has been refused, or put off until what the PE's messages have begun
 * before is done. */
#include "far/apply.h"
#include <errno.h>
#include <string.h>
#include "base/amo_apply.h"
#include "base/futex.h"
#include "base/size.h"
#include "boot/boot.h"
#include "far/meet.h"
#include "far/protocol.h"

/* A message as it is read, from its beginning on. */
struct reader {
    int from;
    const char *at;
    size_t left;
};

static const char *const window_names[WEFT_FAR_WINDOWS] = {"heap", "statics", "memory of GPUs",
                                                           "scratch"};

static bool serves_all; /* slots, and not the own one alone */

/* Other PEs whose memory has changed in this look: a bit for each slot. */
static uint64_t changed[WEFT_WIRE_PES_MAX / 64];
static bool any_changed;

/* Parts of the scratch that messages have named: a bit for each. */
enum { PARTS = 1 << 16 };
static uint64_t opened[PARTS / 64];

/* --- Reading --------------------------------------------------------------------------------- */

/* Copies the next part; false: the message is too short, and has been refused. */
static bool reader_take(struct reader *reader, void *part, size_t bytes) {
    if (bytes > reader->left) {
        weft_message_refuse(reader->from, "it ends %zu bytes too early", bytes - reader->left);
        return false;
    }
    memcpy(part, reader->at, bytes);
    reader->at += bytes;
    reader->left -= bytes;
    return true;
}

static bool is_in_space(const struct weft_far_place *place) {
    return place->window == WEFT_FAR_SPACE;
}

/* What came of a call of the space's: whether it is done. */
static bool space_check(int error) {
    if (error && error != -EAGAIN)
        weft_channel_fail("%s", weft_fail_text());
    return error == 0;
}

bool weft_far_settled(int from) {
    return !weft_space_device || space_check(weft_space_device->messages->settle(from));
}

static bool serves(const struct weft_far_place *place, const struct weft_window *window) {
    return place->slot == weft_windows.scratch.mine ||
           (serves_all && !is_in_space(place) && place->slot < window->count);
}

/* A proxy is no member of the teams of its host's other PEs, and has not opened their parts of
 * the scratch. */
static bool scratch_open(size_t offset, size_t bytes) {
    const struct weft_segment *scratch = &weft_windows.scratch;
    size_t part = scratch->slot_bytes / PARTS, page = weft_page_bytes();
    part = part < page ? page : part;
    for (size_t i = offset / part; i <= (offset + bytes - 1) / part; i++) {
        if (opened[i / 64] >> i % 64 & 1)
            continue;
        int error = weft_segment_open(scratch, i * part, part);
        if (error)
            weft_channel_fail("cannot reach the words of a team: %s", strerror(-error));
        if (error)
            return false;
        opened[i / 64] |= UINT64_C(1) << i % 64;
    }
    return true;
}

/* Where a slot begins here. The own one is where the program has it. */
static char *slot_begin(const struct weft_window *window, uint32_t slot) {
    if (slot == weft_windows.scratch.mine)
        return (char *)window->local;
    changed[slot / 64] |= UINT64_C(1) << slot % 64;
    any_changed = true;
    return weft_window_slot_begin(window, slot);
}

/* [place + low, + bytes) of a PE that is served here; the place itself. */
static char *place_find_around(const struct reader *reader, const struct weft_far_place *place,
                               int64_t low, size_t bytes) {
    const struct weft_window *window = weft_far_window(place->window);
    if (!window || !serves(place, window)) {
        weft_message_refuse(reader->from, "it names window %u, slot %u, which is not served here",
                            place->window, place->slot);
        return NULL;
    }
    uint64_t lowest = place->offset + (uint64_t)low;
    size_t now = weft_far_window_bytes(place->window);
    if (!weft_window_fits(now, lowest, bytes)) {
        weft_message_refuse(reader->from,
                            "it names %zu bytes at offset %#lx of the %s, which has %zu", bytes,
                            (unsigned long)lowest, window_names[place->window], now);
        return NULL;
    }
    if (place->window == WEFT_FAR_STATICS &&
        weft_holes_meet(&weft_windows.statics.holes, lowest, bytes)) {
        weft_message_refuse(reader->from,
                            "it names %zu bytes at offset %#lx of the statics, which are not all "
                            "variables",
                            bytes, (unsigned long)lowest);
        return NULL;
    }
    if (place->window == WEFT_FAR_SCRATCH && bytes && !scratch_open(lowest, bytes))
        return NULL;
    bool must_settle = !is_in_space(place) && !weft_far_settled(reader->from);
    return must_settle ? NULL : slot_begin(window, place->slot) + place->offset;
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
    weft_message_refuse(reader->from, "it names %lu blocks that are %ld bytes apart",
                        (unsigned long)blocks->count, (long)blocks->step);
    return NULL;
}

/* A word of the program or the library, which must lie as words do. */
static void *word_find(const struct reader *reader, const struct weft_far_place *place,
                       size_t bytes) {
    char *word = place_find(reader, place, bytes);
    if (!word || (uintptr_t)word % bytes == 0)
        return word;
    weft_message_refuse(reader->from,
                        "it names a word at %p, which is not aligned to its %zu bytes",
                        (void *)word, bytes);
    return NULL;
}

/* --- Stores and loads ------------------------------------------------------------------------ */

/* What lies as a word does is stored or loaded whole, for those that look meanwhile. It may be the
 * flag of data in another message, so a load acquires and a store releases. */
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

/* Blocks come one after the other in a message, so a word may lie across its alignment there. */
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

/* --- In another space ------------------------------------------------------------------------ */

/* Whether they are stored, or so good as. */
static bool data_store(const struct reader *reader, const struct weft_far_place *place, char *to,
                       const struct weft_far_blocks *blocks) {
    if (!is_in_space(place)) {
        blocks_store(to, blocks->step, blocks->bytes, blocks->count, reader->at);
        return true;
    }
    struct weft_strided_copy copy = {.dest = to,
                                     .source = reader->at,
                                     .dest_step = blocks->step,
                                     .source_step = (ptrdiff_t)blocks->bytes,
                                     .bytes = blocks->bytes,
                                     .nblocks = blocks->count};
    return space_check(weft_space_device->messages->put(reader->from, &copy));
}

static bool space_get(const struct reader *reader, char *from,
                      const struct weft_far_blocks *blocks) {
    const void *answer = NULL;
    struct weft_strided_copy copy = {.source = from,
                                     .source_step = blocks->step,
                                     .dest_step = (ptrdiff_t)blocks->bytes,
                                     .bytes = blocks->bytes,
                                     .nblocks = blocks->count};
    if (!space_check(weft_space_device->messages->get(reader->from, &copy, &answer)))
        return false;
    struct iovec data = {(void *)answer, blocks->bytes * blocks->count};
    weft_message_answer(reader->from, &data, 1);
    return true;
}

/* Behind the data of its message, which have been begun: so it is not put off. */
static bool space_signal(int from, uint64_t *word, uint64_t value, enum weft_far_word_op op) {
    enum weft_signal_op as = op == WEFT_FAR_SIGNAL_ADD ? WEFT_SIGNAL_ADD : WEFT_SIGNAL_SET;
    return space_check(weft_space_device->messages->signal(from, word, value, as));
}

/* --- What messages say ------------------------------------------------------------------------ */

/* All of these are false where the message has been refused, or has to come again. */

static bool put_apply(struct reader *reader, const struct weft_far_header *text) {
    struct weft_far_blocks all = {0, reader->left, 1};
    char *to = place_find(reader, &text->place, reader->left);
    return to && data_store(reader, &text->place, to, &all);
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

static bool put_word_apply(struct reader *reader, const struct weft_far_header *text) {
    struct weft_far_word word;
    if (!reader_take(reader, &word, sizeof word))
        return false;
    if (text->detail > WEFT_FAR_SIGNAL_ADD)
        return weft_message_refuse(reader->from, "it changes a word by %u", text->detail);
    size_t bytes = text->detail == WEFT_FAR_WORD ? sizeof(struct weft_word) : sizeof(uint64_t);
    bool in_space = is_in_space(&word.place);
    if (in_space && text->detail == WEFT_FAR_WORD)
        return weft_message_refuse(reader->from, "it sets a word of the library's in the %s",
                                   window_names[WEFT_FAR_SPACE]);
    if (reader->left && in_space != is_in_space(&text->place))
        return weft_message_refuse(reader->from,
                                   "its data and its word are not in the same memory");
    void *at = word_find(reader, &word.place, bytes);
    if (!at || (reader->left && !put_apply(reader, text)))
        return false;
    if (in_space)
        return space_signal(reader->from, at, word.value, text->detail);
    word_apply(text->detail, at, word.value);
    return true;
}

static bool put_blocks_apply(struct reader *reader, const struct weft_far_header *text) {
    struct weft_far_blocks blocks;
    size_t all;
    if (!reader_take(reader, &blocks, sizeof blocks))
        return false;
    if (__builtin_mul_overflow(blocks.bytes, blocks.count, &all) || all != reader->left)
        return weft_message_refuse(reader->from, "it has %zu bytes for %lu blocks of %lu",
                                   reader->left, (unsigned long)blocks.count,
                                   (unsigned long)blocks.bytes);
    char *to = blocks_find(reader, &text->place, &blocks);
    return to && data_store(reader, &text->place, to, &blocks);
}

/* One block goes as it lies in memory; several are packed first. */
static bool get_apply(struct reader *reader, const struct weft_far_header *text) {
    struct weft_far_blocks blocks;
    char packed[WEFT_FAR_PACKED_BYTES] __attribute__((aligned(8)));
    if (!reader_take(reader, &blocks, sizeof blocks))
        return false;
    char *from = blocks_find(reader, &text->place, &blocks);
    if (!from)
        return false;
    bool whole = blocks.count == 1 && blocks.bytes > sizeof(uint64_t);
    size_t most = whole ? weft_channel_room() : sizeof packed;
    if (blocks.bytes > most || blocks.count > most || blocks.bytes * blocks.count > most)
        return weft_message_refuse(reader->from, "it wants %lu blocks of %lu bytes at once",
                                   (unsigned long)blocks.count, (unsigned long)blocks.bytes);
    if (is_in_space(&text->place))
        return space_get(reader, from, &blocks);
    if (!whole)
        blocks_load(packed, from, blocks.step, blocks.bytes, blocks.count);
    struct iovec answer = {whole ? from : packed, blocks.bytes * blocks.count};
    weft_message_answer(reader->from, &answer, 1);
    return true;
}

static bool amo_apply(struct reader *reader, const struct weft_far_header *text) {
    struct weft_far_amo_text amo;
    enum weft_amo_op op = text->detail & 0xff;
    size_t bytes = text->detail >> WEFT_FAR_AMO_BYTES_SHIFT & 0xff;
    if (!reader_take(reader, &amo, sizeof amo))
        return false;
    if (op > WEFT_AMO_XOR || (bytes != sizeof(uint32_t) && bytes != sizeof(uint64_t)))
        return weft_message_refuse(reader->from, "it wants atomic %d on %zu bytes", (int)op, bytes);
    void *word = word_find(reader, &text->place, bytes);
    if (!word)
        return false;
    uint64_t before = 0;
    bool fetches = text->detail & WEFT_FAR_AMO_FETCHES;
    if (is_in_space(&text->place)) {
        struct weft_amo there = {op, bytes, word, amo.value, amo.cond, fetches ? &before : NULL};
        if (!space_check(weft_space_device->messages->amo(reader->from, &there)))
            return false;
    } else {
        before = weft_amo_apply(op, bytes, word, amo.value, amo.cond);
        if (text->detail & WEFT_FAR_AMO_WAKES)
            weft_futex_wake(word, WEFT_FUTEX_ALL);
    }
    if (fetches)
        weft_message_answer(reader->from, &(struct iovec){&before, bytes}, 1);
    return true;
}

static bool text_apply(struct reader *reader, const struct weft_far_header *text) {
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
    return weft_message_refuse(reader->from, "it is of kind %u, and there is no such", text->kind);
}

bool weft_far_apply(int from, const void *message, size_t bytes) {
    struct reader reader = {from, message, bytes};
    struct weft_far_header text;
    atomic_thread_fence(memory_order_release); /* a flag may also stand at the end of much data */
    return reader_take(&reader, &text, sizeof text) && text_apply(&reader, &text);
}

/* --- Who is served --------------------------------------------------------------------------- */

void weft_far_serve(bool all) {
    serves_all = all;
    memset(opened, 0, sizeof opened);
}

void weft_far_wake_served(void) {
    if (!any_changed)
        return;
    const struct weft_window *near = &weft_windows.scratch.window;
    for (uint32_t slot = 0; slot < near->count; slot++)
        if (changed[slot / 64] >> slot % 64 & 1)
            weft_arrivals_notify(&weft_job.control->pe[near->first + slot * near->step].arrivals);
    memset(changed, 0, (near->count + 63) / 64 * sizeof *changed);
    any_changed = false;
}

void weft_far_answered(int from, const struct weft_message_request *request, const void *text,
                       size_t bytes) {
    size_t wanted = request->block_bytes * request->nblocks;
    if (bytes == wanted)
        blocks_store(request->dest, request->step, request->block_bytes, request->nblocks, text);
    else
        weft_message_refuse(from, "it answers %zu bytes, and %zu were asked for", bytes, wanted);
}
