/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiling interface: every routine of shmem.h a second time, with the prefix p.
 *
 * A tool defines shmem_X (in the program, in a library that is linked before Weft, or in a
 * preloaded one) and calls pshmem_X. The program's calls then reach the tool. The library itself
 * calls neither name, so the tool never sees internal calls. */
#ifndef PSHMEM_H
#define PSHMEM_H

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define SHMEM_TWIN p
#include "shmem_typed.h"
#undef SHMEM_TWIN

void pshmem_global_exit(int status) __attribute__((__noreturn__));
void pshmem_signal_add(uint64_t *sig_addr, uint64_t signal, int pe);
void pshmem_signal_set(uint64_t *sig_addr, uint64_t signal, int pe);

/* The routines that shmem.h declares individually: the twin has the same type. */
#define PSHMEM_TWIN_OF(NAME) extern __typeof__(NAME) p##NAME;
PSHMEM_TWIN_OF(shmem_init)
PSHMEM_TWIN_OF(shmem_init_thread)
PSHMEM_TWIN_OF(shmem_finalize)
PSHMEM_TWIN_OF(shmem_query_initialized)
PSHMEM_TWIN_OF(shmem_query_thread)
PSHMEM_TWIN_OF(shmem_my_pe)
PSHMEM_TWIN_OF(shmem_n_pes)
PSHMEM_TWIN_OF(shmem_pe_accessible)
PSHMEM_TWIN_OF(shmem_addr_accessible)
PSHMEM_TWIN_OF(shmem_ptr)
PSHMEM_TWIN_OF(shmem_team_ptr)
PSHMEM_TWIN_OF(shmem_info_get_version)
PSHMEM_TWIN_OF(shmem_info_get_name)
PSHMEM_TWIN_OF(shmem_pcontrol)
PSHMEM_TWIN_OF(shmem_malloc)
PSHMEM_TWIN_OF(shmem_calloc)
PSHMEM_TWIN_OF(shmem_align)
PSHMEM_TWIN_OF(shmem_malloc_with_hints)
PSHMEM_TWIN_OF(shmem_realloc)
PSHMEM_TWIN_OF(shmem_free)
PSHMEM_TWIN_OF(shmem_team_my_pe)
PSHMEM_TWIN_OF(shmem_team_n_pes)
PSHMEM_TWIN_OF(shmem_team_get_config)
PSHMEM_TWIN_OF(shmem_team_translate_pe)
PSHMEM_TWIN_OF(shmem_team_split_strided)
PSHMEM_TWIN_OF(shmem_team_split_2d)
PSHMEM_TWIN_OF(shmem_team_destroy)
PSHMEM_TWIN_OF(shmem_ctx_create)
PSHMEM_TWIN_OF(shmem_team_create_ctx)
PSHMEM_TWIN_OF(shmem_ctx_get_team)
PSHMEM_TWIN_OF(shmem_ctx_destroy)
PSHMEM_TWIN_OF(shmem_ctx_session_start)
PSHMEM_TWIN_OF(shmem_ctx_session_stop)
PSHMEM_TWIN_OF(shmem_ctx_signal_add)
PSHMEM_TWIN_OF(shmem_ctx_signal_set)
PSHMEM_TWIN_OF(shmem_signal_fetch)
PSHMEM_TWIN_OF(shmem_signal_wait_until)
PSHMEM_TWIN_OF(shmem_fence)
PSHMEM_TWIN_OF(shmem_ctx_fence)
PSHMEM_TWIN_OF(shmem_quiet)
PSHMEM_TWIN_OF(shmem_ctx_quiet)
PSHMEM_TWIN_OF(shmem_pe_quiet)
PSHMEM_TWIN_OF(shmem_ctx_pe_quiet)
PSHMEM_TWIN_OF(shmem_barrier_all)
PSHMEM_TWIN_OF(shmem_sync_all)
PSHMEM_TWIN_OF(shmem_team_sync)
PSHMEM_TWIN_OF(shmem_set_lock)
PSHMEM_TWIN_OF(shmem_clear_lock)
PSHMEM_TWIN_OF(shmem_test_lock)
#undef PSHMEM_TWIN_OF

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
