/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything except weft_far_prefetch_begin and weft_far_prefetch_look runs under the lock of
 * messages. */
#include "far/prefetch.h"
#include "far/message.h"

/* Returns the most that one request may ask for: rows that are packed into one answer, or a part of
 * one row. */
static struct weft_far_blocks next_blocks(const struct weft_far_prefetch *prefetch) {
    size_t most = weft_message_payload_max() & ~(size_t)63,
           left = prefetch->row_bytes - prefetch->within;
    size_t packed = WEFT_FAR_PACKED_BYTES / prefetch->row_bytes;
    if (prefetch->rows == 1 || packed < 2)
        return (struct weft_far_blocks){0, left < most ? left : most, 1};
    return (struct weft_far_blocks){prefetch->step, prefetch->row_bytes,
                                    prefetch->rows < packed ? prefetch->rows : packed};
}

static bool send_request(struct weft_far_prefetch *prefetch, const struct weft_far_blocks *blocks) {
    struct {
        struct weft_far_header header;
        struct weft_far_blocks blocks;
    } body = {{WEFT_FAR_GET, 0, prefetch->place}, *blocks};
    body.header.place.offset += prefetch->within;
    struct weft_message_request request = {.dest = prefetch->dest,
                                           .step = (ptrdiff_t)blocks->bytes,
                                           .block_bytes = blocks->bytes,
                                           .nblocks = blocks->count,
                                           .continuation = &prefetch->continuation};
    struct weft_channel *channel =
        weft_channel_of(weft_far_receiver(&prefetch->place, prefetch->pe));
    return channel &&
           weft_channel_try_send(channel, &(struct weft_message){.payload = {{&body, sizeof body}},
                                                                 .nparts = 1,
                                                                 .request = &request});
}

/* Moves on past the blocks that were requested. */
static void advance(struct weft_far_prefetch *prefetch, const struct weft_far_blocks *blocks) {
    prefetch->dest += blocks->bytes * blocks->count;
    prefetch->within += blocks->bytes * blocks->count;
    size_t rows = prefetch->within / prefetch->row_bytes;
    prefetch->within %= prefetch->row_bytes;
    prefetch->rows -= rows;
    prefetch->place.offset += rows * (uint64_t)prefetch->step;
}

static void go_on(void *context) {
    struct weft_far_prefetch *prefetch = context;
    while (prefetch->rows > 0) {
        struct weft_far_blocks blocks = next_blocks(prefetch);
        if (!send_request(prefetch, &blocks))
            break;
        prefetch->open++;
        advance(prefetch, &blocks);
    }
    atomic_store_explicit(&prefetch->stopped, prefetch->rows > 0 && prefetch->open == 0,
                          memory_order_relaxed);
}

/* Setting the word comes last: after that the struct may be gone. */
static void answered(struct weft_message_continuation *continuation) {
    struct weft_far_prefetch *prefetch = (struct weft_far_prefetch *)continuation;
    prefetch->open--;
    go_on(prefetch);
    if (prefetch->rows == 0 && prefetch->open == 0)
        weft_word_set(prefetch->word, prefetch->value);
}

void weft_far_prefetch_begin(struct weft_far_prefetch *prefetch, const void *source) {
    prefetch->continuation.answered = answered;
    prefetch->within = 0;
    prefetch->open = 0;
    if (prefetch->rows == 0 || prefetch->row_bytes == 0) {
        weft_word_set(prefetch->word, prefetch->value);
        return;
    }
    if (prefetch->step == (int64_t)prefetch->row_bytes) {
        prefetch->row_bytes *= prefetch->rows;
        prefetch->rows = 1;
    }
    size_t span = (prefetch->rows - 1) * (size_t)prefetch->step + prefetch->row_bytes;
    prefetch->place = weft_far_place_of(source, span, prefetch->pe);
    weft_messages_begin(go_on, prefetch);
}

void weft_far_prefetch_look(struct weft_far_prefetch *prefetch) {
    if (atomic_load_explicit(&prefetch->stopped, memory_order_relaxed))
        weft_messages_begin(go_on, prefetch);
}
