/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: no test of its own, but PEs that multiply for ever, until another thread of theirs
 * calls exit(3) after so many milliseconds: "leaver f32|f64|bf16 MS". For tests/ops/exit.t.
 * PEs: none */
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft.h>

enum { ROWS = 256, INNER = 512, COLS = 512, LEAVES = 3, CANNOT = 77 };

static void *leave(void *milliseconds) {
    usleep((useconds_t)atoi(milliseconds) * 1000);
    exit(LEAVES);
}

static weft_matrix make(size_t rows, size_t cols, weft_dtype dtype) {
    void *data = shmem_calloc(rows * cols, sizeof(double));
    return (weft_matrix){data, rows, cols, cols, dtype};
}

int main(int argc, char **argv) {
    int provided, rc = 0;
    pthread_t thread;
    if (argc < 3)
        return 2;
    weft_dtype dtype = strcmp(argv[1], "f64") == 0    ? WEFT_F64
                       : strcmp(argv[1], "bf16") == 0 ? WEFT_BF16
                                                      : WEFT_F32;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    size_t all = ROWS * (size_t)shmem_n_pes();
    weft_matrix a = make(ROWS, INNER, dtype), b = make(INNER, COLS, dtype);
    weft_matrix gathered = make(all, COLS, dtype), whole = make(all, INNER, dtype);
    weft_matrix reduced = make(ROWS, COLS, dtype);
    pthread_create(&thread, NULL, leave, argv[2]);
    while (rc == 0) {
        rc = weft_all_gather_matmul(SHMEM_TEAM_WORLD, &a, &b, 1, &gathered, NULL, WEFT_STREAM_HOST);
        if (rc == 0)
            rc = weft_matmul_reduce_scatter(SHMEM_TEAM_WORLD, &whole, &b, WEFT_SUM, &reduced,
                                            WEFT_STREAM_HOST);
    }
    fprintf(stderr, "%s\n", weft_last_error());
    _exit(CANNOT);
}
