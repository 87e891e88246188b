/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory access: put and get, single elements, strided and block-strided.
 *
 * The fast path checks the local side and is inlined together with the near copy (core/rma.h): a
 * shared body would cost a jump and moves of its arguments, a tenth of a small put, and for a
 * constant size only the copy remains. The slow path is a tail call, because a call in the middle
 * would make every put save registers. */
#include "core/rma.h"
#include "api/checked.h"
#include "api/define.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* --- The slow path --------------------------------------------------------------------------- */

/* The `form` of a copy is the size of an element, to which it is aligned, and perhaps this flag.
 * They share an argument, because a seventh argument would be passed on the stack. */
enum { RMA_NBI = 1 << 8 };

static void check_sides(const struct weft_access *access) {
    if (weft_checked())
        weft_checked_access(access);
    weft_check_local(weft_current_call, access->local_name, access->local, access->local_bytes);
}

static struct weft_access access_of_put(void *dest, const void *source, size_t bytes,
                                        size_t elem_bytes, int pe) {
    return (struct weft_access){"dest", "source",   dest, source, bytes,
                                bytes,  elem_bytes, pe,   false};
}

static struct weft_access access_of_get(void *dest, const void *source, size_t bytes,
                                        size_t elem_bytes, int pe) {
    return (struct weft_access){"source", "dest",     source, dest, bytes,
                                bytes,    elem_bytes, pe,     false};
}

WEFT_COLD static void put_slow(void *dest, const void *source, size_t bytes, size_t form, int pe,
                               const char *call) {
    WEFT_ENTER(call);
    struct weft_access access = access_of_put(dest, source, bytes, form & ~RMA_NBI, pe);
    check_sides(&access);
    weft_rma_put_slow(dest, source, bytes, pe, form & RMA_NBI, call);
}

WEFT_COLD static void get_slow(void *dest, const void *source, size_t bytes, size_t form, int pe,
                               const char *call) {
    WEFT_ENTER(call);
    struct weft_access access = access_of_get(dest, source, bytes, form & ~RMA_NBI, pe);
    check_sides(&access);
    weft_rma_get_slow(dest, source, bytes, pe, form & RMA_NBI, call);
}

/* Most gets come here if PEs share processors, which alone keeps them from the fast path. */
static __attribute__((noinline)) void get_polled(void *dest, const void *source, size_t bytes,
                                                 size_t form, int pe, const char *call) {
    if (weft_is_slow()) {
        get_slow(dest, source, bytes, form, pe, call);
        return;
    }
    weft_check_local(call, "dest", dest, bytes);
    weft_rma_get(dest, source, bytes, pe, form & RMA_NBI, call);
    if (!(form & RMA_NBI) || !weft_is_far(pe)) /* a far PE's answer may still be under way */
        weft_poll_fetched(source, dest, bytes, pe, call);
}

WEFT_COLD static void put_word_slow(void *dest, uint64_t word, size_t bytes, int pe,
                                    const char *call) {
    WEFT_ENTER(call);
    struct weft_access access = access_of_put(dest, &word, bytes, bytes, pe);
    check_sides(&access);
    weft_rma_put_word_slow(dest, word, bytes, pe, call);
}

WEFT_COLD static uint64_t get_word_slow(const void *source, size_t bytes, int pe,
                                        const char *call) {
    uint64_t word = 0;
    WEFT_ENTER(call);
    struct weft_access access = access_of_get(&word, source, bytes, bytes, pe);
    check_sides(&access);
    return weft_rma_get_word_slow(source, bytes, pe, call);
}

/* --- The fast path --------------------------------------------------------------------------- */

ALWAYS_INLINE void put_bytes(void *dest, const void *source, size_t bytes, size_t form, int pe,
                             const char *call) {
    if (weft_is_slow()) {
        put_slow(dest, source, bytes, form, pe, call);
    } else {
        weft_check_local(call, "source", source, bytes);
        weft_rma_put(dest, source, bytes, pe, form & RMA_NBI, call);
    }
}

ALWAYS_INLINE void get_bytes(void *dest, const void *source, size_t bytes, size_t form, int pe,
                             const char *call) {
    if (weft_fetch_is_slow()) {
        get_polled(dest, source, bytes, form, pe, call);
    } else {
        weft_check_local(call, "dest", dest, bytes);
        weft_rma_get(dest, source, bytes, pe, form & RMA_NBI, call);
    }
}

/* The word is passed in a register: an address would force the near path to keep it in memory. */
ALWAYS_INLINE void put_element(void *dest, const void *value, size_t bytes, int pe,
                               const char *call) {
    uint64_t word = 0;
    memcpy(&word, value, bytes < sizeof word ? bytes : sizeof word);
    if (bytes > WEFT_RMA_WORD)
        put_bytes(dest, value, bytes, bytes, pe, call);
    else if (weft_is_slow())
        put_word_slow(dest, word, bytes, pe, call);
    else
        weft_rma_put_word(dest, word, bytes, pe, call);
}

ALWAYS_INLINE void get_element(void *value, const void *source, size_t bytes, int pe,
                               const char *call) {
    uint64_t word;
    if (bytes > WEFT_RMA_WORD) {
        get_bytes(value, source, bytes, bytes, pe, call);
    } else {
        word = weft_is_slow() ? get_word_slow(source, bytes, pe, call)
                              : weft_rma_get_word(source, bytes, pe, call);
        memcpy(value, &word, bytes < sizeof word ? bytes : sizeof word);
    }
}

/* --- Strided copies -------------------------------------------------------------------------- */

/* Skips a shape whose extent overflows, because the access itself reports it. */
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

static void put_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                        const char *call) {
    weft_check_local(call, "source", source, weft_rma_strided_bytes(shape));
    if (weft_checked())
        check_strided(
            call,
            (struct weft_access){"dest", "source", dest, source, 0, 0, shape->elem_bytes, pe, true},
            shape, true);
    weft_rma_put_strided(dest, source, shape, pe, call);
}

static void get_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                        const char *call) {
    weft_check_local(call, "dest", dest, weft_rma_strided_bytes(shape));
    if (weft_checked())
        check_strided(
            call,
            (struct weft_access){"source", "dest", source, dest, 0, 0, shape->elem_bytes, pe, true},
            shape, false);
    weft_rma_get_strided(dest, source, shape, pe, call);
}

/* clang-format off */
/* VERB is put or get, SIZE the size of an element, FLAG RMA_NBI or 0. */
#define COPY(NAME, T, VERB, SIZE, FLAG)                                                            \
    PAIR(void, NAME, (T *dest, const T *source, size_t nelems, int pe),                            \
         VERB##_bytes(dest, source, weft_check_bytes(nelems, SIZE), SIZE | FLAG, pe, __func__);)
#define STRIDED(NAME, T, VERB, SIZE)                                                               \
    PAIR(void, NAME,                                                                               \
         (T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),          \
         struct weft_strided shape = {SIZE, 1, nelems, dst, sst};                                  \
         VERB##_strided(dest, source, &shape, pe, __func__);)
#define BLOCK_STRIDED(NAME, T, VERB, SIZE)                                                         \
    PAIR(void, NAME,                                                                               \
         (T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks,    \
          int pe),                                                                                 \
         struct weft_strided shape = {SIZE, bsize, nblocks, dst, sst};                             \
         VERB##_strided(dest, source, &shape, pe, __func__);)

#define TYPED(N, T, _)                                                                             \
    _Static_assert(_Alignof(T) == sizeof(T), "an element is aligned to its size");                 \
    COPY(N##_put, T, put, sizeof(T), 0)                                                            \
    COPY(N##_get, T, get, sizeof(T), 0)                                                            \
    COPY(N##_put_nbi, T, put, sizeof(T), RMA_NBI)                                                  \
    COPY(N##_get_nbi, T, get, sizeof(T), RMA_NBI)                                                  \
    STRIDED(N##_iput, T, put, sizeof(T))                                                           \
    STRIDED(N##_iget, T, get, sizeof(T))                                                           \
    BLOCK_STRIDED(N##_ibput, T, put, sizeof(T))                                                    \
    BLOCK_STRIDED(N##_ibget, T, get, sizeof(T))                                                    \
    PAIR(void, N##_p, (T *dest, T value, int pe),                                                  \
         put_element(dest, &value, sizeof(T), pe, __func__);)                                      \
    PAIR(T, N##_g, (const T *source, int pe),                                                      \
         T value;                                                                                  \
         get_element(&value, source, sizeof(T), pe, __func__);                                     \
         return value;)
#define SIZED(BITS, BYTES, _)                                                                      \
    COPY(put##BITS, void, put, BYTES, 0)                                                           \
    COPY(get##BITS, void, get, BYTES, 0)                                                           \
    COPY(put##BITS##_nbi, void, put, BYTES, RMA_NBI)                                               \
    COPY(get##BITS##_nbi, void, get, BYTES, RMA_NBI)                                               \
    STRIDED(iput##BITS, void, put, BYTES)                                                          \
    STRIDED(iget##BITS, void, get, BYTES)                                                          \
    BLOCK_STRIDED(ibput##BITS, void, put, BYTES)                                                   \
    BLOCK_STRIDED(ibget##BITS, void, get, BYTES)

SHMEM_RMA_TYPES(TYPED, _)
SHMEM_SIZES(SIZED, _)
COPY(putmem, void, put, 1, 0)
COPY(getmem, void, get, 1, 0)
COPY(putmem_nbi, void, put, 1, RMA_NBI)
COPY(getmem_nbi, void, get, 1, RMA_NBI)
