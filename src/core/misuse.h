/* SPDX-License-Identifier: BSD-3-Clause */
/* The one line that ends the job when an argument is wrong.
 *
 * The standard leaves misuse undefined and most routines have no error return, so the line has to
 * say it all: which routine, which argument, its value, and what to do. `call` and `argument` are
 * the public names. Outside of a running job each says that instead: whatever else is wrong follows
 * from it. */
#ifndef WEFT_CORE_MISUSE_H
#define WEFT_CORE_MISUSE_H

#include <stddef.h>
#include <shmem.h>

#define WEFT_COLD __attribute__((cold, noinline))

/* Not between shmem_init and shmem_finalize, or in a forked child. */
WEFT_COLD _Noreturn void weft_misuse_phase(const char *call);

/* `p` is not symmetric over `bytes`, or there is no world PE `pe`. */
WEFT_COLD _Noreturn void weft_misuse_access(const char *call, const char *argument, const void *p,
                                            size_t bytes, int pe);

/* There is no such context, or no PE `pe` in its team. */
WEFT_COLD _Noreturn void weft_misuse_ctx(const char *call, shmem_ctx_t ctx, int pe);

/* A private context of another thread. */
WEFT_COLD _Noreturn void weft_misuse_private(const char *call, shmem_ctx_t ctx);

WEFT_COLD _Noreturn void weft_misuse_null(const char *call, const char *argument);

/* `value` is none of the constants `allowed`. */
WEFT_COLD _Noreturn void weft_misuse_constant(const char *call, const char *argument, long value,
                                              const char *allowed);

/* `member` is no number of one of `npes` members, in a collective, which has entered its call. */
WEFT_COLD _Noreturn void weft_misuse_member(const char *argument, int member, int npes);

/* A stride of a collective, which must be positive. */
WEFT_COLD _Noreturn void weft_misuse_stride(const char *argument, ptrdiff_t stride);

/* No live object is behind a handle; `allowed` says what to pass. */
WEFT_COLD _Noreturn void weft_misuse_handle(const char *call, const char *argument,
                                            const void *handle, const char *allowed);

#endif
