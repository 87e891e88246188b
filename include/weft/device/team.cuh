/* SPDX-License-Identifier: BSD-3-Clause */
/* A team as kernels see it: its members, the addresses of their memory, and the handle's own words
 * and packets. shmemx_device_team() fills the struct. A kernel takes it by value, as const
 * __grid_constant__, or by an address in GPU memory.
 *
 * This file is plain C and C++ for the host, too, which uses the same functions to lay the words
 * out:
 *
 *   words   head of the handle, then [channel]: head, arrived[n], synced[n]
 *   inbox   [channel][parity of the epoch][source][unit]      packets of 16 bytes
 *
 * On a channel a block of each member synchronises with the blocks of the others. Two handles share
 * neither words nor inboxes. */
#ifndef WEFT_DEVICE_TEAM_CUH
#define WEFT_DEVICE_TEAM_CUH

#include "weft/addr.h"

enum { WEFT_DEVICE_VERSION = 1 };

enum {
    WEFT_DEVICE_CHANNELS_MAX = 1024,
    WEFT_DEVICE_SLOT_BYTES_MAX = 1 << 20, /* a multiple of 16; 0: no packets */
};

/* Flags: the links between all members have atomics; the links are NVLink. */
enum { WEFT_DEVICE_ATOMICS = 1, WEFT_DEVICE_NVLINK = 2 };

/* Members are named by their rank in the team. */
typedef struct weft_device_team {
    uint32_t version, generation;  /* of this struct; of this handle's words, never 0 */
    int32_t me, n;                 /* this member; members */
    int32_t pe;                    /* this PE in the world */
    uint32_t my_place;             /* its place in the heap's window */
    ptrdiff_t stride;              /* bytes from a place of the device heap to the next */
    const uint16_t *places;        /* of members; NULL: member m is place m */
    uintptr_t heap;                /* this PE's part of the device heap, where objects lie, */
    size_t heap_bytes;             /* and its largest possible size */
    char *words, *inbox;           /* this member's words and inbox */
    ptrdiff_t share_stride;        /* from a member's words, or inbox, to the next member's */
    uint32_t channels, slot_bytes; /* bytes of packets from a member in one call on a channel */
    const uint32_t *abort;         /* not 0: the job is over; NULL: no such word */
    uint32_t *gave_up;             /* words that kernels write for the host: enum weft_device_word
                                    */
    uint32_t rest_ns;              /* pause of waits between two polls, from the first one on */
    uint32_t flags;
    uint32_t neighbours;  /* members on this GPU, this one included */
    uint32_t reserved[3]; /* 0 */
} weft_device_team;

#ifdef __cplusplus
static_assert(sizeof(weft_device_team) == 128, "kernels are compiled against these 128 bytes");
#else
_Static_assert(sizeof(weft_device_team) == 128, "kernels are compiled against these 128 bytes");
#endif

/* Words of `gave_up`. A fault is stored after its detail, and ends the job. */
enum weft_device_word {
    WEFT_DEVICE_GAVE_UP = 0, /* 1: a wait has ended before its condition held */
    WEFT_DEVICE_FAULT = 4,
    WEFT_DEVICE_FAULT_DETAIL = 5,
};
enum weft_device_fault {
    WEFT_DEVICE_FAULT_STALE = 3, /* a kernel used a freed handle; detail: its generation */
    WEFT_DEVICE_FAULT_ABORT = 4, /* weft_abort; detail: the status */
};

/* The values of SHMEM_SIGNAL_* and SHMEM_CMP_*. */
enum weft_signal_op { WEFT_SIGNAL_SET = 1, WEFT_SIGNAL_ADD = 2 };
enum weft_cmp {
    WEFT_CMP_EQ = 1,
    WEFT_CMP_NE,
    WEFT_CMP_GT,
    WEFT_CMP_GE,
    WEFT_CMP_LT,
    WEFT_CMP_LE,
};

/* The end of the job and the pauses, for a wait. */
struct weft_gpu_abort {
    const uint32_t *word; /* not 0: the job is over. Registered host memory, or NULL */
    uint32_t *gave_up;    /* set to 1 if the kernel gives up */
    uint32_t rest_ns;     /* pause between two polls, from the first one on; 0: no pause for 20 us
                           */
};

/* --- Objects of the device heap --------------------------------------------------------------- */

/* Returns, in kernels, the address of member m's copy of the object at `p`, which lies in the
 * device heap (shmemx_malloc() with SHMEMX_SPACE_DEVICE). Loads and stores there work as for own
 * memory. */
WEFT_ADDR void *weft_at(const weft_device_team *t, const void *p, int m) {
    int place = t->places ? (int)t->places[m] : m;
    return (char *)(uintptr_t)p + (place - (int)t->my_place) * t->stride;
}

/* --- Words and packets of a handle ------------------------------------------------------------ */

/* The words before all channels. `arrived` counts the blocks of this member's grid that have
 * reached a barrier of grids, `epoch` these barriers. */
struct weft_device_head {
    uint32_t generation; /* of the handle that the words belong to; 0 after it is freed */
    uint32_t pad0;
    uint64_t arrived, epoch;
    uint64_t pad[13];
};

/* The head of a channel's words: its epochs, which count barriers, syncs and packet calls. */
struct weft_device_channel {
    uint64_t barriers, syncs, packets;
    uint64_t pad[13];
};

WEFT_ADDR uint32_t weft_device_channel_bytes(int n) {
    uint32_t bytes = (uint32_t)(sizeof(struct weft_device_channel) + 2 * sizeof(uint64_t) * n);
    return (bytes + 127) / 128 * 128;
}

/* Return the bytes of the words and of the inbox of each of n members. */
WEFT_ADDR size_t weft_device_words_bytes(int n, uint32_t channels) {
    return sizeof(struct weft_device_head) + (size_t)channels * weft_device_channel_bytes(n);
}
WEFT_ADDR size_t weft_device_inbox_bytes(int n, uint32_t channels, uint32_t slot_bytes) {
    return (size_t)channels * 2 * (size_t)n * slot_bytes;
}

/* Return member m's head of the handle, and its words of a channel. */
WEFT_ADDR struct weft_device_head *weft_device_head_of(const weft_device_team *t, int m) {
    return (struct weft_device_head *)(t->words + (m - t->me) * t->share_stride);
}
WEFT_ADDR struct weft_device_channel *weft_device_channel_of(const weft_device_team *t,
                                                             uint32_t channel, int m) {
    char *channels = (char *)(weft_device_head_of(t, m) + 1);
    return (struct weft_device_channel *)(channels +
                                          (size_t)channel * weft_device_channel_bytes(t->n));
}
WEFT_ADDR uint64_t *weft_device_arrived(const weft_device_team *t, uint32_t channel, int m) {
    return (uint64_t *)(weft_device_channel_of(t, channel, m) + 1);
}
WEFT_ADDR uint64_t *weft_device_synced(const weft_device_team *t, uint32_t channel, int m) {
    return weft_device_arrived(t, channel, m) + t->n;
}

/* Returns the address where `source` writes its packets for member m in a channel's calls of a
 * parity. */
WEFT_ADDR char *weft_device_slot(const weft_device_team *t, uint32_t channel, uint32_t parity,
                                 int source, int m) {
    uint32_t slot = (channel * 2 + parity) * (uint32_t)t->n + (uint32_t)source;
    return t->inbox + (m - t->me) * t->share_stride + (size_t)slot * t->slot_bytes;
}

/* --- Epochs ----------------------------------------------------------------------------------- */

/* Returns the next epoch. Packets carry the low half, which is never 0, as in an empty slot;
 * parities alternate. */
WEFT_ADDR uint64_t weft_gpu_epoch_after(uint64_t epoch) {
    return (uint32_t)(epoch + 1) == 0 ? epoch + 3 : epoch + 1;
}

/* Returns 1 if this epoch is the last of its parity before the low half wraps around. A kernel that
 * receives packets then zeroes its inbox of this parity after them, so that no old packet has the
 * flag of a later call. No member writes there before this member has begun its next call. */
WEFT_ADDR int weft_gpu_epoch_is_last(uint64_t epoch) {
    return (uint32_t)epoch >= 0xfffffffeu;
}

/* Returns the member `distance` places after `member`; distance is at most n. A member that sends
 * to all begins with the next one, so that no two members write to the same member at a time. */
WEFT_ADDR int weft_gpu_member_after(int member, int n, int distance) {
    int after = member + distance;
    return after < n ? after : after - n;
}

#endif
