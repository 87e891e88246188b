/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs of a job as this PE has them: its own, the others', and where memory of theirs lies.
 * This is the index of the room, by the files that define things, from the ground up; calls in the
 * order of a stream stand in device/stream.h and device/slice.h.
 *
 * GPUs are brought up, on all PEs together, by the first call that needs it (weft_device_open);
 * weft_job.devices is set from then on, and calls look whether their pointers are a GPU's. */
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

/* --- device.c: who and where ------------------------------------------------------------------ */

struct weft_device {
    bool open;
    struct weft_gpu *gpu;         /* this PE's; NULL: not open yet (weft_device_begin) */
    bool staged;                  /* the GPUs of some PEs do not reach each other's memory */
    struct weft_gpu_window heap;  /* SHMEMX_SPACE_DEVICE */
    struct weft_gpu_window words; /* WEFT_TEAMS_MAX times struct weft_gpu_team_words */
    struct weft_gpu_peer *peers;  /* of each PE of the job; of a far one nothing is known */
    int neighbours;               /* PEs on this PE's GPU, itself among them */
};
extern struct weft_device weft_device;

/* Windows have slots of near PEs, the same ones as those of the host's memory. */
static inline int weft_device_near_count(void) {
    return (int)weft_windows.scratch.window.count;
}
static inline int weft_device_near_pe(int slot) {
    const struct weft_window *w = &weft_windows.scratch.window;
    return (int)(w->first + (uint32_t)slot * w->step);
}

/* So many slots lie between near PEs that are `stride` apart. */
static inline int weft_device_near_steps(int stride) {
    return stride / (int)weft_windows.scratch.window.step;
}

/* Whether this PE's GPU does not reach the memory of pe's, which then has to work for this process
 * (stage.c). Only with GPUs up. */
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

/* Whether kernels reach this address of this PE's, or one that weft_device_near gave: not all
 * memory of the host. Asks the driver, in the GPU's context. */
static inline bool weft_device_reaches(const void *p) {
    return weft_device_holds(p) || weft_gpu_memory_kind(p) != WEFT_MEMORY_HOST;
}

/* Whether a copy is staged whose symmetric side is at p, of pe's. */
static inline bool weft_device_stages(const void *p, int pe) {
    return weft_device.staged && weft_device_holds(p) && weft_device_staged(pe);
}

/* The GPU of `pe`, which this process sees, as an agent; opened if need be. NULL with text. */
const struct weft_gpu *weft_device_agent(int pe);

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

/* --- queue.c: what calls of the host have enqueued, and how far the GPU has come -----------------
 * A ticket is a number that the stream writes into a word of the host behind all work that was
 * enqueued before it; who waits for the work looks at the word. That is cheaper than to ask the
 * driver, and looks at the abort word between two looks. Where the word cannot be registered the
 * driver is asked all the same. All functions are called between weft_gpu_enter and _leave; a
 * failure of the driver ends the job. */

/* Ends the job with the text that a failed call left. */
void weft_device_must(int result);

/* Work has been enqueued without a ticket: a quiet has to bring one. */
void weft_device_note(void);

/* A copy between addresses as this PE's GPU has them, on its way; `pe` is the other side. */
void weft_device_enqueue(void *to, const void *from, size_t bytes, int pe);

uint32_t weft_device_ticket(void);
void weft_device_await(uint32_t ticket);

/* Waits for what this thread has enqueued. */
static inline void weft_device_complete(void) {
    weft_device_await(weft_device_ticket());
}

/* A word of GPU memory <- the value, 4 or 8 bytes of it, by the stream itself and without a kernel,
 * and a ticket behind it, in one call of the driver: the value travels within the command. False,
 * and nothing has been enqueued, where the driver does not do this. */
bool weft_device_write_word(void *word, uint64_t value, size_t bytes);

/* Waits for everything that this PE has enqueued. */
void weft_device_drain(void);

/* Whether there is nothing to wait for. Cheap. */
bool weft_device_drained(void);

/* Memory of the host within the GPU's reach, for one thread at a time: what passes through on its
 * way to memory that the GPU does not reach. NULL, and nothing is taken, where there is none. */
enum { WEFT_DEVICE_STAGING_BYTES = 64 << 10 };
void *weft_device_staging_take(void);
void weft_device_staging_give(void);

/* With the GPU's stream still there. */
void weft_device_queue_close(void);

/* --- begin.c: this PE's GPU, and the host's symmetric memory within its reach ------------------
 */

/* Opens this PE's GPU, as SHMEMX_DEVICE says, unless it is open: it reaches the host heap and the
 * statics of all PEs then. Local, by any thread; 0 or -errno with text. Every entry that needs a
 * GPU begins with it, before weft_gpu_enter. */
int weft_device_begin(void);

/* Fills in what can be known of this PE's GPU before it is opened. Local. */
int weft_device_inspect(struct weft_gpu *gpu);

/* The host heap has been committed up to here, on all PEs: a GPU that is open comes to reach it. */
void weft_device_heap_grown(void);

/* Closes it: nothing is under way, and what weft_device_open brought up is down. */
void weft_device_end(void);

/* --- gpus.c: this PE's GPU, and others that blocks of it lie on ----------------------------------
 * The others are opened by the first block, and stay open as long as the job. */

/* This PE's GPU as an ordinal. */
enum { WEFT_DEVICE_OWN = -1 };

/* This job works with that GPU from now on: it is open, and kernels run there. By any thread.
 * -EINVAL with text when there is no such GPU. */
int weft_device_gpu_use(int ordinal);

/* The same, and opens it for the caller, who closes it (weft_gpu_close), behind the job, too. */
int weft_device_gpu_open(struct weft_gpu **gpu, int ordinal);

/* The one whose context is current in the calling thread, whose streams the program means then;
 * this PE's where that is none of them. With this PE's open. */
const struct weft_gpu *weft_device_gpu_here(void);

/* The same on all of them: weft_device_finish, and the others. */
void weft_device_gpus_finish(void);

/* Closes the others; nothing is under way. */
void weft_device_gpus_close(void);

/* --- extent.c: memory that all PEs make of a window, or none -----------------------------------
 */

/* Whether all PEs have come so far: 0, this PE's own error with its text, or that of another.
 * Collective over WORLD. */
int weft_device_agree(int error);

/* Reserves addresses for a window of all near PEs. Local; 0 or -errno with text. */
int weft_device_window_alloc(struct weft_gpu_window *window, size_t slot_bytes);

/* Shows a descriptor of each PE to all of its host, where `attach` gets those of all, by PE; they
 * are closed behind it. Collective over WORLD; all agree on the result. */
int weft_device_show(int fd, int (*attach)(const int *fds, void *context), void *context);

/* One more extent of `bytes` of a window on every PE, or on none. Collective over WORLD. */
int weft_device_extend(struct weft_gpu_window *window, size_t bytes);

/* --- links.c: links between GPUs, tried with data before anybody relies on them --------------- */

/* A group of PEs: each member writes a word in the memory of every member, and reads what it got,
 * and what it wrote. Both functions are given `context`; agree says whether all members have come
 * so far: 0, this PE's own error with its text, or that of another. */
struct weft_device_links {
    const struct weft_gpu *gpu; /* who tries */
    const int *pes;             /* of members; NULL: member i is PE i */
    int count, me;
    bool staged; /* members are PEs of WORLD, and may be staged */
    /* The word of PE `from` in the memory of a member, 4 bytes, as this PE's GPU finds it. */
    void *(*word)(const void *context, int from, int member);
    int (*agree)(const void *context, int own);
    const void *context;
};

/* The words of WORLD on pe's GPU, where links are tried before anybody uses them. */
struct weft_gpu_team_words *weft_device_world_words(int pe);

/* Collective over the group. 0 or -errno with text, the same on all members. */
int weft_device_links_try(const struct weft_device_links *links);

/* Whether a GPU of this PE can map the memory of pe's: 0 or -ENOTSUP with text. */
int weft_device_links_check(const struct weft_gpu *gpu, const struct weft_gpu_peer *peer, int pe);

/* Finds out by trying which GPUs that are hidden here this PE's GPU has atomics on. Collective over
 * WORLD, with its words 0, as they are again behind it. */
int weft_device_try_atomics(void);

/* --- stage.c: calls of the host on memory of a GPU that this PE's GPU does not reach -------------
 *
 *   this GPU's memory --own copy engine--> a piece of host memory --agent's--> the other's memory
 *   memory of the host -------------------------------------------agent's--> the other's memory
 *
 * Nobody at the other end has to help: that GPU works for this process, as its agent
 * (transport/gpu_agent.h). Everything is complete on return. Called between weft_gpu_enter and
 * _leave; a failure of the driver ends the job. `to` and `from` are as weft_device_near gives them.
 */

/* weft_device_agent, where its absence is the end of the job. */
const struct weft_gpu *weft_device_must_agent(int pe);

/* Waits for what the host has begun on an agent. */
void weft_device_agent_complete(const struct weft_gpu *agent);

void weft_stage_copy(const struct weft_transfer *transfer, int pe);

/* The same of blocks; `put`: dest is of pe's. */
void weft_stage_copy_strided(const struct weft_strided_copy *copy, bool put, int pe);

/* Copies blocks at once, by this processor, by an agent, or, without either, by this PE's GPU. */
struct weft_packer {
    bool processor;
    const struct weft_gpu *agent;
};
void weft_stage_pack(const struct weft_strided_copy *copy, struct weft_packer by);

/* Copies them through `bytes` of host memory at `at`, where as many lie side by side as have room,
 * one at least: `in` packs them, and `out` unpacks them. */
void weft_stage_copy_packed(const struct weft_strided_copy *copy, char *at, size_t bytes,
                            struct weft_packer in, struct weft_packer out);

/* A piece of host memory, where blocks lie side by side on their way, for one thread at a time; and
 * whether kernels reach it, if somebody asks. */
enum { WEFT_STAGE_BYTES = 1 << 20 };
char *weft_stage_take(bool *registered);
void weft_stage_give(void);

/* Gives the piece back; with the GPU open. */
void weft_stage_close(void);

/* --- far.c: calls of the host to far PEs, with memory of GPUs on either side --------------------
 * As core/dispatch.h has them; complete for this PE on return. With the GPUs up. */

int weft_device_far_put(void *dest, const void *source, size_t bytes, int pe, bool nbi);
int weft_device_far_get(void *dest, const void *source, size_t bytes, int pe, bool nbi);
int weft_device_far_put_strided(void *dest, const void *source, const struct weft_strided *shape,
                                int pe);
int weft_device_far_get_strided(void *dest, const void *source, const struct weft_strided *shape,
                                int pe);
int weft_device_far_put_signal(const struct weft_put_signal *put, int pe);
int weft_device_far_amo(const struct weft_amo *amo, int pe);

/* Between memory of a GPU or the host and any other here; complete on return. */
void weft_device_bring(void *to, const void *from, size_t bytes);

/* --- messages.c: what messages of far PEs do to memory of this PE's GPU
 * ----------------------------
 */

extern const struct weft_space_messages weft_device_messages;

/* Before any such message comes: 0 or -errno with text. Behind the last, or where opening failed.
 * Between weft_gpu_enter and _leave. */
int weft_device_messages_open(void);
void weft_device_messages_close(void);

/* --- heap.c: symmetric objects in GPU memory (shmemx_malloc) -------------------------------------
 * Like the host heap it grows in extents that all PEs commit or none, and every PE runs the same
 * allocator on the same calls. Between weft_device_open and _close. */

/* The objects of the device heap, and their allocation, as job/space.h has it. */
extern struct weft_arena weft_device_arena;
void *weft_device_malloc(struct weft_arena *arena, size_t bytes, size_t alignment, bool zero);
void *weft_device_realloc(struct weft_arena *arena, void *p, size_t bytes);
void weft_device_free(struct weft_arena *arena, void *p);

/* The bookkeeping of the device heap, whose addresses have been reserved. */
int weft_device_heap_open(void);
void weft_device_heap_close(void);

/* --- turns.c: calls of a team that come on different streams ------------------------------------
 */

/* A team has one set of words on each GPU, so its calls must not run side by side: they run in the
 * order in which this PE makes them. In a capture nothing is waited for: there the program orders
 * them. Checked mode finds those that run side by side all the same. Between weft_gpu_enter and
 * _leave. */

/* Brackets of a team's call on a stream: its work waits for that of the team's last call, if that
 * was on another stream. 0 or -errno with text. */
int weft_device_turn_begin(const struct weft_team *team, weft_cu_stream stream);
int weft_device_turn_end(const struct weft_team *team, weft_cu_stream stream);

/* Whether a capture has been given calls of the team. */
bool weft_device_turns_captured(const struct weft_team *team);

/* Waits for what this PE's calls of the team have enqueued, and for nothing else on the GPU; not
 * for what graphs have of them. False: the driver refuses to wait, as while a stream is being
 * captured, or the job is over. Not between weft_gpu_enter and _leave. */
bool weft_device_turns_finish(const struct weft_team *team);

/* The team ends. */
void weft_device_turns_end(const struct weft_team *team);
void weft_device_turns_close(void);

/* --- words.c: the words that GPUs synchronise teams with -------------------------------------- */

/* Resets them and puts them in place: in GPU memory, or in memory of the host where some GPUs do
 * not reach each other's. Collective over WORLD. */
int weft_device_words_open(void);
void weft_device_words_close(void);

/* The words that the members of a team meet with. The first call of a team that is a list shows its
 * GPU the list. Local; 0 or -errno with text; between weft_gpu_enter and _leave. */
int weft_device_words(struct weft_array *words, const struct weft_team *team);

/* What kernels of the team's calls are told of it. */
struct weft_gpu_call weft_device_call(const struct weft_team *team);

/* Memory of the host of a team's members, whole pages that the GPUs of all of them reach: what
 * passes through where GPUs do not reach each other's memory (weft_device.staged). The first call
 * of a team registers it. As weft_device_words. */
struct weft_device_area {
    struct weft_array all;
    size_t bytes;
};
int weft_device_area(struct weft_device_area *area, const struct weft_team *team);

/* The team ends: its words are 0 again, and of another generation, for the next one in its slot.
 * Before the members part, and behind weft_device_turns_finish: a call that is still under way
 * would find no peer's word, and leave its own behind. Local; nothing where there is no device. */
void weft_device_words_reset(const struct weft_team *team);

/* --- rma.c: put and get where a GPU's memory is on one side or both, as core/dispatch.h has them
 * ---- What a non-blocking one has begun is completed by weft_device_quiet. */

int weft_device_put(void *dest, const void *source, size_t bytes, int pe, bool nbi);
int weft_device_get(void *dest, const void *source, size_t bytes, int pe, bool nbi);
int weft_device_put_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe);
int weft_device_get_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe);

/* --- share.c: blocks and shares in the memory of GPUs ----------------------------------------- */

extern const struct weft_share_space weft_device_share;

/* --- proxy.c: threads that work for streams -----------------------------------------------------
 */

/* What is run, on a thread of the library's own, with a copy of the arguments. */
struct weft_proxy_task {
    void (*run)(const void *arguments);
    const void *arguments;
    size_t bytes;
};

/* The stream comes to the task behind all of its earlier work, and goes on behind it; also in a
 * capture. `team`: its tasks run in one order; NULL: those that wait for no other PE's program. 0
 * or -errno with text. Between weft_gpu_enter and _leave. */
int weft_proxy_run(const struct weft_team *team, const struct weft_proxy_task *task,
                   weft_cu_stream stream);

/* What a team with far members needs for that; collective over the team when it is the first call.
 * 0 or -errno with text, on all members. Then: the team by which its tasks meet, of the same
 * members. */
int weft_proxy_begin(const struct weft_team *team);
struct weft_team *weft_proxy_team(const struct weft_team *team);

/* The team ends, and what its streams had to do is done, if `finished`. Collective over it. */
void weft_proxy_team_ended(const struct weft_team *team, bool finished);
void weft_proxies_close(void);

/* --- channels.c: what the collective kernels of teams synchronise by (transport/gpu_channel.h) --
 */

/* The team's channels, with the inbox of a form. The team's first call of the form makes the
 * region, and the first of all that of WEFT_FORM_LL, which has the words: collective over the
 * members then, also in a capture, and local afterwards. 0 or -errno with text, the same on all
 * members: -ENOTSUP, without text, and for as long as the team lives: some member's GPU cannot run
 * such kernels, or has no memory for them; -EINVAL: settings differ; -ECONNABORTED: a member has
 * finalized. Between weft_gpu_enter and _leave; GPUs are up, or coming up; members are several. */
int weft_device_channels(struct weft_gpu_channels *channels, const struct weft_team *team,
                         enum weft_gpu_form form);

/* `bytes` of this PE's GPU memory for a copy of what kernels do not reach: the team's, and the same
 * in its next call, in the order of the stream. Local; 0 or -ENOMEM with text. */
int weft_device_channels_copy(void **copy, const struct weft_team *team, size_t bytes);

/* The team ends: nothing of it is found in its slot any more. Behind the parting of the members
 * sweep gives the memory of such teams back, unless something may still use it: a graph, or calls
 * that have not been `finished`. The rest of the GPU's work goes on. Local. */
void weft_device_channels_end(const struct weft_team *team, bool finished);
void weft_device_channels_sweep(void);

/* Gives all memory back, as far as nothing works there. */
void weft_device_channels_close(void);

/* --- device_team.c: handles by which kernels of the program work with a team ---------------------
 * As shmemx_device_team has them; job/space.h says what the arguments are. They outlive the GPUs
 * of all PEs coming up, and go with this PE's. */

int weft_device_team_make(struct weft_device_team *seen, const struct weft_team *team,
                          const struct weft_device_wish *wish);
int weft_device_team_free(struct weft_device_team *seen);
int weft_device_team_address(const struct weft_device_team *seen,
                             const struct weft_device_team **address);

/* Gives all back that is left, without the members. */
void weft_device_teams_close(void);

/* --- open.c: the GPUs of all PEs ----------------------------------------------------------------
 * Bringing them up is a row of agreements: each PE opens its own; all exchange what theirs are, by
 * UUID, because CUDA_VISIBLE_DEVICES may number them differently; the windows of the heap and of
 * the teams' words come up; and every link is tried with data. */

/* Brings the GPUs of all PEs up, once a job. Collective over WORLD; the same result on all, with
 * text. Where that fails, what weft_device_begin has opened stays open. Local where they are up. */
int weft_device_open(void);
void weft_device_close(void);

/* --- word.c: signals, atomics, looks at words, and the end of what has been begun --------------
 * Errors are as in core/dispatch.h, which has contracts that are not here. */

int weft_device_signal(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe);
int weft_device_amo(const struct weft_amo *amo, int pe);
void weft_device_look(void *snapshot, const void *words, size_t bytes);

/* Completes what calls of the host have begun. Nothing, and cheap, if nothing is under way. Does
 * not return where a kernel of this process has ended the job. */
void weft_device_quiet(void);

/* --- put_signal.c: puts that are announced, as core/dispatch.h has them --------------------------
 */

/* Complete on return, or, with nbi, behind weft_device_quiet. */
int weft_device_put_signal(const struct weft_put_signal *put, int pe);

/* --- space.c: the memory of GPUs as core knows it (job/space.h) ------------------------------ */

/* Before weft_init: jobs that come up from now on may have memory of GPUs. */
void weft_device_register(void);

#endif
