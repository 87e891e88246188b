/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs of a job as this PE has them: its own, the others', and where memory of theirs lies.
 *
 * They are brought up, on all PEs together, by the first call that needs it (device/open.h);
 * weft_job.devices is set from then on, and calls look whether their pointers are a GPU's.
 *
 * This header brings what all files of this room stand on: the job with its log, teams, and memory
 * of GPUs. */
#ifndef WEFT_DEVICE_DEVICE_H
#define WEFT_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "transport/gpu_agent.h"
#include "transport/gpu_copy.h"
#include "transport/gpu_memory.h"
#include "transport/gpu_window.h"
#include "transport/gpu_word.h"
#include "core/job.h"
#include "core/team.h"

struct weft_device {
    bool open;
    struct weft_gpu *gpu;         /* this PE's; NULL: not open yet (device/begin.h) */
    bool staged;                  /* the GPUs of some PEs do not reach each other's memory */
    struct weft_gpu_window heap;  /* SHMEMX_SPACE_DEVICE */
    struct weft_gpu_window words; /* WEFT_TEAMS_MAX times struct weft_gpu_team_words */
    struct weft_gpu_peer *peers;  /* of each PE of the job */
    int neighbours;               /* PEs on this PE's GPU, itself among them */
};
extern struct weft_device weft_device;

/* Whether this PE's GPU does not reach the memory of pe's, which then has to work for this process
 * (device/stage.h). Only with GPUs up. */
static inline bool weft_device_staged(int pe) {
    return weft_device.staged && weft_gpu_peer_staged(&weft_device.peers[pe]);
}

/* Whether this PE's GPU itself changes words in the memory of pe's: with `modify` reading, changing
 * and writing them back in one, else only writing. Where it does not, that GPU has to. */
static inline bool weft_device_changes(int pe, bool modify) {
    return !weft_device_staged(pe) && (!modify || weft_device.peers[pe].atomics);
}

/* Waits for all work of this process on its GPU, also on the program's streams: before the PEs
 * part, because peers may still wait for some of it, and it may need this PE's memory and theirs.
 */
void weft_device_finish(void);

/* Whether p is an address of this PE's part of the device heap. Two compares. */
static inline bool weft_device_holds(const void *p) {
    return weft_window_holds(&weft_device.heap.window, p, 1);
}

/* Whether a copy is staged whose symmetric side is at p, of pe's. */
static inline bool weft_device_stages(const void *p, int pe) {
    return weft_device.staged && weft_device_holds(p) && weft_device_staged(pe);
}

/* The GPU of `pe`, which this process sees, as an agent; opened if need be. NULL with text. */
const struct weft_gpu_agent *weft_device_agent(int pe);

/* Where `pe` keeps its copy of the symmetric [p, p + bytes) - of the device heap, the host heap or
 * the statics - for this PE's GPU and its copy engines, or, of the device heap of a PE that is
 * staged, for that PE's GPU alone; NULL as weft_near. */
void *weft_device_near(const void *p, size_t bytes, int pe);

/* Where kernels of this PE's GPU find it: GPU memory that is mapped for that GPU, or memory of the
 * host that is registered. NULL: nowhere. */
void *weft_device_pointer(const void *p, int pe);

/* Whether a copy between this local address and a symmetric one has a GPU's memory on either side:
 * then it is the GPU's work. */
bool weft_device_concerns(const void *symmetric, const void *local);

/* Which way a copy goes between addresses as weft_device_near gives them; `pe` is the other side.
 */
enum weft_direction weft_device_direction(const void *to, const void *from, int pe);

/* Clears at once, on the stream of host calls. A failure ends the job. */
void weft_device_clear(void *p, size_t bytes);

#endif
