/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenSHMEM 1.6.
 *
 * Every PE of a job has its own copy of each symmetric object: of the objects that shmem_malloc
 * returns, and of the executable's global and static variables. The address of the local copy names
 * the object on every PE. In routines with a context, `pe` is a number in the context's team; in
 * all others it is a number in the job.
 *
 * The typed routines are in shmem_typed.h, their type-generic names in shmem_generic.h (C11) and
 * shmem_overloads.h (C++). Their contracts are in the manual: man shmem_put, and so on. */
#ifndef SHMEM_H
#define SHMEM_H

#include <stddef.h>
#include <stdint.h>
#include "weft/version.h"

/* Version and names. */
#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN  256
#define SHMEM_VENDOR_STRING "Weft " WEFT_VERSION_STRING

/* Handles. They can be copied, compared and used in static initialisers; a handle is only valid on
 * the PE that created it. */
typedef struct shmem_team *shmem_team_t;
typedef struct shmem_ctx *shmem_ctx_t;
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD   ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED  ((shmem_team_t)2)
#define SHMEM_CTX_INVALID  ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT  ((shmem_ctx_t)1)

typedef struct {
    int num_contexts;
} shmem_team_config_t;
#define SHMEM_TEAM_NUM_CONTEXTS (1L << 0) /* mask: num_contexts is set */

/* Options of a context. */
#define SHMEM_CTX_SERIALIZED (1L << 0) /* threads take turns on it */
#define SHMEM_CTX_PRIVATE    (1L << 1) /* only the thread that creates it uses it */
#define SHMEM_CTX_NOSTORE    (1L << 2) /* its fence and quiet need not order plain stores */

/* The operations that a session will contain: option and mask of its configuration. */
typedef struct {
    size_t total_ops;
} shmem_ctx_session_config_t;
#define SHMEM_CTX_SESSION_BATCH     (1L << 0) /* many operations that may be joined */
#define SHMEM_CTX_SESSION_TOTAL_OPS (1L << 0) /* mask: total_ops is set */

/* Thread levels, in increasing order. */
#define SHMEM_THREAD_SINGLE     0
#define SHMEM_THREAD_FUNNELED   1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE   3

/* Comparisons of wait and test. */
#define SHMEM_CMP_EQ 1
#define SHMEM_CMP_NE 2
#define SHMEM_CMP_GT 3
#define SHMEM_CMP_GE 4
#define SHMEM_CMP_LT 5
#define SHMEM_CMP_LE 6

/* Operations of put_signal on the signal word. */
#define SHMEM_SIGNAL_SET 1
#define SHMEM_SIGNAL_ADD 2

/* Hints of shmem_malloc_with_hints: how other PEs will use the memory. */
#define SHMEM_MALLOC_ATOMICS_REMOTE (1L << 0)
#define SHMEM_MALLOC_SIGNAL_REMOTE  (1L << 1)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Set-up, exit and query. Pairs of shmem_init and shmem_finalize may be nested. */
void shmem_init(void);
int shmem_init_thread(int requested, int *provided);
void shmem_finalize(void);
void shmem_global_exit(int status) __attribute__((__noreturn__));
void shmem_query_initialized(int *initialized);
void shmem_query_thread(int *provided);
int shmem_my_pe(void);
int shmem_n_pes(void);
int shmem_pe_accessible(int pe);
int shmem_addr_accessible(const void *addr, int pe);
void *shmem_ptr(const void *dest, int pe);
void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe);
void shmem_info_get_version(int *major, int *minor);
void shmem_info_get_name(char *name);
void shmem_pcontrol(int level, ...);

/* The symmetric heap. Collective over the job. */
void *shmem_malloc(size_t size);
void *shmem_calloc(size_t count, size_t size);
void *shmem_align(size_t alignment, size_t size);
void *shmem_malloc_with_hints(size_t size, long hints);
void *shmem_realloc(void *ptr, size_t size);
void shmem_free(void *ptr);

/* Teams. */
int shmem_team_my_pe(shmem_team_t team);
int shmem_team_n_pes(shmem_team_t team);
int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config);
int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team);
int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                             const shmem_team_config_t *config, long config_mask,
                             shmem_team_t *new_team);
int shmem_team_split_2d(shmem_team_t parent_team, int xrange,
                        const shmem_team_config_t *xaxis_config, long xaxis_mask,
                        shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config,
                        long yaxis_mask, shmem_team_t *yaxis_team);
void shmem_team_destroy(shmem_team_t team);

/* Contexts. */
int shmem_ctx_create(long options, shmem_ctx_t *ctx);
int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx);
int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team);
void shmem_ctx_destroy(shmem_ctx_t ctx);
void shmem_ctx_session_start(shmem_ctx_t ctx, long options,
                             const shmem_ctx_session_config_t *config, long config_mask);
void shmem_ctx_session_stop(shmem_ctx_t ctx);

/* Put, get, atomics, put-with-signal, waits and collectives, by type and size. */
#define SHMEM_TWIN
#include "shmem_typed.h"
#undef SHMEM_TWIN

/* Signals. */
void shmem_signal_add(uint64_t *sig_addr, uint64_t signal, int pe);
void shmem_signal_set(uint64_t *sig_addr, uint64_t signal, int pe);
void shmem_ctx_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe);
void shmem_ctx_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe);
uint64_t shmem_signal_fetch(const uint64_t *sig_addr);
uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value);

/* Memory ordering. */
void shmem_fence(void);
void shmem_ctx_fence(shmem_ctx_t ctx);
void shmem_quiet(void);
void shmem_ctx_quiet(shmem_ctx_t ctx);
void shmem_pe_quiet(const int *target_pes, size_t npes);
void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int *target_pes, size_t npes);

/* Barriers. */
void shmem_barrier_all(void);
void shmem_sync_all(void);
int shmem_team_sync(shmem_team_t team);

/* Locks: a symmetric long that is 0 at first. */
void shmem_set_lock(long *lock);
void shmem_clear_lock(long *lock);
int shmem_test_lock(long *lock);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#include "shmem_overloads.h"
#elif __STDC_VERSION__ >= 201112L
#include "shmem_generic.h"
#endif

#ifdef _CFFI_
#include "weft/shmem4py.h"
#endif

#endif
