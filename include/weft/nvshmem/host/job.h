/* SPDX-License-Identifier: BSD-3-Clause */
/* The hidden state behind NVSHMEM's names: the job's teams as kernels see them, and the modules
 * whose kernels need them. A program and its libraries share one state if they see each other's
 * symbols.
 *
 * The first call that is collective over all PEs and needs a GPU, such as nvshmem_malloc, opens the
 * state: by then the program has chosen a GPU with cudaSetDevice. A module that is loaded later is
 * filled by the next such call, or at once by nvshmemx_cumodule_init. */
#ifndef WEFT_NVSHMEM_JOB_H
#define WEFT_NVSHMEM_JOB_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>
#include "weft/nvshmem/device/state.cuh"

/* --- State ------------------------------------------------------------------------------------ */

/* Kernels that share a weft_nvshmem_state: those of one translation unit of nvcc, or of one module
 * of the driver. `fill` returns 0, CUDA's error, or -1. */
struct weft_nvshmem_unit {
    int (*fill)(const struct weft_nvshmem_unit *unit, const struct weft_nvshmem_state *state,
                int gpu);
    void (*prepare)(void); /* opens the GPU that CUDA's runtime has selected; or NULL */
    void *handle, *context;
    int filled;
    struct weft_nvshmem_unit *next;
};

struct weft_nvshmem_team {
    shmem_team_t team; /* SHMEM_TEAM_INVALID: the handle is free */
    int on_gpu;        /* kernels have a handle for it */
    uint64_t order;    /* 1 for the first team that the program makes, 0 for the standard's */
    struct weft_device_team handle;
};

struct weft_nvshmem_job {
    shmem_ctx_t life; /* a context of this job; it ends with the job */
    int inits, opened, gpu;
    uint64_t splits; /* number of teams that this PE has joined */
    int *words;      /* symmetric: this member's value in an agreement, and the result */
    struct weft_nvshmem_state state;
    const struct weft_device_team **teams; /* state.teams, writable by the host */
    struct weft_nvshmem_team team[WEFT_NVSHMEM_TEAMS];
    struct weft_nvshmem_unit *units;
};
__attribute__((weak, visibility("default"))) struct weft_nvshmem_job weft_nvshmem_job;

#define WEFT_NVSHMEM_INLINE static inline __attribute__((unused))

/* extern "C", because a program may declare one of these itself. */
#ifdef __cplusplus
#define WEFT_NVSHMEM_NAME extern "C" inline
#else
#define WEFT_NVSHMEM_NAME static inline __attribute__((unused))
#endif

/* Prints an error line. Returns `error`. */
WEFT_NVSHMEM_INLINE int weft_nvshmem_fail(const char *call, const char *why, int error) {
    fprintf(stderr, "weft: PE %d: %s: %s (%d)\n", shmem_my_pe(), call, why, error);
    return error;
}

/* Returns the state of the running job. Discards the state of an earlier job, which may have ended
 * under another name, such as shmem_finalize: a context handle is never reused by a later job. */
WEFT_NVSHMEM_INLINE struct weft_nvshmem_job *weft_nvshmem_job_now(void) {
    struct weft_nvshmem_job *job = &weft_nvshmem_job;
    struct weft_nvshmem_unit *units = job->units;
    shmem_team_t team;
    int runs = 0;
    shmem_query_initialized(&runs);
    if (runs && shmem_ctx_get_team(job->life, &team) == 0)
        return job;
    memset(job, 0, sizeof *job);
    for (job->units = units; units; units = units->next)
        units->filled = 0;
    if (runs && shmem_ctx_create(0, &job->life)) {
        weft_nvshmem_fail("shmem_ctx_create", "no context is left for NVSHMEM's names", -1);
        shmem_global_exit(1);
    }
    return job;
}

/* --- Teams ------------------------------------------------------------------------------------ */

/* Returns SHMEM_TEAM_INVALID if the handle names no team. */
WEFT_NVSHMEM_INLINE shmem_team_t weft_nvshmem_host_team(nvshmem_team_t team) {
    if (team == NVSHMEM_TEAM_WORLD)
        return SHMEM_TEAM_WORLD;
    if (team == NVSHMEM_TEAM_SHARED || team == NVSHMEMX_TEAM_NODE)
        return SHMEM_TEAM_SHARED;
    if (team < 0 || team >= WEFT_NVSHMEM_TEAMS)
        return SHMEM_TEAM_INVALID;
    return weft_nvshmem_job_now()->team[team].team;
}

/* Iterates over this PE's teams in the order of their creation, which is the same for the teams
 * that any two members share: returns the team after `last`. NVSHMEM_TEAM_INVALID stands before the
 * first and after the last team. */
WEFT_NVSHMEM_INLINE nvshmem_team_t weft_nvshmem_team_behind(nvshmem_team_t last) {
    const struct weft_nvshmem_team *team = weft_nvshmem_job.team;
    nvshmem_team_t next = NVSHMEM_TEAM_INVALID;
    if (last < WEFT_NVSHMEM_TEAMS_MADE - 1)
        return last + 1;
    for (nvshmem_team_t i = WEFT_NVSHMEM_TEAMS_MADE; i < WEFT_NVSHMEM_TEAMS; i++)
        if (team[i].team != SHMEM_TEAM_INVALID && team[i].order > team[last].order &&
            (next < 0 || team[i].order < team[next].order))
            next = i;
    return next;
}

/* Returns the smallest value of all members, 0 or an error. Collective over the team. If the
 * program started with shmem_init only, there are no words for it, and each member gets its own
 * value. */
WEFT_NVSHMEM_INLINE int weft_nvshmem_agree(shmem_team_t team, int mine) {
    int *words = weft_nvshmem_job.words;
    if (!words)
        return mine;
    words[0] = mine;
    return shmem_int_min_reduce(team, &words[1], &words[0], 1) ? -1 : words[1];
}

/* Creates the handle for kernels. Collective over the team, including its errors. */
WEFT_NVSHMEM_INLINE int weft_nvshmem_team_open(nvshmem_team_t number) {
    struct weft_nvshmem_job *job = &weft_nvshmem_job;
    struct weft_nvshmem_team *team = &job->team[number];
    const struct weft_device_team *address;
    int error = shmemx_device_team(weft_nvshmem_host_team(number), 1, 0, &team->handle);
    team->on_gpu = error == 0;
    if (error == 0)
        error = shmemx_device_team_address(&team->handle, &address);
    if (error < 0)
        return weft_nvshmem_fail("shmemx_device_team", weft_last_error(), error);
    shmem_putmem(&job->teams[number], &address, sizeof address, shmem_my_pe());
    return 0;
}

/* --- Modules ---------------------------------------------------------------------------------- */

WEFT_NVSHMEM_INLINE int weft_nvshmem_fill(void) {
    struct weft_nvshmem_job *job = &weft_nvshmem_job;
    for (struct weft_nvshmem_unit *unit = job->units; unit; unit = unit->next)
        if (!unit->filled) {
            int error = unit->fill(unit, &job->state, job->gpu);
            if (error)
                return weft_nvshmem_fail("filling the state of kernels", "CUDA's error", error);
            unit->filled = 1;
        }
    return 0;
}

WEFT_NVSHMEM_INLINE void weft_nvshmem_add_unit(struct weft_nvshmem_unit *unit) {
    unit->next = weft_nvshmem_job.units;
    weft_nvshmem_job.units = unit;
}

/* Returns the driver's function of this name, or NULL without CUDA. */
WEFT_NVSHMEM_INLINE void *weft_nvshmem_driver(const char *name) {
    static void *driver;
    if (!driver)
        driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    return driver ? dlsym(driver, name) : NULL;
}

/* Fills a module of the driver, in the context that was current when the module was registered. */
WEFT_NVSHMEM_INLINE int weft_nvshmem_fill_module(const struct weft_nvshmem_unit *unit,
                                                 const struct weft_nvshmem_state *state, int gpu) {
    int (*push)(void *), (*pop)(void **), (*copy)(unsigned long long, const void *, size_t);
    int (*find)(unsigned long long *, size_t *, void *, const char *);
    unsigned long long address = 0;
    void *context;
    size_t bytes = 0;
    (void)gpu;
    *(void **)&push = weft_nvshmem_driver("cuCtxPushCurrent_v2");
    *(void **)&pop = weft_nvshmem_driver("cuCtxPopCurrent_v2");
    *(void **)&find = weft_nvshmem_driver("cuModuleGetGlobal_v2");
    *(void **)&copy = weft_nvshmem_driver("cuMemcpyHtoD_v2");
    if (!push || !pop || !find || !copy)
        return -1;
    int error = push(unit->context);
    if (error)
        return error;
    error = find(&address, &bytes, unit->handle, "weft_nvshmem_state");
    if (!error)
        error = bytes == sizeof *state ? copy(address, state, bytes) : -1;
    pop(&context);
    return error;
}

/* --- Opening ---------------------------------------------------------------------------------- */

/* Frees what kernels use while the job continues; the next call opens it again. The program keeps
 * its teams. */
WEFT_NVSHMEM_INLINE void weft_nvshmem_close(void) {
    struct weft_nvshmem_job *job = &weft_nvshmem_job;
    nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
    while ((team = weft_nvshmem_team_behind(team)) != NVSHMEM_TEAM_INVALID) {
        if (job->team[team].on_gpu)
            shmemx_device_team_free(&job->team[team].handle);
        job->team[team].on_gpu = 0;
    }
    shmem_free(job->teams);
    job->teams = NULL;
    for (struct weft_nvshmem_unit *unit = job->units; unit; unit = unit->next)
        unit->filled = 0;
    job->opened = 0;
}

/* Opens the state. Collective over all PEs. Returns 0, or an error; a PE on which something failed
 * prints a line. */
WEFT_NVSHMEM_INLINE int weft_nvshmem_open(void) {
    struct weft_nvshmem_job *job = weft_nvshmem_job_now();
    if (job->opened)
        return weft_nvshmem_fill();
    struct weft_nvshmem_unit *runtime = job->units;
    while (runtime && !runtime->prepare)
        runtime = runtime->next;
    if (runtime)
        runtime->prepare();
    job->teams = (const struct weft_device_team **)shmemx_calloc(
        SHMEMX_SPACE_DEVICE, WEFT_NVSHMEM_TEAMS, sizeof *job->teams);
    if (!job->teams)
        return weft_nvshmem_fail("shmemx_calloc", weft_last_error(), -1);
    nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
    int error = 0;
    while ((team = weft_nvshmem_team_behind(team)) != NVSHMEM_TEAM_INVALID) {
        int opened = weft_nvshmem_team_open(team);
        error = opened < error ? opened : error;
    }
    shmem_quiet();
    int found = shmemx_device(&job->gpu);
    if (found < 0)
        error = weft_nvshmem_fail("shmemx_device", weft_last_error(), found);
    error = weft_nvshmem_agree(SHMEM_TEAM_WORLD, error);
    if (error) {
        weft_nvshmem_close();
        return error;
    }
    job->state.world = job->team[NVSHMEM_TEAM_WORLD].handle;
    job->state.teams = job->teams;
    job->opened = 1;
    return weft_nvshmem_fill();
}

/* Opens the state, for calls without a result: ends the job on failure. */
WEFT_NVSHMEM_INLINE void weft_nvshmem_must_open(const char *call) {
    int error = weft_nvshmem_open();
    if (error) {
        weft_nvshmem_fail(call, "the GPUs of the job are not available", error);
        shmem_global_exit(1);
    }
}

WEFT_NVSHMEM_INLINE int weft_nvshmem_host_barrier(nvshmem_team_t team) {
    if (team == NVSHMEM_TEAM_WORLD)
        weft_nvshmem_must_open("nvshmem_barrier");
    shmem_quiet();
    return shmem_team_sync(weft_nvshmem_host_team(team));
}

#endif
