/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory ordering. Between near PEs puts are stores, so a fence orders and a quiet completes the
 * puts of every context; on SHMEM_CTX_INVALID both do nothing. A GPU's operations are ordered by
 * completing them. weft_far_fence orders messages to far PEs; acknowledgments complete them, for
 * every context. While weft_job.order_slow is 0, no quiet has to wait for messages, and the job
 * uses no GPU: then a call is one instruction. */
#include "core/order.h"
#include "api/define.h"

WEFT_COLD static void fence_slow(const char *call) {
    WEFT_IN_CALL(call);
    weft_check_running(call);
    weft_dispatch_fence();
    if (weft_job.far)
        weft_far_fence();
}

WEFT_COLD static void quiet_slow(const char *call) {
    WEFT_IN_CALL(call);
    weft_check_running(call);
    weft_dispatch_quiet();
}

static inline void fence_puts(const char *call) {
    if (weft_order_is_slow())
        fence_slow(call);
    weft_order_fence();
}

static inline void quiet_puts(const char *call) {
    if (weft_order_is_slow())
        quiet_slow(call);
    weft_order_quiet();
}

API(void, fence, (void)) {
    fence_puts(__func__);
}

API(void, ctx_fence, (shmem_ctx_t ctx)) {
    if (weft_check_ctx(__func__, ctx))
        fence_puts(__func__);
}

API(void, quiet, (void)) {
    quiet_puts(__func__);
}

API(void, ctx_quiet, (shmem_ctx_t ctx)) {
    if (weft_check_ctx(__func__, ctx))
        quiet_puts(__func__);
}

/* Completes the operations under way to these PEs, as far as they are tracked per PE. */
WEFT_COLD static void quiet_pes_slow(const char *call, shmem_ctx_t ctx, const int *target_pes,
                                     size_t npes) {
    enum { AT_ONCE = 64 };
    WEFT_IN_CALL(call);
    weft_dispatch_fence();
    for (size_t first = 0, n; weft_job.far && first < npes; first += n) {
        int pes[AT_ONCE];
        n = npes - first < AT_ONCE ? npes - first : AT_ONCE;
        for (size_t i = 0; i < n; i++)
            pes[i] = weft_ctx_world_pe(ctx, target_pes[first + i]);
        weft_far_quiet_pes(pes, n);
    }
}

static void quiet_pes(const char *call, shmem_ctx_t ctx, const int *target_pes, size_t npes) {
    weft_check_local(call, "target_pes", target_pes, npes);
    for (size_t i = 0; i < npes; i++) {
        int pe = weft_check_pe(call, ctx, target_pes[i]);
        if (pe >= weft_job.npes)
            weft_misuse_access(call, "", NULL, 0, pe);
    }
    if (weft_order_is_slow())
        quiet_pes_slow(call, ctx, target_pes, npes);
    weft_order_quiet();
}

API(void, pe_quiet, (const int *target_pes, size_t npes)) {
    weft_check_running(__func__);
    if (npes != 0)
        quiet_pes(__func__, SHMEM_CTX_DEFAULT, target_pes, npes);
}

API(void, ctx_pe_quiet, (shmem_ctx_t ctx, const int *target_pes, size_t npes)) {
    if (weft_check_ctx(__func__, ctx) && npes != 0)
        quiet_pes(__func__, ctx, target_pes, npes);
}
