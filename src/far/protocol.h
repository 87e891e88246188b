/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages say, as both sides have it: the sender (far/rma.c) and the target, which
 * applies it (far/apply.c). Each begins with a struct weft_far_header. Data stand at the end. */
#ifndef WEFT_FAR_PROTOCOL_H
#define WEFT_FAR_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>
#include "job/space.h"
#include "far/endpoints.h"

enum weft_far_kind {
    WEFT_FAR_PUT,        /* data */
    WEFT_FAR_PUT_WORD,   /* struct weft_far_word, data */
    WEFT_FAR_PUT_BLOCKS, /* struct weft_far_blocks, data of one block after the other */
    WEFT_FAR_GET,        /* struct weft_far_blocks; the answer is their data */
    WEFT_FAR_AMO,        /* struct weft_far_amo_text; the answer is the word before, if wanted */
    WEFT_FAR_MEET,       /* data, for the exchange whose number is the offset of the place */
};

/* The last one is the library's own; the space is that of job/space.h. */
enum weft_far_window {
    WEFT_FAR_HEAP,
    WEFT_FAR_STATICS,
    WEFT_FAR_SPACE,
    WEFT_FAR_SCRATCH,
    WEFT_FAR_WINDOWS
};

/* A place in the memory of the PE whose slot it is: not an address, so that it can be checked. */
struct weft_far_place {
    uint32_t window, slot;
    uint64_t offset;
};

/* An object of the library's on `pe`, by its address here; ends the job where it is none. */
struct weft_far_place weft_far_place_of(const void *p, size_t bytes, int pe);

struct weft_far_header {
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

/* Blocks are packed into messages of at most this. */
#define WEFT_FAR_PACKED_BYTES 4096

/* A window as it is here; NULL: there is no such. */
static inline const struct weft_window *weft_far_window(uint32_t window) {
    switch (window) {
    case WEFT_FAR_HEAP:
        return &weft_windows.heap.window;
    case WEFT_FAR_STATICS:
        return &weft_windows.statics.window;
    case WEFT_FAR_SPACE:
        return weft_space_device ? weft_space_device->heap.window : NULL;
    case WEFT_FAR_SCRATCH:
        return &weft_windows.scratch.window;
    }
    return NULL;
}

/* How much of this PE's part of one others may name. Of the scratch all is there, and comes when it
 * is touched; it may have to be made accessible. */
static inline size_t weft_far_window_bytes(uint32_t window) {
    return window == WEFT_FAR_SCRATCH ? weft_windows.scratch.slot_bytes
                                      : weft_window_bytes(weft_far_window(window));
}

/* Who applies messages that name this place. Memory of GPUs is its PE's own affair. */
static inline int weft_far_end_of(const struct weft_far_place *place, int pe) {
    return place->window == WEFT_FAR_SPACE ? pe : weft_far_proxy(pe);
}

#endif
