/* SPDX-License-Identifier: BSD-3-Clause */
/* Normalises rows by their root mean square, after a bias and a residual are added:
 *
 *     z = sum + bias + residual         rounded
 *     y = z / sqrt(mean of z^2 + epsilon) * weight
 *
 * weftk_norm_T takes sums from memory. weftk_norm_T_N also adds the rows of up to N members, by
 * marked words (coll/marked.h): a block sends all its rows to the other members, then adds and
 * normalises row by row. */
#define WEFT_KERNEL_THREADS
#include "coll/norm.h"
#include "coll/marked_fold.cuh"

/* --- Numbers of this member's arrays ---------------------------------------------------------- */

/* Load and store a unit of an array: its words at once, or its numbers one by one. */
template <class T, class Word>
WEFT_DEVICE weft_unpacked<T, Word> load_numbers(const char *array, size_t unit, bool aligned) {
    weft_unpacked<T, Word> numbers;
    const char *at = array + unit * sizeof(Word);
    if (aligned)
        return unpack<T>(weft_ld_weak((const Word *)at));
    WEFT_UNROLL
    for (int k = 0; k < numbers.N; k++)
        numbers.of[k] = widen(weft_ld_weak((const T *)at + k));
    return numbers;
}

template <class T, class Word>
WEFT_DEVICE void store_numbers(char *array, size_t unit, const weft_unpacked<T, Word> &numbers,
                               bool aligned) {
    char *at = array + unit * sizeof(Word);
    if (aligned) {
        weft_st_weak((Word *)at, pack<fold_sum, T, Word>(numbers, 0));
        return;
    }
    WEFT_UNROLL
    for (int k = 0; k < numbers.N; k++) {
        T number;
        narrow(&number, numbers.of[k]);
        weft_st_weak((T *)at + k, number);
    }
}

/* Rounds the numbers to T. */
template <class T, class Word>
WEFT_DEVICE weft_unpacked<T, Word> rounded(const weft_unpacked<T, Word> &numbers) {
    return unpack<T>(pack<fold_sum, T, Word>(numbers, 0));
}

/* --- Rows ------------------------------------------------------------------------------------- */

/* Returns the sum over the block's threads. `sums` is shared, with an element for each thread. */
WEFT_DEVICE double block_total(double *sums, double mine) {
    uint32_t thread = weft_block_thread(), threads = weft_block_threads();
    uint32_t few = threads < WEFT_WARP_LANES ? threads : (uint32_t)WEFT_WARP_LANES;
    double total = 0;
    sums[thread] = mine;
    weft_block_sync();
    if (thread < few) {
        for (uint32_t i = thread + few; i < threads; i += few)
            mine += sums[i];
        sums[thread] = mine;
    }
    weft_block_sync();
    for (uint32_t i = 0; i < few; i++)
        total += sums[i];
    weft_block_sync();
    return total;
}

/* Adds bias and residual to a unit of a row's sum, stores it, and returns the sum of its squares.
 */
template <class T, class Word>
WEFT_DEVICE double add_unit(const struct weft_norm_task &task, size_t row, uint32_t unit,
                            weft_unpacked<T, Word> z) {
    size_t at = row * (task.cols / z.N) + unit;
    double squares = 0;
    if (task.bias) {
        weft_unpacked<T, Word> bias = load_numbers<T, Word>(task.bias, unit, task.aligned);
        WEFT_UNROLL
        for (int k = 0; k < z.N; k++)
            z.of[k] = sum(z.of[k], bias.of[k]);
    }
    if (task.residual) {
        weft_unpacked<T, Word> more = load_numbers<T, Word>(task.residual, at, task.aligned);
        WEFT_UNROLL
        for (int k = 0; k < z.N; k++)
            z.of[k] = sum(z.of[k], more.of[k]);
    }
    z = rounded(z);
    store_numbers<T, Word>(task.residual_out, at, z, task.aligned);
    WEFT_UNROLL
    for (int k = 0; k < z.N; k++)
        squares += (double)z.of[k] * (double)z.of[k];
    return squares;
}

/* Returns the normalised numbers of a unit, before they are rounded. */
template <class T, class Word>
WEFT_DEVICE weft_unpacked<T, Word> normalised(const struct weft_norm_task &task, size_t row,
                                              uint32_t unit, float factor) {
    size_t at = row * (task.cols / weft_unpacked<T, Word>::N) + unit;
    weft_unpacked<T, Word> y = load_numbers<T, Word>(task.residual_out, at, task.aligned), weight;
    if (task.weight)
        weight = load_numbers<T, Word>(task.weight, unit, task.aligned);
    WEFT_UNROLL
    for (int k = 0; k < y.N; k++) {
        y.of[k] = times(y.of[k], factor);
        if (task.weight)
            y.of[k] = times(y.of[k], weight.of[k]);
    }
    return y;
}

/* Stores a unit in 8 bits, divided by its scale. */
template <class T, class Word>
WEFT_DEVICE void quantize(const struct weft_norm_task &task, size_t row, uint32_t unit,
                          const weft_unpacked<T, Word> &y, float scale) {
    uint8_t *to = task.quantized + row * task.cols + (size_t)unit * y.N;
    WEFT_UNROLL
    for (int k = 0; k < y.N; k++)
        weft_st_weak(&to[k], weft_f8e4m3_of_float(y.of[k] / scale));
}

/* Finds the scale of each group of a row, and stores it. Groups have whole units, of which a thread
 * looks at all of its own. */
template <class T, class Word>
WEFT_DEVICE void scale_groups(const struct weft_norm_task &task, size_t row, float factor) {
    enum { N = weft_unpacked<T, Word>::N };
    uint32_t groups = task.cols / task.group, units = task.group / N;
    for (uint32_t g = weft_block_thread(); g < groups; g += weft_block_threads()) {
        float greatest = 0;
        for (uint32_t u = 0; u < units; u++) {
            weft_unpacked<T, Word> y = normalised<T, Word>(task, row, g * units + u, factor);
            WEFT_UNROLL
            for (int k = 0; k < N; k++)
                greatest = fabsf(y.of[k]) > greatest ? fabsf(y.of[k]) : greatest;
        }
        weft_st_weak(&task.scales[row * groups + g], weft_f8e4m3_scale(greatest));
    }
}

/* Normalises a row of which residual_out has z, and whose threads have the sums of its squares. */
template <class T, class Word>
WEFT_DEVICE void end_row(const struct weft_norm_task &task, size_t row, double *sums,
                         double squares) {
    enum { N = weft_unpacked<T, Word>::N };
    uint32_t units = task.cols / N;
    double mean = block_total(sums, squares) / (double)task.cols;
    float factor = 1.0f / sqrtf((float)mean + task.epsilon);
    if (task.quantized && task.group > 0) {
        scale_groups<T, Word>(task, row, factor);
        weft_block_sync();
    }
    for (uint32_t unit = weft_block_thread(); unit < units; unit += weft_block_threads()) {
        weft_unpacked<T, Word> y = normalised<T, Word>(task, row, unit, factor);
        store_numbers<T, Word>(task.out, row * units + unit, y, task.aligned);
        if (!task.quantized)
            continue;
        size_t scale = task.group ? row * (task.cols / task.group) + unit * N / task.group : 0;
        quantize<T, Word>(task, row, unit, y, weft_ld_weak(&task.scales[scale]));
    }
}

/* --- Kernels without sums --------------------------------------------------------------------- */

template <class T, class Word>
WEFT_DEVICE void norm_rows(const struct weft_norm_task &task, double *sums) {
    uint32_t units = task.cols / weft_unpacked<T, Word>::N;
    for (size_t row = weft_block_index(); row < task.rows; row += weft_block_count()) {
        double squares = 0;
        for (uint32_t unit = weft_block_thread(); unit < units; unit += weft_block_threads())
            squares += add_unit<T, Word>(
                task, row, unit,
                load_numbers<T, Word>(task.sums, row * units + unit, task.aligned));
        end_row<T, Word>(task, row, sums, squares);
    }
}

#define NORM_KERNEL(number, T)                                                   \
    extern "C" __global__ void __launch_bounds__(WEFT_NORM_THREADS, 1)           \
        weftk_norm_##number(struct weft_gpu_abort, struct weft_norm_task task) { \
        weft_dependency_wait();                                                  \
        WEFT_SHARED(double, sums, WEFT_NORM_THREADS);                            \
        if (task.cols % (sizeof(number_vector) / sizeof(T)) == 0)                \
            norm_rows<T, number_vector>(task, sums);                             \
        else                                                                     \
            norm_rows<T, T>(task, sums);                                         \
    }
NORM_KERNEL(f32, float)
NORM_KERNEL(bf16, weft_bf16)
NORM_KERNEL(f16, weft_f16)

/* --- Kernels with sums ------------------------------------------------------------------------ */

/* Sends all units of this block, then adds and normalises its rows. All threads pass all syncs,
 * also when the job is over. Returns false then. */
template <class T, int OTHERS>
WEFT_DEVICE bool sum_rows(const struct marked_call &call, const struct weft_norm_task &task,
                          double *sums) {
    uint32_t units = task.cols * (uint32_t)sizeof(T) / 16, first = weft_block_thread();
    size_t row = (size_t)weft_block_index() * task.rows_each;
    bool alive = true;
    WEFT_ROLLED
    for (uint32_t at = first; at < call.count; at += weft_block_threads()) {
        struct weft_marked_round round = weft_marked_round_at<1>(at, call.count);
        struct weft_quad own[1];
        load_own<T, 1>(own, call, round);
        send_to_all(call, call.slot, round, own);
    }
    for (uint32_t begin = 0; begin < call.count; begin += units, row++) {
        double squares = 0;
        for (uint32_t unit = first; unit < units; unit += weft_block_threads()) {
            struct weft_quad folded[1] = {};
            struct weft_marked_round round = weft_marked_round_at<1>(begin + unit, call.count);
            alive = alive && fold_round<T, 1, OTHERS>(folded, call, round);
            squares += add_unit<T>(task, row, unit, unpack<T>(folded[0]));
        }
        end_row<T, struct weft_quad>(task, row, sums, squares);
    }
    return alive;
}

template <class T, int OTHERS>
WEFT_DEVICE void run(struct weft_gpu_abort abort, const struct weft_marked_work &work,
                     const struct weft_norm_task &task, double *sums) {
    uint32_t channel = weft_block_index(), begin = channel * work.part, left = work.chunk - begin;
    uint64_t *word = (uint64_t *)(work.epochs + channel * work.epoch_step);
    uint64_t epoch = weft_channel_epoch_begin(word);
    struct marked_call call = {work, abort, (uint32_t)(epoch & 1), begin,
                               left < work.part ? left : work.part};
    if (sum_rows<T, OTHERS>(call, task, sums))
        weft_channel_epoch_end(word, epoch);
}

/* clang-format off */
#define SUM_KERNEL(number, T, members)                                                             \
    extern "C" __global__ void __launch_bounds__(WEFT_NORM_THREADS, 1)                             \
        weftk_norm_##number##_##members(struct weft_gpu_abort abort, struct weft_marked_work work, \
                                        struct weft_norm_task task) {                              \
        weft_dependency_wait();                                                                      \
        WEFT_SHARED(double, sums, WEFT_NORM_THREADS);                                              \
        run<T, members - 1>(abort, work, task, sums);                                              \
    }
#define SUM_KERNELS(number, T) \
    SUM_KERNEL(number, T, 2) SUM_KERNEL(number, T, 4) SUM_KERNEL(number, T, 8)
SUM_KERNELS(f32, float)
SUM_KERNELS(bf16, weft_bf16)
SUM_KERNELS(f16, weft_f16)
/* clang-format on */
