/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory access: put and get, single elements, strided and block-strided.
 *
 * The short way checks the local side and is inlined, as is the near copy behind it (core/rma.h):
 * a shared body costs a jump and the move of its arguments, a tenth of a small put, and where the
 * size is constant only that copy is left. The detour goes its own way to the end, for a call in
 * the middle would have every put save registers. */
#include "core/rma.h"
#include "api/checked.h"
#include "api/define.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* --- The detour ------------------------------------------------------------------------------ */

/* `there` is the symmetric side, which a put calls dest; `here` the local one. */
static void check_put(void *there, const void *here, size_t bytes, size_t alignment, int pe) {
    if (weft_checked())
        weft_checked_access(&(struct weft_access){"dest", "source", there, here, bytes, bytes,
                                                  alignment, pe, false});
    weft_check_local(weft_current_call, "source", here, bytes);
}

static void check_get(void *here, const void *there, size_t bytes, size_t alignment, int pe) {
    if (weft_checked())
        weft_checked_access(&(struct weft_access){"source", "dest", there, here, bytes, bytes,
                                                  alignment, pe, false});
    weft_check_local(weft_current_call, "dest", here, bytes);
}

/* One function for each form: a seventh argument would go over the stack. */
WEFT_COLD static void put_detour(void *dest, const void *source, size_t bytes, size_t alignment,
                                 int pe, const char *call) {
    WEFT_ENTER(call);
    check_put(dest, source, bytes, alignment, pe);
    weft_rma_put_routed(dest, source, bytes, pe, false, call);
}

WEFT_COLD static void put_nbi_detour(void *dest, const void *source, size_t bytes, size_t alignment,
                                     int pe, const char *call) {
    WEFT_ENTER(call);
    check_put(dest, source, bytes, alignment, pe);
    weft_rma_put_routed(dest, source, bytes, pe, true, call);
}

WEFT_COLD static void get_routed(void *dest, const void *source, size_t bytes, size_t alignment,
                                 int pe, bool nbi, const char *call) {
    WEFT_ENTER(call);
    check_get(dest, source, bytes, alignment, pe);
    weft_rma_get_routed(dest, source, bytes, pe, nbi, call);
}

/* Most gets come here where PEs share processors, for which alone they left the short way. */
ALWAYS_INLINE void get_oversubscribed(void *dest, const void *source, size_t bytes, int pe,
                                      bool nbi, const char *call) {
    weft_check_local(call, "dest", dest, bytes);
    weft_rma_get(dest, source, bytes, pe, nbi, call);
    weft_poll_fetched(source, dest, bytes, pe, call);
}

static __attribute__((noinline)) void get_detour(void *dest, const void *source, size_t bytes,
                                                 size_t alignment, int pe, const char *call) {
    if (weft_detour())
        get_routed(dest, source, bytes, alignment, pe, false, call);
    else
        get_oversubscribed(dest, source, bytes, pe, false, call);
}

static __attribute__((noinline)) void get_nbi_detour(void *dest, const void *source, size_t bytes,
                                                     size_t alignment, int pe, const char *call) {
    if (weft_detour())
        get_routed(dest, source, bytes, alignment, pe, true, call);
    else
        get_oversubscribed(dest, source, bytes, pe, true, call);
}

WEFT_COLD static void put_value_detour(void *dest, const void *value, size_t bytes,
                                       size_t alignment, int pe, const char *call) {
    WEFT_ENTER(call);
    check_put(dest, value, bytes, alignment, pe);
    weft_rma_put_value_routed(dest, value, bytes, pe, call);
}

WEFT_COLD static void get_value_detour(void *value, const void *source, size_t bytes,
                                       size_t alignment, int pe, const char *call) {
    WEFT_ENTER(call);
    check_get(value, source, bytes, alignment, pe);
    weft_rma_get_value_routed(value, source, bytes, pe, call);
}

WEFT_COLD static void put_word_detour(void *dest, uint64_t word, size_t bytes, size_t alignment,
                                      int pe, const char *call) {
    WEFT_ENTER(call);
    check_put(dest, &word, bytes, alignment, pe);
    weft_rma_put_word_routed(dest, word, bytes, pe, call);
}

WEFT_COLD static uint64_t get_word_detour(const void *source, size_t bytes, size_t alignment,
                                          int pe, const char *call) {
    uint64_t word = 0;
    WEFT_ENTER(call);
    check_get(&word, source, bytes, alignment, pe);
    return weft_rma_get_word_routed(source, bytes, pe, call);
}

/* --- The short way --------------------------------------------------------------------------- */

ALWAYS_INLINE void put_bytes(void *dest, const void *source, size_t bytes, size_t alignment, int pe,
                             const char *call) {
    if (weft_detour()) {
        put_detour(dest, source, bytes, alignment, pe, call);
    } else {
        weft_check_local(call, "source", source, bytes);
        weft_rma_put(dest, source, bytes, pe, false, call);
    }
}

ALWAYS_INLINE void put_bytes_nbi(void *dest, const void *source, size_t bytes, size_t alignment,
                                 int pe, const char *call) {
    if (weft_detour()) {
        put_nbi_detour(dest, source, bytes, alignment, pe, call);
    } else {
        weft_check_local(call, "source", source, bytes);
        weft_rma_put(dest, source, bytes, pe, true, call);
    }
}

ALWAYS_INLINE void get_bytes(void *dest, const void *source, size_t bytes, size_t alignment, int pe,
                             const char *call) {
    if (weft_fetch_detour()) {
        get_detour(dest, source, bytes, alignment, pe, call);
    } else {
        weft_check_local(call, "dest", dest, bytes);
        weft_rma_get(dest, source, bytes, pe, false, call);
    }
}

ALWAYS_INLINE void get_bytes_nbi(void *dest, const void *source, size_t bytes, size_t alignment,
                                 int pe, const char *call) {
    if (weft_fetch_detour()) {
        get_nbi_detour(dest, source, bytes, alignment, pe, call);
    } else {
        weft_check_local(call, "dest", dest, bytes);
        weft_rma_get(dest, source, bytes, pe, true, call);
    }
}

/* A word travels in a register: were it memory, the near path would have to keep that, too. */
ALWAYS_INLINE void put_element(void *dest, const void *value, size_t bytes, size_t alignment,
                               int pe, const char *call) {
    uint64_t word = 0;
    memcpy(&word, value, bytes < sizeof word ? bytes : sizeof word);
    if (bytes > WEFT_RMA_WORD && weft_detour())
        put_value_detour(dest, value, bytes, alignment, pe, call);
    else if (bytes > WEFT_RMA_WORD)
        weft_rma_put_value(dest, value, bytes, pe, call);
    else if (weft_detour())
        put_word_detour(dest, word, bytes, alignment, pe, call);
    else
        weft_rma_put_word(dest, word, bytes, pe, call);
}

ALWAYS_INLINE void get_element(void *value, const void *source, size_t bytes, size_t alignment,
                               int pe, const char *call) {
    uint64_t word;
    if (bytes > WEFT_RMA_WORD && weft_detour()) {
        get_value_detour(value, source, bytes, alignment, pe, call);
    } else if (bytes > WEFT_RMA_WORD) {
        weft_rma_get_value(value, source, bytes, pe, call);
    } else {
        word = weft_detour() ? get_word_detour(source, bytes, alignment, pe, call)
                             : weft_rma_get_word(source, bytes, pe, call);
        memcpy(value, &word, bytes);
    }
}

/* --- Blocks ---------------------------------------------------------------------------------- */

/* A shape without an extent fails in the access itself. */
static void check_strided(const char *call, struct weft_access access,
                          const struct weft_strided *shape, bool is_put) {
    WEFT_IN_CALL(call);
    ptrdiff_t there = is_put ? shape->dest_stride : shape->source_stride;
    ptrdiff_t here = is_put ? shape->source_stride : shape->dest_stride;
    if (weft_rma_strided_extent(shape, access.symmetric, there, &access.symmetric,
                                &access.symmetric_bytes) &&
        weft_rma_strided_extent(shape, access.local, here, &access.local, &access.local_bytes))
        weft_checked_access(&access);
}

static void put_strided(void *dest, const void *source, const struct weft_strided *shape,
                        size_t alignment, int pe, const char *call) {
    weft_check_local(call, "source", source, weft_rma_strided_bytes(shape));
    if (weft_checked())
        check_strided(
            call, (struct weft_access){"dest", "source", dest, source, 0, 0, alignment, pe, true},
            shape, true);
    weft_rma_put_strided(dest, source, shape, pe, call);
}

static void get_strided(void *dest, const void *source, const struct weft_strided *shape,
                        size_t alignment, int pe, const char *call) {
    weft_check_local(call, "dest", dest, weft_rma_strided_bytes(shape));
    if (weft_checked())
        check_strided(
            call, (struct weft_access){"source", "dest", source, dest, 0, 0, alignment, pe, true},
            shape, false);
    weft_rma_get_strided(dest, source, shape, pe, call);
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
    COPY(N##_put, T, put_bytes, sizeof(T), _Alignof(T))                                            \
    COPY(N##_get, T, get_bytes, sizeof(T), _Alignof(T))                                            \
    COPY(N##_put_nbi, T, put_bytes_nbi, sizeof(T), _Alignof(T))                                    \
    COPY(N##_get_nbi, T, get_bytes_nbi, sizeof(T), _Alignof(T))                                    \
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
    COPY(put##BITS, void, put_bytes, BYTES, BYTES)                                                 \
    COPY(get##BITS, void, get_bytes, BYTES, BYTES)                                                 \
    COPY(put##BITS##_nbi, void, put_bytes_nbi, BYTES, BYTES)                                       \
    COPY(get##BITS##_nbi, void, get_bytes_nbi, BYTES, BYTES)                                       \
    STRIDED(iput##BITS, void, put, BYTES, BYTES)                                                   \
    STRIDED(iget##BITS, void, get, BYTES, BYTES)                                                   \
    BLOCK_STRIDED(ibput##BITS, void, put, BYTES, BYTES)                                            \
    BLOCK_STRIDED(ibget##BITS, void, get, BYTES, BYTES)

SHMEM_RMA_TYPES(TYPED, _)
SHMEM_SIZES(SIZED, _)
COPY(putmem, void, put_bytes, 1, 1)
COPY(getmem, void, get_bytes, 1, 1)
COPY(putmem_nbi, void, put_bytes_nbi, 1, 1)
COPY(getmem_nbi, void, get_bytes_nbi, 1, 1)
