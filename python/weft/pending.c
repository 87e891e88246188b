/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of arrays that non-blocking calls use, the latest first; protected by the GIL. Releasing
 * an array may run Python code of its producer, so an entry is removed first, and the list is
 * searched anew. */
#include "pending.h"
#include "session.h"

struct pending {
    struct pending *next;
    uint64_t number;
    shmem_ctx_t ctx;
    struct pyweft_array array;
};

static struct pending *all;
static uint64_t count;

bool pyweft_pending_hold(shmem_ctx_t ctx, struct pyweft_array *array) {
    struct pending *pending = PyMem_Malloc(sizeof *pending);
    if (!pending) {
        PyErr_NoMemory();
        return false;
    }
    *pending = (struct pending){all, count++, ctx, *array};
    array->holder = PYWEFT_HELD_BY_NONE;
    all = pending;
    return true;
}

uint64_t pyweft_pending_count(void) {
    return count;
}

static struct pending *take_out(shmem_ctx_t ctx, uint64_t begun) {
    for (struct pending **link = &all, *one; (one = *link); link = &one->next)
        if (one->number < begun && (ctx == SHMEM_CTX_INVALID || one->ctx == ctx)) {
            *link = one->next;
            return one;
        }
    return NULL;
}

void pyweft_pending_drop(shmem_ctx_t ctx, uint64_t begun) {
    for (struct pending *one; all && (one = take_out(ctx, begun)); PyMem_Free(one))
        pyweft_array_drop(&one->array);
}

void pyweft_pending_finish(void) {
    uint64_t begun = count;
    int error;
    if (!all)
        return;
    PYWEFT_WITHOUT_GIL(error, (shmem_quiet(), 0));
    if (!error)
        pyweft_pending_drop(SHMEM_CTX_INVALID, begun);
}
