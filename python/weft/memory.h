/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of memory that Buffers show, and who still has them.
 *
 *   holders   whoever has a pointer to the struct: Buffers, views, the books of symmetric memory
 *   views     whoever has been given the address: arrays and tensors of others, calls under way
 *
 * Symmetric memory is made by all PEs together, and given back by all together when every PE has
 * let go of it: its Buffers were freed or are gone, and so are the views. That is found out at the
 * next weft.empty or weft.zeros. So free() is local, collection by Python may come in any order,
 * and no array ever shows memory that is somebody else's. */
#ifndef PYWEFT_MEMORY_H
#define PYWEFT_MEMORY_H

#include <stdatomic.h>
#include "module.h"

struct pyweft_memory {
    char *begin;
    size_t bytes;
    shmemx_space_t space;
    int gpu; /* CUDA's number, or -1 for memory of the host */
    bool readonly;
    bool symmetric; /* of the heap, and in the books */
    bool gone;      /* given back: its addresses may be others' now */
    unsigned session;
    atomic_int holders, views;
    atomic_bool freed;   /* Buffers refuse it */
    atomic_bool exposed; /* its address has been given to some who do not say when they are done */
    void (*release)(void *owner); /* of memory that is not symmetric, with the last holder; may be
                                     called by any thread, without the GIL */
    void *owner;
    struct pyweft_memory *next; /* in the books: in the order of making, alike on all PEs */
};

/* Symmetric memory, zeroed on demand; that of GPUs once pyweft_gpu has said which this
 * PE has. Collective over all PEs, which have to ask for the same; bytes of SIZE_MAX say that this
 * PE cannot, with the exception set, and makes it fail on all. */
struct pyweft_memory *pyweft_memory_allocate(const char *call, shmemx_space_t space, size_t bytes,
                                             bool zero);

/* Memory that someone else owns, on that GPU, or -1: `release` is called with `owner` in the end.
 */
struct pyweft_memory *pyweft_memory_wrap(void *begin, size_t bytes, int gpu,
                                         void (*release)(void *), void *owner);

/* RuntimeError after finalize(), if it was symmetric, and in a forked child; ValueError if freed.
 */
bool pyweft_memory_check(const struct pyweft_memory *memory, const char *call, const char *name);

/* These need no GIL. */
void pyweft_memory_hold(struct pyweft_memory *memory);
bool pyweft_memory_hold_live(struct pyweft_memory *memory); /* unless its last holder has let go */
void pyweft_memory_drop(struct pyweft_memory *memory);
void pyweft_memory_view(struct pyweft_memory *memory);
void pyweft_memory_unview(struct pyweft_memory *memory);

/* Which piece of the books p lies in, alike on all PEs, and how far from its beginning; -1 and -1
 * if it lies in none. */
void pyweft_memory_place(const void *p, int64_t *number, int64_t *offset);

/* The piece of the books that p lies in, or NULL: what C made is in no books. */
struct pyweft_memory *pyweft_memory_find(const void *p);

/* Whether this PE needs symmetric memory when the job is over: for views of it. */
bool pyweft_memory_needed(void);

/* The session is over: the books are closed, or kept if there are views. */
void pyweft_memory_close(bool keep);

#endif
