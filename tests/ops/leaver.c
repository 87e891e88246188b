/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: not a test by itself: PEs that multiply until another thread of theirs calls exit(3)
 * after MS milliseconds: "leaver f32|f64|bf16 MS". With a second number N they exit when oneDNN
 * registers its N-th exit handler, if that is earlier. For tests/ops/exit.t. PEs: none */
#include <dlfcn.h>
#include <pthread.h>
#include <shmem.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft.h>

enum { ROWS = 256, INNER = 512, COLS = 512, LEAVES = 3, CANNOT = 77 };

static atomic_bool leaves;
static atomic_int handlers_left;

/* Wraps the registration of all exit handlers of the process. At the N-th one of oneDNN the process
 * exits, and the product that registers it continues a little later. */
int __cxa_atexit(void (*run)(void *), void *argument, void *library) {
    static int (*next)(void (*)(void *), void *, void *);
    Dl_info of;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "__cxa_atexit");
    int rc = next(run, argument, library);
    if (library && dladdr(library, &of) && strstr(of.dli_fname, "libdnnl") &&
        atomic_fetch_sub(&handlers_left, 1) == 1) {
        leaves = true;
        usleep(100000);
    }
    return rc;
}

static void *leave(void *milliseconds) {
    for (int ms = atoi(milliseconds); ms > 0 && !leaves; ms--)
        usleep(1000);
    exit(LEAVES);
}

static weft_matrix make(size_t rows, size_t cols, weft_dtype dtype) {
    void *data = shmem_calloc(rows * cols, sizeof(double));
    return (weft_matrix){data, rows, cols, cols, dtype, false};
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
    if (argc > 3 && (dlopen("libdnnl.so.3", RTLD_NOW) || dlopen("libdnnl.so.2", RTLD_NOW)))
        handlers_left = atoi(argv[3]);
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
