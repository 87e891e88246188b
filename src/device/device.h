/* SPDX-License-Identifier: BSD-3-Clause */
/* The device heap: symmetric memory on the PEs' GPUs (shmemx_malloc), and the words that GPUs
 * synchronise teams with.
 *
 * It is brought up, on all PEs together, by the first call that needs it; weft_job.detour is set
 * from then on, and calls look whether their pointers are a GPU's. Like the host heap it grows in
 * extents that all PEs commit or none, and every PE runs the same allocator on the same calls. */
#ifndef WEFT_DEVICE_DEVICE_H
#define WEFT_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/sync.h"
#include "transport/gpu_agent.h"
#include "transport/gpu_copy.h"
#include "transport/gpu_window.h"
#include "transport/gpu_word.h"

struct weft_device {
    bool open;
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

/* Opens this PE's GPU, as SHMEMX_DEVICE says, unless it is open: it reaches the host heap and the
 * statics of all PEs then. Local, by any thread; 0 or -errno with text. Every entry that needs a
 * GPU begins with it, before weft_gpu_enter. */
int weft_device_begin(const char *call);

/* Fills in weft_gpu what can be known of this PE's GPU before it is opened. Local. */
int weft_device_inspect(const char *call);

/* Brings the GPUs of all PEs up, once a job. Collective over WORLD; the same result on all, with
 * text. Every pair of PEs has been tried with data then. Where that fails, what weft_device_begin
 * has opened stays open. */
int weft_device_open(const char *call);
void weft_device_close(void);

/* Waits for all work of this process on its GPU, also on the program's streams: before the PEs
 * part, because peers may still wait for some of it, and it may need this PE's memory and theirs.
 */
void weft_device_finish(void);

/* As weft_heap_malloc and so on, over the device heap. Collective over WORLD. */
void *weft_device_malloc(size_t bytes, size_t alignment, bool zero, const char *call);
void *weft_device_realloc(void *p, size_t bytes, const char *call);
void weft_device_free(void *p, const char *call);

/* Whether p is an address of this PE's part of the device heap. Two compares. */
static inline bool weft_device_holds(const void *p) {
    return weft_window_holds(&weft_device.heap.window, p, 1);
}

/* Whether a copy is staged whose symmetric side is at p, of pe's. */
static inline bool weft_device_stages(const void *p, int pe) {
    return weft_device.staged && weft_device_holds(p) && weft_device_staged(pe);
}

/* The GPU of `pe`, which this process sees, as an agent; opened if need be. NULL with text. */
const struct weft_gpu_agent *weft_device_agent(int pe, const char *call);

/* As weft_heap_check and weft_heap_find. */
void weft_device_check(const void *p, const char *call);
bool weft_device_find(const void *p, void **begin, size_t *bytes);

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

/* The words that GPUs synchronise teams with, reset and in place: in GPU memory, or in memory of
 * the host where some GPUs do not reach each other's. Collective over WORLD; `agree` as in
 * device/links.h. */
int weft_device_words_open(int (*agree)(const void *call, int own), const char *call);
void weft_device_words_close(void);

/* Finds out by trying which GPUs that are hidden here this PE's GPU has atomics on. Collective over
 * WORLD, with its words 0, as they are again behind it. */
int weft_device_try_atomics(int (*agree)(const void *call, int own), const char *call);

/* The words that the members of a team meet with. The first call of a team that is a list shows its
 * GPU the list. Local; 0 or -errno with text; between weft_gpu_enter and _leave. */
int weft_device_words(struct weft_array *words, const struct weft_team *team, const char *call);

/* Memory of the host of a team's members, whole pages that the GPUs of all of them reach: what
 * passes through where GPUs do not reach each other's memory (weft_device.staged). The first call
 * of a team registers it. As weft_device_words. */
struct weft_device_area {
    struct weft_array all;
    size_t bytes;
};
int weft_device_area(struct weft_device_area *area, const struct weft_team *team, const char *call);

/* The team ends: its words are 0 again for the next one in its slot. Before the members part;
 * their streams have done with it. Local; nothing where there is no device. */
void weft_device_words_reset(const struct weft_team *team, const char *call);

/* One more extent of `bytes` of a window on every PE, or on none. Collective over WORLD. */
int weft_device_extend(struct weft_gpu_window *window, size_t bytes, const char *call);

/* Clears at once, on the stream of host calls. A failure ends the job. */
void weft_device_clear(void *p, size_t bytes, const char *call);

/* The books of the device heap, whose addresses have been reserved. */
int weft_device_heap_open(const char *call);
void weft_device_heap_close(void);

/* The host heap has been committed up to here, on all PEs: a GPU that is open comes to reach it. */
void weft_device_heap_grown(const char *call);

/* Registers with the GPU what of the host heap is new; the statics, once; and takes all that back.
 * By one thread at a time, with the GPU open. */
void weft_device_register_heap(const char *call);
void weft_device_register_statics(void);
void weft_device_unregister_all(void);

#endif
