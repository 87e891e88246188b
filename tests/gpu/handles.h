/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of kernels that use a team: handles of the world, of a list and of a strided team,
 * memory in which kernels report errors, and a call of each test for each handle. */
#ifndef TESTS_GPU_HANDLES_H
#define TESTS_GPU_HANDLES_H

#include "gpu/image.h"
#include "gpu/found.h"
#include "gpu/on_stream.h"
#include "weft/device/team.cuh"

enum { HANDLES_CHANNELS = 4, HANDLES_SLOT = 1024 };

static struct device_found *handles_found; /* of the device heap */

static inline void handles_zero(void *p, size_t bytes) {
    void *zero = calloc(1, bytes);
    gpu_write(p, zero, bytes);
    free(zero);
}

/* Zeros, symmetric. Collective over all PEs. */
static inline void *handles_malloc(size_t bytes) {
    void *p = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, bytes));
    handles_zero(p, bytes);
    shmem_barrier_all();
    return p;
}

/* Every second PE from PE 1, or from 0, on. */
static inline shmem_team_t handles_stride(void) {
    int npes = shmem_n_pes();
    shmem_team_t team = SHMEM_TEAM_INVALID;
    int start = npes > 3 ? 1 : 0,
        count = npes > 3 ? (npes - 1) / 2 + (npes - 1) % 2 : (npes + 1) / 2;
    if (shmem_team_split_strided(SHMEM_TEAM_WORLD, start, 2, count, NULL, 0, &team) != 0)
        shmem_global_exit(1);
    return team;
}

/* The teams whose handles a test uses in turn, and the present one. */
static shmem_team_t handles_teams[3], handles_team;
static weft_device_team handles_made[3];

/* Collective over all PEs. */
static inline void handles_start(void) {
    gpu_start();
    handles_found = (struct device_found *)handles_malloc(sizeof *handles_found);
    handles_teams[0] = SHMEM_TEAM_WORLD;
    handles_teams[1] = gpu_list_team();
    handles_teams[2] = handles_stride();
    for (int i = 0; i < 3; i++)
        if (handles_teams[i] != SHMEM_TEAM_INVALID)
            ON(device_team(handles_teams[i], HANDLES_CHANNELS, HANDLES_SLOT, &handles_made[i]));
}

/* Among the members. */
static inline void handles_sync(void) {
    gpu_drain(gpu_stream);
    shmem_team_sync(handles_team);
}

/* Collective over all PEs; PEs outside a team wait. */
static inline void handles_for_each(void (*test)(const weft_device_team *t)) {
    for (int i = 0; i < 3; i++) {
        handles_team = handles_teams[i];
        shmem_barrier_all();
        if (handles_team != SHMEM_TEAM_INVALID)
            test(&handles_made[i]);
    }
    shmem_barrier_all();
}

static inline int handles_finish(void) {
    shmem_barrier_all();
    for (int i = 0; i < 3; i++)
        if (handles_teams[i] != SHMEM_TEAM_INVALID)
            ON(device_team_free(&handles_made[i]));
    return gpu_finish();
}

/* Expects no errors from kernels, and that they have checked something. */
static inline void handles_expect(const weft_device_team *t, const char *what) {
    struct device_found found;
    gpu_drain(gpu_stream);
    gpu_copy(&found, handles_found, sizeof found);
    EXPECT(found.wrong == 0, "%s, %d members: %llu wrong, first %#llx %#llx %#llx %#llx", what,
           t->n, (unsigned long long)found.wrong, (unsigned long long)found.what[0],
           (unsigned long long)found.what[1], (unsigned long long)found.what[2],
           (unsigned long long)found.what[3]);
    EXPECT(found.checked > 0, "%s, %d members: nothing has been checked", what, t->n);
    handles_zero(handles_found, sizeof found);
}

/* By all arguments' addresses, of which the handle's is the first. */
#define handles_launch(name, blocks, threads, t, ...)             \
    image_launch(image_kernel(name), blocks, threads, gpu_stream, \
                 (void *[]){(void *)(uintptr_t)(t), __VA_ARGS__})

#endif
