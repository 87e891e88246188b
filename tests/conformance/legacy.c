/* SPDX-License-Identifier: BSD-3-Clause */
/* The deprecated routines that are not collective: a program from before version 1.2, which calls
 * start_pes, _my_pe and shmalloc, and ends by returning from main (pitfall 47). */
#include <mpp/shmem.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tap.h"

static int me, npes, next, before;

/* clang-format off */
#define INTEGERS(X) X(int, int) X(long, long) X(longlong, long long)
#define NUMBERS(X)  INTEGERS(X) X(float, float) X(double, double)
#define WAITS(X)    X(short, short) INTEGERS(X)

/* Each under its own name, then under the type-generic one, on the next PE's word. */
#define NUMBER(N, T)                                                                               \
    static void number_##N(void) {                                                                 \
        static T word, other;                                                                      \
        shmem_##N##_set(&word, (T)(me + 5), next);                                                 \
        EXPECT(shmem_##N##_fetch(&word, next) == (T)(me + 5), #N "_fetch");                        \
        EXPECT(shmem_##N##_swap(&word, (T)(me + 6), next) == (T)(me + 5), #N "_swap");             \
        shmem_set(&other, (T)3, next);                                                             \
        EXPECT(shmem_swap(&other, (T)4, next) == (T)3, "swap of " #N);                             \
        EXPECT(shmem_fetch((const T *)&other, next) == (T)4, "fetch of " #N);                      \
        shmem_barrier_all();                                                                       \
        EXPECT(word == (T)(before + 6) && other == (T)4, #N);                                      \
        shmem_barrier_all();                                                                       \
    }
#define INTEGER(N, T)                                                                              \
    static void integer_##N(void) {                                                                \
        static T word;                                                                             \
        shmem_##N##_add(&word, 10, next);                                                          \
        shmem_##N##_inc(&word, next);                                                              \
        EXPECT(shmem_##N##_fadd(&word, 9, next) == 11, #N "_fadd");                                \
        EXPECT(shmem_##N##_finc(&word, next) == 20, #N "_finc");                                   \
        EXPECT(shmem_##N##_cswap(&word, 20, 7, next) == 21, #N "_cswap, not equal");               \
        EXPECT(shmem_##N##_cswap(&word, 21, 7, next) == 21, #N "_cswap, equal");                   \
        shmem_add(&word, (T)1, next);                                                              \
        shmem_inc(&word, next);                                                                    \
        EXPECT(shmem_fadd(&word, 1, next) == 9 && shmem_finc(&word, next) == 10, "generic " #N);   \
        EXPECT(shmem_cswap(&word, 11, 30 + me, next) == 11, "cswap of " #N);                       \
        shmem_barrier_all();                                                                       \
        EXPECT(word == (T)(30 + before), #N);                                                      \
        shmem_barrier_all();                                                                       \
        for (int i = 0; i < 200; i++)                                                              \
            shmem_##N##_inc(&word, 0);                                                             \
        shmem_barrier_all();                                                                       \
        EXPECT(me != 0 || word == (T)(30 + before + 200 * npes), "contended " #N "_inc");          \
        shmem_barrier_all();                                                                       \
    }
#define WAIT(N, T)                                                                                 \
    static void wait_##N(void) {                                                                   \
        static T word;                                                                             \
        for (int turn = 1; turn <= 50; turn++) {                                                   \
            shmem_##N##_p(&word, (T)turn, next);                                                   \
            if (turn % 2)                                                                          \
                shmem_##N##_wait(&word, (T)(turn - 1)); /* until it has another value */           \
            else                                                                                   \
                shmem_##N##_wait_until(&word, _SHMEM_CMP_EQ, (T)turn);                             \
            EXPECT(word == (T)turn && shmem_##N##_test(&word, _SHMEM_CMP_GE, (T)turn), #N);        \
            shmem_barrier_all();                                                                   \
        }                                                                                          \
    }
NUMBERS(NUMBER)
INTEGERS(INTEGER)
WAITS(WAIT)
#define CALL_NUMBER(N, T)  number_##N();
#define CALL_INTEGER(N, T) integer_##N();
#define CALL_WAIT(N, T)    wait_##N();
/* clang-format on */

/* Names without a type mean long; unsigned shorts have no wait, but wait_until and test. */
static void untyped_waits(void) {
    static long word;
    static unsigned short narrow;
    shmem_long_p(&word, 3, next);
    shmem_wait(&word, 0);
    (shmem_wait_until)(&word, _SHMEM_CMP_NE, 0);
    shmem_wait_until(&word, SHMEM_CMP_EQ, 3);
    EXPECT(word == 3, "%ld", word);
    shmem_ushort_p(&narrow, 65535, next);
    shmem_ushort_wait_until(&narrow, SHMEM_CMP_GT, 32768);
    EXPECT(shmem_ushort_test(&narrow, SHMEM_CMP_EQ, 65535), "%d", narrow);
    EXPECT(!shmem_ushort_test(&narrow, SHMEM_CMP_LT, 1), "%d", narrow);
    shmem_barrier_all();
}

static void memory(void) {
    int *p = shmalloc(100 * sizeof *p), *q = shmemalign(1024, 10 * sizeof *q);
    EXPECT(p && q && (uintptr_t)q % 1024 == 0, "%p %p", (void *)p, (void *)q);
    for (int i = 0; i < 100; i++)
        p[i] = me + i;
    shmem_barrier_all();
    EXPECT(shmem_int_g(&p[50], next) == next + 50, "shmalloc");
    p = shrealloc(p, 5000 * sizeof *p);
    EXPECT(p[99] == me + 99 && shmem_int_g(&p[99], next) == next + 99, "shrealloc");
    shfree(q);
    shfree(p);
    EXPECT(shmalloc(0) == NULL, "no bytes");
    shfree(NULL);
}

_Static_assert(_SHMEM_MAJOR_VERSION == 1 && _SHMEM_MINOR_VERSION == 6, "version");
_Static_assert(_SHMEM_MAX_NAME_LEN == SHMEM_MAX_NAME_LEN, "length of a name");
_Static_assert(sizeof _SHMEM_VENDOR_STRING == sizeof SHMEM_VENDOR_STRING, "name");
_Static_assert(_SHMEM_CMP_EQ == SHMEM_CMP_EQ && _SHMEM_CMP_NE == SHMEM_CMP_NE, "comparisons");
_Static_assert(_SHMEM_CMP_GT == SHMEM_CMP_GT && _SHMEM_CMP_GE == SHMEM_CMP_GE, "comparisons");
_Static_assert(_SHMEM_CMP_LT == SHMEM_CMP_LT && _SHMEM_CMP_LE == SHMEM_CMP_LE, "comparisons");
static const long work_sizes[] = {_SHMEM_BCAST_SYNC_SIZE,         _SHMEM_REDUCE_SYNC_SIZE,
                                  _SHMEM_BARRIER_SYNC_SIZE,       _SHMEM_COLLECT_SYNC_SIZE,
                                  _SHMEM_REDUCE_MIN_WRKDATA_SIZE, SHMEM_ALLTOALL_SYNC_SIZE,
                                  SHMEM_ALLTOALLS_SYNC_SIZE};

int main(void) {
    int initialized = 0, provided = -1;
    start_pes(0);
    start_pes(npes); /* a second call has no effect */
    me = _my_pe();
    npes = _num_pes();
    next = (me + 1) % npes;
    before = (me + npes - 1) % npes;
    tap_start(me);
    tap_case("47: start_pes");
    shmem_query_initialized(&initialized);
    shmem_query_thread(&provided);
    EXPECT(initialized == 1 && provided >= SHMEM_THREAD_SINGLE, "%d %d", initialized, provided);
    EXPECT(me == shmem_my_pe() && npes == shmem_n_pes() && me >= 0 && me < npes, "%d of %d", me,
           npes);
    for (size_t i = 0; i < sizeof work_sizes / sizeof *work_sizes; i++)
        EXPECT(work_sizes[i] > 0 && work_sizes[i] <= 1 << 20, "size %zu: %ld", i, work_sizes[i]);
    tap_case("atomics, by type and type-generic");
    NUMBERS(CALL_NUMBER)
    INTEGERS(CALL_INTEGER)
    tap_case("waiting");
    WAITS(CALL_WAIT)
    untyped_waits();
    tap_case("memory");
    memory();
    return tap_finish(); /* the library finalizes by itself */
}
