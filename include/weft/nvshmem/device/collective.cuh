/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives by NVSHMEM's names. In kernels the members put data to each other and then
 * synchronise. In a reduction each member reduces its part of the elements for all members, in
 * member order: results have the same bits everywhere, and dest may be source. Functions return 0,
 * or -1 if this PE has no such team or the job is over. */
#ifndef WEFT_NVSHMEM_COLLECTIVE_CUH
#define WEFT_NVSHMEM_COLLECTIVE_CUH

#include "weft/nvshmem/device/copy.cuh"
#include "weft/nvshmem/device/team.cuh"

/* --- Data movement by kernels ----------------------------------------------------------------- */

#ifdef WEFT_NVSHMEM_KERNEL

WEFT_DEVICE void weft_nvshmem_copy(void *to, const void *from, size_t bytes,
                                   enum weft_scope scope) {
    if (to == from)
        return;
    if (scope == WEFT_SCOPE_t)
        weft_copy_t(to, from, bytes);
    else if (scope == WEFT_SCOPE_w)
        weft_copy_w(to, from, bytes);
    else
        weft_copy_b(to, from, bytes);
}

WEFT_DEVICE int weft_nvshmem_broadcast(nvshmem_team_t team, void *dest, const void *source,
                                       size_t bytes, int root, enum weft_scope scope) {
    const weft_device_team *t = weft_nvshmem_team(team);
    weft_scope_sync(scope);
    for (int i = 0; t && t->me == root && i < t->n; i++) {
        int m = weft_gpu_member_after(t->me, t->n, i);
        weft_nvshmem_copy(weft_at(t, dest, m), source, bytes, scope);
    }
    return weft_nvshmem_meet(team, scope);
}

WEFT_DEVICE int weft_nvshmem_fcollect(nvshmem_team_t team, void *dest, const void *source,
                                      size_t bytes, enum weft_scope scope) {
    const weft_device_team *t = weft_nvshmem_team(team);
    weft_scope_sync(scope);
    for (int i = 0; t && i < t->n; i++) {
        int m = weft_gpu_member_after(t->me, t->n, i);
        weft_nvshmem_copy((char *)weft_at(t, dest, m) + (size_t)t->me * bytes, source, bytes,
                          scope);
    }
    return weft_nvshmem_meet(team, scope);
}

WEFT_DEVICE int weft_nvshmem_alltoall(nvshmem_team_t team, void *dest, const void *source,
                                      size_t bytes, enum weft_scope scope) {
    const weft_device_team *t = weft_nvshmem_team(team);
    weft_scope_sync(scope);
    for (int i = 0; t && i < t->n; i++) {
        int m = weft_gpu_member_after(t->me, t->n, i);
        weft_nvshmem_copy((char *)weft_at(t, dest, m) + (size_t)t->me * bytes,
                          (const char *)source + (size_t)m * bytes, bytes, scope);
    }
    return weft_nvshmem_meet(team, scope);
}

#endif

/* --- Names: nvshmem_int_broadcast, nvshmem_broadcastmem, nvshmemx_int_broadcast_warp ... ------ */

/* Selects the code for a thread of a kernel, or for the host. */
#if WEFT_NVSHMEM_ON_GPU
#define WEFT_NVSHMEM_EITHER(on_gpu, on_host) on_gpu
#else
#define WEFT_NVSHMEM_EITHER(on_gpu, on_host) on_host
#endif

/* `before` and `behind` are the parts of the name before and after the operation; elements have
 * `size` bytes. */
#define WEFT_NVSHMEM_MOVES(before, behind, T, size)                                            \
    WEFT_NVSHMEM_BOTH int nvshmem_##before##broadcast##behind(                                 \
        nvshmem_team_t team, T *dest, const T *source, size_t nelems, int root) {              \
        return WEFT_NVSHMEM_EITHER(                                                            \
            weft_nvshmem_broadcast(team, dest, source, nelems * (size), root, WEFT_SCOPE_t),   \
            shmem_broadcastmem(weft_nvshmem_host_team(team), dest, source, nelems * (size),    \
                               root));                                                         \
    }                                                                                          \
    WEFT_NVSHMEM_BOTH int nvshmem_##before##fcollect##behind(nvshmem_team_t team, T *dest,     \
                                                             const T *source, size_t nelems) { \
        return WEFT_NVSHMEM_EITHER(                                                            \
            weft_nvshmem_fcollect(team, dest, source, nelems * (size), WEFT_SCOPE_t),          \
            shmem_fcollectmem(weft_nvshmem_host_team(team), dest, source, nelems * (size)));   \
    }                                                                                          \
    WEFT_NVSHMEM_BOTH int nvshmem_##before##alltoall##behind(nvshmem_team_t team, T *dest,     \
                                                             const T *source, size_t nelems) { \
        return WEFT_NVSHMEM_EITHER(                                                            \
            weft_nvshmem_alltoall(team, dest, source, nelems * (size), WEFT_SCOPE_t),          \
            shmem_alltoallmem(weft_nvshmem_host_team(team), dest, source, nelems * (size)));   \
    }
#define WEFT_NVSHMEM_MOVES_OF(N, T, _) WEFT_NVSHMEM_MOVES(N##_, , T, sizeof(T))
WEFT_NVSHMEM_MOVES(, mem, void, 1)
WEFT_NVSHMEM_RMA_TYPES(WEFT_NVSHMEM_MOVES_OF, _)
#undef WEFT_NVSHMEM_MOVES_OF
#undef WEFT_NVSHMEM_MOVES

#ifdef WEFT_NVSHMEM_KERNEL
#define WEFT_NVSHMEM_MOVES(before, behind, T, size, SCOPE)                                \
    WEFT_DEVICE int nvshmemx_##before##broadcast##behind(                                 \
        nvshmem_team_t team, T *dest, const T *source, size_t nelems, int root) {         \
        return weft_nvshmem_broadcast(team, dest, source, nelems * (size), root, SCOPE);  \
    }                                                                                     \
    WEFT_DEVICE int nvshmemx_##before##fcollect##behind(nvshmem_team_t team, T *dest,     \
                                                        const T *source, size_t nelems) { \
        return weft_nvshmem_fcollect(team, dest, source, nelems * (size), SCOPE);         \
    }                                                                                     \
    WEFT_DEVICE int nvshmemx_##before##alltoall##behind(nvshmem_team_t team, T *dest,     \
                                                        const T *source, size_t nelems) { \
        return weft_nvshmem_alltoall(team, dest, source, nelems * (size), SCOPE);         \
    }
#define WEFT_NVSHMEM_MOVES_OF(N, T, _)                          \
    WEFT_NVSHMEM_MOVES(N##_, _warp, T, sizeof(T), WEFT_SCOPE_w) \
    WEFT_NVSHMEM_MOVES(N##_, _block, T, sizeof(T), WEFT_SCOPE_b)
WEFT_NVSHMEM_MOVES(, mem_warp, void, 1, WEFT_SCOPE_w)
WEFT_NVSHMEM_MOVES(, mem_block, void, 1, WEFT_SCOPE_b)
WEFT_NVSHMEM_RMA_TYPES(WEFT_NVSHMEM_MOVES_OF, _)
#undef WEFT_NVSHMEM_MOVES_OF
#undef WEFT_NVSHMEM_MOVES
#endif

/* --- Reductions ------------------------------------------------------------------------------- */

#define WEFT_NVSHMEM_SUM(a, b)  ((a) + (b))
#define WEFT_NVSHMEM_PROD(a, b) ((a) * (b))
#define WEFT_NVSHMEM_MAX(a, b)  ((a) < (b) ? (b) : (a))
#define WEFT_NVSHMEM_MIN(a, b)  ((b) < (a) ? (b) : (a))
#define WEFT_NVSHMEM_AND(a, b)  ((a) & (b))
#define WEFT_NVSHMEM_OR(a, b)   ((a) | (b))
#define WEFT_NVSHMEM_XOR(a, b)  ((a) ^ (b))

#ifdef WEFT_NVSHMEM_KERNEL

/* A member reduces elements in member order; A is the type of the computation.
 *
 * Reduction: a member owns every n-th element, beginning with its own number, for n members. It
 * alone reads these elements at all members, and writes the results there; so dest may be source.
 *
 * Reduction with scatter: a member reads its block of nreduce elements at all members. If dest is
 * source, the result is stored in that block, which no other member reads, before all have
 * synchronised. */
#define WEFT_NVSHMEM_REDUCTION(N, T, A, op, OP)                                                 \
    WEFT_DEVICE T weft_nvshmem_##N##_##op##_at(const weft_device_team *t, const T *source) {    \
        A sum = (A)weft_nvshmem_##N##_at(t, source, 0);                                         \
        for (int m = 1; m < t->n; m++) {                                                        \
            A next = (A)weft_nvshmem_##N##_at(t, source, m);                                    \
            sum = (A)OP(sum, next);                                                             \
        }                                                                                       \
        return (T)sum;                                                                          \
    }                                                                                           \
    WEFT_DEVICE int weft_nvshmem_##N##_##op(nvshmem_team_t team, T *dest, const T *source,      \
                                            size_t nreduce, enum weft_scope scope) {            \
        const weft_device_team *t = weft_nvshmem_team(team);                                    \
        struct weft_thread_group group = weft_scope_group(scope);                               \
        if (!t || weft_nvshmem_meet(team, scope) < 0)                                           \
            return -1;                                                                          \
        size_t first = (size_t)t->me + (size_t)group.id * (size_t)t->n;                         \
        for (size_t i = first; i < nreduce; i += (size_t)group.count * (size_t)t->n) {          \
            T result = weft_nvshmem_##N##_##op##_at(t, source + i);                             \
            for (int m = 0; m < t->n; m++)                                                      \
                weft_nvshmem_store(weft_at(t, dest + i, m), sizeof(T),                          \
                                   weft_nvshmem_bits(&result, sizeof(T)));                      \
        }                                                                                       \
        return weft_nvshmem_meet(team, scope);                                                  \
    }                                                                                           \
    WEFT_DEVICE int weft_nvshmem_##N##_##op##_scatter(                                          \
        nvshmem_team_t team, T *dest, const T *source, size_t nreduce, enum weft_scope scope) { \
        const weft_device_team *t = weft_nvshmem_team(team);                                    \
        struct weft_thread_group group = weft_scope_group(scope);                               \
        if (!t || weft_nvshmem_meet(team, scope) < 0)                                           \
            return -1;                                                                          \
        size_t mine = (size_t)t->me * nreduce;                                                  \
        T *to = dest == source ? dest + mine : dest;                                            \
        for (size_t i = group.id; i < nreduce; i += group.count)                                \
            to[i] = weft_nvshmem_##N##_##op##_at(t, source + mine + i);                         \
        int error = weft_nvshmem_meet(team, scope);                                             \
        if (error == 0 && to != dest)                                                           \
            weft_nvshmem_copy(dest, to, nreduce * sizeof(T), scope);                            \
        weft_scope_sync(scope);                                                                 \
        return error;                                                                           \
    }

/* Loads an element from a member. */
#define WEFT_NVSHMEM_ELEMENT(N, T, _)                                                        \
    WEFT_DEVICE T weft_nvshmem_##N##_at(const weft_device_team *t, const T *source, int m) { \
        T value;                                                                             \
        weft_nvshmem_set_bits(&value, sizeof(T),                                             \
                              weft_nvshmem_load(weft_at(t, source, m), sizeof(T)));          \
        return value;                                                                        \
    }
WEFT_NVSHMEM_RMA_TYPES(WEFT_NVSHMEM_ELEMENT, _)
#undef WEFT_NVSHMEM_ELEMENT

#define WEFT_NVSHMEM_REDUCE_BY(N, T, op, group, SCOPE)                                             \
    WEFT_DEVICE int nvshmemx_##N##_##op##_reduce_##group(nvshmem_team_t team, T *dest,             \
                                                         const T *source, size_t nreduce) {        \
        return weft_nvshmem_##N##_##op(team, dest, source, nreduce, SCOPE);                        \
    }                                                                                              \
    WEFT_DEVICE int nvshmemx_##N##_##op##_reducescatter_##group(nvshmem_team_t team, T *dest,      \
                                                                const T *source, size_t nreduce) { \
        return weft_nvshmem_##N##_##op##_scatter(team, dest, source, nreduce, SCOPE);              \
    }
#define WEFT_NVSHMEM_SCATTER_BY_ONE(N, T, op)                                                \
    WEFT_DEVICE int nvshmem_##N##_##op##_reducescatter(nvshmem_team_t team, T *dest,         \
                                                       const T *source, size_t nreduce) {    \
        return weft_nvshmem_##N##_##op##_scatter(team, dest, source, nreduce, WEFT_SCOPE_t); \
    }
#define WEFT_NVSHMEM_REDUCE_ON_GPU(N, T, A, op, OP)      \
    WEFT_NVSHMEM_REDUCTION(N, T, A, op, OP)              \
    WEFT_NVSHMEM_SCATTER_BY_ONE(N, T, op)                \
    WEFT_NVSHMEM_REDUCE_BY(N, T, op, warp, WEFT_SCOPE_w) \
    WEFT_NVSHMEM_REDUCE_BY(N, T, op, block, WEFT_SCOPE_b)
#else
#define WEFT_NVSHMEM_REDUCE_ON_GPU(N, T, A, op, OP)
#endif

#define WEFT_NVSHMEM_REDUCE(N, T, A, op, OP)                                                 \
    WEFT_NVSHMEM_REDUCE_ON_GPU(N, T, A, op, OP)                                              \
    WEFT_NVSHMEM_BOTH int nvshmem_##N##_##op##_reduce(nvshmem_team_t team, T *dest,          \
                                                      const T *source, size_t nreduce) {     \
        return WEFT_NVSHMEM_EITHER(                                                          \
            weft_nvshmem_##N##_##op(team, dest, source, nreduce, WEFT_SCOPE_t),              \
            shmem_##N##_##op##_reduce(weft_nvshmem_host_team(team), dest, source, nreduce)); \
    }
#define WEFT_NVSHMEM_ARITHMETIC(N, T, _)                  \
    WEFT_NVSHMEM_REDUCE(N, T, T, sum, WEFT_NVSHMEM_SUM)   \
    WEFT_NVSHMEM_REDUCE(N, T, T, prod, WEFT_NVSHMEM_PROD) \
    WEFT_NVSHMEM_REDUCE(N, T, T, max, WEFT_NVSHMEM_MAX)   \
    WEFT_NVSHMEM_REDUCE(N, T, T, min, WEFT_NVSHMEM_MIN)
#define WEFT_NVSHMEM_BITWISE(N, T, _)                   \
    WEFT_NVSHMEM_REDUCE(N, T, T, and, WEFT_NVSHMEM_AND) \
    WEFT_NVSHMEM_REDUCE(N, T, T, or, WEFT_NVSHMEM_OR)   \
    WEFT_NVSHMEM_REDUCE(N, T, T, xor, WEFT_NVSHMEM_XOR)
WEFT_NVSHMEM_STANDARD_TYPES(WEFT_NVSHMEM_ARITHMETIC, _)
SHMEM_BITWISE_TYPES(WEFT_NVSHMEM_BITWISE, _)
#undef WEFT_NVSHMEM_ARITHMETIC
#undef WEFT_NVSHMEM_BITWISE
#undef WEFT_NVSHMEM_REDUCE

/* Reductions of 16-bit floating point, in kernels only: computed in float, rounded once. */
#ifdef WEFT_NVSHMEM_KERNEL
#define WEFT_NVSHMEM_HALF(N, T, op, OP)                                                        \
    WEFT_NVSHMEM_REDUCE_ON_GPU(N, T, float, op, OP)                                            \
    WEFT_DEVICE int nvshmem_##N##_##op##_reduce(nvshmem_team_t team, T *dest, const T *source, \
                                                size_t nreduce) {                              \
        return weft_nvshmem_##N##_##op(team, dest, source, nreduce, WEFT_SCOPE_t);             \
    }
#define WEFT_NVSHMEM_ARITHMETIC(N, T, _)             \
    WEFT_NVSHMEM_HALF(N, T, sum, WEFT_NVSHMEM_SUM)   \
    WEFT_NVSHMEM_HALF(N, T, prod, WEFT_NVSHMEM_PROD) \
    WEFT_NVSHMEM_HALF(N, T, max, WEFT_NVSHMEM_MAX)   \
    WEFT_NVSHMEM_HALF(N, T, min, WEFT_NVSHMEM_MIN)
WEFT_NVSHMEM_HALVES(WEFT_NVSHMEM_ARITHMETIC, _)
#undef WEFT_NVSHMEM_ARITHMETIC
#undef WEFT_NVSHMEM_HALF
#undef WEFT_NVSHMEM_REDUCTION
#undef WEFT_NVSHMEM_REDUCE_BY
#undef WEFT_NVSHMEM_SCATTER_BY_ONE
#endif

/* Finds the largest x of all members, together with its y; among equal values, the first member's.
 * For a block. An element is two words, which only its owner reads and writes. */
#if defined(__CUDACC__) || defined(WEFT_DEVICE_HOST) /* has double2 */
WEFT_DEVICE double2 weft_nvshmem_maxloc_at(const weft_device_team *t, const double2 *source) {
    double2 best = {0, 0};
    for (int m = 0; m < t->n; m++) {
        double2 next = {weft_nvshmem_double_at(t, &source->x, m),
                        weft_nvshmem_double_at(t, &source->y, m)};
        if (m == 0 || next.x > best.x)
            best = next;
    }
    return best;
}
WEFT_DEVICE int nvshmemx_double2_maxloc_reduce_block(nvshmem_team_t team, double2 *dest,
                                                     const double2 *source, size_t nreduce) {
    const weft_device_team *t = weft_nvshmem_team(team);
    struct weft_thread_group group = weft_scope_group(WEFT_SCOPE_b);
    if (!t || weft_nvshmem_meet(team, WEFT_SCOPE_b) < 0)
        return -1;
    size_t first = (size_t)t->me + (size_t)group.id * (size_t)t->n;
    for (size_t i = first; i < nreduce; i += (size_t)group.count * (size_t)t->n) {
        double2 best = weft_nvshmem_maxloc_at(t, source + i);
        for (int m = 0; m < t->n; m++) {
            double2 *to = (double2 *)weft_at(t, dest + i, m);
            weft_nvshmem_store(&to->x, sizeof to->x, weft_nvshmem_bits(&best.x, sizeof best.x));
            weft_nvshmem_store(&to->y, sizeof to->y, weft_nvshmem_bits(&best.y, sizeof best.y));
        }
    }
    return weft_nvshmem_meet(team, WEFT_SCOPE_b);
}
#endif
#undef WEFT_NVSHMEM_REDUCE_ON_GPU

#endif
