/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on active sets, which OpenSHMEM 1.6 deprecates but still requires. They consist of
 * this file, src/coll/active.[ch] and their part of include/shmem_deprecated.h, on which nothing
 * else depends, so they can be removed together. */
#include "core/order.h"
#include "coll/active.h"
#include "api/checked.h"
#include "api/collective.h"
#include "api/define.h"

static void check_psync(const struct weft_group *group) {
    int unready = weft_active_unready(group);
    if (unready >= 0)
        weft_job_panic("argument pSync is %p, whose element %d is %ld, not SHMEM_SYNC_VALUE: set "
                       "all elements on all PEs before the first call with it",
                       (void *)group->psync, unready, group->psync[unready]);
}

/* Checks a call's active set and makes its group. Ends the job if the set or pSync is invalid, or
 * if this PE is not a member. */
static struct weft_group open_set(int start, int log_stride, int size, long *psync) {
    int most = weft_job.npes;
    if (start < 0 || start >= most)
        weft_misuse_member("PE_start", start, most);
    if (log_stride < 0 || log_stride > 30)
        weft_misuse_constant(weft_current_call, "logPE_stride", log_stride, "0 to 30");
    if (size < 1 || start + ((int64_t)(size - 1) << log_stride) >= most)
        weft_misuse_constant(weft_current_call, "PE_size", size,
                             "1 to the number of PEs from PE_start on, 2^logPE_stride apart");
    if (!weft_near(psync, SHMEM_SYNC_SIZE * sizeof *psync, weft_job.pe))
        weft_misuse_access(weft_current_call, "pSync", psync, SHMEM_SYNC_SIZE * sizeof *psync,
                           weft_job.pe);
    struct weft_group group = weft_active_group(start, log_stride, size, psync, weft_job.pe);
    if (group.me < 0)
        weft_misuse_constant(weft_current_call, "PE_start", start,
                             "a set that the calling PE is a member of");
    if (weft_checked())
        check_psync(&group);
    return group;
}

/* clang-format off */
#define SET    int PE_start, int logPE_stride, int PE_size
#define ARRAYS void *dest, const void *source
#define OPEN                                                                                       \
    WEFT_ENTER(__func__);                                                                          \
    struct weft_group group = open_set(PE_start, logPE_stride, PE_size, pSync);

static void sync_set(const struct weft_group *group) {
    if (weft_checked())
        weft_checked_group(group, WEFT_NO_ARGUMENTS);
    group->sync(group);
}

API(void, sync, (SET, long *pSync)) {
    OPEN
    sync_set(&group);
}

API(void, barrier, (SET, long *pSync)) {
    OPEN
    weft_order_complete();
    sync_set(&group);
}

#define BROADCAST(NAME, SIZE)                                                                      \
    API(void, NAME, (ARRAYS, size_t nelems, int PE_root, SET, long *pSync)) {                      \
        OPEN                                                                                       \
        weft_api_broadcast(&group, dest, source, weft_check_bytes(nelems, SIZE), PE_root);         \
    }
#define COPY(NAME, VERB, SIZE)                                                                     \
    API(void, NAME, (ARRAYS, size_t nelems, SET, long *pSync)) {                                   \
        OPEN                                                                                       \
        weft_api_##VERB(&group, dest, source, weft_check_bytes(nelems, SIZE));                     \
    }
#define STRIDED(NAME, SIZE)                                                                        \
    API(void, NAME, (ARRAYS, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, SET, long *pSync)) {     \
        OPEN                                                                                       \
        struct weft_blocks_shape shape = {nelems, SIZE, dst, sst};                                 \
        weft_api_alltoalls(&group, dest, source, &shape);                                          \
    }
#define SIZED(BITS, SIZE)                                                                          \
    BROADCAST(broadcast##BITS, SIZE)                                                               \
    COPY(collect##BITS, collect, SIZE)                                                             \
    COPY(fcollect##BITS, fcollect, SIZE)                                                           \
    COPY(alltoall##BITS, alltoall, SIZE)                                                           \
    STRIDED(alltoalls##BITS, SIZE)
SIZED(32, 4)
SIZED(64, 8)

/* pWrk stays unused, because members read each other's sources. */
#define TO_ALL(N, T, OP, FOLD)                                                                     \
    API(void, N##_##OP##_to_all,                                                                   \
        (T *dest, const T *source, int nreduce, SET, T *pWrk, long *pSync)) {                      \
        OPEN                                                                                       \
        (void)pWrk;                                                                                \
        struct weft_folding folding = {&weft_folds[WEFT_FOLD_##FOLD][WEFT_NUMBER_OF(T)],           \
                                       (size_t)nreduce, WEFT_FOLD_OF_ALL, NULL};                   \
        weft_api_fold(&group, dest, source, &folding);                                             \
    }
#define BITWISE(N, T, _)    TO_ALL(N, T, and, AND) TO_ALL(N, T, or, OR) TO_ALL(N, T, xor, XOR)
#define ORDERED(N, T, _)    TO_ALL(N, T, max, MAX) TO_ALL(N, T, min, MIN)
#define ARITHMETIC(N, T, _) TO_ALL(N, T, sum, SUM) TO_ALL(N, T, prod, PROD)
SHMEM_TO_ALL_BITWISE_TYPES(BITWISE, _)
SHMEM_TO_ALL_ORDERED_TYPES(ORDERED, _)
SHMEM_TO_ALL_ARITHMETIC_TYPES(ARITHMETIC, _)
