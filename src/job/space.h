/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is not the host's: a table of functions. The room that manages such memory registers
 * the table before the job starts (device/space.c). All other rooms reach that memory through this
 * table only, except for streams, so the library is complete without that room.
 *
 * A registered table stays for good. Its functions work while the job runs and cost nothing if the
 * program does not use such memory. */
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
struct weft_device_team; /* declared in shmemx.h */
struct weft_operations;
struct weft_share_space;
struct weft_team;

/* A symmetric heap: its window, and the functions that allocate from it. They are collective over
 * WORLD, with the barriers that the standard prescribes. */
struct weft_heap {
    const struct weft_window *window;
    struct weft_arena *arena;
    void *(*malloc)(struct weft_arena *arena, size_t bytes, size_t alignment, bool zero);
    void *(*realloc)(struct weft_arena *arena, void *p, size_t bytes);
    void (*free)(struct weft_arena *arena, void *p);
};

/* The request of one member for a handle by which kernels use a team. */
struct weft_device_wish {
    uint32_t channels, slot_bytes;
    int error; /* not 0, with text, if this member's arguments are wrong: no member succeeds */
};

/* The functions by which messages from far PEs access this PE's memory of the space (far/apply.c).
 * They are called on any thread, under the lock of messages, and do not block. Addresses are this
 * PE's own and have been checked. The caller owns everything that its arguments point to again on
 * return. Operations of one PE's messages take effect in their order and are complete once `settle`
 * returns 0.
 *
 * The functions return 0, another -errno with text, or -EAGAIN: nothing has begun, or some data is
 * still missing, and the next call for that PE must repeat this one. */
struct weft_space_messages {
    int (*put)(int from, const struct weft_strided_copy *blocks);
    int (*signal)(int from, uint64_t *word, uint64_t signal, enum weft_signal_op op);

    /* *answer receives all blocks back to back, valid until the next call. amo->fetch receives the
     * word's old value unless it is NULL. If amo->fetch is NULL, -EAGAIN means that nothing has
     * begun. */
    int (*get)(int from, const struct weft_strided_copy *blocks, const void **answer);
    int (*amo)(int from, const struct weft_amo *amo);

    /* Returns 0 once all operations that messages of that PE have begun are complete for all PEs
     * and GPUs. Cheap. */
    int (*settle)(int from);
};

struct weft_memory_space {
    /* --- The life of a job; local, except team_ended --- */

    /* The host heap has grown on all PEs: makes the new part accessible to devices. */
    void (*grown)(void);

    /* Waits for all work of this process on its devices, the program's own included. Called before
     * the PEs part: peers may still wait for that work, and it may need this PE's memory. */
    void (*finish)(void);

    /* Frees everything. Called while the host's memory, which devices have registered, is still
     * mapped. */
    void (*close)(void);

    /* A team ends: team_ended, collective over the team if it has far members, is called before its
     * members part, team_parted afterwards. */
    void (*team_ended)(const struct weft_team *team);
    void (*team_parted)(void);

    /* Returns the address at which this PE's device reaches pe's copy of a symmetric object, or
     * NULL if it cannot. */
    void *(*pointer)(const void *p, int pe);

    /* Performs an operation on a signal pad in the order of a stream. Returns 0 or -errno with
     * text. */
    int (*pad)(enum weft_pad_op op, const struct weft_pad *pad, int peer, void *stream);

    /* Handles as defined by shmemx_device_team. Each returns 0 or -errno with text. device_team is
     * collective over the team, device_team_free over the members that it had; device_team_address
     * is local. */
    int (*device_team)(struct weft_device_team *handle, const struct weft_team *team,
                       const struct weft_device_wish *wish);
    int (*device_team_free)(struct weft_device_team *handle);
    int (*device_team_address)(const struct weft_device_team *handle,
                               const struct weft_device_team **address);

    /* --- Parts that have a table of their own --- */

    struct weft_heap heap;
    const struct weft_operations *operations; /* put, get, atomics */
    const struct weft_share_space *share; /* memory that only some PEs share: core/share_space.h */
    const struct weft_space_messages *messages;
};

/* The table for GPU memory, or NULL if the library was built without it. */
extern const struct weft_memory_space *weft_space_device;

/* Returns -ENOSYS with text: the call needs GPU memory or GPU work, and there is no such table. */
int weft_space_missing(void);

/* Returns whether p lies in this PE's slot of the space's heap. Takes two comparisons. */
static inline bool weft_space_holds(const void *p) {
    return weft_space_device && weft_window_holds(weft_space_device->heap.window, p, 1);
}

#endif
