/* SPDX-License-Identifier: BSD-3-Clause */
/* NVSHMEM's names for the host: start and end of the job, memory, teams, modules. */
#ifndef WEFT_NVSHMEM_SETUP_H
#define WEFT_NVSHMEM_SETUP_H

#include "weft/nvshmem/host/buffer.h"

/* --- Start and end of the job ----------------------------------------------------------------- */

enum {
    NVSHMEM_THREAD_SINGLE,
    NVSHMEM_THREAD_FUNNELED,
    NVSHMEM_THREAD_SERIALIZED,
    NVSHMEM_THREAD_MULTIPLE,
};
enum {
    NVSHMEMX_INIT_THREAD_PES = 1,
    NVSHMEMX_INIT_WITH_MPI_COMM = 2,
    NVSHMEMX_INIT_WITH_SHMEM = 4,
    NVSHMEMX_INIT_WITH_UNIQUEID = 8,
};
enum {
    NVSHMEM_STATUS_NOT_INITIALIZED,
    NVSHMEM_STATUS_IS_BOOTSTRAPPED,
    NVSHMEM_STATUS_IS_INITIALIZED,
};

typedef struct {
    shmemx_uniqueid_t id;
} nvshmemx_uniqueid_t;
typedef struct {
    void *mpi_comm; /* for NVSHMEMX_INIT_WITH_MPI_COMM: the address of an MPI_Comm */
    int pe, npes;   /* for NVSHMEMX_INIT_WITH_UNIQUEID */
    nvshmemx_uniqueid_t uniqueid;
} nvshmemx_init_attr_t;
#define NVSHMEMX_UNIQUEID_INITIALIZER \
    {                                 \
        {                             \
            { 0 }                     \
        }                             \
    }
#define NVSHMEMX_INIT_ATTR_INITIALIZER \
    { NULL, 0, 0, NVSHMEMX_UNIQUEID_INITIALIZER }

/* Follows each call that starts the job, with its error. Collective over all PEs. */
WEFT_NVSHMEM_INLINE int weft_nvshmem_begun(int error) {
    if (error)
        return error;
    struct weft_nvshmem_job *job = weft_nvshmem_job_now();
    if (job->inits++ == 0)
        job->words = (int *)shmem_calloc(2, sizeof *job->words);
    return 0;
}

WEFT_NVSHMEM_NAME int nvshmem_init_thread(int requested, int *provided) {
    (void)requested;
    return weft_nvshmem_begun(shmem_init_thread(SHMEM_THREAD_MULTIPLE, provided));
}

WEFT_NVSHMEM_NAME void nvshmem_init(void) {
    int provided;
    nvshmem_init_thread(NVSHMEM_THREAD_MULTIPLE, &provided);
}

WEFT_NVSHMEM_NAME void nvshmem_query_thread(int *provided) {
    shmem_query_thread(provided);
}

WEFT_NVSHMEM_NAME int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t *uniqueid) {
    return shmemx_get_uniqueid(&uniqueid->id);
}

WEFT_NVSHMEM_NAME int nvshmemx_set_attr_uniqueid_args(int myrank, int nranks,
                                                      const nvshmemx_uniqueid_t *uniqueid,
                                                      nvshmemx_init_attr_t *attr) {
    attr->pe = myrank;
    attr->npes = nranks;
    attr->uniqueid = *uniqueid;
    return 0;
}

WEFT_NVSHMEM_NAME int nvshmemx_set_attr_mpi_comm_args(void *mpi_comm, nvshmemx_init_attr_t *attr) {
    attr->mpi_comm = mpi_comm;
    return 0;
}

#ifdef MPI_VERSION /* the program has included mpi.h before */
WEFT_NVSHMEM_INLINE int weft_nvshmem_allgather(const void *mine, void *all, size_t bytes,
                                               void *context) {
    return MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
                         *(MPI_Comm *)context);
}

WEFT_NVSHMEM_INLINE int weft_nvshmem_init_with_mpi(void *mpi_comm) {
    shmemx_init_attr_t attr = {0, 0, SHMEM_THREAD_MULTIPLE, NULL, weft_nvshmem_allgather, mpi_comm};
    MPI_Comm_rank(*(MPI_Comm *)mpi_comm, &attr.pe);
    MPI_Comm_size(*(MPI_Comm *)mpi_comm, &attr.npes);
    return shmemx_init_attr(SHMEMX_INIT_WITH_ALLGATHER, &attr);
}
#else
/* Without mpi.h the job is the job that MPI's launcher started. */
WEFT_NVSHMEM_INLINE int weft_nvshmem_init_with_mpi(void *mpi_comm) {
    int provided;
    (void)mpi_comm;
    return shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
}
#endif

/* Static, because it depends on the headers that its translation unit includes. */
WEFT_NVSHMEM_INLINE int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t *attributes) {
    int error, provided;
    if (flags & NVSHMEMX_INIT_WITH_UNIQUEID) {
        shmemx_init_attr_t attr = {attributes->pe,
                                   attributes->npes,
                                   SHMEM_THREAD_MULTIPLE,
                                   &attributes->uniqueid.id,
                                   NULL,
                                   NULL};
        error = shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr);
    } else if (flags & NVSHMEMX_INIT_WITH_MPI_COMM) {
        error = weft_nvshmem_init_with_mpi(attributes->mpi_comm);
    } else {
        error = shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    }
    return weft_nvshmem_begun(error);
}

WEFT_NVSHMEM_INLINE int nvshmemx_hostlib_init_attr(unsigned int flags,
                                                   nvshmemx_init_attr_t *attributes) {
    return nvshmemx_init_attr(flags, attributes);
}

WEFT_NVSHMEM_NAME int nvshmemx_init_status(void) {
    const struct weft_nvshmem_job *job = weft_nvshmem_job_now();
    return job->opened       ? NVSHMEM_STATUS_IS_INITIALIZED
           : job->inits != 0 ? NVSHMEM_STATUS_IS_BOOTSTRAPPED
                             : NVSHMEM_STATUS_NOT_INITIALIZED;
}

/* Collective. The last of as many calls as there were initialisations ends the job. If the program
 * has also called shmem_init, the job continues, and only what kernels use is freed. */
WEFT_NVSHMEM_NAME void nvshmem_finalize(void) {
    struct weft_nvshmem_job *job = weft_nvshmem_job_now();
    int goes_on = 0;
    job->inits -= job->inits > 0;
    shmem_finalize();
    shmem_query_initialized(&goes_on);
    if (job->inits > 0 || !goes_on)
        return;
    weft_nvshmem_close();
    shmem_free(job->words);
    job->words = NULL;
}

WEFT_NVSHMEM_NAME void nvshmemx_hostlib_finalize(void) {
    nvshmem_finalize();
}

WEFT_NVSHMEM_NAME void nvshmem_global_exit(int status) {
    shmem_global_exit(status);
}

/* Returns the version of OpenSHMEM that NVSHMEM reports. */
WEFT_NVSHMEM_NAME void nvshmem_info_get_version(int *major, int *minor) {
    *major = 1;
    *minor = 3;
}

/* Returns the version of NVSHMEM whose names this header provides. */
WEFT_NVSHMEM_NAME void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch) {
    *major = 3;
    *minor = 4;
    *patch = 0;
}

enum { NVSHMEM_MAX_NAME_LEN = 256 };
WEFT_NVSHMEM_NAME void nvshmem_info_get_name(char *name) {
    snprintf(name, NVSHMEM_MAX_NAME_LEN, "NVSHMEM's names over Weft");
}

/* --- Modules of the driver -------------------------------------------------------------------- */

struct CUmod_st;

/* Registers a module, with its context current. Returns 0, or an error: -1, or the driver's. A
 * module that is registered before the job is opened is filled then; every module is filled again
 * when the job is closed and reopened. */
WEFT_NVSHMEM_NAME int nvshmemx_cumodule_init(struct CUmod_st *cumodule) {
    struct weft_nvshmem_job *job = weft_nvshmem_job_now();
    struct weft_nvshmem_unit *unit =
        (struct weft_nvshmem_unit *)calloc(1, sizeof(struct weft_nvshmem_unit));
    int (*current)(void **), error = -1;
    *(void **)&current = weft_nvshmem_driver("cuCtxGetCurrent");
    if (unit && current)
        error = current(&unit->context);
    if (!error) {
        unit->fill = weft_nvshmem_fill_module;
        unit->handle = cumodule;
        unit->filled = job->opened;
        if (job->opened)
            error = unit->fill(unit, &job->state, job->gpu);
    }
    if (!error) {
        weft_nvshmem_add_unit(unit);
        return 0;
    }
    free(unit);
    return error ? weft_nvshmem_fail("nvshmemx_cumodule_init", "the driver's error", error) : 0;
}

/* Unregisters a module, which may then be unloaded. */
WEFT_NVSHMEM_NAME int nvshmemx_cumodule_finalize(struct CUmod_st *cumodule) {
    struct weft_nvshmem_unit **at = &weft_nvshmem_job.units;
    while (*at) {
        struct weft_nvshmem_unit *unit = *at;
        if (cumodule && unit->handle == cumodule) {
            *at = unit->next;
            free(unit);
        } else {
            at = &unit->next;
        }
    }
    return 0;
}

/* --- Memory of the GPUs: collective ----------------------------------------------------------- */

WEFT_NVSHMEM_NAME void *nvshmem_malloc(size_t size) {
    return weft_nvshmem_open() ? NULL : shmemx_malloc(SHMEMX_SPACE_DEVICE, size);
}

WEFT_NVSHMEM_NAME void *nvshmem_calloc(size_t count, size_t size) {
    return weft_nvshmem_open() ? NULL : shmemx_calloc(SHMEMX_SPACE_DEVICE, count, size);
}

WEFT_NVSHMEM_NAME void *nvshmem_align(size_t alignment, size_t size) {
    return weft_nvshmem_open() ? NULL : shmemx_align(SHMEMX_SPACE_DEVICE, alignment, size);
}

WEFT_NVSHMEM_NAME void nvshmem_free(void *ptr) {
    shmem_free(ptr);
}

/* --- Teams ------------------------------------------------------------------------------------ */

typedef struct {
    int num_contexts;
} nvshmem_team_config_t;

/* Collective over the team. */
WEFT_NVSHMEM_NAME void nvshmem_team_destroy(nvshmem_team_t team) {
    shmem_team_t made = weft_nvshmem_host_team(team);
    if (team < WEFT_NVSHMEM_TEAMS_MADE || made == SHMEM_TEAM_INVALID)
        return;
    struct weft_nvshmem_team *entry = &weft_nvshmem_job.team[team];
    const struct weft_device_team *none = NULL;
    if (entry->on_gpu) {
        shmem_putmem(&weft_nvshmem_job.teams[team], &none, sizeof none, shmem_my_pe());
        shmemx_device_team_free(&entry->handle);
    }
    entry->on_gpu = 0;
    entry->team = SHMEM_TEAM_INVALID;
    shmem_team_destroy(made);
}

/* Assigns a handle to a new team and, if the job is open, makes it usable in kernels. Teams made
 * before the job is opened are opened in the order of their creation. */
WEFT_NVSHMEM_INLINE int weft_nvshmem_team_add(shmem_team_t made, nvshmem_team_t *handle) {
    struct weft_nvshmem_job *job = weft_nvshmem_job_now();
    nvshmem_team_t next = WEFT_NVSHMEM_TEAMS, team = NVSHMEM_TEAM_INVALID;
    *handle = NVSHMEM_TEAM_INVALID;
    if (made == SHMEM_TEAM_INVALID)
        return 0;
    for (; next > WEFT_NVSHMEM_TEAMS_MADE && job->team[next - 1].team == SHMEM_TEAM_INVALID; next--)
        team = next - 1;
    for (next = WEFT_NVSHMEM_TEAMS_MADE; team < 0 && next < WEFT_NVSHMEM_TEAMS; next++)
        if (job->team[next].team == SHMEM_TEAM_INVALID)
            team = next;
    if (weft_nvshmem_agree(made, team < 0 ? -1 : 0)) {
        shmem_team_destroy(made);
        return weft_nvshmem_fail("nvshmem_team_split", "a member has too many teams", -1);
    }
    job->team[team].team = made;
    job->team[team].order = ++job->splits;
    *handle = team;
    int error = job->opened ? weft_nvshmem_agree(made, weft_nvshmem_team_open(team)) : 0;
    if (error)
        nvshmem_team_destroy(team);
    if (error)
        *handle = NVSHMEM_TEAM_INVALID;
    return error;
}

WEFT_NVSHMEM_NAME int nvshmem_team_split_strided(nvshmem_team_t parent_team, int pe_start,
                                                 int pe_stride, int pe_size,
                                                 const nvshmem_team_config_t *config,
                                                 long config_mask, nvshmem_team_t *new_team) {
    shmem_team_t made = SHMEM_TEAM_INVALID;
    (void)config, (void)config_mask;
    int error = shmem_team_split_strided(weft_nvshmem_host_team(parent_team), pe_start, pe_stride,
                                         pe_size, NULL, 0, &made);
    int added = weft_nvshmem_team_add(made, new_team);
    return error ? error : added;
}

WEFT_NVSHMEM_NAME int nvshmem_team_split_2d(nvshmem_team_t parent_team, int xrange,
                                            const nvshmem_team_config_t *xaxis_config,
                                            long xaxis_mask, nvshmem_team_t *xaxis_team,
                                            const nvshmem_team_config_t *yaxis_config,
                                            long yaxis_mask, nvshmem_team_t *yaxis_team) {
    shmem_team_t x = SHMEM_TEAM_INVALID, y = SHMEM_TEAM_INVALID;
    (void)xaxis_config, (void)xaxis_mask, (void)yaxis_config, (void)yaxis_mask;
    int error =
        shmem_team_split_2d(weft_nvshmem_host_team(parent_team), xrange, NULL, 0, &x, NULL, 0, &y);
    int x_added = weft_nvshmem_team_add(x, xaxis_team);
    int y_added = weft_nvshmem_team_add(y, yaxis_team);
    return error ? error : x_added ? x_added : y_added;
}

WEFT_NVSHMEM_NAME int nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t *config) {
    config->num_contexts = 0;
    return weft_nvshmem_host_team(team) == SHMEM_TEAM_INVALID ? -1 : 0;
}

#endif
