/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory access: put and get, single elements, strided and block-strided.
 *
 * A near put is complete when its copy is, so the non-blocking forms are the blocking ones. */
#include "core/rma.h"
#include "api/pair.h"

static inline void put(const char *call, void *dest, const void *source, size_t nelems, size_t size,
                       int pe) {
    size_t bytes = weft_check_bytes(nelems, size);
    weft_check_local(call, "source", source, bytes);
    if (__builtin_expect(weft_put(dest, source, bytes, pe) != 0, 0))
        weft_misuse_access(call, "dest", dest, bytes, pe);
}

static inline void get(const char *call, void *dest, const void *source, size_t nelems, size_t size,
                       int pe) {
    size_t bytes = weft_check_bytes(nelems, size);
    weft_check_local(call, "dest", dest, bytes);
    if (__builtin_expect(weft_get(dest, source, bytes, pe) != 0, 0))
        weft_misuse_access(call, "source", source, bytes, pe);
}

static void put_strided(const char *call, void *dest, const void *source,
                        const struct weft_strided *shape, int pe) {
    size_t bytes = weft_check_bytes(weft_check_bytes(shape->bsize, shape->nblocks),
                                    shape->elem_bytes);
    weft_check_local(call, "source", source, bytes);
    if (weft_put_strided(dest, source, shape, pe) != 0)
        weft_misuse_access(call, "dest", dest, bytes, pe);
}

static void get_strided(const char *call, void *dest, const void *source,
                        const struct weft_strided *shape, int pe) {
    size_t bytes = weft_check_bytes(weft_check_bytes(shape->bsize, shape->nblocks),
                                    shape->elem_bytes);
    weft_check_local(call, "dest", dest, bytes);
    if (weft_get_strided(dest, source, shape, pe) != 0)
        weft_misuse_access(call, "source", source, bytes, pe);
}

/* VERB is put or get, SIZE the bytes of an element. */
#define COPY(NAME, T, VERB, SIZE)                                                                  \
    PAIR(void, NAME, (T *dest, const T *source, size_t nelems, int pe),                            \
         VERB(__func__, dest, source, nelems, SIZE, pe);)
#define STRIDED(NAME, T, VERB, SIZE)                                                               \
    PAIR(void, NAME,                                                                               \
         (T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),          \
         struct weft_strided shape = {SIZE, 1, nelems, dst, sst};                                  \
         VERB##_strided(__func__, dest, source, &shape, pe);)
#define BLOCK_STRIDED(NAME, T, VERB, SIZE)                                                         \
    PAIR(void, NAME,                                                                               \
         (T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks,    \
          int pe),                                                                                 \
         struct weft_strided shape = {SIZE, bsize, nblocks, dst, sst};                             \
         VERB##_strided(__func__, dest, source, &shape, pe);)

#define TYPED(N, T, _)                                                                             \
    COPY(N##_put, T, put, sizeof(T))                                                               \
    COPY(N##_get, T, get, sizeof(T))                                                               \
    COPY(N##_put_nbi, T, put, sizeof(T))                                                           \
    COPY(N##_get_nbi, T, get, sizeof(T))                                                           \
    STRIDED(N##_iput, T, put, sizeof(T))                                                           \
    STRIDED(N##_iget, T, get, sizeof(T))                                                           \
    BLOCK_STRIDED(N##_ibput, T, put, sizeof(T))                                                    \
    BLOCK_STRIDED(N##_ibget, T, get, sizeof(T))                                                    \
    PAIR(void, N##_p, (T *dest, T value, int pe),                                                  \
         put(__func__, dest, &value, 1, sizeof(T), pe);)                                           \
    PAIR(T, N##_g, (const T *source, int pe),                                                      \
         T value;                                                                                  \
         get(__func__, &value, source, 1, sizeof(T), pe);                                          \
         return value;)
#define SIZED(BITS, BYTES, _)                                                                      \
    COPY(put##BITS, void, put, BYTES)                                                              \
    COPY(get##BITS, void, get, BYTES)                                                              \
    COPY(put##BITS##_nbi, void, put, BYTES)                                                        \
    COPY(get##BITS##_nbi, void, get, BYTES)                                                        \
    STRIDED(iput##BITS, void, put, BYTES)                                                          \
    STRIDED(iget##BITS, void, get, BYTES)                                                          \
    BLOCK_STRIDED(ibput##BITS, void, put, BYTES)                                                   \
    BLOCK_STRIDED(ibget##BITS, void, get, BYTES)

SHMEM_RMA_TYPES(TYPED, _)
SHMEM_SIZES(SIZED, _)
COPY(putmem, void, put, 1)
COPY(getmem, void, get, 1)
COPY(putmem_nbi, void, put, 1)
COPY(getmem_nbi, void, get, 1)
