/* SPDX-License-Identifier: BSD-3-Clause */
/* The PE of a program, and its neighbours in a ring. */
#ifndef TESTS_CONFORMANCE_RING_H
#define TESTS_CONFORMANCE_RING_H

#include <shmem.h>
#include "tap.h"

static int me, npes, next, before;

/* Must be called after the library is initialised. */
static inline void ring_start(void) {
    me = shmem_my_pe();
    npes = shmem_n_pes();
    next = (me + 1) % npes;
    before = (me + npes - 1) % npes;
    tap_start(me);
}

#endif
