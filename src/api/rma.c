/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory access: put and get, single elements, strided and block-strided.
 *
 * A near put is complete when its copy is, so the non-blocking forms are the blocking ones, but
 * where a GPU makes the copy. */
#include "core/rma.h"
#include "api/checked.h"
#include "api/define.h"
#include "api/detour.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE void put_now(void *dest, const void *source, size_t bytes, int pe, const char *call) {
    weft_check_local(call, "source", source, bytes);
    if (__builtin_expect(weft_rma_put(dest, source, bytes, pe) != 0, 0))
        weft_misuse_access(call, "dest", dest, bytes, pe);
}

ALWAYS_INLINE void get_now(void *dest, const void *source, size_t bytes, int pe, const char *call) {
    weft_check_local(call, "dest", dest, bytes);
    if (__builtin_expect(weft_rma_get(dest, source, bytes, pe) != 0, 0))
        weft_misuse_access(call, "source", source, bytes, pe);
}

/* --- The detour ------------------------------------------------------------------------------ */

static void put_anywhere(void *dest, const void *source, size_t bytes, size_t alignment, int pe,
                         bool nbi, const char *call) {
    WEFT_ENTER(call);
    if (weft_checked())
        weft_checked_access(call, &(struct weft_access){"dest", "source", dest, source, bytes,
                                                        bytes, alignment, pe, false});
    if (!weft_for_device(dest, source)) {
        put_now(dest, source, bytes, pe, call);
        return;
    }
    weft_check_local(call, "source", source, bytes);
    if (weft_space_device->rma->put(dest, source, bytes, pe, nbi, call) != 0)
        weft_misuse_access(call, "dest", dest, bytes, pe);
}

static void get_anywhere(void *dest, const void *source, size_t bytes, size_t alignment, int pe,
                         bool nbi, const char *call) {
    WEFT_ENTER(call);
    if (weft_checked())
        weft_checked_access(call, &(struct weft_access){"source", "dest", source, dest, bytes,
                                                        bytes, alignment, pe, false});
    if (!weft_for_device(source, dest)) {
        get_now(dest, source, bytes, pe, call);
        weft_fetched(source, dest, bytes, pe, call);
        return;
    }
    weft_check_local(call, "dest", dest, bytes);
    if (weft_space_device->rma->get(dest, source, bytes, pe, nbi, call) != 0)
        weft_misuse_access(call, "source", source, bytes, pe);
}

/* One function for each form: a seventh argument would go over the stack. */
#define DETOUR(NAME, VERB, NBI)                                                                \
    WEFT_COLD static void NAME(void *dest, const void *source, size_t bytes, size_t alignment, \
                               int pe, const char *call) {                                     \
        VERB(dest, source, bytes, alignment, pe, NBI, call);                                   \
    }
DETOUR(put_detour, put_anywhere, false)
DETOUR(put_nbi_detour, put_anywhere, true)
DETOUR(get_detour, get_anywhere, false)
DETOUR(get_nbi_detour, get_anywhere, true)
#undef DETOUR

/* The value of an element is on the stack: its word alone says whose work it is. */
WEFT_COLD static void put_element_detour(void *dest, const void *value, size_t bytes,
                                         size_t alignment, int pe, const char *call) {
    WEFT_ENTER(call);
    if (weft_checked())
        weft_checked_access(call, &(struct weft_access){"dest", "source", dest, value, bytes, bytes,
                                                        alignment, pe, false});
    int error = weft_for_device(dest, NULL)
                    ? weft_space_device->rma->put_value(dest, value, bytes, pe, call)
                    : weft_rma_put_element(dest, value, bytes, pe);
    if (error)
        weft_misuse_access(call, "dest", dest, bytes, pe);
}

WEFT_COLD static void get_element_detour(void *value, const void *source, size_t bytes,
                                         size_t alignment, int pe, const char *call) {
    WEFT_ENTER(call);
    if (weft_checked())
        weft_checked_access(call, &(struct weft_access){"source", "dest", source, value, bytes,
                                                        bytes, alignment, pe, false});
    int error = weft_for_device(source, NULL)
                    ? weft_space_device->rma->get_value(value, source, bytes, pe, call)
                    : weft_rma_get_element(value, source, bytes, pe);
    if (error)
        weft_misuse_access(call, "source", source, bytes, pe);
    weft_fetched(source, value, bytes, pe, call);
}

/* Where PEs share processors, and nothing else takes a call off its way. */
static __attribute__((noinline)) void get_now_crowded(void *dest, const void *source, size_t bytes,
                                                      int pe, const char *call) {
    get_now(dest, source, bytes, pe, call);
    weft_fetched(source, dest, bytes, pe, call);
}

/* --- The short way --------------------------------------------------------------------------- */

/* Inlined into every routine: a shared body costs a jump and the move of its arguments, a tenth of
 * a small put. Where the size is constant only that copy is left. The detour goes its own way to
 * the end, for a call in the middle would have every put save registers. */
#define SHORT_WAY(NAME, OFF, NOW, DETOUR)                                                   \
    ALWAYS_INLINE void NAME(void *dest, const void *source, size_t bytes, size_t alignment, \
                            int pe, const char *call) {                                     \
        if (OFF())                                                                          \
            DETOUR(dest, source, bytes, alignment, pe, call);                               \
        else                                                                                \
            NOW(dest, source, bytes, pe, call);                                             \
    }
SHORT_WAY(put, weft_detour, put_now, put_detour)
SHORT_WAY(put_nbi, weft_detour, put_now, put_nbi_detour)
SHORT_WAY(get_off, weft_detour, get_now_crowded, get_detour)
SHORT_WAY(get_nbi_off, weft_detour, get_now_crowded, get_nbi_detour)
SHORT_WAY(get, weft_fetch_detour, get_now, get_off)
SHORT_WAY(get_nbi, weft_fetch_detour, get_now, get_nbi_off)
#undef SHORT_WAY

ALWAYS_INLINE void put_element(void *dest, const void *value, size_t bytes, size_t alignment,
                               int pe, const char *call) {
    if (weft_detour())
        put_element_detour(dest, value, bytes, alignment, pe, call);
    else if (__builtin_expect(weft_rma_put_element(dest, value, bytes, pe) != 0, 0))
        weft_misuse_access(call, "dest", dest, bytes, pe);
}

ALWAYS_INLINE void get_element_now(void *value, const void *source, size_t bytes, int pe,
                                   const char *call) {
    if (__builtin_expect(weft_rma_get_element(value, source, bytes, pe) != 0, 0))
        weft_misuse_access(call, "source", source, bytes, pe);
}

ALWAYS_INLINE void get_element(void *value, const void *source, size_t bytes, size_t alignment,
                               int pe, const char *call) {
    if (!weft_fetch_detour()) {
        get_element_now(value, source, bytes, pe, call);
    } else if (!weft_detour()) { /* only crowded */
        get_element_now(value, source, bytes, pe, call);
        weft_fetched(source, value, bytes, pe, call);
    } else {
        get_element_detour(value, source, bytes, alignment, pe, call);
    }
}

/* --- Blocks ---------------------------------------------------------------------------------- */

static size_t strided_bytes(const struct weft_strided *shape) {
    return weft_check_bytes(weft_check_bytes(shape->bsize, shape->nblocks), shape->elem_bytes);
}

/* What has no extent fails in the access itself. */
static void check_strided(const char *call, struct weft_access access,
                          const struct weft_strided *shape, bool is_put) {
    ptrdiff_t there = is_put ? shape->dest_stride : shape->source_stride;
    ptrdiff_t here = is_put ? shape->source_stride : shape->dest_stride;
    if (weft_rma_strided_extent(shape, access.symmetric, there, &access.symmetric,
                                &access.symmetric_bytes) &&
        weft_rma_strided_extent(shape, access.local, here, &access.local, &access.local_bytes))
        weft_checked_access(call, &access);
}

static void put_strided(void *dest, const void *source, const struct weft_strided *shape,
                        size_t alignment, int pe, const char *call) {
    weft_check_local(call, "source", source, strided_bytes(shape));
    if (weft_checked())
        check_strided(
            call, (struct weft_access){"dest", "source", dest, source, 0, 0, alignment, pe, true},
            shape, true);
    int error = weft_for_device(dest, source)
                    ? weft_space_device->rma->put_strided(dest, source, shape, pe, call)
                    : weft_rma_put_strided(dest, source, shape, pe);
    if (error)
        weft_misuse_access(call, "dest", dest, strided_bytes(shape), pe);
}

static void get_strided(void *dest, const void *source, const struct weft_strided *shape,
                        size_t alignment, int pe, const char *call) {
    weft_check_local(call, "dest", dest, strided_bytes(shape));
    if (weft_checked())
        check_strided(
            call, (struct weft_access){"source", "dest", source, dest, 0, 0, alignment, pe, true},
            shape, false);
    int error = weft_for_device(source, dest)
                    ? weft_space_device->rma->get_strided(dest, source, shape, pe, call)
                    : weft_rma_get_strided(dest, source, shape, pe);
    if (error)
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
    COPY(N##_put_nbi, T, put_nbi, sizeof(T), _Alignof(T))                                          \
    COPY(N##_get_nbi, T, get_nbi, sizeof(T), _Alignof(T))                                          \
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
    COPY(put##BITS##_nbi, void, put_nbi, BYTES, BYTES)                                             \
    COPY(get##BITS##_nbi, void, get_nbi, BYTES, BYTES)                                             \
    STRIDED(iput##BITS, void, put, BYTES, BYTES)                                                   \
    STRIDED(iget##BITS, void, get, BYTES, BYTES)                                                   \
    BLOCK_STRIDED(ibput##BITS, void, put, BYTES, BYTES)                                            \
    BLOCK_STRIDED(ibget##BITS, void, get, BYTES, BYTES)

SHMEM_RMA_TYPES(TYPED, _)
SHMEM_SIZES(SIZED, _)
COPY(putmem, void, put, 1, 1)
COPY(getmem, void, get, 1, 1)
COPY(putmem_nbi, void, put_nbi, 1, 1)
COPY(getmem_nbi, void, get_nbi, 1, 1)
