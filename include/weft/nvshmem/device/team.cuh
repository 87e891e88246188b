/* SPDX-License-Identifier: BSD-3-Clause */
/* PE numbers, ordering and barriers, by NVSHMEM's names, in kernels and on the host. */
#ifndef WEFT_NVSHMEM_TEAM_CUH
#define WEFT_NVSHMEM_TEAM_CUH

#include "weft/nvshmem/device/state.cuh"
#ifdef WEFT_NVSHMEM_HOST
#include "weft/nvshmem/host/job.h"
#endif

/* --- PEs and teams ---------------------------------------------------------------------------- */

WEFT_NVSHMEM_BOTH int nvshmem_my_pe(void) {
#if WEFT_NVSHMEM_ON_GPU
    return WEFT_NVSHMEM_WORLD->me;
#else
    return shmem_my_pe();
#endif
}

WEFT_NVSHMEM_BOTH int nvshmem_n_pes(void) {
#if WEFT_NVSHMEM_ON_GPU
    return WEFT_NVSHMEM_WORLD->n;
#else
    return shmem_n_pes();
#endif
}

/* Returns -1 if this PE has no such team. */
WEFT_NVSHMEM_BOTH int nvshmem_team_my_pe(nvshmem_team_t team) {
#if WEFT_NVSHMEM_ON_GPU
    const weft_device_team *t = weft_nvshmem_team(team);
    return t ? t->me : -1;
#else
    return shmem_team_my_pe(weft_nvshmem_host_team(team));
#endif
}

WEFT_NVSHMEM_BOTH int nvshmem_team_n_pes(nvshmem_team_t team) {
#if WEFT_NVSHMEM_ON_GPU
    const weft_device_team *t = weft_nvshmem_team(team);
    return t ? t->n : -1;
#else
    return shmem_team_n_pes(weft_nvshmem_host_team(team));
#endif
}

#ifdef WEFT_NVSHMEM_KERNEL
/* Finds the member of dest_team whose memory has the same address. */
WEFT_DEVICE int weft_nvshmem_translate(nvshmem_team_t src_team, int src_pe,
                                       nvshmem_team_t dest_team) {
    const weft_device_team *from = weft_nvshmem_team(src_team), *to = weft_nvshmem_team(dest_team);
    if (!from || !to || src_pe < 0 || src_pe >= from->n)
        return -1;
    const void *memory = weft_at(from, (const void *)from->heap, src_pe);
    for (int member = 0; member < to->n; member++)
        if (weft_at(to, (const void *)to->heap, member) == memory)
            return member;
    return -1;
}
#endif

WEFT_NVSHMEM_BOTH int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe,
                                                nvshmem_team_t dest_team) {
#if WEFT_NVSHMEM_ON_GPU
    return weft_nvshmem_translate(src_team, src_pe, dest_team);
#else
    return shmem_team_translate_pe(weft_nvshmem_host_team(src_team), src_pe,
                                   weft_nvshmem_host_team(dest_team));
#endif
}

/* Returns the address at which kernels can load and store pe's copy of a symmetric object, or NULL
 * if there is none. */
WEFT_NVSHMEM_BOTH void *nvshmem_ptr(const void *dest, int pe) {
#if WEFT_NVSHMEM_ON_GPU
    const weft_device_team *t = WEFT_NVSHMEM_WORLD;
    if ((uintptr_t)dest - t->heap >= t->heap_bytes || pe < 0 || pe >= t->n)
        return NULL;
    return weft_at(t, dest, pe);
#else
    return shmemx_ptr(SHMEMX_SPACE_DEVICE, dest, pe);
#endif
}

/* Returns NULL: Weft has no multicast memory. Programs then use another way. */
WEFT_NVSHMEM_BOTH void *nvshmemx_mc_ptr(nvshmem_team_t team, const void *ptr) {
    (void)team, (void)ptr;
    return NULL;
}

/* --- Order ------------------------------------------------------------------------------------ */

WEFT_NVSHMEM_BOTH void nvshmem_fence(void) {
#if WEFT_NVSHMEM_ON_GPU
    weft_fence();
#else
    shmem_fence();
#endif
}

WEFT_NVSHMEM_BOTH void nvshmem_quiet(void) {
#if WEFT_NVSHMEM_ON_GPU
    weft_quiet();
#else
    shmem_quiet();
#endif
}

/* --- Barriers in kernels: a thread, warp or block of each member, all on channel 0 ------------ */

#ifdef WEFT_NVSHMEM_KERNEL

/* Runs a barrier of a team: after it all members see what each member stored before. NVSHMEM's sync
 * is the same. Returns 0, or -1 if this PE has no such team or the job is over. */
WEFT_DEVICE int weft_nvshmem_meet(nvshmem_team_t team, enum weft_scope scope) {
    const weft_device_team *t = weft_nvshmem_team(team);
    if (!t)
        return -1;
    int met = scope == WEFT_SCOPE_t   ? weft_barrier_t(t, 0)
              : scope == WEFT_SCOPE_w ? weft_barrier_w(t, 0)
                                      : weft_barrier_b(t, 0);
    return met ? 0 : -1;
}

#define WEFT_NVSHMEM_MEET(group, SCOPE)                               \
    WEFT_DEVICE int nvshmemx_barrier_##group(nvshmem_team_t team) {   \
        return weft_nvshmem_meet(team, SCOPE);                        \
    }                                                                 \
    WEFT_DEVICE int nvshmemx_sync_##group(nvshmem_team_t team) {      \
        return weft_nvshmem_meet(team, SCOPE);                        \
    }                                                                 \
    WEFT_DEVICE int nvshmemx_team_sync_##group(nvshmem_team_t team) { \
        return weft_nvshmem_meet(team, SCOPE);                        \
    }                                                                 \
    WEFT_DEVICE void nvshmemx_barrier_all_##group(void) {             \
        weft_nvshmem_meet(NVSHMEM_TEAM_WORLD, SCOPE);                 \
    }                                                                 \
    WEFT_DEVICE void nvshmemx_sync_all_##group(void) {                \
        weft_nvshmem_meet(NVSHMEM_TEAM_WORLD, SCOPE);                 \
    }
WEFT_NVSHMEM_MEET(warp, WEFT_SCOPE_w)
WEFT_NVSHMEM_MEET(block, WEFT_SCOPE_b)
#undef WEFT_NVSHMEM_MEET

#endif

/* --- Barriers of a thread, or of the host ----------------------------------------------------- */

WEFT_NVSHMEM_BOTH int nvshmem_barrier(nvshmem_team_t team) {
#if WEFT_NVSHMEM_ON_GPU
    return weft_nvshmem_meet(team, WEFT_SCOPE_t);
#else
    return weft_nvshmem_host_barrier(team);
#endif
}

WEFT_NVSHMEM_BOTH int nvshmem_sync(nvshmem_team_t team) {
#if WEFT_NVSHMEM_ON_GPU
    return weft_nvshmem_meet(team, WEFT_SCOPE_t);
#else
    return shmem_team_sync(weft_nvshmem_host_team(team));
#endif
}

/* Does the same as nvshmem_sync; NVSHMEM's older name of that call. */
WEFT_NVSHMEM_BOTH int nvshmem_team_sync(nvshmem_team_t team) {
    return nvshmem_sync(team);
}

WEFT_NVSHMEM_BOTH void nvshmem_barrier_all(void) {
#if WEFT_NVSHMEM_ON_GPU
    weft_nvshmem_meet(NVSHMEM_TEAM_WORLD, WEFT_SCOPE_t);
#else
    weft_nvshmem_must_open("nvshmem_barrier_all");
    shmem_barrier_all();
#endif
}

WEFT_NVSHMEM_BOTH void nvshmem_sync_all(void) {
#if WEFT_NVSHMEM_ON_GPU
    weft_nvshmem_meet(NVSHMEM_TEAM_WORLD, WEFT_SCOPE_t);
#else
    weft_nvshmem_must_open("nvshmem_sync_all");
    shmem_sync_all();
#endif
}

#endif
