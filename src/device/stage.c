/* SPDX-License-Identifier: BSD-3-Clause */
/* Two pieces of host memory, taken in turns: while the second GPU empties one, the first fills the
 * other. One call at a time: threads that stage at once would share the same bus anyway. */
#include "device/stage.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "core/job.h"
#include "core/rma.h"
#include "core/wait.h"
#include "device/queue.h"

enum { PIECE_BYTES = 1 << 20, PIECES = 2, PAGE_BYTES = 4096 };

static struct {
    pthread_mutex_t taken;
    char *pieces;
    bool registered; /* kernels reach them */
} stage = {.taken = PTHREAD_MUTEX_INITIALIZER};

/* --- Who works -------------------------------------------------------------------------------- */

const struct weft_gpu_agent *weft_device_must_agent(int pe, const char *call) {
    const struct weft_gpu_agent *agent = weft_device_agent(pe, call);
    if (!agent)
        weft_job_panic("%s", weft_fail_text());
    return agent;
}

void weft_device_agent_complete(const struct weft_gpu_agent *agent, const char *call) {
    struct weft_waiter waiter = {.call = call, .pe = WEFT_PE_NONE};
    struct weft_gpu_scope scope = weft_gpu_agent_enter(agent);
    int error;
    while ((error = weft_cuda.cuStreamQuery(agent->stream)) == WEFT_CU_NOT_READY)
        weft_waiter_turn(&waiter);
    weft_waiter_end(&waiter);
    weft_gpu_leave(scope);
    weft_device_must(weft_cuda_check(error, call, "waiting for the GPU of another PE"));
    if (weft_job_aborted())
        weft_job_die_aborted(call);
}

/* The pieces, for the caller alone until it gives them back. */
static void take_pieces(const char *call) {
    pthread_mutex_lock(&stage.taken);
    if (stage.pieces)
        return;
    stage.pieces = aligned_alloc(PAGE_BYTES, (size_t)PIECES * PIECE_BYTES);
    if (!stage.pieces)
        weft_job_panic("%s: no memory for copies through memory of the host", call);
    stage.registered = weft_gpu_register(stage.pieces, (size_t)PIECES * PIECE_BYTES) == 0;
}

static void give_pieces(void) {
    pthread_mutex_unlock(&stage.taken);
}

void weft_stage_close(void) {
    if (stage.registered)
        weft_gpu_unregister(stage.pieces);
    free(stage.pieces);
    stage.pieces = NULL;
    stage.registered = false;
}

/* --- Legs ------------------------------------------------------------------------------------- */

/* One half of the way: between the pieces and memory that `agent` reaches; NULL: this PE's GPU. */
struct leg {
    const struct weft_gpu_agent *agent;
    const char *call;
};

static void move(const struct leg *leg, void *to, const void *from, size_t bytes,
                 enum weft_direction direction) {
    if (!leg->agent) {
        weft_device_must(weft_gpu_copy(to, from, bytes, direction, weft_gpu.stream, leg->call));
        return;
    }
    struct weft_gpu_scope scope = weft_gpu_agent_enter(leg->agent);
    weft_device_must(weft_gpu_copy(to, from, bytes, WEFT_BY_AGENT, leg->agent->stream, leg->call));
    weft_gpu_leave(scope);
}

static void move_blocks(const struct leg *leg, const struct weft_device_blocks *b) {
    struct weft_gpu_scope scope = leg->agent ? weft_gpu_agent_enter(leg->agent) : weft_gpu_enter();
    weft_cu_stream stream = leg->agent ? leg->agent->stream : weft_gpu.stream;
    weft_device_must(weft_gpu_copy_blocks((struct weft_array){b->to, b->to_step, NULL}, b->from,
                                          b->from_step, b->bytes, b->nblocks, stream, leg->call));
    weft_gpu_leave(scope);
}

static void finish(const struct leg *leg) {
    if (leg->agent)
        weft_device_agent_complete(leg->agent, leg->call);
    else
        weft_device_complete(leg->call);
}

/* --- Whole ------------------------------------------------------------------------------------ */

/* Piece by piece; what fills one goes on while the other is being emptied. */
static void relay(char *to, const struct leg *out, const char *from, const struct leg *in,
                  size_t bytes) {
    take_pieces(in->call);
    for (size_t at = 0, turn = 0; at < bytes; at += PIECE_BYTES, turn++) {
        char *piece = stage.pieces + turn % PIECES * PIECE_BYTES;
        size_t part = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        move(in, piece, from + at, part, WEFT_TO_HOST);
        finish(in);
        finish(out);
        move(out, to + at, piece, part, WEFT_FROM_HOST);
    }
    finish(out);
    give_pieces();
}

/* Host memory is within the agent's own reach, or for its copy engine to come to. */
static void copy(void *to, const void *from, size_t bytes, const struct leg *far, bool put) {
    struct leg own = {NULL, far->call};
    if (weft_gpu_memory_kind(put ? from : to) == WEFT_MEMORY_DEVICE) {
        relay(to, put ? far : &own, from, put ? &own : far, bytes);
    } else {
        move(far, to, from, bytes, WEFT_BY_AGENT);
        finish(far);
    }
}

void weft_stage_put(void *to, const void *from, size_t bytes, int pe, const char *call) {
    struct leg far = {weft_device_must_agent(pe, call), call};
    copy(to, from, bytes, &far, true);
}

void weft_stage_get(void *to, const void *from, size_t bytes, int pe, const char *call) {
    struct leg far = {weft_device_must_agent(pe, call), call};
    copy(to, from, bytes, &far, false);
}

/* --- Blocks ----------------------------------------------------------------------------------- */

static void copy_each(const struct weft_device_blocks *b, const struct leg *far, bool put) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)b->nblocks; i++)
        copy(b->to + i * b->to_step, b->from + i * b->from_step, b->bytes, far, put);
}

/* Into the piece or out of it, side by side there; by this processor where the other side is the
 * host's. */
static void pack(const struct weft_device_blocks *b, const struct leg *leg, const void *side) {
    if (!leg->agent && weft_gpu_memory_kind(side) != WEFT_MEMORY_DEVICE) {
        weft_rma_copy_blocks(b->to, b->to_step, b->from, b->from_step, b->bytes, b->nblocks);
        return;
    }
    move_blocks(leg, b);
    finish(leg);
}

static void copy_packed(const struct weft_device_blocks *b, const struct leg *in,
                        const struct leg *out, size_t most) {
    ptrdiff_t packed = (ptrdiff_t)b->bytes;
    for (size_t done = 0, count; done < b->nblocks; done += count) {
        count = b->nblocks - done < most ? b->nblocks - done : most;
        char *to = b->to + (ptrdiff_t)done * b->to_step;
        const char *from = b->from + (ptrdiff_t)done * b->from_step;
        pack(
            &(struct weft_device_blocks){stage.pieces, from, packed, b->from_step, b->bytes, count},
            in, from);
        pack(&(struct weft_device_blocks){to, stage.pieces, b->to_step, packed, b->bytes, count},
             out, to);
    }
}

static void copy_blocks(const struct weft_device_blocks *b, const struct leg *far, bool put) {
    struct leg own = {NULL, far->call};
    size_t most = PIECE_BYTES / b->bytes;
    take_pieces(far->call);
    bool packs = stage.registered && most > 0;
    if (packs)
        copy_packed(b, put ? &own : far, put ? far : &own, most);
    give_pieces();
    if (!packs)
        copy_each(b, far, put);
}

void weft_stage_put_blocks(const struct weft_device_blocks *blocks, int pe, const char *call) {
    struct leg far = {weft_device_must_agent(pe, call), call};
    copy_blocks(blocks, &far, true);
}

void weft_stage_get_blocks(const struct weft_device_blocks *blocks, int pe, const char *call) {
    struct leg far = {weft_device_must_agent(pe, call), call};
    copy_blocks(blocks, &far, false);
}
