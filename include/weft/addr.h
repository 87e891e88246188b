/* SPDX-License-Identifier: BSD-3-Clause */
/* The window and its address formula, for C and for CUDA kernels.
 *
 *   base              base+stride         base+2*stride
 *   |--- slot 0 ------|--- slot 1 --------|--- slot 2 ------| ...
 *            ^ p here             ^ the same object there
 *
 * A window maps the symmetric memory of all near PEs into this process's address space: one slot
 * for each PE, `stride` bytes apart. The near PEs form an arithmetic progression first, first+step,
 * ..., so a division gives a PE's slot and no pointer table is needed. `local` is the start of this
 * process's own symmetric addresses: its own slot for a heap, the executable's data for statics.
 * All arithmetic with slots is in this file. */
#ifndef WEFT_ADDR_H
#define WEFT_ADDR_H

/* nvrtc has size_t and ptrdiff_t, but headers only if its caller provides them. These types are the
 * same as libcu++'s, so that both may be included. */
#ifndef __CUDACC_RTC__
#include <stddef.h>
#include <stdint.h>
#elif __has_include(<stdint.h>)
#include <stdint.h>
#elif __has_include(<cuda/std/cstdint>)
#include <cuda/std/cstdint>
#else
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
#endif

#ifdef __CUDACC__
#define WEFT_ADDR static __host__ __device__ __forceinline__
#else
#define WEFT_ADDR static inline
#endif

struct weft_window {
    uintptr_t local; /* start of this process's own symmetric addresses */
    size_t bytes;    /* bytes that exist now; set atomically */
    uintptr_t shift; /* base - local, modulo 2^64 */
    size_t stride;   /* distance between slots */
    uint32_t first;  /* PE in slot 0 */
    uint32_t step;   /* PE distance between slots; 0 if there is no window */
    uint32_t count;  /* slots */
};

/* A window grows while threads of its process read it; a kernel has a copy. */
WEFT_ADDR size_t weft_window_bytes(const struct weft_window *w) {
#ifdef __CUDA_ARCH__
    return w->bytes;
#else
    return __atomic_load_n(&w->bytes, __ATOMIC_RELAXED);
#endif
}

/* Returns 1 if `bytes` at `offset` lie inside a window of `now` bytes. */
WEFT_ADDR int weft_window_fits(size_t now, uintptr_t offset, size_t bytes) {
    return offset <= now && bytes <= now - offset;
}

/* Returns 1 if [p, p+bytes) lies inside this process's part of the window. */
WEFT_ADDR int weft_window_holds(const struct weft_window *w, const void *p, size_t bytes) {
    return weft_window_fits(weft_window_bytes(w), (uintptr_t)p - w->local, bytes);
}

/* Returns the slot of `pe`, or a number >= count if the PE is not near. */
WEFT_ADDR uint32_t weft_window_slot(const struct weft_window *w, int pe) {
    uint32_t distance = (uint32_t)pe - w->first;
    if (__builtin_expect(w->step <= 1, 1))
        return distance;
    return distance % w->step == 0 ? distance / w->step : ~0u;
}

/* Returns the address of the copy in `slot` of the object that this process has at `p`. */
WEFT_ADDR void *weft_window_at(const struct weft_window *w, const void *p, uint32_t slot) {
    return (void *)((uintptr_t)p + w->shift + slot * (uintptr_t)w->stride);
}

/* Returns a window of `count` slots for PEs 0, 1, ..., with slot 0 at `base`. This process's part
 * begins at `local` and has no bytes yet. */
WEFT_ADDR struct weft_window weft_window_make(uintptr_t base, size_t stride, uint32_t count,
                                              uintptr_t local) {
    struct weft_window w = {local, 0, base - local, stride, 0, 1, count};
    return w;
}

WEFT_ADDR uintptr_t weft_window_base(const struct weft_window *w) {
    return w->local + w->shift;
}

WEFT_ADDR void *weft_window_slot_begin(const struct weft_window *w, uint32_t slot) {
    return weft_window_at(w, (const void *)w->local, slot);
}

/* The inverse: returns the slot that contains `p` and stores the offset in it, or returns a number
 * >= count if no slot contains `p` or the window is not mapped. */
WEFT_ADDR uint32_t weft_window_slot_of(const struct weft_window *w, const void *p, size_t *offset) {
    uintptr_t distance = (uintptr_t)p - weft_window_base(w);
    if (w->stride == 0 || distance / w->stride >= w->count)
        return ~0u;
    *offset = distance % w->stride;
    return (uint32_t)(distance / w->stride);
}

/* The copies of one object on all members of a team, at evenly spaced addresses ("places"). If the
 * members' PEs are not evenly spaced, a place is a slot and a table gives each member's place. */
struct weft_array {
    char *first;            /* address in place 0 */
    ptrdiff_t step;         /* bytes from one place to the next */
    const uint16_t *places; /* slot of each member in the array; NULL: member i has slot i */
};

/* Returns the array of the copies of `p` in the slots first, first + step, ... */
WEFT_ADDR struct weft_array weft_window_array(const struct weft_window *w, const void *p,
                                              uint32_t first, int step, const uint16_t *places) {
    struct weft_array array = {(char *)weft_window_at(w, p, first), (ptrdiff_t)w->stride * step,
                               places};
    return array;
}

WEFT_ADDR char *weft_array_at(const struct weft_array *array, ptrdiff_t place) {
    return array->first + place * array->step;
}

WEFT_ADDR char *weft_array_of(const struct weft_array *array, ptrdiff_t member) {
    return weft_array_at(array, array->places ? array->places[member] : member);
}

#endif
