/* SPDX-License-Identifier: BSD-3-Clause */
/* The type-generic names in C++: overloads of the names that shmem_generic.h defines for C11. Part
 * of shmem.h.
 *
 * Each overload is a prototype with the typed routine's symbol, so that a call reaches the routine
 * directly, or a profiling tool in front of it. The symbol of shmem_put(int *, const int *, size_t,
 * int) is shmem_int_put. */
#ifndef SHMEM_H
#error "include shmem.h instead"
#endif
#ifndef SHMEM_OVERLOADS_H
#define SHMEM_OVERLOADS_H

#if __cplusplus >= 201103L
#pragma GCC visibility push(default)
extern "C++" { /* even if a program includes shmem.h within extern "C" */

/* In a namespace, so that a program's function of one of these names is ambiguous, not mistaken for
 * ours. */
inline namespace shmem_overloads {

#define SHMEM_OVERLOADS
#include "shmem_typed.h"
#undef SHMEM_OVERLOADS

/* Routines without a type. */
void shmem_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal,
                      int pe) __asm__("shmem_ctx_signal_add");
void shmem_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal,
                      int pe) __asm__("shmem_ctx_signal_set");
int shmem_sync(shmem_team_t team) __asm__("shmem_team_sync");

} // namespace shmem_overloads
}

#pragma GCC visibility pop
#endif

#endif
