/* SPDX-License-Identifier: BSD-3-Clause */
/* The window and its one formula, for C and for CUDA kernels alike.
 *
 *  base              base+stride         base+2*stride
 *  |--- slot 0 ------|--- slot 1 --------|--- slot 2 ------| ...
 *           ^ p here             ^ the same object there
 *
 * Every near PE of a window has one slot, `stride` bytes apart, in this process's address space.
 * Near PEs form an arithmetic progression first, first+step, ..., so a PE's slot is a division and
 * there is no pointer table. `local` is where this process's own symmetric addresses start: its own
 * slot for a heap, the executable's data for statics. Nothing else in the project repeats this. */
#ifndef WEFT_ADDR_H
#define WEFT_ADDR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define WEFT_ADDR static __host__ __device__ __forceinline__
#else
#define WEFT_ADDR static inline
#endif

struct weft_window {
    uintptr_t local; /* first of this process's own symmetric addresses */
    size_t bytes;    /* how many of them exist now; set atomically */
    uintptr_t shift; /* base - local, modulo 2^64 */
    size_t stride;   /* distance between slots */
    uint32_t first;  /* PE in slot 0 */
    uint32_t step;   /* PE distance between slots; 0 in a window that is not there */
    uint32_t count;  /* slots */
};

/* A window grows while threads of its process look; a kernel has a copy of its own. */
WEFT_ADDR size_t weft_window_bytes(const struct weft_window *w) {
#ifdef __CUDA_ARCH__
    return w->bytes;
#else
    return __atomic_load_n(&w->bytes, __ATOMIC_RELAXED);
#endif
}

/* Whether `bytes` at `offset` lie inside a window that has `now` bytes. */
WEFT_ADDR int weft_window_fits(size_t now, uintptr_t offset, size_t bytes) {
    return offset <= now && bytes <= now - offset;
}

/* Whether [p, p+bytes) lies inside this process's part of the window. */
WEFT_ADDR int weft_window_holds(const struct weft_window *w, const void *p, size_t bytes) {
    return weft_window_fits(weft_window_bytes(w), (uintptr_t)p - w->local, bytes);
}

/* The slot of `pe`, or a number >= count where the PE is not near. */
WEFT_ADDR uint32_t weft_window_slot(const struct weft_window *w, int pe) {
    uint32_t distance = (uint32_t)pe - w->first;
    if (__builtin_expect(w->step <= 1, 1))
        return distance;
    return distance % w->step == 0 ? distance / w->step : UINT32_MAX;
}

/* Where the PE in `slot` keeps the object that this process has at `p`. */
WEFT_ADDR void *weft_window_at(const struct weft_window *w, const void *p, uint32_t slot) {
    return (void *)((uintptr_t)p + w->shift + slot * (uintptr_t)w->stride);
}

#endif
