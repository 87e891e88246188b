/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything runs under the lock of messages, on a processor of the target's host. Operations on
 * GPU memory are only begun here. The *_find functions check a place before any memory
 * is touched. They return NULL if the message was refused, or put off until operations begun by
 * earlier messages of that PE are complete. */
#include "far/apply.h"
#include <errno.h>
#include <string.h>
#include "base/amo_apply.h"
#include "base/futex.h"
#include "base/machine.h"
#include "base/size.h"
#include "boot/boot.h"
#include "far/protocol.h"

/* The unread part of a message. */
struct reader {
    int from;
    const char *at;
    size_t left;
};

static const char *const window_names[WEFT_FAR_WINDOWS] = {"heap", "statics", "GPU memory",
                                                           "scratch"};

static bool serves_all_slots; /* all slots, not just this PE's own */

/* Slots of other PEs that messages have named since the last wake-up: their memory may have
 * changed. One bit each. */
static uint64_t changed[WEFT_WIRE_PES_MAX / 64];
static bool any_changed;

/* Parts of the scratch that are accessible here, one bit each. */
enum { PARTS = 1 << 16 };
static uint64_t opened[PARTS / 64];

/* --- Reading --------------------------------------------------------------------------------- */

/* Copies the next part. Returns false, with the message refused, if the message is too short. */
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

/* Returns whether the place is in GPU memory. */
static bool is_on_device(const struct weft_far_place *place) {
    return place->window == WEFT_FAR_DEVICE;
}

/* Returns whether a function of weft_space_device succeeded. Any error but -EAGAIN ends the job. */
static bool device_check(int error) {
    if (error && error != -EAGAIN)
        weft_channel_fail("%s", weft_fail_text());
    return error == 0;
}

bool weft_far_work_done(int from) {
    return !weft_space_device || device_check(weft_space_device->messages->settle(from));
}

/* All windows have the same slots, so this PE's slot of the scratch is its slot in each of them. */
static bool serves(const struct weft_far_place *place, const struct weft_window *window) {
    return place->slot == weft_windows.scratch.mine ||
           (serves_all_slots && !is_on_device(place) && place->slot < window->count);
}

/* Makes a part of the scratch accessible: a host proxy is not a member of its near PEs' teams, and
 * so has not opened their slots. */
static bool scratch_open(size_t offset, size_t bytes) {
    const struct weft_segment *scratch = &weft_windows.scratch;
    size_t part = scratch->slot_bytes / PARTS, page = weft_page_bytes();
    part = part < page ? page : part;
    for (size_t i = offset / part; i <= (offset + bytes - 1) / part; i++) {
        if (opened[i / 64] >> i % 64 & 1)
            continue;
        int error = weft_segment_open(scratch, i * part, part);
        if (error)
            weft_channel_fail("cannot make the words of a team accessible (mprotect): %s%s",
                              strerror(-error), weft_remedy(error).text);
        if (error)
            return false;
        opened[i / 64] |= UINT64_C(1) << i % 64;
    }
    return true;
}

/* Returns where a slot begins here: this PE's own at the program's address. */
static char *slot_begin(const struct weft_window *window, uint32_t slot) {
    if (slot == weft_windows.scratch.mine)
        return (char *)window->local;
    changed[slot / 64] |= UINT64_C(1) << slot % 64;
    any_changed = true;
    return weft_window_slot_begin(window, slot);
}

/* Checks [place + low, place + low + bytes) of a PE that is served here. Returns the address of the
 * place. */
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
                            "it names %zu bytes at offset %#lx of the statics, where not all "
                            "bytes are variables",
                            bytes, (unsigned long)lowest);
        return NULL;
    }
    if (place->window == WEFT_FAR_SCRATCH && bytes && !scratch_open(lowest, bytes))
        return NULL;
    bool must_settle = !is_on_device(place) && !weft_far_work_done(reader->from);
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

/* Finds a word of the program or the library, which must be aligned. */
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

/* Copies a size and alignment of a word in one load and one store, for threads that read it
 * meanwhile. It may be the flag of data in another message, so the load acquires and the store
 * releases. */
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

/* Blocks are back to back in a message, so a word may be misaligned there. */
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

/* --- In GPU memory --------------------------------------------------------------------------- */

/* Stores the data, or begins to. Returns false if the message is refused or put off. */
static bool data_store(const struct reader *reader, const struct weft_far_place *place, char *to,
                       const struct weft_far_blocks *blocks) {
    if (!is_on_device(place)) {
        blocks_store(to, blocks->step, blocks->bytes, blocks->count, reader->at);
        return true;
    }
    struct weft_strided_copy copy = {.dest = to,
                                     .source = reader->at,
                                     .dest_step = blocks->step,
                                     .source_step = (ptrdiff_t)blocks->bytes,
                                     .bytes = blocks->bytes,
                                     .nblocks = blocks->count};
    return device_check(weft_space_device->messages->put(reader->from, &copy));
}

static bool device_get(const struct reader *reader, char *from,
                       const struct weft_far_blocks *blocks) {
    const void *answer = NULL;
    struct weft_strided_copy copy = {.source = from,
                                     .source_step = blocks->step,
                                     .dest_step = (ptrdiff_t)blocks->bytes,
                                     .bytes = blocks->bytes,
                                     .nblocks = blocks->count};
    if (!device_check(weft_space_device->messages->get(reader->from, &copy, &answer)))
        return false;
    struct iovec data = {(void *)answer, blocks->bytes * blocks->count};
    weft_message_answer(reader->from, &data, 1);
    return true;
}

/* Comes after the data of its message, which has begun, so it is never put off. */
static bool device_signal(int from, uint64_t *word, uint64_t value, enum weft_far_word_op op) {
    enum weft_signal_op as = op == WEFT_FAR_SIGNAL_ADD ? WEFT_SIGNAL_ADD : WEFT_SIGNAL_SET;
    return device_check(weft_space_device->messages->signal(from, word, value, as));
}

/* --- Kinds of messages ----------------------------------------------------------------------- */

/* These functions return false if the message was refused or put off. */

static bool put_apply(struct reader *reader, const struct weft_far_header *header) {
    struct weft_far_blocks all = {0, reader->left, 1};
    char *to = place_find(reader, &header->place, reader->left);
    return to && data_store(reader, &header->place, to, &all);
}

/* A release: a thread that sees the word sees the data. */
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

static bool put_word_apply(struct reader *reader, const struct weft_far_header *header) {
    struct weft_far_word word;
    if (!reader_take(reader, &word, sizeof word))
        return false;
    if (header->detail > WEFT_FAR_SIGNAL_ADD)
        return weft_message_refuse(reader->from, "it changes a word by unknown operation %u",
                                   header->detail);
    size_t bytes = header->detail == WEFT_FAR_WORD ? sizeof(struct weft_word) : sizeof(uint64_t);
    bool on_device = is_on_device(&word.place);
    if (on_device && header->detail == WEFT_FAR_WORD)
        return weft_message_refuse(reader->from, "it sets a word of the library in the %s",
                                   window_names[WEFT_FAR_DEVICE]);
    if (reader->left && on_device != is_on_device(&header->place))
        return weft_message_refuse(reader->from,
                                   "its data and its word are not in the same memory");
    void *at = word_find(reader, &word.place, bytes);
    if (!at || (reader->left && !put_apply(reader, header)))
        return false;
    if (on_device)
        return device_signal(reader->from, at, word.value, header->detail);
    word_apply(header->detail, at, word.value);
    return true;
}

static bool put_blocks_apply(struct reader *reader, const struct weft_far_header *header) {
    struct weft_far_blocks blocks;
    size_t all;
    if (!reader_take(reader, &blocks, sizeof blocks))
        return false;
    if (__builtin_mul_overflow(blocks.bytes, blocks.count, &all) || all != reader->left)
        return weft_message_refuse(reader->from, "it has %zu bytes for %lu blocks of %lu",
                                   reader->left, (unsigned long)blocks.count,
                                   (unsigned long)blocks.bytes);
    char *to = blocks_find(reader, &header->place, &blocks);
    return to && data_store(reader, &header->place, to, &blocks);
}

/* Answers one large block directly from memory; packs small ones first. */
static bool get_apply(struct reader *reader, const struct weft_far_header *header) {
    struct weft_far_blocks blocks;
    char packed[WEFT_FAR_PACKED_BYTES] __attribute__((aligned(8)));
    if (!reader_take(reader, &blocks, sizeof blocks))
        return false;
    char *from = blocks_find(reader, &header->place, &blocks);
    if (!from)
        return false;
    bool whole = blocks.count == 1 && blocks.bytes > sizeof(uint64_t);
    size_t most = whole ? weft_message_payload_max() : sizeof packed;
    if (blocks.bytes > most || blocks.count > most || blocks.bytes * blocks.count > most)
        return weft_message_refuse(reader->from, "it wants %lu blocks of %lu bytes at once",
                                   (unsigned long)blocks.count, (unsigned long)blocks.bytes);
    if (is_on_device(&header->place))
        return device_get(reader, from, &blocks);
    if (!whole)
        blocks_load(packed, from, blocks.step, blocks.bytes, blocks.count);
    struct iovec answer = {whole ? from : packed, blocks.bytes * blocks.count};
    weft_message_answer(reader->from, &answer, 1);
    return true;
}

static bool amo_apply(struct reader *reader, const struct weft_far_header *header) {
    struct weft_far_amo_operands amo;
    enum weft_amo_op op = header->detail & 0xff;
    size_t bytes = header->detail >> WEFT_FAR_AMO_BYTES_SHIFT & 0xff;
    if (!reader_take(reader, &amo, sizeof amo))
        return false;
    if (op > WEFT_AMO_XOR || (bytes != sizeof(uint32_t) && bytes != sizeof(uint64_t)))
        return weft_message_refuse(reader->from, "it wants atomic %d on %zu bytes", (int)op, bytes);
    void *word = word_find(reader, &header->place, bytes);
    if (!word)
        return false;
    uint64_t before = 0;
    bool fetches = header->detail & WEFT_FAR_AMO_FETCHES;
    if (is_on_device(&header->place)) {
        struct weft_amo there = {op, bytes, word, amo.value, amo.cond, fetches ? &before : NULL};
        if (!device_check(weft_space_device->messages->amo(reader->from, &there)))
            return false;
    } else {
        before = weft_amo_apply(op, bytes, word, amo.value, amo.cond);
        if (header->detail & WEFT_FAR_AMO_WAKES)
            weft_futex_wake(word, WEFT_FUTEX_ALL);
    }
    if (fetches)
        weft_message_answer(reader->from, &(struct iovec){&before, bytes}, 1);
    return true;
}

static bool message_apply(struct reader *reader, const struct weft_far_header *header) {
    switch ((enum weft_far_kind)header->kind) {
    case WEFT_FAR_PUT:
        return put_apply(reader, header);
    case WEFT_FAR_PUT_WORD:
        return put_word_apply(reader, header);
    case WEFT_FAR_PUT_BLOCKS:
        return put_blocks_apply(reader, header);
    case WEFT_FAR_GET:
        return get_apply(reader, header);
    case WEFT_FAR_AMO:
        return amo_apply(reader, header);
    }
    return weft_message_refuse(reader->from, "it is of kind %u, which does not exist",
                               header->kind);
}

bool weft_far_apply(int from, const void *message, size_t bytes) {
    struct reader reader = {from, message, bytes};
    struct weft_far_header header;
    atomic_thread_fence(memory_order_release); /* a flag may also be at the end of much data */
    return reader_take(&reader, &header, sizeof header) && message_apply(&reader, &header);
}

void weft_far_answered(int from, const struct weft_message_request *request, const void *payload,
                       size_t bytes) {
    size_t wanted = request->block_bytes * request->nblocks;
    if (bytes == wanted)
        blocks_store(request->dest, request->step, request->block_bytes, request->nblocks, payload);
    else
        weft_message_refuse(from, "it answers with %zu bytes, but %zu were requested", bytes,
                            wanted);
}

/* --- Which slots are served ------------------------------------------------------------------ */

void weft_far_serve(bool all) {
    serves_all_slots = all;
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
