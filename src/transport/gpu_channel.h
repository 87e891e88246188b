/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: what the blocks of a collective kernel synchronise by, of a team. Block b of a member's
 * kernel works with block b of the others', by channel b. Shared with kernels.
 *
 * Every member has in its GPU's memory, for each channel, the words below, and behind them inboxes
 * of packets, which the others write:
 *
 *   words   [channel]: head, then ready[n], done[n], started[n]
 *   inbox   [channel][parity of the epoch][source][unit]      units of 16 bytes, `slot_units` a
 * slot
 *
 * A call is an epoch of each channel that it uses, counted in GPU memory so that captured graphs
 * replay. Two slots are enough where everybody hears of everybody in every call: who has completed
 * a call knows that all have begun it, and so have done with the slot of the one before. Every
 * call therefore sends at least one packet, or word, from each member to each on every channel that
 * it uses. A slot belongs to its channel: calls with other numbers of blocks do not meet in it. */
#ifndef WEFT_TRANSPORT_GPU_CHANNEL_H
#define WEFT_TRANSPORT_GPU_CHANNEL_H

#include "weft/addr.h"

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

/* The next epoch. Packets carry the low half, which is never 0, as in an empty slot; parities
 * alternate. */
WEFT_ADDR uint64_t weft_gpu_epoch_after(uint64_t epoch) {
    return (uint32_t)(epoch + 1) == 0 ? epoch + 3 : epoch + 1;
}

/* Whether this epoch is the last of its parity before the low half comes round: a kernel that
 * receives packets then zeroes its inbox of this parity behind them, so that none in it has the
 * flag of a later call. Nobody writes there before this member has begun its next call. */
WEFT_ADDR int weft_gpu_epoch_is_last(uint64_t epoch) {
    return (uint32_t)epoch >= 0xfffffffeu;
}

/* What a kernel gets, by value: the members' words and inboxes of one form, in places that are the
 * members. */
struct weft_gpu_channels {
    struct weft_array words, inbox;
    int me, n;
    uint32_t slot_units;
};

/* Words of a channel behind its head: those of member m are number m. */
enum weft_gpu_channel_row {
    WEFT_GPU_CHANNEL_READY,
    WEFT_GPU_CHANNEL_DONE,
    WEFT_GPU_CHANNEL_STARTED
};

WEFT_ADDR size_t weft_gpu_channel_bytes(int n) {
    size_t bytes = sizeof(struct weft_gpu_channel_head) + 3 * (size_t)n * sizeof(uint64_t);
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

/* Bytes of an inbox of so many channels. */
WEFT_ADDR size_t weft_gpu_inbox_bytes(int n, uint32_t channels, uint32_t slot_units) {
    return (size_t)channels * 2 * (size_t)n * slot_units * 16;
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
