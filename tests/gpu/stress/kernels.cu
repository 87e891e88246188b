/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of the stress test: they make the data of a call and check its result, recomputing
 * what each member has sent, and they send packets whose parts tell which packet they are of. */
#include "coll/fold.cuh"
#include "gpu/stress/task.h"

/* The numbers of weft.h, without the header of the host's calls. */
enum { F32 = 1, F64, BF16, F16, I8 = 7, I16, I32, I64, U8, U16, U32, U64 };
enum { SUM = 1, AVG, MAX, MIN, PROD };

/* --- Data ------------------------------------------------------------------------------------ */

WEFT_DEVICE uint32_t mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

WEFT_DEVICE uint32_t key_of(const stress_task &task, uint64_t call, int member) {
    uint32_t key = mix(task.seed ^ (uint32_t)call) + mix((uint32_t)(call >> 32) + 0x9e3779b9u);
    return mix(key + 0x85ebca6bu * (uint32_t)(member + 1));
}

WEFT_DEVICE uint32_t word_of(uint32_t key, uint64_t index) {
    return mix(key + 0x9e3779b9u * (uint32_t)index);
}

/* Sometimes returns bits that a protocol might mistake for its own: marks, zeros, values like
 * epochs. */
WEFT_DEVICE uint64_t raw_of(uint32_t key, uint64_t index) {
    const uint32_t strange[8] = {0xffffffffu, 0x7fffffffu, 0x80000000u, 0u,
                                 1u,          2u,          0xfffffffeu, (uint32_t)index};
    uint32_t low = word_of(key, index), high = word_of(~key, index);
    if ((high & 15) == 0)
        low = strange[high >> 4 & 7];
    if ((high & 0xf00) == 0)
        high = low;
    return (uint64_t)high << 32 | low;
}

/* The bits of a float of some size: mostly of a few magnitudes, so that sums are rounded and their
 * order matters; now and then a zero with a sign, an infinity, a NaN, what is small or large. */
WEFT_DEVICE uint64_t real_of(uint32_t key, uint64_t index, int bits, int mantissa) {
    uint32_t word = word_of(key, index);
    uint64_t sign = (uint64_t)(word >> 31) << (bits - 1);
    uint64_t fraction = mantissa > 24 ? (uint64_t)word_of(~key, index) << 20 | (word & 0xfffff)
                                      : word & ((1u << mantissa) - 1);
    uint64_t ones = (1ull << (bits - 1 - mantissa)) - 1, exponent = ones / 2 - 4 + (word >> 24 & 7);
    if (word % 97 == 0) {
        const uint64_t exponents[4] = {0, ones, ones - 1, 1};
        exponent = exponents[word >> 27 & 3];
        fraction = word & 1 << 26 ? (1ull << mantissa) - 1 : 0;
    }
    return sign | exponent << mantissa | fraction;
}

WEFT_DEVICE int bytes_of(int dtype) {
    switch (dtype) {
    case I8:
    case U8:
        return 1;
    case BF16:
    case F16:
    case I16:
    case U16:
        return 2;
    case F32:
    case I32:
    case U32:
        return 4;
    default:
        return 8;
    }
}

WEFT_DEVICE uint64_t element_of(const stress_task &task, uint32_t key, uint64_t index) {
    bool folds = task.operation == STRESS_ALL_REDUCE || task.operation == STRESS_REDUCE_SCATTER;
    int bytes = bytes_of(task.dtype);
    uint64_t bits = !folds               ? raw_of(key, index)
                    : task.dtype == F32  ? real_of(key, index, 32, 23)
                    : task.dtype == F64  ? real_of(key, index, 64, 52)
                    : task.dtype == BF16 ? real_of(key, index, 16, 7)
                    : task.dtype == F16  ? real_of(key, index, 16, 10)
                                         : raw_of(key, index);
    return bytes == 8 ? bits : bits & ((1ull << 8 * bytes) - 1);
}

WEFT_DEVICE uint64_t load(const char *array, uint64_t index, int bytes) {
    uint64_t bits = 0;
    memcpy(&bits, array + index * (uint64_t)bytes, (size_t)bytes);
    return bits;
}

WEFT_DEVICE void store(char *array, uint64_t index, int bytes, uint64_t bits) {
    memcpy(array + index * (uint64_t)bytes, &bits, (size_t)bytes);
}

/* --- Folds, in the members' order ------------------------------------------------------------ */

template <class T> WEFT_DEVICE T value_of(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T> WEFT_DEVICE uint64_t bits_of(T value) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class Folded> WEFT_DEVICE Folded folded(int op, Folded a, Folded b) {
    switch (op) {
    case MAX:
        return b > a || b != b ? b : a;
    case MIN:
        return b < a || b != b ? b : a;
    case PROD:
        return a * b;
    default:
        return a + b;
    }
}

template <class T> WEFT_DEVICE T averaged(T sum, int) {
    return sum;
}
WEFT_DEVICE float averaged(float sum, int n) {
    return sum / (float)n;
}
WEFT_DEVICE double averaged(double sum, int n) {
    return sum / (double)n;
}

/* T is the type in memory, Folded the type of the arithmetic, from which the result is rounded. */
template <class T, class Folded>
WEFT_DEVICE uint64_t fold_of(const stress_task &task, uint64_t call, uint64_t index) {
    Folded sum = (Folded)widen(value_of<T>(element_of(task, key_of(task, call, 0), index)));
    for (int m = 1; m < task.n; m++)
        sum = folded(task.op, sum,
                     (Folded)widen(value_of<T>(element_of(task, key_of(task, call, m), index))));
    T result;
    narrow(&result, task.op == AVG ? averaged(sum, task.n) : sum);
    return bits_of(result);
}

/* Integers wrap around: their sums and products are those of unsigned ones, of which the lowest
 * bits count. */
template <class T>
WEFT_DEVICE uint64_t fold_of_integers(const stress_task &task, uint64_t call, uint64_t index) {
    T result = value_of<T>(element_of(task, key_of(task, call, 0), index));
    for (int m = 1; m < task.n; m++) {
        T next = value_of<T>(element_of(task, key_of(task, call, m), index));
        result = task.op == MAX || task.op == MIN
                     ? folded(task.op, result, next)
                     : (T)folded(task.op, (uint64_t)result, (uint64_t)next);
    }
    return bits_of(result);
}

WEFT_DEVICE uint64_t reduced(const stress_task &task, uint64_t call, uint64_t index) {
    switch (task.dtype) {
    case F32:
        return fold_of<float, float>(task, call, index);
    case F64:
        return fold_of<double, double>(task, call, index);
    case BF16:
        return fold_of<weft_bf16, float>(task, call, index);
    case F16:
        return fold_of<weft_f16, float>(task, call, index);
    case I8:
        return fold_of_integers<int8_t>(task, call, index);
    case I32:
        return fold_of_integers<int32_t>(task, call, index);
    case I64:
        return fold_of_integers<int64_t>(task, call, index);
    case U8:
        return fold_of_integers<uint8_t>(task, call, index);
    case U16:
        return fold_of_integers<uint16_t>(task, call, index);
    case U32:
        return fold_of_integers<uint32_t>(task, call, index);
    default:
        return fold_of_integers<uint64_t>(task, call, index);
    }
}

/* Returns the expected element i of dest. */
WEFT_DEVICE uint64_t result_of(const stress_task &task, uint64_t call, uint64_t i) {
    uint64_t from = i / task.nelems, at = i % task.nelems, mine = (uint64_t)task.me * task.nelems;
    switch (task.operation) {
    case STRESS_ALL_REDUCE:
        return reduced(task, call, i);
    case STRESS_REDUCE_SCATTER:
        return reduced(task, call, mine + i);
    case STRESS_ALL_GATHER:
        return element_of(task, key_of(task, call, (int)from), at);
    case STRESS_ALL_TO_ALL:
        return element_of(task, key_of(task, call, (int)from), mine + at);
    default:
        return element_of(task, key_of(task, call, task.root), i);
    }
}

/* --- Filling and checking -------------------------------------------------------------------- */

WEFT_DEVICE uint64_t source_nelems(const stress_task &task) {
    bool all = task.operation == STRESS_REDUCE_SCATTER || task.operation == STRESS_ALL_TO_ALL;
    return task.nelems * (all ? (uint64_t)task.n : 1);
}
WEFT_DEVICE uint64_t dest_nelems(const stress_task &task) {
    bool all = task.operation == STRESS_ALL_GATHER || task.operation == STRESS_ALL_TO_ALL;
    return task.nelems * (all ? (uint64_t)task.n : 1);
}

WEFT_DEVICE char *guard_of(const stress_task &task) {
    return task.dest + dest_nelems(task) * (uint64_t)bytes_of(task.dtype);
}
WEFT_DEVICE char guard_byte(uint64_t call, int i) {
    return (char)(0x5a + 3 * (int)(call & 63) + i);
}

WEFT_DEVICE bool is_nan(const stress_task &task, uint64_t bits) {
    switch (task.dtype) {
    case F32:
        return (bits & 0x7fffffff) > 0x7f800000;
    case F64:
        return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
    case BF16:
        return (bits & 0x7fff) > 0x7f80;
    case F16:
        return (bits & 0x7fff) > 0x7c00;
    default:
        return false;
    }
}

/* In reductions the bits of a NaN are unspecified. */
WEFT_DEVICE bool is_same(const stress_task &task, uint64_t found, uint64_t wanted) {
    bool folds = task.operation == STRESS_ALL_REDUCE || task.operation == STRESS_REDUCE_SCATTER;
    return found == wanted || (folds && is_nan(task, found) && is_nan(task, wanted));
}

WEFT_DEVICE void note_wrong(stress_found *found, const stress_task &task, uint64_t call,
                            uint64_t index, uint64_t bits, uint64_t wanted) {
    weft_atom_add_sys(&found->wrong, (uint64_t)1);
    if (weft_atom_exch_sys(&found->claimed, (uint64_t)1))
        return;
    found->call = call;
    found->index = index;
    found->found = bits;
    found->wanted = wanted;
    found->task = task;
}

WEFT_DEVICE void check(const stress_task &task, uint64_t call, stress_found *found) {
    uint64_t count = dest_nelems(task), first = weft_thread_index();
    int bytes = bytes_of(task.dtype);
    for (uint64_t i = first; i < count; i += weft_thread_count()) {
        uint64_t bits = load(task.dest, i, bytes), wanted = result_of(task, call, i);
        if (!is_same(task, bits, wanted))
            note_wrong(found, task, call, i, bits, wanted);
    }
    for (uint64_t i = first; task.guarded && i < STRESS_GUARD_BYTES; i += weft_thread_count())
        if (guard_of(task)[i] != guard_byte(call, (int)i))
            note_wrong(found, task, call, count + i, (unsigned char)guard_of(task)[i],
                       (unsigned char)guard_byte(call, (int)i));
    if (first == 0)
        weft_atom_add_sys(&found->checked, (uint64_t)1);
}

WEFT_DEVICE void fill(const stress_task &task, uint64_t call) {
    uint32_t key = key_of(task, call, task.me);
    uint64_t count = source_nelems(task), first = weft_thread_index();
    int bytes = bytes_of(task.dtype);
    for (uint64_t i = first; i < count; i += weft_thread_count())
        store(task.source, i, bytes, element_of(task, key, i));
    for (uint64_t i = first; task.guarded && i < STRESS_GUARD_BYTES; i += weft_thread_count())
        guard_of(task)[i] = guard_byte(call, (int)i);
}

/* Between two calls on a stream: the result of the first, in arrays that the second does not use,
 * and the data of the second. */
extern "C" __global__ void stress_between(stress_task before, stress_task behind,
                                          const uint64_t *counter, stress_found *found) {
    if (before.operation != STRESS_NONE)
        check(before, *counter + before.call, found);
    if (behind.operation != STRESS_NONE)
        fill(behind, *counter + behind.call);
}

extern "C" __global__ void stress_count(uint64_t *counter, uint64_t calls) {
    if (weft_thread_index() == 0)
        *counter += calls;
}

/* --- Packets --------------------------------------------------------------------------------- */

#ifdef __CUDA_ARCH__
WEFT_DEVICE void together() {
    __syncwarp();
}
WEFT_DEVICE uint32_t of_lane(uint32_t value, int lane) {
    return __shfl_sync(0xffffffffu, value, lane);
}
WEFT_DEVICE bool in_all_lanes(bool is) {
    return __all_sync(0xffffffffu, is);
}
#else
WEFT_DEVICE void together() {}
WEFT_DEVICE uint32_t of_lane(uint32_t value, int) {
    return value;
}
WEFT_DEVICE bool in_all_lanes(bool is) {
    return is;
}
#endif

/* Each lane sends rounds 1, 2, ... into its slots of a peer's ring, [slot][lane], never into one
 * that may be unread. Whole warps. */
extern "C" __global__ void stress_send(weft_quad *ring, const uint32_t *acknowledged,
                                       uint32_t rounds) {
    size_t lane = weft_thread_index(), lanes = weft_thread_count();
    for (uint32_t round = 1; round <= rounds; round++) {
        if (round % STRESS_ACKNOWLEDGED == 0)
            while (!in_all_lanes(weft_ld_relaxed_sys(&acknowledged[lane]) + STRESS_RING -
                                     STRESS_ACKNOWLEDGED >=
                                 round))
                weft_spin_yield();
        together();
        weft_quad quad = {round, round, round, round};
        weft_st_relaxed_sys(&ring[round % STRESS_RING * lanes + lane], quad);
    }
}

WEFT_DEVICE int parts_of(weft_quad quad, uint32_t round) {
    return (quad.a == round) + (quad.b == round) + (quad.c == round) + (quad.d == round);
}

/* `width` lanes, 1 or 8, share a packet; the last lane's word shows that it has arrived. Each read
 * that finds a packet partly new counts. */
extern "C" __global__ void stress_receive(const weft_quad *ring, uint32_t *acknowledge,
                                          uint32_t rounds, int width, stress_torn *torn) {
    size_t lane = weft_thread_index(), lanes = weft_thread_count();
    uint64_t quads = 0, halves = 0;
    int last = (int)(weft_block_thread() & 31) | (width - 1);
    for (uint32_t round = 1; round <= rounds; round++) {
        bool whole = false;
        while (!in_all_lanes(whole)) {
            weft_quad quad = weft_ld_relaxed_sys(&ring[round % STRESS_RING * lanes + lane]);
            int parts = parts_of(quad, round);
            bool come = of_lane(quad.d, last) == round;
            if (!whole) {
                quads += width == 1 ? parts % 4 != 0 : come && parts != 4;
                halves += (quad.a == round) != (quad.b == round) ||
                          (quad.c == round) != (quad.d == round);
                whole = width == 1 ? parts == 4 : come;
            }
            weft_spin_yield();
        }
        if (round % STRESS_ACKNOWLEDGED == 0 || round == rounds)
            weft_st_relaxed_sys(&acknowledge[lane], round);
    }
    weft_atom_add_sys(&torn->seen, (uint64_t)rounds);
    weft_atom_add_sys(&torn->quads, quads);
    weft_atom_add_sys(&torn->halves, halves);
}

/* Fills the link until it is told to stop. */
extern "C" __global__ void stress_load(weft_quad *to, const weft_quad *from, uint64_t quads,
                                       const uint32_t *stop) {
    while (weft_ld_relaxed_sys(stop) == 0) {
        for (uint64_t i = weft_thread_index(); i < quads; i += weft_thread_count())
            to[i] = from[i];
        weft_spin_yield();
    }
}
