/* SPDX-License-Identifier: BSD-3-Clause */
/* What loops over arrays say to the compiler, so that it vectorises them. */
#ifndef WEFT_COLL_LOOP_H
#define WEFT_COLL_LOOP_H

/* A function whose widest form for the processor at hand is picked by the loader. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define WEFT_WIDEST __attribute__((target_clones("avx2", "default")))
#else
#define WEFT_WIDEST /* resolvers run before the sanitizers are ready */
#endif

/* In front of a loop whose arrays are apart or the very same. */
#if defined(__clang__)
#define WEFT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WEFT_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
