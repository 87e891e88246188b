/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends rows to experts, and adds the experts' results (fused/experts.h):
 *
 *   dispatch  send: lists and rows to the halves of other members      | the members meet
 *             place: the row of each slot; take: rows from this member's half
 *   combine   clear, index: the rows of each token
 *             add: a token's rows, to a record in its member's half    | the members meet
 *             sum: the records of this member's tokens
 *
 * A warp moves a row. Sums have the order and the bits of the host's (ops/moe_combine.c). */
#define WEFT_KERNEL_THREADS
#include "fused/experts.h"
#include "transport/gpu_kernel.h"
#include "coll/fold.cuh"

enum { THREADS = 512, FLIGHT = 4 };

/* --- Warps, members, slots ---------------------------------------------------------------------
 */

/* The warps of all blocks take pieces of work in turn. */
WEFT_DEVICE size_t warp_index(void) {
    uint32_t warps = (weft_block_threads() + WEFT_WARP_LANES - 1) / WEFT_WARP_LANES;
    return (size_t)weft_block_index() * warps + weft_block_thread() / WEFT_WARP_LANES;
}
WEFT_DEVICE size_t warp_count(void) {
    uint32_t warps = (weft_block_threads() + WEFT_WARP_LANES - 1) / WEFT_WARP_LANES;
    return (size_t)weft_block_count() * warps;
}

WEFT_DEVICE struct weft_thread_group lanes(void) {
    return weft_scope_group(WEFT_SCOPE_w);
}

WEFT_DEVICE char *half_of(const struct weft_experts_task &task, int member) {
    return weft_array_of(&task.halves, member);
}

WEFT_DEVICE char *list_of(const struct weft_experts_task &task, int at, int from) {
    return half_of(task, at) + (size_t)from * task.list_step;
}

/* Returns the place of a token of `from` in the half of `at`. */
WEFT_DEVICE char *row_in(const struct weft_experts_task &task, int at, int from, size_t token) {
    size_t place = (size_t)from * task.tokens_max + token;
    return half_of(task, at) + task.rows_at + place * task.row_step;
}
WEFT_DEVICE char *record_in(const struct weft_experts_task &task, int at, int from, size_t token) {
    size_t place = (size_t)from * task.tokens_max + token;
    return half_of(task, at) + place * task.record_step;
}

/* The members that own experts of a token, each once, in their order. */
struct visited {
    int of[WEFT_EXPERTS_TOP_K_MAX], count;
};

WEFT_DEVICE void visit(struct visited *members, int member) {
    int at = members->count;
    for (int i = 0; i < members->count; i++)
        if (members->of[i] == member)
            return;
    for (; at > 0 && members->of[at - 1] > member; at--)
        members->of[at] = members->of[at - 1];
    members->of[at] = member;
    members->count++;
}

WEFT_DEVICE struct visited members_of(const struct weft_experts_task &task, size_t token) {
    struct visited members;
    members.count = 0;
    for (uint32_t slot = 0; slot < task.top_k; slot++) {
        int32_t expert = weft_ld_weak(&task.experts[token * task.top_k + slot]);
        if (expert >= 0 && (uint32_t)expert < task.experts_each * (uint32_t)task.n)
            visit(&members, (int)((uint32_t)expert / task.experts_each));
    }
    return members;
}

/* --- Dispatch: send ----------------------------------------------------------------------------
 */

WEFT_DEVICE void send_array(char *to, const void *from, size_t bytes) {
    if (from)
        weft_copy_by(to, from, bytes, weft_thread_group_all(), FLIGHT);
}

WEFT_DEVICE void send_list(const struct weft_experts_task &task, int member) {
    char *list = list_of(task, member, task.me);
    size_t slots = (size_t)task.ntokens * task.top_k;
    if (weft_thread_index() == 0)
        weft_st_weak((uint32_t *)list, task.ntokens);
    send_array(list + 16, task.experts, slots * sizeof(int32_t));
    send_array(list + task.weights_at, task.weights, slots * sizeof(float));
    send_array(list + task.scales_at, task.scales,
               (size_t)task.ntokens * task.scale_cols * sizeof(float));
}

/* Begins with the member after this one, so that the members do not all send to the same one. */
WEFT_DEVICE void send_row(const struct weft_experts_task &task, size_t token) {
    const char *from = task.tokens + token * task.row_bytes;
    struct visited members = members_of(task, token);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < members.count; i++)
            if ((members.of[i] <= task.me) == (turn == 1))
                weft_copy_by(row_in(task, members.of[i], task.me, token), from, task.row_bytes,
                             lanes(), FLIGHT);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    weftk_experts_send(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    for (int distance = 1; distance <= task.n; distance++)
        send_list(task, (task.me + distance) % task.n);
    for (size_t token = warp_index(); token < task.ntokens; token += warp_count())
        send_row(task, token);
}

/* --- Dispatch: place ---------------------------------------------------------------------------
 */

/* A slot of any member, in the order of members, tokens and slots. */
struct slot_place {
    int member;
    uint32_t index, end; /* within the member's list */
};

WEFT_DEVICE uint32_t slots_max(const struct weft_experts_task &task) {
    return task.tokens_max * task.top_k;
}

WEFT_DEVICE void enter_list(const struct weft_experts_task &task, struct slot_place *place) {
    const uint32_t *ntokens = (const uint32_t *)list_of(task, task.me, place->member);
    uint32_t count = weft_ld_weak(ntokens);
    place->end = (count < task.tokens_max ? count : task.tokens_max) * task.top_k;
}

WEFT_DEVICE struct slot_place place_of(const struct weft_experts_task &task, size_t slot) {
    struct slot_place place = {(int)(slot / slots_max(task)), (uint32_t)(slot % slots_max(task)),
                               0};
    enter_list(task, &place);
    return place;
}

WEFT_DEVICE void step(const struct weft_experts_task &task, struct slot_place *place) {
    if (++place->index < slots_max(task))
        return;
    place->index = 0;
    if (++place->member < task.n)
        enter_list(task, place);
}

/* Returns which of this member's experts a slot has, or UINT32_MAX. */
WEFT_DEVICE uint32_t expert_at(const struct weft_experts_task &task,
                               const struct slot_place &place) {
    const char *list = list_of(task, task.me, place.member);
    if (place.index >= place.end)
        return UINT32_MAX;
    int32_t expert = weft_ld_weak((const int32_t *)(list + 16) + place.index);
    uint32_t first = (uint32_t)task.me * task.experts_each, local = (uint32_t)expert - first;
    return expert >= 0 && local < task.experts_each ? local : UINT32_MAX;
}

/* Returns the sum of `mine` over the threads before this one, and in *total over all threads of the
 * block. `sums` is shared. */
WEFT_DEVICE uint32_t sum_before(uint32_t *sums, uint32_t mine, uint32_t *total) {
    uint32_t thread = weft_block_thread(), threads = weft_block_threads();
    sums[thread] = mine;
    weft_block_sync();
    for (uint32_t distance = 1; distance < threads; distance *= 2) {
        uint32_t other = thread >= distance ? sums[thread - distance] : 0;
        weft_block_sync();
        sums[thread] += other;
        weft_block_sync();
    }
    *total = sums[threads - 1];
    uint32_t before = sums[thread] - mine;
    weft_block_sync();
    return before;
}

WEFT_DEVICE void write_row(const struct weft_experts_task &task, const struct slot_place &place,
                           uint32_t row) {
    const char *list = list_of(task, task.me, place.member);
    const float *weights = (const float *)(list + task.weights_at);
    const float *scales = (const float *)(list + task.scales_at) +
                          (size_t)(place.index / task.top_k) * task.scale_cols;
    uint32_t source = (uint32_t)place.member * slots_max(task) + place.index;
    weft_st_weak(&task.sources[row], (int32_t)source);
    if (task.row_weights)
        weft_st_weak(&task.row_weights[row], weft_ld_weak(&weights[place.index]));
    for (uint32_t i = 0; task.row_scales && i < task.scale_cols; i++)
        weft_st_weak(&task.row_scales[(size_t)row * task.scale_cols + i], weft_ld_weak(&scales[i]));
}

/* Ends the job if rows do not fit: it names the first expert that has no room for all its rows. */
WEFT_DEVICE uint32_t fitting(struct weft_gpu_abort abort, const struct weft_experts_task &task,
                             uint32_t expert, uint32_t first, uint32_t count) {
    if (first + count <= task.rows_max)
        return first + count;
    if (abort.gave_up && weft_block_thread() == 0 && first <= task.rows_max) {
        weft_st_relaxed_sys(&abort.gave_up[WEFT_GPU_FAULT_DETAIL],
                            (uint32_t)task.me * task.experts_each + expert);
        weft_st_release_sys(&abort.gave_up[WEFT_GPU_FAULT], (uint32_t)WEFT_GPU_ROWS);
    }
    return task.rows_max;
}

/* A block finds the rows of an expert. Each thread looks at slots that are side by side, counts
 * them, and writes those of the expert. */
WEFT_DEVICE void place_expert(struct weft_gpu_abort abort, const struct weft_experts_task &task,
                              uint32_t expert, uint32_t *sums) {
    size_t slots = (size_t)task.n * slots_max(task), threads = weft_block_threads();
    size_t share = (slots + threads - 1) / threads, begin = weft_block_thread() * share;
    size_t end = begin + share < slots ? begin + share : slots;
    uint32_t before = 0, equal = 0, first, count;
    if (begin < end) {
        struct slot_place place = place_of(task, begin);
        for (size_t slot = begin; slot < end; slot++, step(task, &place)) {
            uint32_t found = expert_at(task, place);
            before += found < expert;
            equal += found == expert;
        }
    }
    sum_before(sums, before, &first);
    uint32_t row = first + sum_before(sums, equal, &count);
    if (begin < end) {
        struct slot_place place = place_of(task, begin);
        for (size_t slot = begin; slot < end; slot++, step(task, &place))
            if (expert_at(task, place) == expert && row++ < task.rows_max)
                write_row(task, place, row - 1);
    }
    uint32_t last = fitting(abort, task, expert, first, count);
    if (weft_block_thread() != 0)
        return;
    weft_st_weak(&task.offsets[expert], (int32_t)(first < task.rows_max ? first : task.rows_max));
    if (expert + 1 == task.experts_each)
        weft_st_weak(&task.offsets[expert + 1], (int32_t)last);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    weftk_experts_place(struct weft_gpu_abort abort, struct weft_experts_task task) {
    weft_dependency_wait();
    WEFT_SHARED(uint32_t, sums, THREADS);
    for (uint32_t expert = weft_block_index(); expert < task.experts_each;
         expert += weft_block_count())
        place_expert(abort, task, expert, sums);
}

/* --- Dispatch: take ----------------------------------------------------------------------------
 */

WEFT_DEVICE uint32_t row_count(const struct weft_experts_task &task) {
    return (uint32_t)weft_ld_weak(&task.offsets[task.experts_each]);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    weftk_experts_take(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    uint32_t nrows = row_count(task);
    for (size_t row = warp_index(); row < nrows; row += warp_count()) {
        uint32_t source = (uint32_t)weft_ld_weak(&task.sources[row]);
        int member = (int)(source / slots_max(task));
        size_t token = source % slots_max(task) / task.top_k;
        weft_copy_by(task.data + row * task.row_bytes, row_in(task, task.me, member, token),
                     task.row_bytes, lanes(), FLIGHT);
    }
}

/* --- Combine: index ----------------------------------------------------------------------------
 */

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    weftk_experts_clear(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    size_t slots = (size_t)task.n * slots_max(task);
    for (size_t i = weft_thread_index(); i < slots; i += weft_thread_count())
        weft_st_weak(&task.row_of[i], (int32_t)-1);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    weftk_experts_index(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    uint32_t nrows = row_count(task), slots = (uint32_t)task.n * slots_max(task);
    for (size_t row = weft_thread_index(); row < nrows; row += weft_thread_count()) {
        uint32_t source = (uint32_t)weft_ld_weak(&task.sources[row]);
        if (source < slots)
            weft_st_weak(&task.row_of[source], (int32_t)row);
    }
}

/* --- Combine: sums -----------------------------------------------------------------------------
 */

/* A token's rows or records. */
struct addends {
    const char *of[WEFT_EXPERTS_TOP_K_MAX];
    float factors[WEFT_EXPERTS_TOP_K_MAX];
    int count;
};

/* Stores the sum of the words `at`, at + the number of lanes, ... */
template <class T, class Word>
WEFT_DEVICE void add_words(char *to, const struct addends &addends, size_t nwords) {
    typedef typename weft_folded<T>::type Real;
    for (size_t w = lanes().id; w < nwords; w += lanes().count) {
        weft_unpacked<T, Word> so_far = {};
        for (int i = 0; i < addends.count; i++) {
            Word word = weft_ld_weak((const Word *)addends.of[i] + w);
            weft_unpacked<T, Word> next = unpack<T>(word);
            WEFT_UNROLL
            for (int k = 0; k < next.N; k++) {
                Real scaled = times(next.of[k], (Real)addends.factors[i]);
                so_far.of[k] = i == 0 ? scaled : sum(so_far.of[k], scaled);
            }
        }
        weft_st_weak((Word *)to + w, pack<fold_sum, T, Word>(so_far, 0));
    }
}

template <class T>
WEFT_DEVICE void add_rows(char *to, const struct addends &addends, size_t nelems) {
    uintptr_t places = (uintptr_t)to | nelems * sizeof(T);
    for (int i = 0; i < addends.count; i++)
        places |= (uintptr_t)addends.of[i];
    if (places % sizeof(number_vector) == 0)
        add_words<T, number_vector>(to, addends, nelems * sizeof(T) / sizeof(number_vector));
    else
        add_words<T, T>(to, addends, nelems);
}

WEFT_DEVICE void add_typed(char *to, const struct addends &addends, size_t nelems, int dtype) {
    enum { F32 = 1, F64, BF16, F16 }; /* of weft_dtype */
    if (dtype == F32)
        add_rows<float>(to, addends, nelems);
    else if (dtype == F64)
        add_rows<double>(to, addends, nelems);
    else if (dtype == BF16)
        add_rows<weft_bf16>(to, addends, nelems);
    else
        add_rows<weft_f16>(to, addends, nelems);
}

/* Makes the record of the token whose first row this is. */
WEFT_DEVICE void add_record(const struct weft_experts_task &task, uint32_t row) {
    uint32_t source = (uint32_t)weft_ld_weak(&task.sources[row]);
    if (source >= (uint32_t)task.n * slots_max(task))
        return;
    int member = (int)(source / slots_max(task));
    uint32_t token = source % slots_max(task) / task.top_k;
    const int32_t *rows = &task.row_of[source - source % task.top_k];
    char *record = record_in(task, member, task.me, token);
    struct addends addends;
    addends.count = 0;
    for (uint32_t slot = 0; slot < task.top_k; slot++) {
        int32_t of_slot = weft_ld_weak(&rows[slot]);
        if (of_slot < 0)
            continue;
        if (addends.count == 0 && (uint32_t)of_slot != row)
            return;
        addends.of[addends.count] = task.data + (size_t)of_slot * task.row_bytes;
        addends.factors[addends.count++] = task.factors ? weft_ld_weak(&task.factors[of_slot]) : 1;
        if (task.row_weights && lanes().id == 0)
            weft_st_weak((float *)(record + task.record_weights) + slot,
                         weft_ld_weak(&task.row_weights[of_slot]));
    }
    add_typed(record, addends, task.cols, task.dtype);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    weftk_experts_add(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    uint32_t nrows = row_count(task);
    for (size_t row = warp_index(); row < nrows; row += warp_count())
        add_record(task, (uint32_t)row);
}

WEFT_DEVICE void take_weights(const struct weft_experts_task &task, size_t token) {
    for (uint32_t slot = lanes().id; slot < task.top_k; slot += lanes().count) {
        int32_t expert = weft_ld_weak(&task.experts[token * task.top_k + slot]);
        float weight = 0;
        if (expert >= 0 && (uint32_t)expert < task.experts_each * (uint32_t)task.n) {
            int member = (int)((uint32_t)expert / task.experts_each);
            const char *record = record_in(task, task.me, member, token);
            weight = weft_ld_weak((const float *)(record + task.record_weights) + slot);
        }
        weft_st_weak(&task.weights[token * task.top_k + slot], weight);
    }
}

WEFT_DEVICE void sum_token(const struct weft_experts_task &task, size_t token) {
    struct visited members = members_of(task, token);
    struct addends addends;
    addends.count = members.count;
    for (int i = 0; i < members.count; i++) {
        addends.of[i] = record_in(task, task.me, members.of[i], token);
        addends.factors[i] = 1;
    }
    add_typed(task.tokens + token * task.row_bytes, addends, task.cols, task.dtype);
    if (task.weights)
        take_weights(task, token);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    weftk_experts_sum(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    for (size_t token = warp_index(); token < task.ntokens; token += warp_count())
        sum_token(task, token);
}
