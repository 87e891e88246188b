/* SPDX-License-Identifier: BSD-3-Clause */
/* The log puts the number of the PE at the beginning of each line. */
#include "core/misuse.h"
#include "job/static.h"
#include "core/ctx.h"
#include "core/dispatch.h"

void weft_misuse_phase(const char *call) {
    static const char *const when[] = {
        [WEFT_JOB_BEFORE] = "before shmem_init: call shmem_init first",
        [WEFT_JOB_RUNNING] = "while another thread is in shmem_init or shmem_finalize: wait for it",
        [WEFT_JOB_AFTER] = "after shmem_finalize: finalize later, or call shmem_init again",
        [WEFT_JOB_FORKED] = "in a forked child, which is not a PE: call it in the PE's own process",
    };
    weft_current_call = call;
    weft_job_panic("called %s", when[weft_job.phase]);
}

/* Sets the current call: fast near paths get here without having entered their call. */
static void misuse_enter(const char *call) {
    if (weft_job.npes == 0)
        weft_misuse_phase(call);
    weft_current_call = call;
}

static bool in_peers_slot(const struct weft_window *w, uint32_t mine, const void *p) {
    size_t offset = 0;
    uint32_t slot = weft_window_slot_of(w, p, &offset);
    return slot < w->count && slot != mine && offset < w->bytes;
}

static bool is_peers_copy(const void *p) {
    const struct weft_segment *heap = &weft_windows.heap, *statics = &weft_windows.statics;
    return in_peers_slot(&heap->window, heap->mine, p) ||
           in_peers_slot(&statics->window, statics->mine, p) ||
           (weft_job.devices &&
            in_peers_slot(weft_space_device->heap.window, (uint32_t)weft_job.pe, p));
}

void weft_misuse_access(const char *call, const char *argument, const void *p, size_t bytes,
                        int pe) {
    misuse_enter(call);
    if (pe < 0 || pe >= weft_job.npes)
        weft_job_panic("argument pe is %d, but the job has %d PEs: pass 0 to %d", pe, weft_job.npes,
                       weft_job.npes - 1);
    if (!p)
        weft_misuse_null(call, argument);
    if (is_peers_copy(p))
        weft_job_panic("argument %s is %p, in the memory of another PE, as returned by shmem_ptr: "
                       "pass the address of the object on this PE",
                       argument, p);
    if (weft_dispatch_finds(p, bytes, pe))
        weft_job_panic("argument %s is %p, in GPU memory, but this call needs host memory: pass "
                       "memory of shmem_malloc, or a global or static variable of the executable",
                       argument, p);
    const char *refusal = weft_static_refusal(p);
    if (refusal)
        weft_job_panic("argument %s is %p, a global or static variable, which is not symmetric %s",
                       argument, p, refusal);
    weft_job_panic("argument %s is %p, which is not symmetric over %zu bytes (for PE %d): pass "
                   "memory of shmem_malloc, or a global or static variable of the executable",
                   argument, p, bytes, pe);
}

void weft_misuse_ctx(const char *call, shmem_ctx_t ctx, int pe) {
    misuse_enter(call);
    const struct weft_ctx *known = weft_ctx_find(ctx);
    if (known)
        weft_job_panic("argument pe is %d, but the context's team has %d PEs: pass 0 to %d", pe,
                       known->npes, known->npes - 1);
    if (ctx == SHMEM_CTX_DEFAULT)
        weft_misuse_access(call, "", NULL, 0, pe);
    weft_misuse_handle(call, "ctx", ctx,
                       "SHMEM_CTX_DEFAULT or a context that was created and not destroyed");
}

void weft_misuse_private(const char *call, shmem_ctx_t ctx) {
    misuse_enter(call);
    weft_job_panic("argument ctx is 0x%zx, a private context that another thread created: "
                   "create one for this thread, or without SHMEM_CTX_PRIVATE",
                   (size_t)ctx);
}

void weft_misuse_null(const char *call, const char *argument) {
    misuse_enter(call);
    weft_job_panic("argument %s is NULL: pass the address of an object", argument);
}

void weft_misuse_constant(const char *call, const char *argument, long value, const char *allowed) {
    misuse_enter(call);
    weft_job_panic("argument %s is %ld: pass %s", argument, value, allowed);
}

void weft_misuse_member(const char *argument, int member, int npes) {
    weft_job_panic("argument %s is %d, but there are %d members: pass 0 to %d", argument, member,
                   npes, npes - 1);
}

void weft_misuse_stride(const char *argument, ptrdiff_t stride) {
    weft_job_panic("argument %s is %td: pass 1 or more", argument, stride);
}

void weft_misuse_handle(const char *call, const char *argument, const void *handle,
                        const char *allowed) {
    misuse_enter(call);
    weft_job_panic("argument %s is 0x%zx: pass %s", argument, (size_t)handle, allowed);
}
