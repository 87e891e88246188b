/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of many arrays into one, as coll/fold.h has them: sources in their order.
 *
 * A thread loads its elements of several sources before it folds them; 16 bytes at once where all
 * arrays begin alike within 16 bytes. An element is read from all sources, and then written to all
 * destinations, by the same thread: so a destination may be a source. */
#include "coll/fold.cuh"
#include "transport/gpu_kernel.h"

/* Not unrolled: there are sixty of these loops, and none is short of work. */
#ifdef __CUDACC__
#define ROLLED _Pragma("unroll 1")
#else
#define ROLLED
#endif

/* --- The loop -------------------------------------------------------------------------------- */

/* The word `at` bytes into all arrays. */
template <class Operation, class T, class Word>
WEFT_DEVICE void fold_at(const struct weft_fold_task &task, size_t at) {
    enum { AHEAD = 4 };
    weft_unpacked<T, Word> so_far =
        unpack<T>(*(const Word *)(weft_array_of(&task.sources, 0) + at));
    ROLLED
    for (int s = 1; s < task.nsources; s += AHEAD) {
        Word next[AHEAD];
        WEFT_UNROLL
        for (int k = 0; k < AHEAD; k++)
            if (s + k < task.nsources)
                next[k] = *(const Word *)(weft_array_of(&task.sources, s + k) + at);
        WEFT_UNROLL
        for (int k = 0; k < AHEAD; k++)
            if (s + k < task.nsources)
                fold_word<Operation>(&so_far, next[k]);
    }
    Word folded = pack<Operation>(so_far, task.divisor);
    ROLLED
    for (int d = 0; d < task.ndests; d++)
        *(Word *)(weft_array_of(&task.dests, d) + at) = folded;
}

/* Vectors, and element by element what is before the first and behind the last: all, where arrays
 * do not begin alike. */
template <class Operation, class T> WEFT_DEVICE void fold(const struct weft_fold_task &task) {
    uintptr_t begin = (uintptr_t)task.sources.first, unlike = begin ^ (uintptr_t)task.dests.first;
    unlike |= (uintptr_t)task.sources.step | (uintptr_t)task.dests.step;
    size_t before = (16 - begin % 16) % 16 / sizeof(T);
    if (unlike % 16 != 0 || begin % sizeof(T) != 0 || before > task.nelems)
        before = task.nelems;
    size_t in_vector = 16 / sizeof(T), vectors = (task.nelems - before) / in_vector;
    size_t single = task.nelems - vectors * in_vector;
    ROLLED
    for (size_t i = weft_thread_index(); i < vectors; i += weft_thread_count())
        fold_at<Operation, T, number_vector>(task, (before + i * in_vector) * sizeof(T));
    ROLLED
    for (size_t i = weft_thread_index(); i < single; i += weft_thread_count())
        fold_at<Operation, T, T>(task, (i < before ? i : i + vectors * in_vector) * sizeof(T));
}

/* --- By operation and number ----------------------------------------------------------------- */

/* clang-format off */
#define FOLD_AS(NUMBER, T) case WEFT_NUMBER_##NUMBER: return fold<Operation, T>(task);

template <class Operation> WEFT_DEVICE void fold_bits(const struct weft_fold_task &task) {
    switch (task.number) {
        FOLD_AS(I8, uint8_t)   FOLD_AS(U8, uint8_t)
        FOLD_AS(I16, uint16_t) FOLD_AS(U16, uint16_t)
        FOLD_AS(I32, uint32_t) FOLD_AS(U32, uint32_t)
        FOLD_AS(I64, uint64_t) FOLD_AS(U64, uint64_t)
    }
}

template <class Operation> WEFT_DEVICE void fold_reals(const struct weft_fold_task &task) {
    switch (task.number) {
        FOLD_AS(FLOAT, float)    FOLD_AS(DOUBLE, double)
        FOLD_AS(BF16, weft_bf16) FOLD_AS(F16, weft_f16)
    default:
        return fold_bits<Operation>(task);
    }
}

template <class Operation> WEFT_DEVICE void fold_ordered(const struct weft_fold_task &task) {
    switch (task.number) {
        FOLD_AS(I8, int8_t)   FOLD_AS(I16, int16_t)
        FOLD_AS(I32, int32_t) FOLD_AS(I64, int64_t)
    default:
        return fold_reals<Operation>(task);
    }
}

/* Of integers, sums and products have the same bits whether they are signed or not. */
template <class Operation> WEFT_DEVICE void fold_arithmetic(const struct weft_fold_task &task) {
    switch (task.number) {
        FOLD_AS(COMPLEXF, weft_complex<float>) FOLD_AS(COMPLEXD, weft_complex<double>)
    default:
        return fold_reals<Operation>(task);
    }
}
#undef FOLD_AS
/* clang-format on */

extern "C" __global__ void __launch_bounds__(WEFT_FOLD_THREADS)
    weftk_fold(struct weft_gpu_abort, struct weft_fold_task task) {
    switch (task.op) {
    case WEFT_FOLD_AND:
        return fold_bits<fold_and>(task);
    case WEFT_FOLD_OR:
        return fold_bits<fold_or>(task);
    case WEFT_FOLD_XOR:
        return fold_bits<fold_xor>(task);
    case WEFT_FOLD_MAX:
        return fold_ordered<fold_max>(task);
    case WEFT_FOLD_MIN:
        return fold_ordered<fold_min>(task);
    case WEFT_FOLD_SUM:
        return fold_arithmetic<fold_sum>(task);
    case WEFT_FOLD_PROD:
        return fold_arithmetic<fold_prod>(task);
    }
}
