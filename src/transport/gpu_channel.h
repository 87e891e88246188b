/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: what the blocks of a collective kernel synchronise by, of a team. Block b of a member's
 * kernel works with block b of the others', by channel b. Shared with kernels.
 *
 * Every member has in its GPU's memory, for each channel, the words below, and behind them inboxes
 * of packets, which the others write:
 *
 *   words   [channel]: head, then ready[n], done[n], started[n]
 *   inbox   [channel][parity of the epoch][source][unit]      `slot_units` units of 16 bytes a slot
 *
 * A call is an epoch of each channel that it uses, counted in GPU memory so that captured graphs
 * replay. Two slots are enough where everybody hears of everybody in every call: who has completed
 * a call knows that all have begun it, and so have done with the slot of the one before. Every
 * call therefore sends at least one packet, or word, from each member to each on every channel that
 * it uses. A slot belongs to its channel: calls with other numbers of blocks do not meet in it. */
#ifndef WEFT_TRANSPORT_GPU_CHANNEL_H
#define WEFT_TRANSPORT_GPU_CHANNEL_H

#include "weft/device/team.cuh"

enum {
    WEFT_GPU_CHANNELS = 64,
    WEFT_GPU_CHANNEL_THREADS = 512, /* of a block, at most */
};

/* Epochs and words that are compared by >= never wrap. Packets have epochs of their own, because
 * only their calls see to it that no flag comes round while it lies in an inbox. */
struct weft_gpu_channel_head {
    uint64_t epoch;    /* of calls in which everybody hears of everybody */
    uint64_t packets;  /* of those that send packets */
    uint64_t directed; /* of the others, broadcasts: these have inboxes of their own */
    uint64_t pad[13];
};

/* What a kernel gets, by value: the members' words and inboxes of one form, in places that are the
 * members. */
struct weft_gpu_channels {
    struct weft_array words, inbox;
    int me, n;
    uint32_t slot_units;
    uint32_t blocks_max; /* of a kernel: all of them run at once, on every member's GPU */
};

/* Words of a channel behind its head: those of member m are number m. */
enum weft_gpu_channel_row {
    WEFT_GPU_CHANNEL_READY,
    WEFT_GPU_CHANNEL_DONE,
    WEFT_GPU_CHANNEL_STARTED,
    WEFT_GPU_CHANNEL_ROWS
};

WEFT_ADDR size_t weft_gpu_channel_bytes(int n) {
    size_t bytes =
        sizeof(struct weft_gpu_channel_head) + WEFT_GPU_CHANNEL_ROWS * (size_t)n * sizeof(uint64_t);
    return (bytes + 127) / 128 * 128;
}

/* A member's head of a channel. */
WEFT_ADDR struct weft_gpu_channel_head *weft_gpu_channel_head(
    const struct weft_gpu_channels *channels, int member, uint32_t channel) {
    char *words = weft_array_at(&channels->words, member);
    return (struct weft_gpu_channel_head *)(words + channel * weft_gpu_channel_bytes(channels->n));
}

/* A member's row of words of a channel. */
WEFT_ADDR uint64_t *weft_gpu_channel_row(const struct weft_gpu_channels *channels, int member,
                                         uint32_t channel, enum weft_gpu_channel_row row) {
    struct weft_gpu_channel_head *head = weft_gpu_channel_head(channels, member, channel);
    return (uint64_t *)(head + 1) + (size_t)row * (size_t)channels->n;
}

/* Where `source` writes its units for a member, of a channel and the epoch's parity. */
WEFT_ADDR char *weft_gpu_channel_slot(const struct weft_gpu_channels *channels, int member,
                                      uint32_t channel, uint32_t parity, int source) {
    size_t slot = ((size_t)channel * 2 + parity) * (size_t)channels->n + (size_t)source;
    return weft_array_at(&channels->inbox, member) + slot * channels->slot_units * 16;
}

/* Inboxes of different forms are different memory, because each form has its own word for a unit
 * that has not come. The words lie in front of the inbox of packets. */
enum weft_gpu_form {
    WEFT_FORM_LL,       /* packets of calls in which everybody hears of everybody */
    WEFT_FORM_DIRECTED, /* packets of the others */
    WEFT_FORM_MARKED,   /* whole words; all bits set: it has not come */
    WEFT_FORMS
};

/* What a form's inbox is filled with at the start. */
WEFT_ADDR int weft_gpu_form_fill(enum weft_gpu_form form) {
    return form == WEFT_FORM_MARKED ? 0xff : 0;
}

/* Slots of a channel: one for each member and parity. Marked words have them of the other members
 * alone, and a third of each (coll/marked.cuh). */
WEFT_ADDR uint32_t weft_gpu_channel_slots(enum weft_gpu_form form, int n) {
    return form == WEFT_FORM_MARKED && n > 1 ? 3 * ((uint32_t)n - 1) : 2 * (uint32_t)n;
}

/* Units of a slot, whole lines of 128 bytes. Slots of larger teams are smaller: the inboxes of all
 * forms together take 19 MiB of a team of four, and little more of any other. */
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

/* Bytes in front of a form's inbox. */
WEFT_ADDR size_t weft_gpu_form_words_bytes(enum weft_gpu_form form, int n) {
    return form == WEFT_FORM_LL ? WEFT_GPU_CHANNELS * weft_gpu_channel_bytes(n) : 0;
}

/* Bytes of a form of a team of n members, on each of them. */
WEFT_ADDR size_t weft_gpu_form_bytes(enum weft_gpu_form form, int n) {
    return weft_gpu_form_words_bytes(form, n) + weft_gpu_inbox_bytes(form, n);
}

/* What a collective kernel does with arrays. Blocks of `bytes`: the one for member m lies m *
 * source_step behind `source`, and what member m sends lies m * dest_step behind `dest`; steps are
 * 0 where the block is the same for all. A reduction folds what the members send, in their order,
 * into `dest`. */
struct weft_gpu_collective {
    const char *source;
    char *dest;              /* this member's */
    struct weft_array dests; /* all members', for kernels that write there */
    size_t bytes;
    size_t source_step, dest_step;
    int root;                /* of a broadcast */
    int op, number, divisor; /* of a reduction, as struct weft_fold_task has them */
};

#endif
