/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_routines.h"

/* clang-format off */
#define GATHER(NAME)                                                                               \
    static int call_##NAME(shmem_team_t team, void *dest, const void *source, size_t nelems) {     \
        return shmem_##NAME(team, dest, source, nelems);                                           \
    }
#define MOVES(NAME, BROADCAST, ALLTOALLS)                                                          \
    static int call_##BROADCAST(shmem_team_t team, void *dest, const void *source, size_t nelems,  \
                                int root) {                                                        \
        return shmem_##BROADCAST(team, dest, source, nelems, root);                                \
    }                                                                                              \
    static int call_##ALLTOALLS(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst,  \
                                ptrdiff_t sst, size_t nelems) {                                    \
        return shmem_##ALLTOALLS(team, dest, source, dst, sst, nelems);                            \
    }
#define TYPED(N, T, _)                                                                             \
    MOVES(N, N##_broadcast, N##_alltoalls)                                                         \
    GATHER(N##_collect) GATHER(N##_fcollect) GATHER(N##_alltoall)
SHMEM_RMA_TYPES(TYPED, _)
MOVES(mem, broadcastmem, alltoallsmem)
GATHER(collectmem) GATHER(fcollectmem) GATHER(alltoallmem)

#define TYPED_ROW(N, T, _)                                                                         \
    {#N, sizeof(T), call_##N##_broadcast, call_##N##_collect, call_##N##_fcollect,                 \
     call_##N##_alltoall, call_##N##_alltoalls},
const struct move_routines move_routines[] = {
    SHMEM_RMA_TYPES(TYPED_ROW, _)
    {"mem", 1, call_broadcastmem, call_collectmem, call_fcollectmem, call_alltoallmem,
     call_alltoallsmem},
};
const int MOVE_ROWS = sizeof move_routines / sizeof *move_routines;

#define SET set->start, set->log_stride, set->size
#define ACTIVE_GATHER(NAME)                                                                        \
    static void active_##NAME(void *dest, const void *source, size_t nelems,                       \
                              const struct active_set *set) {                                      \
        shmem_##NAME(dest, source, nelems, SET, set->psync);                                       \
    }
#define ACTIVE(BITS)                                                                               \
    static void active_broadcast##BITS(void *dest, const void *source, size_t nelems, int root,    \
                                       const struct active_set *set) {                             \
        shmem_broadcast##BITS(dest, source, nelems, root, SET, set->psync);                        \
    }                                                                                              \
    static void active_alltoalls##BITS(void *dest, const void *source, ptrdiff_t dst,              \
                                       ptrdiff_t sst, size_t nelems,                               \
                                       const struct active_set *set) {                             \
        shmem_alltoalls##BITS(dest, source, dst, sst, nelems, SET, set->psync);                    \
    }                                                                                              \
    ACTIVE_GATHER(collect##BITS) ACTIVE_GATHER(fcollect##BITS) ACTIVE_GATHER(alltoall##BITS)
ACTIVE(32)
ACTIVE(64)
#define ACTIVE_ROW(BITS)                                                                           \
    {#BITS " bits", BITS / 8, active_broadcast##BITS, active_collect##BITS,                        \
     active_fcollect##BITS, active_alltoall##BITS, active_alltoalls##BITS},
const struct active_routines active_routines[2] = {ACTIVE_ROW(32) ACTIVE_ROW(64)};
/* clang-format on */
