/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs of a job as seen by this PE: its own, those of the others, and the addresses of their
 * memory. This header is the index of the room, by the file that defines each thing, from the
 * ground up. The calls in the order of a stream are declared in device/stream.h and device/slice.h.
 *
 * The GPUs are brought up, on all PEs together, by the first call that needs it (weft_device_open).
 * From then on weft_job.devices is set, and calls check whether their pointers belong to a GPU. */
#ifndef WEFT_DEVICE_DEVICE_H
#define WEFT_DEVICE_DEVICE_H

#include "transport/gpu_channel.h"
#include "transport/gpu_copy.h"
#include "transport/gpu_lane.h"
#include "transport/gpu_memory.h"
#include "transport/gpu_window.h"
#include "transport/gpu_word.h"
#include "core/rma.h"
#include "core/team.h"

struct weft_device_team;
struct weft_device_wish;

/* --- device.c: state and addresses ------------------------------------------------------------ */

struct weft_device {
    bool open;
    struct weft_gpu *gpu;         /* this PE's; NULL until it is opened (weft_device_begin) */
    bool staged;                  /* the GPUs of some PEs cannot access each other's memory */
    struct weft_gpu_window heap;  /* SHMEMX_SPACE_DEVICE */
    struct weft_gpu_window words; /* WEFT_TEAMS_MAX times struct weft_gpu_team_words */
    struct weft_gpu_peer *peers;  /* one per PE of the job; unknown for far PEs */
    int neighbours;               /* PEs on this PE's GPU, including itself */
};
extern struct weft_device weft_device;

/* Windows have slots for near PEs, the same as those of the host's memory. */
static inline int weft_device_near_count(void) {
    return (int)weft_windows.scratch.window.count;
}
static inline int weft_device_near_pe(int slot) {
    const struct weft_window *w = &weft_windows.scratch.window;
    return (int)(w->first + (uint32_t)slot * w->step);
}

/* Returns the distance in slots between near PEs whose numbers differ by `stride`. */
static inline int weft_device_near_steps(int stride) {
    return stride / (int)weft_windows.scratch.window.step;
}

/* Returns whether this PE's GPU cannot access the memory of pe's GPU, which then has to work for
 * this process (stage.c). Valid only while GPUs are up. */
static inline bool weft_device_staged(int pe) {
    return weft_device.staged && weft_gpu_peer_staged(&weft_device.peers[pe]);
}

/* Returns whether this PE's GPU can itself change words in pe's GPU memory: with `modify` by atomic
 * read-modify-write, otherwise by writing. If not, pe's GPU has to do it. */
static inline bool weft_device_changes(int pe, bool modify) {
    return !weft_device_staged(pe) && (!modify || weft_device.peers[pe].atomics);
}

/* Waits for all work of this process on its GPU, including the program's streams. Called before the
 * PEs part, because peers may still wait for some of this work, and it may use this PE's memory and
 * theirs. */
void weft_device_finish(void);

/* Returns whether p lies in this PE's part of the device heap. Costs two comparisons. */
static inline bool weft_device_holds(const void *p) {
    return weft_window_holds(&weft_device.heap.window, p, 1);
}

/* Returns whether kernels can access an address of this PE, or one returned by weft_device_near;
 * not all host memory is accessible. Asks the driver, so it must be called in the GPU's context. */
static inline bool weft_device_reaches(const void *p) {
    return weft_device_holds(p) || weft_gpu_memory_kind(p) != WEFT_MEMORY_HOST;
}

/* Returns whether a copy has to be staged whose symmetric side is pe's memory at p. */
static inline bool weft_device_stages(const void *p, int pe) {
    return weft_device.staged && weft_device_holds(p) && weft_device_staged(pe);
}

/* Returns the GPU of `pe`, which this process sees, as an agent, opening it if necessary. Returns
 * NULL with text on failure. */
const struct weft_gpu *weft_device_agent(int pe);

/* Returns the address of pe's copy of the symmetric [p, p + bytes), which lies in the device heap,
 * the host heap or the statics. This PE's GPU and its copy engines can use the address; if it lies
 * in the device heap of a staged PE, only that PE's GPU can. Returns NULL in the cases in which
 * weft_near does. */
void *weft_device_near(const void *p, size_t bytes, int pe);

/* Returns the address of pe's copy for kernels of this PE's GPU: GPU memory mapped for that GPU, or
 * registered host memory. Returns NULL if kernels cannot access it. */
void *weft_device_pointer(const void *p, int pe);

/* Returns whether a copy between this local and this symmetric address involves GPU memory on
 * either side, so that the GPU has to do it. */
bool weft_device_concerns(const void *symmetric, const void *local);

/* Returns the direction of a copy between addresses returned by weft_device_near; `pe` is the other
 * side. */
enum weft_direction weft_device_direction(const void *to, const void *from, int pe);

/* Clears memory on the stream of host calls, and waits for that. A failure ends the job. */
void weft_device_clear(void *p, size_t bytes);

/* --- queue.c: work enqueued by calls of the host, and its progress ----------------------------
 * A ticket is a number that the stream writes to a word of the host after all work that was
 * enqueued before it. A caller that waits for the work polls that word, which is cheaper than
 * asking the driver, and checks the abort word between two polls. If the word cannot be registered,
 * the driver is asked instead. All functions are called between weft_gpu_enter and _leave; a
 * failure of the driver ends the job. */

/* Ends the job with the text of a failed call. */
void weft_device_must(int result);

/* Records that work has been enqueued without a ticket, so that the next quiet adds one. */
void weft_device_note(void);

/* Enqueues a copy between addresses that are valid for this PE's GPU; `pe` is the other side. */
void weft_device_enqueue(void *to, const void *from, size_t bytes, int pe);

uint32_t weft_device_ticket(void);
void weft_device_await(uint32_t ticket);

/* Waits for the work that this thread has enqueued. */
static inline void weft_device_complete(void) {
    weft_device_await(weft_device_ticket());
}

/* Makes the stream write `bytes` (4 or 8) of the value to a word of GPU memory, without a kernel,
 * and a ticket after it, in one call of the driver: the command contains the value. Returns false,
 * and has enqueued nothing, if the driver does not support this. */
bool weft_device_write_word(void *word, uint64_t value, size_t bytes);

/* Waits for all work that this PE has enqueued. */
void weft_device_drain(void);

/* Returns whether there is nothing to wait for. Cheap. */
bool weft_device_drained(void);

/* A piece of host memory that the GPU can access, for one thread at a time, through which data pass
 * on their way to memory that the GPU cannot access. weft_device_staging_take blocks while another
 * thread has it; it returns NULL, and nothing has to be given back, if there is no such memory. */
enum { WEFT_DEVICE_STAGING_BYTES = 64 << 10 };
void *weft_device_staging_take(void);
void weft_device_staging_give(void);

/* Frees the queue's resources. The GPU's stream must still exist. */
void weft_device_queue_close(void);

/* --- begin.c: this PE's GPU, and registration of the host's symmetric memory ------------------ */

/* Opens this PE's GPU, as selected by SHMEMX_DEVICE, unless it is open already, and registers the
 * host heap and the statics of all near PEs with it; what CUDA refuses is logged, and kernels
 * cannot reach it. Local, callable by any thread. Returns 0 or -errno with text. Every entry that
 * needs a GPU calls this first, before weft_gpu_enter. */
int weft_device_begin(void);

/* Stores the facts about this PE's GPU that are known before it is opened. Local. */
int weft_device_inspect(struct weft_gpu *gpu);

/* Called when the host heap has grown on all PEs: registers the new part if the GPU is open. */
void weft_device_heap_grown(void);

/* Closes the GPU. There must be no work under way, and everything that weft_device_open brought up
 * must be down. */
void weft_device_end(void);

/* --- gpus.c: this PE's GPU, and other GPUs on which it has blocks -----------------------------
 * Another GPU is opened by the first block on it, and stays open until the job ends. */

/* This PE's GPU, in place of an ordinal. */
enum { WEFT_DEVICE_OWN = -1 };

/* Opens a GPU for the rest of the job, so that kernels can run there. Callable by any thread.
 * Returns 0 or -errno with text: -EINVAL if there is no such GPU, or an error of opening it. */
int weft_device_gpu_use(int ordinal);

/* Like weft_device_gpu_use, but also opens the GPU for the caller, who closes it (weft_gpu_close),
 * possibly after the end of the job. */
int weft_device_gpu_open(struct weft_gpu **gpu, int ordinal);

/* Returns the GPU whose context is current in the calling thread, to which the program's streams
 * then belong, or this PE's GPU if the context is that of no open GPU. This PE's GPU must be open.
 */
const struct weft_gpu *weft_device_gpu_here(void);

/* Waits for all work on this PE's GPU, as weft_device_finish does, and on the others. */
void weft_device_gpus_finish(void);

/* Closes the other GPUs. There must be no work under way. */
void weft_device_gpus_close(void);

/* --- extent.c: growing a window on all PEs or on none ----------------------------------------- */

/* Returns 0 if all PEs passed 0. Otherwise returns this PE's own error with its text or, if this PE
 * passed 0, -ENODEV with a text that names a PE that failed. Collective over WORLD. */
int weft_device_agree(int error);

/* Reserves addresses for a window of all near PEs. Local. Returns 0 or -errno with text. */
int weft_device_window_alloc(struct weft_gpu_window *window, size_t slot_bytes);

/* Sends a descriptor of each PE to all PEs of its host, and calls `attach` with the descriptors of
 * all, indexed by PE; they are closed afterwards. Collective over WORLD. Returns 0 on all PEs, or
 * an error on all (weft_device_agree). */
int weft_device_show(int fd, int (*attach)(const int *fds, void *context), void *context);

/* Adds an extent of `bytes` to a window on every PE, or on none. Collective over WORLD. */
int weft_device_extend(struct weft_gpu_window *window, size_t bytes);

/* --- links.c: links between GPUs, tested with data before they are used ----------------------- */

/* A group of PEs. Each member writes a word to the memory of every member, and reads the words that
 * it received and those that it wrote. Both functions are given `context`. agree returns 0 if all
 * members passed 0, otherwise an error on all: this PE's own with its text, or one that names or
 * repeats that of another member. */
struct weft_device_links {
    const struct weft_gpu *gpu; /* does the writing and reading */
    const int *pes;             /* of the members; NULL: member i is PE i */
    int count, me;
    bool staged; /* members are PEs of WORLD, and may be staged */
    /* Returns the 4-byte word of PE `from` in a member's memory, as an address for this PE's GPU.
     */
    void *(*word)(const void *context, int from, int member);
    int (*agree)(const void *context, int own);
    const void *context;
};

/* Returns the words of WORLD on pe's GPU, which are used to test links before any call uses them.
 */
struct weft_gpu_team_words *weft_device_world_words(int pe);

/* Tests the links. Collective over the group. Returns 0 on all members, or -errno with text on all.
 */
int weft_device_links_try(const struct weft_device_links *links);

/* Checks whether a GPU of this PE can map the memory of pe's. Returns 0 or -ENOTSUP with text. */
int weft_device_links_check(const struct weft_gpu *gpu, const struct weft_gpu_peer *peer, int pe);

/* Determines by trial on which of the GPUs that are hidden here this PE's GPU has atomics.
 * Collective over WORLD. WORLD's words must be 0, and are 0 again afterwards. */
int weft_device_try_atomics(void);

/* --- stage.c: calls of the host on GPU memory that this PE's GPU cannot access -----------
 *
 *   this GPU's memory --own copy engine--> a piece of host memory --agent's--> the other's memory
 *   host memory -------------------------------------------agent's--> the other's memory
 *
 * The other PE does not take part: its GPU works for this process, as its agent
 * (transport/gpu_agent.h). Everything is complete on return. The functions are called between
 * weft_gpu_enter and _leave; a failure of the driver ends the job. `to` and `from` are addresses
 * returned by weft_device_near. */

/* Like weft_device_agent, but ends the job if there is no agent. */
const struct weft_gpu *weft_device_must_agent(int pe);

/* Waits for the work that the host has started on an agent. */
void weft_device_agent_complete(const struct weft_gpu *agent);

void weft_stage_copy(const struct weft_transfer *transfer, int pe);

/* Like weft_stage_copy, for blocks; `put`: dest belongs to pe. */
void weft_stage_copy_strided(const struct weft_strided_copy *copy, bool put, int pe);

/* Copies blocks, by this processor, by an agent, or, without either, by this PE's GPU. Complete on
 * return. */
struct weft_packer {
    bool processor;
    const struct weft_gpu *agent;
};
void weft_stage_pack(const struct weft_strided_copy *copy, struct weft_packer by);

/* Copies blocks through `bytes` of host memory at `at`, as many at a time as fit side by side: `in`
 * packs them, and `out` unpacks them. A block must fit. */
void weft_stage_copy_packed(const struct weft_strided_copy *copy, char *at, size_t bytes,
                            struct weft_packer in, struct weft_packer out);

/* A piece of host memory in which blocks are packed on their way, for one thread at a time.
 * `registered`, if not NULL, receives whether kernels can access it. */
enum { WEFT_STAGE_BYTES = 1 << 20 };
char *weft_stage_take(bool *registered);
void weft_stage_give(void);

/* Frees the piece. The GPU must be open. */
void weft_stage_close(void);

/* --- far.c: calls of the host to far PEs, with GPU memory on either side ----------------------
 * Contracts as in job/operations.h; complete for this PE on return, except puts and gets with nbi
 * between the far PE and host memory here. The GPUs must be up. */

int weft_device_far_put(void *dest, const void *source, size_t bytes, int pe, bool nbi);
int weft_device_far_get(void *dest, const void *source, size_t bytes, int pe, bool nbi);
int weft_device_far_put_strided(void *dest, const void *source, const struct weft_strided *shape,
                                int pe);
int weft_device_far_get_strided(void *dest, const void *source, const struct weft_strided *shape,
                                int pe);
int weft_device_far_put_signal(const struct weft_put_signal *put, int pe);
int weft_device_far_amo(const struct weft_amo *amo, int pe);

/* Copies between any two addresses in memory of this host or its GPU; complete on return. */
void weft_device_copy(void *to, const void *from, size_t bytes);

/* --- messages.c: effects of far PEs' messages on this PE's GPU memory ------------------------- */

extern const struct weft_space_messages weft_device_messages;

/* Opened before any such message arrives. Returns 0 or -errno with text. Closed after the last
 * message, or after opening failed. Both are called between weft_gpu_enter and _leave. */
int weft_device_messages_open(void);
void weft_device_messages_close(void);

/* --- heap.c: symmetric objects in GPU memory (shmemx_malloc) ----------------------------------
 * Like the host heap, it grows in extents that all PEs commit or none, and every PE runs the same
 * allocator on the same calls. The functions may be called between weft_device_open and _close. */

/* The objects of the device heap, and their allocation; contracts as in job/space.h. */
extern struct weft_arena weft_device_arena;
void *weft_device_malloc(struct weft_arena *arena, size_t bytes, size_t alignment, bool zero);
void *weft_device_realloc(struct weft_arena *arena, void *p, size_t bytes);
void weft_device_free(struct weft_arena *arena, void *p);

/* Open and close the allocator's records of the device heap, whose addresses have been reserved. */
int weft_device_heap_open(void);
void weft_device_heap_close(void);

/* --- turns.c: order of a team's calls on different streams ------------------------------------ */

/* A team has one set of words on each GPU, so its calls must not overlap: they run in the order in
 * which this PE makes them. During stream capture nothing is waited for, and the program must order
 * the calls. Checked mode detects calls that overlap all the same. Called between weft_gpu_enter
 * and _leave. */

/* Begin and end a team's call on a stream: its work waits for that of the team's last call, if that
 * was on another stream. Return 0 or -errno with text. */
int weft_device_turn_begin(const struct weft_team *team, weft_cu_stream stream);
int weft_device_turn_end(const struct weft_team *team, weft_cu_stream stream);

/* Returns whether calls of the team have been captured. */
bool weft_device_turns_captured(const struct weft_team *team);

/* Waits for the work that this PE's calls of the team have enqueued, and for nothing else on the
 * GPU, nor for captured calls. Returns false if the driver refuses to wait, as during stream
 * capture, or if the job is over. Must not be called between weft_gpu_enter and _leave. */
bool weft_device_turns_finish(const struct weft_team *team);

/* Called when the team ends. */
void weft_device_turns_end(const struct weft_team *team);
void weft_device_turns_close(void);

/* --- words.c: the words with which GPUs synchronise teams ------------------------------------- */

/* Allocates and resets the words: in GPU memory, and also in host memory if some GPUs cannot access
 * each other's. Collective over WORLD. */
int weft_device_words_open(void);
void weft_device_words_close(void);

/* Returns the words with which the members of a team synchronise. The first call for a team that is
 * a list of PEs copies the list to its GPU. Local. Returns 0 or -errno with text. Called between
 * weft_gpu_enter and _leave. */
int weft_device_words(struct weft_array *words, const struct weft_team *team);

/* Returns the description of the team that kernels of its calls receive. */
struct weft_gpu_call weft_device_call(const struct weft_team *team);

/* Host memory of a team's members, in whole pages that the GPUs of all members can access. Data
 * pass through it if GPUs cannot access each other's memory (weft_device.staged). The first call of
 * a team registers it. Contract as weft_device_words. */
struct weft_device_area {
    struct weft_array all;
    size_t bytes;
};
int weft_device_area(struct weft_device_area *area, const struct weft_team *team);

/* Called when the team ends: resets its words to 0 with a new generation, for the next team in its
 * slot. Must come before the members part and after weft_device_turns_finish, because an unfinished
 * call would miss its peers' words and leave its own. Local. Does nothing without a device. */
void weft_device_words_reset(const struct weft_team *team);

/* --- rma.c: put and get with GPU memory on one side or both, as in job/operations.h ----------
 * weft_device_quiet completes non-blocking calls. */

int weft_device_put(void *dest, const void *source, size_t bytes, int pe, bool nbi);
int weft_device_get(void *dest, const void *source, size_t bytes, int pe, bool nbi);
int weft_device_put_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe);
int weft_device_get_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe);

/* --- share.c: blocks and shares in GPU memory ----------------------------------------- */

extern const struct weft_share_space weft_device_share;

/* --- proxy.c: stream proxies, threads that work for streams ----------------------------------- */

/* A function to run on a thread of the library, with a copy of its arguments. */
struct weft_proxy_task {
    void (*run)(const void *arguments);
    const void *arguments;
    size_t bytes;
};

/* Runs the task in the order of the stream: after all of its earlier work and before its later
 * work; also works during capture. With a `team`, its tasks run in one order on all members; NULL
 * is for tasks that do not wait for the program of another PE. Returns 0 or -errno with text.
 * Called between weft_gpu_enter and _leave. */
int weft_proxy_run(const struct weft_team *team, const struct weft_proxy_task *task,
                   weft_cu_stream stream);

/* weft_proxy_begin prepares a team with far members for tasks; the team's first call is collective
 * over the team. Returns 0 or -errno with text, on all members. weft_proxy_team then returns the
 * team with which the tasks synchronise, which has the same members. */
int weft_proxy_begin(const struct weft_team *team);
struct weft_team *weft_proxy_team(const struct weft_team *team);

/* Called when the team ends; `finished`: all work of its streams is complete. Collective over the
 * team. */
void weft_proxy_team_ended(const struct weft_team *team, bool finished);
void weft_proxies_close(void);

/* --- channels.c: synchronisation of teams' collective kernels (transport/gpu_channel.h) ------- */

/* Returns the team's channels, with the inbox of a form. The team's first call of a form makes its
 * region, and its first call of any form that of WEFT_FORM_LL, which contains the words: these
 * calls are collective over the members, also during capture; later calls are local. Returns 0 or
 * -errno, the same on all members: -ENOTSUP, without text and for as long as the team lives, if
 * some member's GPU cannot run such kernels or lacks the memory; -EINVAL with text if settings
 * differ; -ECONNABORTED with text if a member has finalized. Called between weft_gpu_enter and
 * _leave, while the GPUs are up or being brought up, for teams of several members. */
int weft_device_channels(struct weft_gpu_channels *channels, const struct weft_team *team,
                         enum weft_gpu_form form);

/* Returns `bytes` of this PE's GPU memory for a copy of data that kernels cannot access. It belongs
 * to the team, and its next call in the order of the stream uses it again. Local. Returns 0 or
 * -ENOMEM with text. */
int weft_device_channels_copy(void **copy, const struct weft_team *team, size_t bytes);

/* Called when the team ends: removes its channels from its slot. After the members have parted,
 * weft_device_channels_sweep frees the memory of such teams, unless something may still use it: a
 * graph, or calls that have not `finished`. The GPU's other work continues. Local. */
void weft_device_channels_end(const struct weft_team *team, bool finished);
void weft_device_channels_sweep(void);

/* Frees all memory that is not in use. */
void weft_device_channels_close(void);

/* --- device_team.c: handles through which the program's kernels use a team --------------------
 * Contracts as for shmemx_device_team; job/space.h describes the arguments. A handle may exist
 * before the GPUs of all PEs are up, and ends with this PE's GPU. */

int weft_device_team_make(struct weft_device_team *seen, const struct weft_team *team,
                          const struct weft_device_wish *wish);
int weft_device_team_free(struct weft_device_team *seen);
int weft_device_team_address(const struct weft_device_team *seen,
                             const struct weft_device_team **address);

/* Frees all remaining handles, without the other members. */
void weft_device_teams_close(void);

/* --- open.c: the GPUs of all PEs --------------------------------------------------------------
 * They are brought up in several steps, each with an agreement of all PEs: each PE opens its own;
 * all exchange the UUIDs of their GPUs, because CUDA_VISIBLE_DEVICES may number them differently;
 * the windows of the heap and of the teams' words are made; and every link is tested with data. */

/* Brings up the GPUs of all PEs, once per job. Collective over WORLD; returns 0 on all PEs, or an
 * error on all, as weft_device_agree returns it. After a failure, a GPU that weft_device_begin has
 * opened stays open. Local if the GPUs are up already. */
int weft_device_open(void);
void weft_device_close(void);

/* --- word.c: signals, atomics, reads of words, and quiet --------------------------------------
 * Errors, and contracts that are not stated here, are those of job/operations.h. */

int weft_device_signal(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe);
int weft_device_amo(const struct weft_amo *amo, int pe);
void weft_device_look(void *snapshot, const void *words, size_t bytes);

/* Completes the operations that calls of the host have begun. Does nothing, at little cost, if none
 * are under way. Does not return if a kernel of this process has ended the job. */
void weft_device_quiet(void);

/* --- put_signal.c: put with signal, as in job/operations.h ------------------------------------ */

/* Puts the data, then signals. The data are complete on return or, with nbi, after
 * weft_device_quiet. The signal of a put without GPU data may still be under way on return. */
int weft_device_put_signal(const struct weft_put_signal *put, int pe);

/* --- space.c: GPU memory as core sees it (job/space.h) ---------------------------------------- */

/* Makes GPU memory available to jobs that are initialised from now on. Must be called before
 * weft_init. */
void weft_device_register(void);

#endif
