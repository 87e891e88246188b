/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: the means by which the blocks of a team's collective kernels synchronise. Block b of a
 * member's kernel works with block b of the others', on channel b. Shared with kernels.
 *
 * Every member has in its GPU's memory, for each channel, the words below, and after them inboxes
 * for packets, which the others write:
 *
 *   words   [channel]: head, then ready[n], done[n], started[n]
 *   inbox   [channel][parity of the epoch][source][unit]      `slot_units` units of 16 bytes a slot
 *
 * A call is an epoch of each channel that it uses, counted in GPU memory so that captured graphs
 * can replay. Two slots are enough if every member receives something from every other in each
 * call: a member that has completed a call knows that all others have begun it, so they have
 * finished with the slot of the call before. Every call therefore sends at least one packet, or
 * word, from each member to each other on every channel that it uses. A slot belongs to its
 * channel, so calls with different numbers of blocks do not share slots. */
#ifndef WEFT_TRANSPORT_GPU_CHANNEL_H
#define WEFT_TRANSPORT_GPU_CHANNEL_H

#include <stdbool.h>
#include "weft/device/team.cuh"

enum {
    WEFT_GPU_CHANNELS = 64,
    WEFT_GPU_CHANNEL_THREADS = 512, /* most threads of a block */
};

/* Epochs and words that are compared by >= never wrap. Calls with packets have epochs of their own,
 * because only they ensure that no flag value recurs while it is in an inbox. */
struct weft_gpu_channel_head {
    uint64_t epoch;    /* of calls in which every member receives something from every other */
    uint64_t packets;  /* counts calls that send packets */
    uint64_t directed; /* counts broadcasts, which have inboxes of their own */
    uint64_t pad[13];
};

/* A kernel's argument, by value: the members' words, and their inboxes of one form. An index into
 * the arrays is a member. */
struct weft_gpu_channels {
    struct weft_array words, inbox;
    int me, n;
    uint32_t slot_units;
    uint32_t blocks_max; /* of a kernel, such that all of them run at once on every member's GPU */
};

/* The rows of words after a channel's head; word m of a row belongs to member m. */
enum weft_gpu_channel_row {
    WEFT_GPU_CHANNEL_READY,   /* the member's stream has reached the call */
    WEFT_GPU_CHANNEL_DONE,    /* all stores of the member's block are visible */
    WEFT_GPU_CHANNEL_STARTED, /* in broadcasts: the member's kernel has started (coll/ll.cu) */
    WEFT_GPU_CHANNEL_ROWS
};

WEFT_ADDR size_t weft_gpu_channel_bytes(int n) {
    size_t bytes =
        sizeof(struct weft_gpu_channel_head) + WEFT_GPU_CHANNEL_ROWS * (size_t)n * sizeof(uint64_t);
    return (bytes + 127) / 128 * 128;
}

/* Returns a member's head of a channel. */
WEFT_ADDR struct weft_gpu_channel_head *weft_gpu_channel_head(
    const struct weft_gpu_channels *channels, int member, uint32_t channel) {
    char *words = weft_array_at(&channels->words, member);
    return (struct weft_gpu_channel_head *)(words + channel * weft_gpu_channel_bytes(channels->n));
}

/* Returns a member's row of words of a channel. */
WEFT_ADDR uint64_t *weft_gpu_channel_row(const struct weft_gpu_channels *channels, int member,
                                         uint32_t channel, enum weft_gpu_channel_row row) {
    struct weft_gpu_channel_head *head = weft_gpu_channel_head(channels, member, channel);
    return (uint64_t *)(head + 1) + (size_t)row * (size_t)channels->n;
}

/* Returns the address to which `source` writes its units for a member, given the channel and the
 * epoch's parity. */
WEFT_ADDR char *weft_gpu_channel_slot(const struct weft_gpu_channels *channels, int member,
                                      uint32_t channel, uint32_t parity, int source) {
    size_t slot = ((size_t)channel * 2 + parity) * (size_t)channels->n + (size_t)source;
    return weft_array_at(&channels->inbox, member) + slot * channels->slot_units * 16;
}

/* Forms of inboxes. Different forms use different memory, because each has its own representation
 * of a unit that has not arrived. The words lie before the inbox of packets. */
enum weft_gpu_form {
    WEFT_FORM_LL, /* packets of calls in which every member receives something from every other */
    WEFT_FORM_DIRECTED, /* packets of other calls */
    WEFT_FORM_MARKED,   /* whole words; all bits set means not arrived */
    WEFT_FORMS
};

/* Returns the initial byte of a form's inbox. */
WEFT_ADDR int weft_gpu_form_fill(enum weft_gpu_form form) {
    return form == WEFT_FORM_MARKED ? 0xff : 0;
}

/* Returns the slots of a channel: one for each member and parity. Marked words have three slots for
 * each other member and no slot for this member (coll/marked.cuh). */
WEFT_ADDR uint32_t weft_gpu_channel_slots(enum weft_gpu_form form, int n) {
    return form == WEFT_FORM_MARKED && n > 1 ? 3 * ((uint32_t)n - 1) : 2 * (uint32_t)n;
}

/* Returns the units of a slot, a multiple of 128 bytes. Larger teams have smaller slots: the
 * inboxes of all forms together take 19 MiB for a team of four, little more for any other of up to
 * 128, and then grow. */
WEFT_ADDR uint32_t weft_gpu_slot_units(enum weft_gpu_form form, int n) {
    enum { KIB = 64 };
    uint32_t of_four = form == WEFT_FORM_LL         ? 8 * KIB
                       : form == WEFT_FORM_DIRECTED ? 4 * KIB
                                                    : 22 * KIB;
    uint32_t all = weft_gpu_channel_slots(form, 4) * of_four;
    uint32_t units = all / weft_gpu_channel_slots(form, n) / 8 * 8;
    return units > 8 ? units : 8;
}

WEFT_ADDR size_t weft_gpu_inbox_bytes(enum weft_gpu_form form, int n) {
    size_t slots = WEFT_GPU_CHANNELS * (size_t)weft_gpu_channel_slots(form, n);
    return slots * weft_gpu_slot_units(form, n) * 16;
}

/* Returns the bytes before a form's inbox. */
WEFT_ADDR size_t weft_gpu_form_words_bytes(enum weft_gpu_form form, int n) {
    return form == WEFT_FORM_LL ? WEFT_GPU_CHANNELS * weft_gpu_channel_bytes(n) : 0;
}

/* The arrays of a collective kernel, in blocks of `bytes`. The block for member m begins at
 * `source` + m * source_step, and the block from member m at `dest` + m * dest_step; a step is 0 if
 * the block is the same for all. A reduction folds the blocks of the members, in their order, into
 * `dest`. */
struct weft_gpu_collective {
    const char *source;
    char *dest;              /* of this member */
    struct weft_array dests; /* of all members, for kernels that write there */
    size_t bytes;
    size_t source_step, dest_step;
    bool ready; /* no member uses `dests` any more: kernels write without waiting for members */
    int root;   /* of a broadcast */
    int op, number, divisor; /* of a reduction, as in struct weft_fold_task */
};

#endif
