/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds the experts' results:
 *
 *   clear, index   find the rows of each token
 *   add            a token's rows, to a record in its member's half; then the members meet
 *   sum            the records of this member's tokens
 *
 * Sums have the order and the bits of the host's (ops/moe_combine.c). */
#define WEFT_KERNEL_THREADS
#include "coll/fold.cuh"
#include "fused/experts.cuh"

enum { SUMS_FLIGHT = 2 };

/* --- Index ------------------------------------------------------------------------------------ */

extern "C" __global__ void __launch_bounds__(WEFT_EXPERTS_THREADS, 1)
    weftk_experts_clear(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    size_t slots = (size_t)task.n * slots_max(task);
    for (size_t i = weft_thread_index(); i < slots; i += weft_thread_count())
        weft_st_weak(&task.row_of[i], (int32_t)-1);
}

extern "C" __global__ void __launch_bounds__(WEFT_EXPERTS_THREADS, 1)
    weftk_experts_index(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    uint32_t nrows = (uint32_t)weft_ld_weak(&task.offsets[task.experts_each]);
    uint32_t slots = (uint32_t)task.n * slots_max(task);
    for (size_t row = weft_thread_index(); row < nrows; row += weft_thread_count()) {
        uint32_t source = (uint32_t)weft_ld_weak(&task.sources[row]);
        if (source < slots)
            weft_st_weak(&task.row_of[source], (int32_t)row);
    }
}

/* --- Sums ------------------------------------------------------------------------------------- */

/* A token's rows or records, and the factors of rows, in shared memory. */
struct addends {
    struct address_list list;
    const float *factors; /* NULL: all are 1 */
};

/* The words of an addend that a thread has under way: w, w + the number of lanes, ... */
template <class Word> struct flight { Word of[SUMS_FLIGHT]; };

template <class Word>
WEFT_DEVICE flight<Word> load_words(const char *from, size_t w, size_t nwords) {
    flight<Word> words = {};
    WEFT_UNROLL
    for (int k = 0; k < SUMS_FLIGHT; k++)
        if (w + k * lanes().count < nwords)
            words.of[k] = weft_ld_weak((const Word *)from + w + k * lanes().count);
    return words;
}

/* Stores the sum of the words. The next addend is loaded before one is added. */
template <class T, class Word>
WEFT_DEVICE void add_words(char *to, const struct addends &addends, size_t nwords) {
    typedef typename weft_folded<T>::type Real;
    for (size_t w = lanes().id; w < nwords; w += SUMS_FLIGHT * lanes().count) {
        weft_unpacked<T, Word> so_far[SUMS_FLIGHT] = {};
        flight<Word> next = {};
        if (addends.list.count > 0)
            next = load_words<Word>(addends.list.of[0], w, nwords);
        for (int i = 0; i < addends.list.count; i++) {
            flight<Word> words = next;
            Real factor = addends.factors ? (Real)addends.factors[i] : (Real)1;
            if (i + 1 < addends.list.count)
                next = load_words<Word>(addends.list.of[i + 1], w, nwords);
            WEFT_UNROLL
            for (int k = 0; k < SUMS_FLIGHT; k++) {
                weft_unpacked<T, Word> numbers = unpack<T>(words.of[k]);
                WEFT_UNROLL
                for (int j = 0; j < numbers.N; j++) {
                    Real scaled = times(numbers.of[j], factor);
                    so_far[k].of[j] = i == 0 ? scaled : sum(so_far[k].of[j], scaled);
                }
            }
        }
        WEFT_UNROLL
        for (int k = 0; k < SUMS_FLIGHT; k++)
            if (w + k * lanes().count < nwords)
                weft_st_weak((Word *)to + w + k * lanes().count,
                             pack<fold_sum, T, Word>(so_far[k], 0));
    }
}

template <class T>
WEFT_DEVICE void add_rows(char *to, const struct addends &addends, size_t bytes) {
    uintptr_t places = (uintptr_t)to | bytes;
    for (int i = 0; i < addends.list.count; i++)
        places |= (uintptr_t)addends.list.of[i];
    if (places % sizeof(number_vector) == 0)
        add_words<T, number_vector>(to, addends, bytes / sizeof(number_vector));
    else
        add_words<T, T>(to, addends, bytes / sizeof(T));
}

/* Stores the sum of `bytes` of all addends. */
WEFT_DEVICE void add_typed(char *to, const struct addends &addends, size_t bytes, int dtype) {
    enum { F32 = 1, F64, BF16, F16 }; /* of weft_dtype */
    if (dtype == F32)
        add_rows<float>(to, addends, bytes);
    else if (dtype == F64)
        add_rows<double>(to, addends, bytes);
    else if (dtype == BF16)
        add_rows<weft_bf16>(to, addends, bytes);
    else
        add_rows<weft_f16>(to, addends, bytes);
}

/* Adds a part of a token's rows here, if it has some, to its record. A token's number counts those
 * of all members. */
WEFT_DEVICE void add_part(const struct weft_experts_task &task, const struct row_part &part,
                          char **room, float *factors) {
    struct address_list list = list_in(room);
    int member = (int)(part.row / task.tokens_max);
    char *record = record_in(task, member, task.me, part.row % task.tokens_max);
    uint32_t slot = weft_lane(), row = UINT32_MAX, before = 0;
    if (slot < task.top_k)
        row = (uint32_t)weft_ld_weak(&task.row_of[part.row * task.top_k + slot]);
    for (uint32_t lane = 0; lane < task.top_k; lane++) {
        bool used = weft_warp_broadcast_u32(row, lane) != UINT32_MAX;
        before += used && lane < slot;
        list.count += used;
    }
    factors += warp_in_block() * WEFT_EXPERTS_TOP_K_MAX;
    if (row != UINT32_MAX) {
        list.of[before] = task.data + (size_t)row * task.row_bytes + part.begin;
        factors[before] = task.factors ? weft_ld_weak(&task.factors[row]) : 1;
        if (task.row_weights && part.begin == 0)
            weft_st_weak((float *)(record + task.record_weights) + slot,
                         weft_ld_weak(&task.row_weights[row]));
    }
    weft_warp_sync();
    if (list.count > 0)
        add_typed(record + part.begin, {list, factors}, part.bytes, task.dtype);
}

extern "C" __global__ void __launch_bounds__(WEFT_EXPERTS_THREADS, 2)
    weftk_experts_add(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    WEFT_SHARED(char *, room, EXPERTS_LIST);
    WEFT_SHARED(float, factors, EXPERTS_LIST);
    size_t pieces = (size_t)task.n * task.tokens_max * task.parts;
    for (size_t piece = warp_index(); piece < pieces; piece += warp_count())
        add_part(task, part_of(task, piece), room, factors);
}

/* The lane copies the weight of its slot from the record of the slot's member, or zero. */
WEFT_DEVICE void take_weight(const struct weft_experts_task &task, size_t token, uint32_t member) {
    uint32_t slot = weft_lane();
    float weight = 0;
    if (member != UINT32_MAX) {
        const char *record = record_in(task, task.me, (int)member, token);
        weight = weft_ld_weak((const float *)(record + task.record_weights) + slot);
    }
    if (slot < task.top_k)
        weft_st_weak(&task.weights[token * task.top_k + slot], weight);
}

WEFT_DEVICE void sum_part(const struct weft_experts_task &task, const struct row_part &part,
                          char **room) {
    struct address_list list = list_in(room);
    uint32_t member = member_of_lane(task, part.row);
    char *record = NULL;
    if (member != UINT32_MAX)
        record = record_in(task, task.me, (int)member, part.row) + part.begin;
    add_in_order(&list, record, member, task.top_k);
    add_typed(task.tokens + part.row * task.row_bytes + part.begin, {list, NULL}, part.bytes,
              task.dtype);
    if (task.weights && part.begin == 0)
        take_weight(task, part.row, member);
}

extern "C" __global__ void __launch_bounds__(WEFT_EXPERTS_THREADS, 1)
    weftk_experts_sum(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    WEFT_SHARED(char *, room, EXPERTS_LIST);
    size_t pieces = (size_t)task.ntokens * task.parts;
    for (size_t piece = warp_index(); piece < pieces; piece += warp_count())
        sum_part(task, part_of(task, piece), room);
}
