/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals, atomics and reads of words in GPU memory, and quiet. */
#include <stdatomic.h>
#include <string.h>
#include "transport/gpu_rescue.h"
#include "core/amo.h"
#include "device/device.h"

/* Returns the GPU of `pe`, which changes its words if this PE's GPU cannot, after this PE's GPU has
 * completed all work that may have to come before. */
static const struct weft_gpu *agent_to_change(int pe) {
    if (weft_device.peers[pe].ordinal < 0)
        weft_job_panic(
            "the link to the GPU of PE %d carries no atomics, and this PE does not see that GPU "
            "(CUDA_VISIBLE_DEVICES): make it visible, or keep the word in the host's memory",
            pe);
    if (!weft_device_drained())
        weft_device_drain();
    return weft_device_must_agent(pe);
}

static void agent_signal(uint64_t *word, uint64_t signal, bool add, int pe) {
    const struct weft_gpu *agent = agent_to_change(pe);
    struct weft_gpu_scope scope = weft_gpu_enter(agent);
    weft_device_must(weft_gpu_signal(word, signal, add, agent->stream));
    weft_gpu_leave(scope);
    weft_device_agent_complete(agent);
}

int weft_device_signal(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe) {
    if (weft_is_far(pe))
        return weft_far_operations.signal(sig_addr, signal, op, pe);
    uint64_t *word = weft_device_near(sig_addr, sizeof *sig_addr, pe);
    if (!word)
        return weft_near_error(sizeof *sig_addr, pe);
    if (!weft_device_holds(sig_addr)) {
        weft_rma_signal(sig_addr, signal, op, pe, weft_current_call);
        return 0;
    }
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    bool add = op == WEFT_SIGNAL_ADD;
    if (!weft_device_changes(pe, add)) {
        agent_signal(word, signal, add, pe);
    } else if (add || !weft_device_write_word(word, signal, sizeof *word)) {
        weft_device_must(weft_gpu_signal(word, signal, add, weft_device.gpu->stream));
        weft_device_note();
    }
    weft_gpu_leave(scope);
    return 0;
}

/* --- Atomics --------------------------------------------------------------------------------- */

/* Enqueues an atomic operation; this GPU must be able to access its addresses. */
static void amo_enqueue(const struct weft_amo *amo) {
    weft_device_must(weft_gpu_amo(amo, weft_device.gpu->stream));
    weft_device_note();
}

static void *staging_take(void) {
    void *staging = weft_device_staging_take();
    if (!staging)
        weft_job_panic(
            "atomics on GPU memory need host memory that the GPU can access, and this one (%s) "
            "can access none",
            weft_device.gpu->name);
    return staging;
}

static void amo_fetch_staged(const struct weft_amo *amo) {
    struct weft_amo staged = *amo;
    staged.fetch = staging_take();
    amo_enqueue(&staged);
    weft_device_complete();
    memcpy(amo->fetch, staged.fetch, amo->bytes);
    weft_device_staging_give();
}

/* Without a fetch the operation may still be under way on return. */
static void amo_execute(const struct weft_amo *amo) {
    if (!amo->fetch) {
        if (amo->op != WEFT_AMO_SET || !weft_device_write_word(amo->dest, amo->value, amo->bytes))
            amo_enqueue(amo);
    } else if (weft_gpu_memory_kind(amo->fetch) == WEFT_MEMORY_HOST) {
        amo_fetch_staged(amo);
    } else {
        amo_enqueue(amo);
        weft_device_complete();
    }
}

/* Complete on return. The old value passes through memory that both GPUs can access. */
static void amo_execute_by_agent(const struct weft_amo *amo, int pe) {
    const struct weft_gpu *agent = agent_to_change(pe);
    struct weft_amo staged = *amo;
    staged.fetch = amo->fetch ? staging_take() : NULL;
    struct weft_gpu_scope scope = weft_gpu_enter(agent);
    weft_device_must(weft_gpu_amo(&staged, agent->stream));
    weft_gpu_leave(scope);
    weft_device_agent_complete(agent);
    if (!amo->fetch)
        return;
    if (weft_gpu_memory_kind(amo->fetch) == WEFT_MEMORY_DEVICE)
        weft_device_must(
            weft_gpu_memory_copy(weft_device.gpu, amo->fetch, staged.fetch, amo->bytes));
    else
        memcpy(amo->fetch, staged.fetch, amo->bytes);
    weft_device_staging_give();
}

/* Changes a word of the host, and stores its old value in GPU memory. */
static void host_word_fetch(const struct weft_amo *amo) {
    uint64_t before = weft_amo_apply(amo->op, amo->bytes, amo->dest, amo->value, amo->cond);
    weft_device_must(
        weft_gpu_copy(amo->fetch, &before, amo->bytes, WEFT_FROM_HOST, weft_device.gpu->stream));
    weft_device_complete();
}

int weft_device_amo(const struct weft_amo *amo, int pe) {
    struct weft_amo near = *amo;
    if (weft_is_far(pe))
        return weft_device_far_amo(amo, pe);
    near.dest = weft_device_near(amo->dest, amo->bytes, pe);
    if (!near.dest)
        return weft_near_error(amo->bytes, pe);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (!weft_device_holds(amo->dest))
        host_word_fetch(&near);
    else if (weft_device_changes(pe, amo->op != WEFT_AMO_FETCH && amo->op != WEFT_AMO_SET))
        amo_execute(&near);
    else
        amo_execute_by_agent(&near, pe);
    weft_gpu_leave(scope);
    return 0;
}

/* --- Reads ------------------------------------------------------------------------------------ */

/* Loads a single word as a whole, with acquire semantics. */
static void word_look(void *snapshot, const void *word, size_t bytes) {
    struct weft_amo amo = {WEFT_AMO_FETCH, bytes, (void *)word, 0, 0, snapshot};
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    amo_fetch_staged(&amo);
    weft_gpu_leave(scope);
}

void weft_device_look(void *snapshot, const void *words, size_t bytes) {
    if (bytes == sizeof(uint32_t) || bytes == sizeof(uint64_t))
        word_look(snapshot, words, bytes);
    else
        weft_device_get(snapshot, words, bytes, weft_job.pe, false);
    atomic_thread_fence(memory_order_acquire);
}

/* --- Quiet ------------------------------------------------------------------------------------ */

/* If a kernel has ended the job, this PE ends before it announces anything to others after the
 * quiet: otherwise a peer that continues because of that, and then exits, would be taken for the
 * cause. */
void weft_device_quiet(void) {
    if (__builtin_expect(weft_gpu_rescue_heard(), 0))
        weft_job_die_soon();
    if (weft_device_drained())
        return;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    weft_device_drain();
    weft_gpu_leave(scope);
}
