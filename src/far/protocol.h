/* SPDX-License-Identifier: BSD-3-Clause */
/* The format of payloads, as the sender (far/rma.c) writes and the target (far/apply.c) reads it. A
 * put that is sent by TCP without a bundle consists of:
 *
 *     length    | struct head  | struct weft_far_header | operands | data | padding
 *     tcp/end.h | far/bundle.h |                    this file             | tcp/end.h
 */
#ifndef WEFT_FAR_PROTOCOL_H
#define WEFT_FAR_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>
#include "job/space.h"
#include "far/endpoints.h"

enum weft_far_kind {
    WEFT_FAR_PUT,        /* data */
    WEFT_FAR_PUT_WORD,   /* struct weft_far_word, data */
    WEFT_FAR_PUT_BLOCKS, /* struct weft_far_blocks, then the blocks back to back */
    WEFT_FAR_GET,        /* struct weft_far_blocks; the answer is the blocks back to back */
    WEFT_FAR_AMO,        /* struct weft_far_amo_operands; the answer, if wanted, is the old value */
};

/* WEFT_FAR_DEVICE is the heap in GPU memory (job/space.h). WEFT_FAR_SCRATCH comes last: public
 * calls may not name it. All windows have the same slots. */
enum weft_far_window {
    WEFT_FAR_HEAP,
    WEFT_FAR_STATICS,
    WEFT_FAR_DEVICE,
    WEFT_FAR_SCRATCH,
    WEFT_FAR_WINDOWS
};

/* A place in a PE's memory: an offset in the PE's slot, not an address, so that the target can
 * check it. */
struct weft_far_place {
    uint32_t window, slot;
    uint64_t offset;
};

/* Returns the place of one of the library's objects on `pe`, given its address here. Ends the job
 * if [p, p + bytes) is not symmetric. */
struct weft_far_place weft_far_place_of(const void *p, size_t bytes, int pe);

struct weft_far_header {
    uint32_t kind, detail; /* detail: the operation on a word */
    struct weft_far_place place;
};

/* How a put changes a word after its data. */
enum weft_far_word_op {
    WEFT_FAR_WORD /* sets a struct weft_word */,
    WEFT_FAR_SIGNAL_SET,
    WEFT_FAR_SIGNAL_ADD
};

struct weft_far_word {
    struct weft_far_place place;
    uint64_t value;
};

/* `count` blocks of `bytes` each, which begin `step` bytes apart. */
struct weft_far_blocks {
    int64_t step;
    uint64_t bytes, count;
};

/* The detail of an atomic: its operation, the bytes of the word, and these flags. */
#define WEFT_FAR_AMO_BYTES_SHIFT 8
#define WEFT_FAR_AMO_FETCHES     0x10000u
#define WEFT_FAR_AMO_WAKES       0x20000u
struct weft_far_amo_operands {
    uint64_t value, cond;
};

/* The largest payload into which several blocks are packed. */
#define WEFT_FAR_PACKED_BYTES 4096

/* Returns this PE's window of that number, or NULL if there is none. */
static inline const struct weft_window *weft_far_window(uint32_t window) {
    switch (window) {
    case WEFT_FAR_HEAP:
        return &weft_windows.heap.window;
    case WEFT_FAR_STATICS:
        return &weft_windows.statics.window;
    case WEFT_FAR_DEVICE:
        return weft_space_device ? weft_space_device->heap.window : NULL;
    case WEFT_FAR_SCRATCH:
        return &weft_windows.scratch.window;
    }
    return NULL;
}

/* Returns the number of bytes of this PE's slot that other PEs may access. For the scratch it is
 * the whole slot: its pages are allocated when touched, but may have to be made accessible first.
 */
static inline size_t weft_far_window_bytes(uint32_t window) {
    return window == WEFT_FAR_SCRATCH ? weft_windows.scratch.slot_bytes
                                      : weft_window_bytes(weft_far_window(window));
}

/* Returns the PE whose process applies messages for this place: a PE applies those for its GPU
 * memory itself. */
static inline int weft_far_receiver(const struct weft_far_place *place, int pe) {
    return place->window == WEFT_FAR_DEVICE ? pe : weft_far_proxy(pe);
}

#endif
