/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of NVSHMEM that kernels of Triton call through PyTorch's helpers, those that Helion
 * lowers remote copies to, and those that Triton-distributed's device library names:
 * libweft_nvshmem_sm80.bc and _sm90.bc. No function has an argument for the job: weft_nvshmem_job
 * identifies it, which is written after a module has been loaded (python/weft/triton/nvshmem.py).
 * _nbi functions block.
 *
 * Triton lets every thread of a program call a function. So fences, signals, meetings and
 * collectives without a suffix, and all functions with _block, are called by all threads of a block
 * and act once for it. Functions with _warp are called by all threads of a warp and act once for
 * it. Copies without a suffix, int_p, and queries are called by any thread and act for that thread
 * alone.
 *
 * An address is symmetric if it lies in the device heap or in a region: a tensor of PyTorch's that
 * has been through a rendezvous. The copies of a region are at unrelated addresses. */
#include <stddef.h>
#include <stdint.h>

namespace header {
#include "weft/device.cuh"
#include "weft/nvshmem/device/number.cuh"
} // namespace header

typedef uint64_t address;

/* [begin, end) belongs to this PE; places[pe] is the address of PE `pe`'s copy, or 0. */
struct region {
    address begin, end;
    const address *places;
};
struct regions {
    uint64_t count;
    struct region region[];
};

/* In constant memory: the addresses of the world's handle and of the regions. */
extern "C" {
__attribute__((address_space(4))) address weft_nvshmem_job[2];
}

#define EXPORTED extern "C" __attribute__((convergent))
/* Emits one copy of the code for all callers: a program that uses the library loads all of it. */
#define SHARED __attribute__((convergent, noinline))

enum { MISUSE = 22 };

static const header::weft_device_team *world(void) {
    return (const header::weft_device_team *)weft_nvshmem_job[0];
}

/* Returns the address of PE `pe`'s copy of the object at p, or 0 if p is not symmetric or there is
 * no such PE. */
static address place_found(address p, int32_t pe) {
    const header::weft_device_team *t = world();
    if (pe < 0 || pe >= t->n)
        return 0;
    if (p - t->heap < t->heap_bytes)
        return (address)header::weft_at(t, (const void *)p, pe);
    const struct regions *regions = (const struct regions *)weft_nvshmem_job[1];
    for (uint64_t i = 0; i < regions->count; i++) {
        const struct region *region = &regions->region[i];
        if (p >= region->begin && p < region->end && region->places[pe])
            return region->places[pe] + (p - region->begin);
    }
    return 0;
}

/* Like place_found, but ends the job instead of returning 0. */
static address place_of(address p, int32_t pe) {
    address place = place_found(p, pe);
    if (place)
        return place;
    header::weft_abort(world(), MISUSE);
    return p;
}

/* Returns whether the team consists of all PEs: WORLD, SHARED and NODE, because a handle covers the
 * PEs of one host. */
static int is_world(int32_t team) {
    return team >= 0 && team <= 2;
}

/* Returns the world's handle. For other teams, which this library does not support, ends the job
 * and returns NULL. */
static const header::weft_device_team *world_of(int32_t team) {
    const header::weft_device_team *t = world();
    if (is_world(team))
        return t;
    header::weft_abort(t, MISUSE);
    return NULL;
}

/* Runs a barrier on the channel that pairs block k of this PE's grid with block k of the others'.
 * Ends the job if the block has no channel of its own, because it would disturb another block's.
 * Returns 0, or 1 if the job is over. */
static int32_t barrier(enum header::weft_scope scope) {
    const header::weft_device_team *t = world();
    uint32_t channel = header::weft_grid_index();
    if (channel < t->channels)
        return scope == header::WEFT_SCOPE_w ? !header::weft_barrier_w(t, channel)
                                             : !header::weft_barrier_b(t, channel);
    header::weft_abort(t, MISUSE);
    return 1;
}

/* --- Queries, order and meetings -------------------------------------------------------------- */

EXPORTED int32_t nvshmem_my_pe(void) {
    return world()->me;
}

EXPORTED int32_t nvshmem_n_pes(void) {
    return world()->n;
}

/* These two return -1 for a team that this library does not support. */
EXPORTED int32_t nvshmem_team_my_pe(int32_t team) {
    return is_world(team) ? world()->me : -1;
}

EXPORTED int32_t nvshmem_team_n_pes(int32_t team) {
    return is_world(team) ? world()->n : -1;
}

EXPORTED int32_t nvshmem_team_translate_pe(int32_t src_team, int32_t src_pe, int32_t dest_team) {
    int known = is_world(src_team) && is_world(dest_team);
    return known && src_pe >= 0 && src_pe < world()->n ? src_pe : -1;
}

/* Returns 0, a null pointer, if the address is not symmetric. */
EXPORTED address nvshmem_ptr(address p, int32_t pe) {
    return place_found(p, pe);
}

/* Returns a null pointer, because there is no multicast memory. */
EXPORTED address nvshmemx_mc_ptr(int32_t, address) {
    return 0;
}

EXPORTED int32_t nvshmem_fence(void) {
    header::weft_fence_b();
    return 0;
}

EXPORTED int32_t nvshmem_quiet(void) {
    header::weft_fence_b();
    return 0;
}

#define MEETING_ALL(name, scope)       \
    EXPORTED int32_t name(void) {      \
        return barrier(header::scope); \
    }
#define MEETING(name, scope)                                \
    EXPORTED int32_t name(int32_t team) {                   \
        return world_of(team) ? barrier(header::scope) : 1; \
    }
MEETING_ALL(nvshmem_barrier_all, WEFT_SCOPE_b)
MEETING_ALL(nvshmem_sync_all, WEFT_SCOPE_b)
MEETING(nvshmem_barrier, WEFT_SCOPE_b)
MEETING(nvshmem_sync, WEFT_SCOPE_b)
#define MEETINGS(group, scope)                       \
    MEETING_ALL(nvshmemx_barrier_all_##group, scope) \
    MEETING_ALL(nvshmemx_sync_all_##group, scope)    \
    MEETING(nvshmemx_barrier_##group, scope)         \
    MEETING(nvshmemx_team_sync_##group, scope)
MEETINGS(block, WEFT_SCOPE_b)
MEETINGS(warp, WEFT_SCOPE_w)

/* --- Copies --------------------------------------------------------------------------------------
 */

/* Copies everything that the group's threads have stored before; afterwards any of them may signal.
 */
static int32_t copy(address to, address from, uint64_t bytes, enum header::weft_scope scope) {
    header::weft_scope_sync(scope);
    if (scope == header::WEFT_SCOPE_t)
        header::weft_copy_t((void *)to, (const void *)from, bytes);
    else if (scope == header::WEFT_SCOPE_w)
        header::weft_copy_w((void *)to, (const void *)from, bytes);
    else
        header::weft_copy_b((void *)to, (const void *)from, bytes);
    header::weft_scope_sync(scope);
    return 0;
}

EXPORTED int32_t nvshmem_int_p(address dest, int32_t value, int32_t pe) {
    header::weft_st_relaxed_sys_u32((uint32_t *)place_of(dest, pe), (uint32_t)value);
    return 0;
}

/* --- Signals -------------------------------------------------------------------------------------
 */

/* Signals once for the group, after all stores of its threads before they last synchronised. */
static int32_t give_signal(address sig, uint64_t value, int32_t op, int32_t pe,
                           enum header::weft_scope scope) {
    const header::weft_device_team *t = world();
    uint64_t *there = (uint64_t *)place_of(sig, pe); /* already translated for that member */
    if (header::weft_scope_first(scope))
        header::weft_signal_by(t, there, value, header::weft_nvshmem_signal_op(op), t->me);
    return 0;
}

EXPORTED int32_t nvshmemx_signal_op(address sig, uint64_t value, int32_t op, int32_t pe) {
    header::weft_block_sync();
    return give_signal(sig, value, op, pe, header::WEFT_SCOPE_b);
}

#define COPIES(x, form, scope)                                                                     \
    EXPORTED int32_t nvshmem##x##_putmem##form(address dest, address source, uint64_t bytes,       \
                                               int32_t pe) {                                       \
        return copy(place_of(dest, pe), source, bytes, header::scope);                             \
    }                                                                                              \
    EXPORTED int32_t nvshmem##x##_getmem##form(address dest, address source, uint64_t bytes,       \
                                               int32_t pe) {                                       \
        return copy(dest, place_of(source, pe), bytes, header::scope);                             \
    }                                                                                              \
    EXPORTED int32_t nvshmem##x##_putmem_signal##form(address dest, address source,                \
                                                      uint64_t bytes, address sig, uint64_t value, \
                                                      int32_t op, int32_t pe) {                    \
        copy(place_of(dest, pe), source, bytes, header::scope);                                    \
        return give_signal(sig, value, op, pe, header::scope);                                     \
    }
COPIES(, , WEFT_SCOPE_t)
COPIES(, _nbi, WEFT_SCOPE_t)
COPIES(x, _warp, WEFT_SCOPE_w)
COPIES(x, _nbi_warp, WEFT_SCOPE_w)
COPIES(x, _block, WEFT_SCOPE_b)
COPIES(x, _nbi_block, WEFT_SCOPE_b)

EXPORTED int32_t nvshmem_signal_wait_until(address sig, int32_t cmp, uint64_t value) {
    return !header::weft_wait_until_b(world(), (const uint64_t *)sig, header::weft_nvshmem_cmp(cmp),
                                      value);
}

/* Returns 0, or 1 if the job is over. */
static uint32_t wait_for_int(const uint32_t *word, int cmp, int32_t value) {
    struct header::weft_spin spin = {0, 0, 0, 0};
    struct header::weft_gpu_abort abort = header::weft_abort_of(world());
    while (!header::weft_compares_i64(cmp, (int32_t)header::weft_ld_acquire_sys_u32(word), value))
        if (!header::weft_spin(&spin, abort))
            return 1;
    return 0;
}

EXPORTED int32_t nvshmem_int_wait_until(address word, int32_t cmp, int32_t value) {
    uint32_t over = 0;
    if (header::weft_block_rank() == 0)
        over = wait_for_int((const uint32_t *)word, header::weft_nvshmem_cmp(cmp), value);
    return (int32_t)header::weft_block_sync_any(over);
}

/* --- Collectives of all PEs ------------------------------------------------------------------- */

/* Each member puts its data, and a barrier follows. */
template <enum header::weft_scope scope>
SHARED static int32_t broadcast(int32_t team, address dest, address source, uint64_t bytes,
                                int32_t root) {
    const header::weft_device_team *t = world_of(team);
    for (int i = 0; t && t->me == root && i < t->n; i++) {
        address to = place_of(dest, header::weft_gpu_member_after(t->me, t->n, i));
        if (to != source)
            copy(to, source, bytes, scope);
    }
    return t ? barrier(scope) : 1;
}

template <enum header::weft_scope scope>
SHARED static int32_t fcollect(int32_t team, address dest, address source, uint64_t bytes) {
    const header::weft_device_team *t = world_of(team);
    for (int i = 0; t && i < t->n; i++) {
        int m = header::weft_gpu_member_after(t->me, t->n, i);
        address to = place_of(dest, m) + (uint64_t)t->me * bytes;
        if (to != source)
            copy(to, source, bytes, scope);
    }
    return t ? barrier(scope) : 1;
}

EXPORTED int32_t nvshmemx_broadcastmem_block(int32_t team, address dest, address source,
                                             uint64_t bytes, int32_t root) {
    return broadcast<header::WEFT_SCOPE_b>(team, dest, source, bytes, root);
}

EXPORTED int32_t nvshmemx_alltoallmem_block(int32_t team, address dest, address source,
                                            uint64_t bytes) {
    const header::weft_device_team *t = world_of(team);
    for (int i = 0; t && i < t->n; i++) {
        int m = header::weft_gpu_member_after(t->me, t->n, i);
        copy(place_of(dest, m) + (uint64_t)t->me * bytes, source + (uint64_t)m * bytes, bytes,
             header::WEFT_SCOPE_b);
    }
    return t ? barrier(header::WEFT_SCOPE_b) : 1;
}

/* Element counts of a type, instead of bytes. */
#define MOVEMENTS_BY(x, name, bytes, group, scope)                                            \
    EXPORTED int32_t nvshmem##x##_##name##_broadcast##group(                                  \
        int32_t team, address dest, address source, uint64_t nelems, int32_t root) {          \
        return broadcast<header::scope>(team, dest, source, nelems * (bytes), root);          \
    }                                                                                         \
    EXPORTED int32_t nvshmem##x##_##name##_fcollect##group(int32_t team, address dest,        \
                                                           address source, uint64_t nelems) { \
        return fcollect<header::scope>(team, dest, source, nelems * (bytes));                 \
    }
#define MOVEMENTS(name, bytes)                         \
    MOVEMENTS_BY(, name, bytes, , WEFT_SCOPE_b)        \
    MOVEMENTS_BY(x, name, bytes, _block, WEFT_SCOPE_b) \
    MOVEMENTS_BY(x, name, bytes, _warp, WEFT_SCOPE_w)
MOVEMENTS(int8, 1)
MOVEMENTS(int16, 2)
MOVEMENTS(int32, 4)
MOVEMENTS(int64, 8)
MOVEMENTS(uint8, 1)
MOVEMENTS(uint16, 2)
MOVEMENTS(uint32, 4)
MOVEMENTS(uint64, 8)
MOVEMENTS(half, 2)
MOVEMENTS(bfloat16, 2)
MOVEMENTS(float, 4)
MOVEMENTS(double, 8)

/* Converts a type's elements between their bits and the type used for arithmetic. */
template <class T> struct number {
    typedef T value;
    static T of(uint64_t bits) {
        T value;
        __builtin_memcpy(&value, &bits, sizeof value);
        return value;
    }
    static uint64_t bits(T value) {
        uint64_t bits = 0;
        __builtin_memcpy(&bits, &value, sizeof value);
        return bits;
    }
};
struct half {
    uint16_t bits;
};
struct bfloat16 {
    uint16_t bits;
};
template <> struct number<half> {
    typedef float value;
    static float of(uint64_t bits) {
        float value;
        __asm__("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((uint16_t)bits));
        return value;
    }
    static uint64_t bits(float value) {
        uint16_t bits;
        __asm__("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
        return bits;
    }
};
template <> struct number<bfloat16> {
    typedef float value;
    static float of(uint64_t bits) { return number<float>::of(bits << 16); }
    static uint64_t bits(float value) {
        uint16_t bits;
        __asm__("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
        return bits;
    }
};

struct sum {
    template <class T> static T of(T a, T b) { return a + b; }
};
struct prod {
    template <class T> static T of(T a, T b) { return a * b; }
};
struct max {
    template <class T> static T of(T a, T b) { return a < b ? b : a; }
};
struct min {
    template <class T> static T of(T a, T b) { return b < a ? b : a; }
};

/* Each PE reduces the elements with the indices me, me + n, me + 2 * n, ... It is the only PE that
 * reads and writes them anywhere, so dest may be equal to source, and results have the same bits
 * everywhere. */
template <class T, class operation>
static int32_t reduce(int32_t team, address dest, address source, int64_t nreduce) {
    const header::weft_device_team *t = world_of(team);
    if (!t || barrier(header::WEFT_SCOPE_b))
        return 1;
    int64_t first = t->me + (int64_t)header::weft_block_rank() * t->n;
    for (int64_t i = first; i < nreduce; i += (int64_t)header::weft_block_size() * t->n) {
        address at = (address)i * sizeof(T);
        typename number<T>::value result = {};
        for (int m = 0; m < t->n; m++) {
            const char *from = (const char *)(place_of(source, m) + at);
            typename number<T>::value next = number<T>::of(header::weft_copy_load(from, sizeof(T)));
            result = m ? operation::of(result, next) : next;
        }
        for (int m = 0; m < t->n; m++)
            header::weft_copy_store((char *)(place_of(dest, m) + at), sizeof(T),
                                    number<T>::bits(result));
    }
    return barrier(header::WEFT_SCOPE_b);
}

#define REDUCTION(name, T, operation)                                                   \
    EXPORTED int32_t nvshmem_##name##_##operation##_reduce(int32_t team, address dest,  \
                                                           address source, int64_t n) { \
        return reduce<T, operation>(team, dest, source, n);                             \
    }
#define REDUCTIONS(name, T)  \
    REDUCTION(name, T, sum)  \
    REDUCTION(name, T, prod) \
    REDUCTION(name, T, max)  \
    REDUCTION(name, T, min)
REDUCTIONS(int8, int8_t)
REDUCTIONS(int16, int16_t)
REDUCTIONS(int32, int32_t)
REDUCTIONS(int64, int64_t)
REDUCTIONS(uint8, uint8_t)
REDUCTIONS(uint16, uint16_t)
REDUCTIONS(uint32, uint32_t)
REDUCTIONS(uint64, uint64_t)
REDUCTIONS(half, half)
REDUCTIONS(bfloat16, bfloat16)
REDUCTIONS(float, float)
REDUCTIONS(double, double)
