/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the benchmarks: the clock and medians (clock.h), and one JSON object per line on
 * stdout. Only standard OpenSHMEM from version 1.4 on, so that the same source measures any
 * library. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "clock.h"

static inline void bench_progress(int pe, const char *what) {
    if (pe == 0)
        fprintf(stderr, "\r\033[K  measuring %s", what);
}

static inline void bench_progress_end(int pe) {
    if (pe == 0)
        fprintf(stderr, "\r\033[K");
}

/* PE 0 prints one row. `limit` is the time that the machine itself takes, 0 if there is no
 * comparable operation. */
static inline void bench_report(const char *row, double value, double limit, const char *unit) {
    char library[SHMEM_MAX_NAME_LEN];
    bench_progress_end(shmem_my_pe());
    if (shmem_my_pe() != 0)
        return;
    shmem_info_get_name(library);
    printf("{\"row\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", \"limit\": %.4g, \"pes\": %d, "
           "\"library\": \"%s\"}\n",
           row, value, unit, limit, shmem_n_pes(), library);
    fflush(stdout);
}

#endif
