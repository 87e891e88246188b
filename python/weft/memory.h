/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of memory under Buffers, with two reference counts.
 *
 *   holders   pointers to the struct: Buffers, views, the list of symmetric memory
 *   views     users of the address: other libraries' arrays, calls in progress
 *
 * Symmetric memory is allocated by all PEs together. It is freed by all together, at the first
 * weft.empty or weft.zeros after every PE has let go of it: its Buffers were freed or collected,
 * and there are no views. So free() is local, Python may collect objects in any order, and no array
 * ever shows memory that belongs to another array. */
#ifndef PYWEFT_MEMORY_H
#define PYWEFT_MEMORY_H

#include <stdatomic.h>
#include "module.h"

struct pyweft_memory {
    char *begin;
    size_t bytes;
    shmemx_space_t space;
    int gpu; /* CUDA device number, or -1 for host memory */
    bool readonly;
    bool symmetric; /* on the symmetric heap, and in the list */
    bool gone;      /* freed: the addresses may belong to other memory */
    unsigned session;
    atomic_int holders, views;
    atomic_bool freed; /* by free(): Buffers refuse to use it */
    atomic_bool
        exposed; /* the address was given to a library that does not report when it is done */
    void (*release)(void *owner); /* frees memory that is not symmetric, after the last holder; may
                                     be called by any thread, without the GIL */
    void *owner;
    struct pyweft_memory *next; /* in the list, which has the order of allocation on all PEs */
};

/* Allocates symmetric memory, zeroed if asked for. For GPU memory pyweft_gpu must have been called.
 * Collective over all PEs, which must ask for the same. A PE that cannot take part passes SIZE_MAX
 * as bytes, with an exception set; then the call fails on all PEs. */
struct pyweft_memory *pyweft_memory_allocate(const char *call, shmemx_space_t space, size_t bytes,
                                             bool zero);

/* Wraps memory with another owner, on this GPU (-1: host memory). Calls release(owner) after the
 * last holder. */
struct pyweft_memory *pyweft_memory_wrap(void *begin, size_t bytes, int gpu,
                                         void (*release)(void *), void *owner);

/* Returns false with RuntimeError for symmetric memory after finalize(), and in a forked child, or
 * with ValueError if the memory was freed. */
bool pyweft_memory_check(const struct pyweft_memory *memory, const char *call, const char *name);

/* These need no GIL. */
void pyweft_memory_hold(struct pyweft_memory *memory);
bool pyweft_memory_hold_live(
    struct pyweft_memory *memory); /* false if the last holder has let go */
void pyweft_memory_drop(struct pyweft_memory *memory);
void pyweft_memory_view(struct pyweft_memory *memory);
void pyweft_memory_unview(struct pyweft_memory *memory);

/* Finds p in the list of symmetric memory: the index of the piece, the same on all PEs, and the
 * offset in it; -1 and -1 if p is in none. */
void pyweft_memory_place(const void *p, int64_t *number, int64_t *offset);

/* Returns the symmetric memory that p lies in, or NULL. Memory allocated by C code is not in the
 * list. */
struct pyweft_memory *pyweft_memory_find(const void *p);

/* Returns whether views on this PE need symmetric memory to stay after finalize(). */
bool pyweft_memory_needed(void);

/* Ends the session: empties the list, or keeps the memory if there are views. */
void pyweft_memory_close(bool keep);

#endif
