/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory access: put and get, single elements, strided and block-strided.
 *
 * A near put is complete when its copy is, so the non-blocking forms are the blocking ones. */
#include "core/rma.h"
#include "api/checked.h"
#include "api/define.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE void put_now(void *dest, const void *source, size_t bytes, int pe, const char *call) {
    weft_check_local(call, "source", source, bytes);
    if (__builtin_expect(weft_put(dest, source, bytes, pe) != 0, 0))
        weft_misuse_access(call, "dest", dest, bytes, pe);
}

ALWAYS_INLINE void get_now(void *dest, const void *source, size_t bytes, int pe, const char *call) {
    weft_check_local(call, "dest", dest, bytes);
    if (__builtin_expect(weft_get(dest, source, bytes, pe) != 0, 0))
        weft_misuse_access(call, "source", source, bytes, pe);
}

WEFT_COLD static void put_checked(void *dest, const void *source, size_t bytes, size_t alignment,
                                  int pe, const char *call) {
    WEFT_ENTER(call);
    weft_checked_access(call, &(struct weft_access){"dest", "source", dest, source, bytes, bytes,
                                                    alignment, pe, false});
    put_now(dest, source, bytes, pe, call);
}

WEFT_COLD static void get_checked(void *dest, const void *source, size_t bytes, size_t alignment,
                                  int pe, const char *call) {
    WEFT_ENTER(call);
    weft_checked_access(call, &(struct weft_access){"source", "dest", source, dest, bytes, bytes,
                                                    alignment, pe, false});
    get_now(dest, source, bytes, pe, call);
}

/* Inlined into every routine: a shared body costs a jump and the move of its arguments, a tenth of
 * a small put. Where the size is constant only that copy is left. Checked mode goes its own way to
 * the end, for a call in the middle would have every put save registers. */
ALWAYS_INLINE void put(void *dest, const void *source, size_t bytes, size_t alignment, int pe,
                       const char *call) {
    if (weft_checked())
        put_checked(dest, source, bytes, alignment, pe, call);
    else
        put_now(dest, source, bytes, pe, call);
}

ALWAYS_INLINE void get(void *dest, const void *source, size_t bytes, size_t alignment, int pe,
                       const char *call) {
    if (weft_checked())
        get_checked(dest, source, bytes, alignment, pe, call);
    else
        get_now(dest, source, bytes, pe, call);
}

ALWAYS_INLINE void put_element(void *dest, const void *value, size_t bytes, size_t alignment,
                               int pe, const char *call) {
    if (weft_checked())
        put_checked(dest, value, bytes, alignment, pe, call);
    else if (__builtin_expect(weft_put_element(dest, value, bytes, pe) != 0, 0))
        weft_misuse_access(call, "dest", dest, bytes, pe);
}

ALWAYS_INLINE void get_element(void *value, const void *source, size_t bytes, size_t alignment,
                               int pe, const char *call) {
    if (weft_checked())
        get_checked(value, source, bytes, alignment, pe, call);
    else if (__builtin_expect(weft_get_element(value, source, bytes, pe) != 0, 0))
        weft_misuse_access(call, "source", source, bytes, pe);
}

static size_t strided_bytes(const struct weft_strided *shape) {
    return weft_check_bytes(weft_check_bytes(shape->bsize, shape->nblocks), shape->elem_bytes);
}

/* What has no extent fails in the access itself. */
static void check_strided(const char *call, struct weft_access access,
                          const struct weft_strided *shape, bool is_put) {
    ptrdiff_t there = is_put ? shape->dest_stride : shape->source_stride;
    ptrdiff_t here = is_put ? shape->source_stride : shape->dest_stride;
    if (weft_strided_extent(shape, access.symmetric, there, &access.symmetric,
                            &access.symmetric_bytes) &&
        weft_strided_extent(shape, access.local, here, &access.local, &access.local_bytes))
        weft_checked_access(call, &access);
}

static void put_strided(void *dest, const void *source, const struct weft_strided *shape,
                        size_t alignment, int pe, const char *call) {
    weft_check_local(call, "source", source, strided_bytes(shape));
    if (weft_checked())
        check_strided(
            call, (struct weft_access){"dest", "source", dest, source, 0, 0, alignment, pe, true},
            shape, true);
    if (weft_put_strided(dest, source, shape, pe) != 0)
        weft_misuse_access(call, "dest", dest, strided_bytes(shape), pe);
}

static void get_strided(void *dest, const void *source, const struct weft_strided *shape,
                        size_t alignment, int pe, const char *call) {
    weft_check_local(call, "dest", dest, strided_bytes(shape));
    if (weft_checked())
        check_strided(
            call, (struct weft_access){"source", "dest", source, dest, 0, 0, alignment, pe, true},
            shape, false);
    if (weft_get_strided(dest, source, shape, pe) != 0)
        weft_misuse_access(call, "source", source, strided_bytes(shape), pe);
}

/* clang-format off */
/* VERB is put or get, SIZE the bytes of an element, ALIGN what its address is a multiple of. */
#define COPY(NAME, T, VERB, SIZE, ALIGN)                                                           \
    PAIR(void, NAME, (T *dest, const T *source, size_t nelems, int pe),                            \
         VERB(dest, source, weft_check_bytes(nelems, SIZE), ALIGN, pe, __func__);)
#define STRIDED(NAME, T, VERB, SIZE, ALIGN)                                                        \
    PAIR(void, NAME,                                                                               \
         (T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),          \
         struct weft_strided shape = {SIZE, 1, nelems, dst, sst};                                  \
         VERB##_strided(dest, source, &shape, ALIGN, pe, __func__);)
#define BLOCK_STRIDED(NAME, T, VERB, SIZE, ALIGN)                                                  \
    PAIR(void, NAME,                                                                               \
         (T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks,    \
          int pe),                                                                                 \
         struct weft_strided shape = {SIZE, bsize, nblocks, dst, sst};                             \
         VERB##_strided(dest, source, &shape, ALIGN, pe, __func__);)

#define TYPED(N, T, _)                                                                             \
    COPY(N##_put, T, put, sizeof(T), _Alignof(T))                                                  \
    COPY(N##_get, T, get, sizeof(T), _Alignof(T))                                                  \
    COPY(N##_put_nbi, T, put, sizeof(T), _Alignof(T))                                              \
    COPY(N##_get_nbi, T, get, sizeof(T), _Alignof(T))                                              \
    STRIDED(N##_iput, T, put, sizeof(T), _Alignof(T))                                              \
    STRIDED(N##_iget, T, get, sizeof(T), _Alignof(T))                                              \
    BLOCK_STRIDED(N##_ibput, T, put, sizeof(T), _Alignof(T))                                       \
    BLOCK_STRIDED(N##_ibget, T, get, sizeof(T), _Alignof(T))                                       \
    PAIR(void, N##_p, (T *dest, T value, int pe),                                                  \
         put_element(dest, &value, sizeof(T), _Alignof(T), pe, __func__);)                         \
    PAIR(T, N##_g, (const T *source, int pe),                                                      \
         T value;                                                                                  \
         get_element(&value, source, sizeof(T), _Alignof(T), pe, __func__);                        \
         return value;)
#define SIZED(BITS, BYTES, _)                                                                      \
    COPY(put##BITS, void, put, BYTES, BYTES)                                                       \
    COPY(get##BITS, void, get, BYTES, BYTES)                                                       \
    COPY(put##BITS##_nbi, void, put, BYTES, BYTES)                                                 \
    COPY(get##BITS##_nbi, void, get, BYTES, BYTES)                                                 \
    STRIDED(iput##BITS, void, put, BYTES, BYTES)                                                   \
    STRIDED(iget##BITS, void, get, BYTES, BYTES)                                                   \
    BLOCK_STRIDED(ibput##BITS, void, put, BYTES, BYTES)                                            \
    BLOCK_STRIDED(ibget##BITS, void, get, BYTES, BYTES)

SHMEM_RMA_TYPES(TYPED, _)
SHMEM_SIZES(SIZED, _)
COPY(putmem, void, put, 1, 1)
COPY(getmem, void, get, 1, 1)
COPY(putmem_nbi, void, put, 1, 1)
COPY(getmem_nbi, void, get, 1, 1)
