/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job asks of memory that is not the host's: a table of functions, which the room that has
 * such memory registers before the job comes up (device/space.c). All other rooms reach it through
 * this table alone, except for streams, so that a library without that room is whole.
 *
 * The table is there for good once it is registered; what is in it works as soon as the job runs,
 * and costs nothing where nobody has used such memory. */
#ifndef WEFT_JOB_SPACE_H
#define WEFT_JOB_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/amo.h"
#include "base/pad.h"
#include "base/signal.h"
#include "job/job.h"
#include "job/strided.h"
#include "job/window.h"

struct weft_arena;
struct weft_device_team; /* of shmemx.h */
struct weft_operations;
struct weft_share_space;
struct weft_team;

/* A symmetric heap: its objects, and their allocation, which is the arena's or begins and ends
 * with it. Collective over WORLD, with the barriers that the standard prescribes. */
struct weft_heap {
    const struct weft_window *window;
    struct weft_arena *arena;
    void *(*malloc)(struct weft_arena *arena, size_t bytes, size_t alignment, bool zero);
    void *(*realloc)(struct weft_arena *arena, void *p, size_t bytes);
    void (*free)(struct weft_arena *arena, void *p);
};

/* What a member asks of a handle that kernels work with a team by. */
struct weft_device_wish {
    uint32_t channels, slot_bytes;
    int error; /* not 0, with text: this member's arguments are wrong, and no member gets a handle
                */
};

/* What messages of far PEs do to this PE's memory of the space (far/apply.c): called under the
 * lock of messages, on any thread, and none waits. Addresses are this PE's own, and checked; what a
 * call points to is the caller's again on return. What a PE's messages begin is done in their
 * order, and complete when `settle` says so.
 *
 * 0; -EAGAIN: nothing has been begun, or not all has come, and the same call has to come again as
 * the next one of that PE; or another -errno, with text. */
struct weft_space_messages {
    int (*put)(int from, const struct weft_strided_copy *blocks);
    int (*signal)(int from, uint64_t *word, uint64_t signal, enum weft_signal_op op);

    /* *answer: all blocks, one behind the other; good until the next call. The word before comes
     * to amo->fetch, if that is not NULL. Without it -EAGAIN says that nothing has been begun. */
    int (*get)(int from, const struct weft_strided_copy *blocks, const void **answer);
    int (*amo)(int from, const struct weft_amo *amo);

    /* 0: all that messages of that PE have begun is complete, for all PEs and GPUs. Cheap. */
    int (*settle)(int from);
};

struct weft_memory_space {
    /* --- The life of a job; local --- */

    /* The host heap has been committed further, on all PEs: devices come to reach what is new. */
    void (*grown)(void);

    /* Waits for all work of this process on its devices, also the program's own: before the PEs
     * part, because peers may still wait for some of it, and it may need this PE's memory. */
    void (*finish)(void);

    /* Gives everything back, while the host's memory is still mapped: devices know it. */
    void (*close)(void);

    /* A team ends, and what devices know of it: before the members part, and behind that. */
    void (*team_ended)(const struct weft_team *team);
    void (*team_parted)(void);

    /* Where this PE's device finds the copy of `pe` of any symmetric object; NULL: nowhere. */
    void *(*pointer)(const void *p, int pe);

    /* Signal pads, in the order of a stream: 0 or -errno with text. */
    int (*pad)(enum weft_pad_op op, const struct weft_pad *pad, int peer, void *stream);

    /* Handles, as shmemx_device_team has them: 0 or -errno with text. Collective over the team, and
     * over the members that it had; local. */
    int (*device_team)(struct weft_device_team *handle, const struct weft_team *team,
                       const struct weft_device_wish *wish);
    int (*device_team_free)(struct weft_device_team *handle);
    int (*device_team_address)(const struct weft_device_team *handle,
                               const struct weft_device_team **address);

    /* --- What has a table of its own --- */

    struct weft_heap heap;
    const struct weft_operations *operations; /* put, get, atomics: core/dispatch.h */
    const struct weft_share_space *share; /* memory that only some PEs share: core/share_space.h */
    const struct weft_space_messages *messages;
};

/* That of GPUs; NULL: the library has none. */
extern const struct weft_memory_space *weft_space_device;

/* -ENOSYS with text: the call wants memory of GPUs, or their work, and there is no such table. */
int weft_space_missing(void);

/* Whether p is an address of this PE's part of its heap. Two compares. */
static inline bool weft_space_holds(const void *p) {
    return weft_space_device && weft_window_holds(weft_space_device->heap.window, p, 1);
}

#endif
