/* SPDX-License-Identifier: BSD-3-Clause */
/* Ordering of stores and puts. fence is a release. quiet also keeps later loads after earlier
 * stores, which takes a locked instruction on x86. Both apply to near host memory only. complete is
 * a quiet of all memory, for the library's own calls; shmem_fence and shmem_quiet are in
 * api/order.c. */
#ifndef WEFT_CORE_ORDER_H
#define WEFT_CORE_ORDER_H

#include <stdatomic.h>
#include "core/dispatch.h"

static inline void weft_order_fence(void) {
    atomic_thread_fence(memory_order_release);
}

static inline void weft_order_quiet(void) {
    atomic_thread_fence(memory_order_seq_cst);
}

static inline void weft_order_complete(void) {
    weft_dispatch_quiet();
    weft_order_quiet();
}

#endif
