/* SPDX-License-Identifier: BSD-3-Clause */
/* What letters say, as both sides have it: the sender (core/far_rma.c) and the target, which
 * applies it (core/far_apply.c). Each begins with a struct weft_far_text. Data stand at the end. */
#ifndef WEFT_CORE_FAR_TEXT_H
#define WEFT_CORE_FAR_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include "core/window.h"

enum weft_far_kind {
    WEFT_FAR_PUT,        /* data */
    WEFT_FAR_PUT_WORD,   /* struct weft_far_word, data */
    WEFT_FAR_PUT_BLOCKS, /* struct weft_far_blocks, data of one block after the other */
    WEFT_FAR_GET,        /* struct weft_far_blocks; the answer is their data */
    WEFT_FAR_AMO,        /* struct weft_far_amo_text; the answer is the word before, if wanted */
    WEFT_FAR_MEET,       /* data, for the exchange whose number is the offset of the place */
};

enum weft_far_window { WEFT_FAR_HEAP, WEFT_FAR_STATICS, WEFT_FAR_SCRATCH, WEFT_FAR_WINDOWS };

/* A place in the memory of the PE whose slot it is: not an address, so that it can be checked. */
struct weft_far_place {
    uint32_t window, slot;
    uint64_t offset;
};

struct weft_far_text {
    uint32_t kind, detail; /* detail: of a word or an atomic */
    struct weft_far_place place;
};

/* How a word changes behind the data of its put. */
enum weft_far_word_op {
    WEFT_FAR_WORD /* struct weft_word */,
    WEFT_FAR_SIGNAL_SET,
    WEFT_FAR_SIGNAL_ADD
};

struct weft_far_word {
    struct weft_far_place place;
    uint64_t value;
};

/* count blocks of `bytes`, whose beginnings are `step` bytes apart. */
struct weft_far_blocks {
    int64_t step;
    uint64_t bytes, count;
};

/* detail: the operation, and these. */
#define WEFT_FAR_AMO_BYTES_SHIFT 8
#define WEFT_FAR_AMO_FETCHES     0x10000u
#define WEFT_FAR_AMO_WAKES       0x20000u
struct weft_far_amo_text {
    uint64_t value, cond;
};

/* Blocks are packed into letters of at most this. */
#define WEFT_FAR_PACKED_BYTES 4096

/* This PE's memory of a window, and how much of it others may name. */
static inline const struct weft_segment *weft_far_segment(uint32_t window) {
    switch (window) {
    case WEFT_FAR_HEAP:
        return &weft_windows.heap;
    case WEFT_FAR_STATICS:
        return &weft_windows.statics;
    case WEFT_FAR_SCRATCH:
        return &weft_windows.scratch;
    }
    return NULL;
}

/* Of the scratch all is there, and comes when it is touched. */
static inline size_t weft_far_segment_bytes(uint32_t window) {
    const struct weft_segment *segment = weft_far_segment(window);
    return window == WEFT_FAR_SCRATCH ? segment->slot_bytes : weft_window_bytes(&segment->window);
}

#endif
