/* SPDX-License-Identifier: BSD-3-Clause */
/* Annotations that let the compiler vectorise loops over arrays. */
#ifndef WEFT_COLL_LOOP_H
#define WEFT_COLL_LOOP_H

/* Compiles a function for several instruction sets; the loader selects the widest one that the
 * processor has. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define WEFT_WIDEST __attribute__((target_clones("avx2", "default")))
#else
#define WEFT_WIDEST /* the loader selects before the sanitizers are ready */
#endif

/* Precedes a loop whose arrays are either disjoint or identical. */
#if defined(__clang__)
#define WEFT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WEFT_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
