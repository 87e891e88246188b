/* SPDX-License-Identifier: BSD-3-Clause */
/* All of it stands under the lock of messages, but for the beginning. */
#include "far/prefetch.h"
#include "far/message.h"

/* The most that one request asks for: rows that are packed into an answer, or a part of one row. */
static struct weft_far_blocks next_blocks(const struct weft_far_prefetch *bring) {
    size_t most = weft_channel_room() & ~(size_t)63, left = bring->row_bytes - bring->within;
    size_t packed = WEFT_FAR_PACKED_BYTES / bring->row_bytes;
    if (bring->rows == 1 || packed < 2)
        return (struct weft_far_blocks){0, left < most ? left : most, 1};
    return (struct weft_far_blocks){bring->step, bring->row_bytes,
                                    bring->rows < packed ? bring->rows : packed};
}

static bool send_request(struct weft_far_prefetch *bring, const struct weft_far_blocks *blocks) {
    struct {
        struct weft_far_header text;
        struct weft_far_blocks blocks;
    } said = {{WEFT_FAR_GET, 0, bring->place}, *blocks};
    said.text.place.offset += bring->within;
    struct weft_message_request request = {.dest = bring->dest,
                                           .step = (ptrdiff_t)blocks->bytes,
                                           .block_bytes = blocks->bytes,
                                           .nblocks = blocks->count,
                                           .continuation = &bring->continuation};
    struct weft_channel *channel = weft_channel_of(weft_far_end_of(&bring->place, bring->pe));
    return channel &&
           weft_channel_try_send(channel, &(struct weft_message){.text = {{&said, sizeof said}},
                                                                 .nparts = 1,
                                                                 .request = &request});
}

/* What has been asked for is behind. */
static void advance(struct weft_far_prefetch *bring, const struct weft_far_blocks *blocks) {
    bring->dest += blocks->bytes * blocks->count;
    bring->within += blocks->bytes * blocks->count;
    size_t rows = bring->within / bring->row_bytes;
    bring->within %= bring->row_bytes;
    bring->rows -= rows;
    bring->place.offset += rows * (uint64_t)bring->step;
}

static void go_on(void *context) {
    struct weft_far_prefetch *bring = context;
    while (bring->rows > 0) {
        struct weft_far_blocks blocks = next_blocks(bring);
        if (!send_request(bring, &blocks))
            break;
        bring->open++;
        advance(bring, &blocks);
    }
    atomic_store_explicit(&bring->stopped, bring->rows > 0 && bring->open == 0,
                          memory_order_relaxed);
}

/* Behind the word the bringing may be gone. */
static void answered(struct weft_message_continuation *continuation) {
    struct weft_far_prefetch *bring = (struct weft_far_prefetch *)continuation;
    bring->open--;
    go_on(bring);
    if (bring->rows == 0 && bring->open == 0)
        weft_word_set(bring->word, bring->value);
}

void weft_far_prefetch_begin(struct weft_far_prefetch *bring, const void *source) {
    bring->continuation.answered = answered;
    bring->within = 0;
    bring->open = 0;
    if (bring->rows == 0 || bring->row_bytes == 0) {
        weft_word_set(bring->word, bring->value);
        return;
    }
    if (bring->step == (int64_t)bring->row_bytes) {
        bring->row_bytes *= bring->rows;
        bring->rows = 1;
    }
    size_t span = (bring->rows - 1) * (size_t)bring->step + bring->row_bytes;
    bring->place = weft_far_place_of(source, span, bring->pe);
    weft_messages_begin(go_on, bring);
}

void weft_far_prefetch_look(struct weft_far_prefetch *bring) {
    if (atomic_load_explicit(&bring->stopped, memory_order_relaxed))
        weft_messages_begin(go_on, bring);
}
