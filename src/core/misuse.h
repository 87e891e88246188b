/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends the job with one line because an argument is wrong.
 *
 * The standard leaves misuse undefined, and most routines have no error return, so the line must be
 * complete: the routine, the argument, its value, and the remedy. `call` and `argument` are the
 * public names. If the job is not running, each function says that instead, because it explains
 * everything else. */
#ifndef WEFT_CORE_MISUSE_H
#define WEFT_CORE_MISUSE_H

#include <stddef.h>
#include <shmem.h>

#define WEFT_COLD __attribute__((cold, noinline))

/* The call is not between shmem_init and shmem_finalize, or is in a forked child. */
WEFT_COLD _Noreturn void weft_misuse_phase(const char *call);

/* `p` is not symmetric over `bytes`, or there is no world PE `pe`. */
WEFT_COLD _Noreturn void weft_misuse_access(const char *call, const char *argument, const void *p,
                                            size_t bytes, int pe);

/* There is no such context, or its team has no PE `pe`. */
WEFT_COLD _Noreturn void weft_misuse_ctx(const char *call, shmem_ctx_t ctx, int pe);

/* The context is private to another thread. */
WEFT_COLD _Noreturn void weft_misuse_private(const char *call, shmem_ctx_t ctx);

WEFT_COLD _Noreturn void weft_misuse_null(const char *call, const char *argument);

/* `value` is not one of the constants `allowed`. */
WEFT_COLD _Noreturn void weft_misuse_constant(const char *call, const char *argument, long value,
                                              const char *allowed);

/* `member` is not a member number of `npes` members; called in a collective, which has entered its
 * call. */
WEFT_COLD _Noreturn void weft_misuse_member(const char *argument, int member, int npes);

/* The stride of a collective is not positive. */
WEFT_COLD _Noreturn void weft_misuse_stride(const char *argument, ptrdiff_t stride);

/* The handle does not refer to a live object; `allowed` says what to pass. */
WEFT_COLD _Noreturn void weft_misuse_handle(const char *call, const char *argument,
                                            const void *handle, const char *allowed);

#endif
