/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of NVSHMEM that kernels of Triton call through PyTorch's helpers, and what Helion
 * lowers remote copies to: libweft_nvshmem_sm80.bc and _sm90.bc. Triton has every thread of a
 * program call them, and none has an argument that says which job it is about. So each acts once
 * for the block, and what there is of a job lies in weft_nvshmem_job, which is written when a
 * module has been loaded (python/weft/triton/nvshmem.py). _nbi is the blocking form.
 *
 * An address is symmetric in the device heap, or in a region: a tensor of PyTorch's that has been
 * through a rendezvous, whose copies lie apart from each other by no rule. */
#include <stddef.h>
#include <stdint.h>

namespace header {
#include "weft/device.cuh"
#include "weft/nvshmem/device/number.cuh"
} // namespace header

typedef uint64_t address;

/* [begin, end) is this PE's, places[pe] is where PE `pe` has begin, or 0. */
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

enum { MISUSE = 22 };

static const header::weft_device_team *world(void) {
    return (const header::weft_device_team *)weft_nvshmem_job[0];
}

/* Where PE `pe` has what this PE has at p. What is not symmetric ends the job. */
static address place_of(address p, int32_t pe) {
    const header::weft_device_team *t = world();
    if (p - t->heap < t->heap_bytes)
        return (address)header::weft_at(t, (const void *)p, pe);
    const struct regions *regions = (const struct regions *)weft_nvshmem_job[1];
    for (uint64_t i = 0; i < regions->count && pe >= 0 && pe < t->n; i++) {
        const struct region *region = &regions->region[i];
        if (p >= region->begin && p < region->end && region->places[pe])
            return region->places[pe] + (p - region->begin);
    }
    header::weft_abort(t, MISUSE);
    return p;
}

/* Channels pair blocks: the k-th of this PE's grid with the k-th of the others'. A block that has
 * no channel of its own would take another's turn: it ends the job. 0, or 1 when the job is over.
 */
static int32_t barrier(void) {
    const header::weft_device_team *t = world();
    uint32_t channel = header::weft_grid_index();
    if (channel < t->channels)
        return !header::weft_barrier_b(t, channel);
    header::weft_abort(t, MISUSE);
    return 1;
}

/* --- Who is there, order and meetings ------------------------------------------------------------
 */

EXPORTED int32_t nvshmem_my_pe(void) {
    return world()->me;
}

EXPORTED int32_t nvshmem_n_pes(void) {
    return world()->n;
}

EXPORTED int32_t nvshmem_fence(void) {
    header::weft_fence_b();
    return 0;
}

EXPORTED int32_t nvshmem_quiet(void) {
    header::weft_fence_b();
    return 0;
}

EXPORTED int32_t nvshmem_barrier_all(void) {
    return barrier();
}

EXPORTED int32_t nvshmem_sync_all(void) {
    return barrier();
}

/* --- Copies --------------------------------------------------------------------------------------
 */

/* What the block's threads have stored is sent, and any of them may signal behind it. */
static int32_t copy(address to, address from, int64_t bytes) {
    header::weft_block_sync();
    header::weft_copy_b((void *)to, (const void *)from, (size_t)bytes);
    header::weft_block_sync();
    return 0;
}

/* --- Signals -------------------------------------------------------------------------------------
 */

/* By one thread, behind what all of the block have stored before the last meeting. */
static int32_t give_signal(address sig, uint64_t value, int32_t op, int32_t pe) {
    const header::weft_device_team *t = world();
    uint64_t *there = (uint64_t *)place_of(sig, pe); /* and for this member it is there */
    if (header::weft_block_rank() == 0)
        header::weft_signal_by(t, there, value, header::weft_nvshmem_signal_op(op), t->me);
    return 0;
}

EXPORTED int32_t nvshmemx_signal_op(address sig, uint64_t value, int32_t op, int32_t pe) {
    header::weft_block_sync();
    return give_signal(sig, value, op, pe);
}

#define COPIES(form)                                                                            \
    EXPORTED int32_t nvshmemx_putmem##form##_block(address dest, address source, int64_t bytes, \
                                                   int32_t pe) {                                \
        return copy(place_of(dest, pe), source, bytes);                                         \
    }                                                                                           \
    EXPORTED int32_t nvshmemx_getmem##form##_block(address dest, address source, int64_t bytes, \
                                                   int32_t pe) {                                \
        return copy(dest, place_of(source, pe), bytes);                                         \
    }                                                                                           \
    EXPORTED int32_t nvshmemx_putmem_signal##form##_block(                                      \
        address dest, address source, int64_t bytes, address sig, uint64_t value, int32_t op,   \
        int32_t pe) {                                                                           \
        copy(place_of(dest, pe), source, bytes);                                                \
        return give_signal(sig, value, op, pe);                                                 \
    }
COPIES()
COPIES(_nbi)

EXPORTED int32_t nvshmem_signal_wait_until(address sig, int32_t cmp, uint64_t value) {
    return !header::weft_wait_until_b(world(), (const uint64_t *)sig, header::weft_nvshmem_cmp(cmp),
                                      value);
}

/* 0, or 1 when the job is over. */
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

/* --- Collectives of the world --------------------------------------------------------------------
 */

/* The world's handle; NULL for other teams, of which this library knows nothing: it ends the job.
 */
static const header::weft_device_team *world_of(int32_t team) {
    const header::weft_device_team *t = world();
    if (team == 0)
        return t;
    header::weft_abort(t, MISUSE);
    return NULL;
}

/* Each puts, and they meet behind it. */
EXPORTED int32_t nvshmemx_broadcastmem_block(int32_t team, address dest, address source,
                                             int64_t bytes, int32_t root) {
    const header::weft_device_team *t = world_of(team);
    for (int i = 0; t && t->me == root && i < t->n; i++) {
        address to = place_of(dest, header::weft_gpu_member_after(t->me, t->n, i));
        if (to != source)
            copy(to, source, bytes);
    }
    return t ? barrier() : 1;
}

EXPORTED int32_t nvshmemx_alltoallmem_block(int32_t team, address dest, address source,
                                            int64_t bytes) {
    const header::weft_device_team *t = world_of(team);
    for (int i = 0; t && i < t->n; i++) {
        int m = header::weft_gpu_member_after(t->me, t->n, i);
        copy(place_of(dest, m) + (address)(t->me * bytes), source + (address)(m * bytes), bytes);
    }
    return t ? barrier() : 1;
}

/* A type's elements: as bits, and as what they are computed in. */
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

/* Elements of a PE: those from its number on, as many apart as there are PEs. It alone reads them
 * at all and writes them there: so dest may be source, and results have the same bits everywhere.
 */
template <class T, class operation>
static int32_t reduce(int32_t team, address dest, address source, int64_t nreduce) {
    const header::weft_device_team *t = world_of(team);
    if (!t || barrier())
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
    return barrier();
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
