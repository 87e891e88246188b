/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of teams. An invalid team is an error that the routine returns. Invalid addresses and
 * numbers end the job, because the other members would wait. */
#include "api/collective.h"
#include "api/checked.h"
#include "api/define.h"

/* --- Checks ---------------------------------------------------------------------------------- */

/* Ends the job unless `blocks` blocks of `bytes` each from `p` on are symmetric. */
static inline void check_symmetric(const char *argument, const void *p, size_t bytes,
                                   size_t blocks) {
    size_t all = weft_check_bytes(bytes, blocks);
    if (!weft_dispatch_symmetric(p, all, weft_job.pe))
        weft_misuse_access(weft_current_call, argument, p, all, weft_job.pe);
}

/* The arrays of a call, for checked mode. */
struct arrays {
    struct weft_argument dest, source;
    bool in_place; /* dest may be equal to source */
};

static struct arrays arrays_of(const void *dest, size_t dest_bytes, const void *source,
                               size_t source_bytes, bool in_place) {
    return (struct arrays){{"dest", dest, dest_bytes}, {"source", source, source_bytes}, in_place};
}

WEFT_COLD static void check_group_arrays(const struct weft_group *group, struct arrays arrays,
                                         const struct weft_same *same) {
    weft_checked_object(arrays.dest);
    weft_checked_object(arrays.source);
    if (!arrays.in_place || arrays.dest.p != arrays.source.p)
        weft_checked_disjoint(arrays.dest, arrays.source);
    weft_checked_group(group, same);
}

WEFT_COLD static void check_parts(const struct weft_group *group, struct arrays arrays,
                                  size_t bytes) {
    const struct weft_same same[] = {{"nelems (in bytes)", (int64_t)bytes}, {NULL, 0}};
    check_group_arrays(group, arrays, same);
}

/* Also checks that dest can hold the contributions of all members. */
WEFT_COLD static void check_collect(const struct weft_group *group, const void *dest,
                                    const void *source, size_t bytes) {
    struct arrays arrays = arrays_of(dest, bytes, source, bytes, false);
    check_group_arrays(group, arrays, WEFT_NO_ARGUMENTS);
    arrays.dest.bytes = weft_group_sum(group, bytes);
    if (arrays.dest.bytes == 0)
        return;
    check_symmetric("dest", dest, arrays.dest.bytes, 1);
    weft_checked_object(arrays.dest);
    weft_checked_disjoint(arrays.dest, arrays.source);
}

void weft_api_broadcast(const struct weft_group *group, void *dest, const void *source,
                        size_t bytes, int root) {
    if (__builtin_expect(root < 0 || root >= group->npes, 0))
        weft_misuse_member("PE_root", root, group->npes);
    if (bytes == 0)
        return;
    bool in_place =
        !group->team && group->me == root; /* the root of an active set does not write dest */
    const void *to = in_place ? source : dest;
    check_symmetric("dest", to, bytes, 1);
    check_symmetric("source", source, bytes, 1);
    if (weft_checked())
        check_group_arrays(group, arrays_of(to, bytes, source, bytes, in_place),
                           (struct weft_same[]){{"PE_root", root},
                                                {"nelems (in bytes)", (int64_t)bytes},
                                                {NULL, 0}});
    weft_group_broadcast(group, dest, source, bytes, root);
}

void weft_api_fcollect(const struct weft_group *group, void *dest, const void *source,
                       size_t bytes) {
    if (bytes == 0)
        return;
    check_symmetric("dest", dest, bytes, (size_t)group->npes);
    check_symmetric("source", source, bytes, 1);
    if (weft_checked())
        check_parts(group, arrays_of(dest, bytes * (size_t)group->npes, source, bytes, false),
                    bytes);
    weft_group_fcollect(group, dest, source, bytes);
}

/* In checked mode the members meet first, because the size of dest is known only afterwards. */
void weft_api_collect(const struct weft_group *group, void *dest, const void *source,
                      size_t bytes) {
    if (bytes > 0) {
        check_symmetric("dest", dest, bytes, 1);
        check_symmetric("source", source, bytes, 1);
    }
    if (weft_checked())
        check_collect(group, dest, source, bytes);
    weft_group_collect(group, dest, source, bytes);
}

void weft_api_alltoall(const struct weft_group *group, void *dest, const void *source,
                       size_t bytes) {
    if (bytes == 0)
        return;
    check_symmetric("dest", dest, bytes, (size_t)group->npes);
    check_symmetric("source", source, bytes, (size_t)group->npes);
    if (weft_checked()) {
        size_t all = weft_check_bytes(bytes, (size_t)group->npes);
        check_parts(group, arrays_of(dest, all, source, all, false), bytes);
    }
    weft_group_alltoall(group, dest, source, bytes);
}

/* Returns the number of elements from the first to the last one of all blocks. */
static size_t strided_extent(const struct weft_group *group, size_t nelems, ptrdiff_t stride) {
    size_t last = weft_check_bytes(nelems, (size_t)group->npes) - 1;
    size_t extent = weft_check_bytes(last, (size_t)stride);
    return extent == SIZE_MAX ? extent : extent + 1;
}

void weft_api_alltoalls(const struct weft_group *group, void *dest, const void *source,
                        const struct weft_blocks_shape *shape) {
    if (__builtin_expect(shape->dest_stride < 1, 0))
        weft_misuse_stride("dst", shape->dest_stride);
    if (__builtin_expect(shape->source_stride < 1, 0))
        weft_misuse_stride("sst", shape->source_stride);
    if (shape->nelems == 0)
        return;
    size_t to = strided_extent(group, shape->nelems, shape->dest_stride);
    size_t from = strided_extent(group, shape->nelems, shape->source_stride);
    check_symmetric("dest", dest, shape->elem_bytes, to);
    check_symmetric("source", source, shape->elem_bytes, from);
    if (weft_checked())
        check_group_arrays(
            group, arrays_of(dest, to * shape->elem_bytes, source, from * shape->elem_bytes, false),
            (struct weft_same[]){{"nelems", (int64_t)shape->nelems},
                                 {"dst", shape->dest_stride},
                                 {"sst", shape->source_stride},
                                 {NULL, 0}});
    weft_group_alltoalls(group, dest, source, shape);
}

void weft_api_fold(const struct weft_group *group, void *dest, const void *source,
                   const struct weft_folding *folding) {
    if (folding->nelems == 0)
        return;
    check_symmetric("dest", dest, folding->fold->elem_bytes, folding->nelems);
    check_symmetric("source", source, folding->fold->elem_bytes, folding->nelems);
    if (weft_checked()) {
        size_t bytes = folding->nelems * folding->fold->elem_bytes;
        check_group_arrays(group, arrays_of(dest, bytes, source, bytes, true),
                           (struct weft_same[]){{"nelems", (int64_t)folding->nelems}, {NULL, 0}});
    }
    weft_group_fold(group, dest, source, folding);
}

/* --- The names ------------------------------------------------------------------------------- */

/* Begins a routine: declares the group of its team, or returns an error and sets its text. */
#define OPEN_GROUP(call, handle)                              \
    WEFT_ENTER(call);                                         \
    struct weft_team *const members = weft_team_find(handle); \
    if (__builtin_expect(!members, 0))                        \
        return weft_team_refuse(handle);                      \
    const struct weft_group group = weft_group_of(members)

/* The arrays of a routine, as its caller passes them. */
struct passed {
    void *dest;
    const void *source;
    size_t bytes;
};

static int run_broadcast(const char *call, shmem_team_t team, struct passed passed, int root) {
    OPEN_GROUP(call, team);
    weft_api_broadcast(&group, passed.dest, passed.source, passed.bytes, root);
    return 0;
}

/* The body of a collect, an fcollect or an all-to-all. */
typedef void exchange(const struct weft_group *group, void *dest, const void *source, size_t bytes);

static int run_exchange(const char *call, shmem_team_t team, struct passed passed, exchange *body) {
    OPEN_GROUP(call, team);
    body(&group, passed.dest, passed.source, passed.bytes);
    return 0;
}

static int run_alltoalls(const char *call, shmem_team_t team, void *dest, const void *source,
                         const struct weft_blocks_shape *shape) {
    OPEN_GROUP(call, team);
    weft_api_alltoalls(&group, dest, source, shape);
    return 0;
}

static int run_fold(const char *call, shmem_team_t team, void *dest, const void *source,
                    const struct weft_folding *folding) {
    OPEN_GROUP(call, team);
    weft_api_fold(&group, dest, source, folding);
    return 0;
}

/* clang-format off */
#define EXCHANGE(NAME, T, BODY, SIZE)                                                              \
    API(int, NAME, (shmem_team_t team, T *dest, const T *source, size_t nelems)) {                 \
        struct passed passed = {dest, source, weft_check_bytes(nelems, SIZE)};                     \
        return run_exchange(__func__, team, passed, BODY);                                         \
    }
#define COLLECTIVES(BROADCAST, COLLECT, FCOLLECT, ALLTOALL, ALLTOALLS, T, SIZE)                    \
    API(int, BROADCAST,                                                                            \
        (shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root)) {               \
        struct passed passed = {dest, source, weft_check_bytes(nelems, SIZE)};                     \
        return run_broadcast(__func__, team, passed, PE_root);                                     \
    }                                                                                              \
    EXCHANGE(COLLECT, T, weft_api_collect, SIZE)                                                   \
    EXCHANGE(FCOLLECT, T, weft_api_fcollect, SIZE)                                                 \
    EXCHANGE(ALLTOALL, T, weft_api_alltoall, SIZE)                                                 \
    API(int, ALLTOALLS, (shmem_team_t team, T *dest, const T *source, ptrdiff_t dst,               \
                         ptrdiff_t sst, size_t nelems)) {                                          \
        struct weft_blocks_shape shape = {nelems, SIZE, dst, sst};                                 \
        return run_alltoalls(__func__, team, dest, source, &shape);                                \
    }
#define TYPED(N, T, _)                                                                             \
    COLLECTIVES(N##_broadcast, N##_collect, N##_fcollect, N##_alltoall, N##_alltoalls, T, sizeof(T))
SHMEM_RMA_TYPES(TYPED, _)
COLLECTIVES(broadcastmem, collectmem, fcollectmem, alltoallmem, alltoallsmem, void, 1)

#define FOLD(N, T, NAME, OP, OF)                                                                   \
    API(int, N##_##NAME, (shmem_team_t team, T *dest, const T *source, size_t nelems)) {           \
        struct weft_folding folding = {&weft_folds[WEFT_FOLD_##OP][WEFT_NUMBER_OF(T)], nelems, OF, \
                                       NULL};                                                      \
        return run_fold(__func__, team, dest, source, &folding);                                   \
    }
#define REDUCE(N, T, NAME, OP) FOLD(N, T, NAME##_reduce, OP, WEFT_FOLD_OF_ALL)
#define BITWISE(N, T, _)    REDUCE(N, T, and, AND) REDUCE(N, T, or, OR) REDUCE(N, T, xor, XOR)
#define ORDERED(N, T, _)    REDUCE(N, T, max, MAX) REDUCE(N, T, min, MIN)
#define ARITHMETIC(N, T, _) REDUCE(N, T, sum, SUM) REDUCE(N, T, prod, PROD)                        \
                            FOLD(N, T, sum_inscan, SUM, WEFT_FOLD_UP_TO_OWN)                       \
                            FOLD(N, T, sum_exscan, SUM, WEFT_FOLD_BEFORE_OWN)
SHMEM_BITWISE_TYPES(BITWISE, _)
SHMEM_RMA_TYPES(ORDERED, _)
SHMEM_ARITHMETIC_TYPES(ARITHMETIC, _)
