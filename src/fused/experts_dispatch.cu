/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends rows to experts:
 *
 *   send    lists and rows to the halves of other members; then the members meet
 *   place   finds the row of each slot, a block for each expert
 *   take    copies rows from this member's half */
#define WEFT_KERNEL_THREADS
#include "fused/experts.cuh"

/* --- Copies to several places ----------------------------------------------------------------- */

/* Copies units of 16 bytes, each of which is loaded once. */
WEFT_DEVICE void spread_units(const struct address_list &to, const char *from, size_t nunits) {
    typedef weft_bytes16 unit;
    for (size_t u = lanes().id; u < nunits; u += EXPERTS_FLIGHT * lanes().count) {
        unit units[EXPERTS_FLIGHT];
        WEFT_UNROLL
        for (int k = 0; k < EXPERTS_FLIGHT; k++)
            if (u + k * lanes().count < nunits)
                units[k] = weft_ld_weak((const unit *)from + u + k * lanes().count);
        for (int i = 0; i < to.count; i++) {
            WEFT_UNROLL
            for (int k = 0; k < EXPERTS_FLIGHT; k++)
                if (u + k * lanes().count < nunits)
                    weft_st_weak((unit *)to.of[i] + u + k * lanes().count, units[k]);
        }
    }
}

/* Copies `bytes` to each place, by a warp. */
WEFT_DEVICE void spread(const struct address_list &to, const char *from, size_t bytes) {
    uintptr_t places = (uintptr_t)from | bytes;
    for (int i = 0; i < to.count; i++)
        places |= (uintptr_t)to.of[i];
    if (places % sizeof(weft_bytes16) == 0)
        spread_units(to, from, bytes / sizeof(weft_bytes16));
    else
        for (int i = 0; i < to.count; i++)
            weft_copy_by(to.of[i], from, bytes, lanes(), 1);
}

/* --- Send ------------------------------------------------------------------------------------- */

WEFT_DEVICE void send_array(char *to, const void *from, size_t bytes) {
    if (from)
        weft_copy_by(to, from, bytes, weft_thread_group_all(), 1);
}

WEFT_DEVICE void send_list(const struct weft_experts_task &task, int member) {
    char *list = list_of(task, member, task.me);
    size_t slots = (size_t)task.ntokens * task.top_k;
    struct weft_experts_header *header = (struct weft_experts_header *)list;
    if (weft_thread_index() == 0) {
        weft_st_weak(&header->ntokens, task.ntokens);
        weft_st_weak(&header->has_weights, (uint32_t)(task.weights != NULL));
        weft_st_weak(&header->has_scales, (uint32_t)(task.scales != NULL));
    }
    send_array(list + sizeof *header, task.experts, slots * sizeof(int32_t));
    send_array(list + task.weights_at, task.weights, slots * sizeof(float));
    send_array(list + task.scales_at, task.scales,
               (size_t)task.ntokens * task.scale_cols * sizeof(float));
}

/* Begins with the members after this one, so that the members do not all send to the same one. */
WEFT_DEVICE void send_part(const struct weft_experts_task &task, const struct row_part &part,
                           char **room) {
    struct address_list to = list_in(room);
    uint32_t member = member_of_lane(task, part.row), key = UINT32_MAX, n = (uint32_t)task.n;
    char *place = NULL;
    if (member != UINT32_MAX) {
        key = (member + n - (uint32_t)task.me - 1) % n;
        place = row_in(task, (int)member, task.me, part.row) + part.begin;
    }
    add_in_order(&to, place, key, task.top_k);
    spread(to, task.tokens + part.row * task.row_bytes + part.begin, part.bytes);
}

extern "C" __global__ void __launch_bounds__(WEFT_EXPERTS_THREADS, 1)
    weftk_experts_send(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    WEFT_SHARED(char *, room, EXPERTS_LIST);
    for (int distance = 1; distance <= task.n; distance++)
        send_list(task, (task.me + distance) % task.n);
    size_t pieces = (size_t)task.ntokens * task.parts;
    for (size_t piece = warp_index(); piece < pieces; piece += warp_count())
        send_part(task, part_of(task, piece), room);
}

/* --- Place ------------------------------------------------------------------------------------ */

/* A slot of any member, in the order of members, tokens and slots. */
struct slot_place {
    int member;
    uint32_t index, end; /* within the member's list */
};

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
    int32_t expert =
        weft_ld_weak((const int32_t *)(list + sizeof(struct weft_experts_header)) + place.index);
    uint32_t first = (uint32_t)task.me * task.experts_each, local = (uint32_t)expert - first;
    return expert >= 0 && local < task.experts_each ? local : UINT32_MAX;
}

WEFT_DEVICE void write_row(const struct weft_experts_task &task, const struct slot_place &place,
                           uint32_t row) {
    const char *list = list_of(task, task.me, place.member);
    const struct weft_experts_header *header = (const struct weft_experts_header *)list;
    const float *weights = (const float *)(list + task.weights_at);
    const float *scales = (const float *)(list + task.scales_at) +
                          (size_t)(place.index / task.top_k) * task.scale_cols;
    uint32_t source = (uint32_t)place.member * slots_max(task) + place.index;
    weft_st_weak(&task.sources[row], (int32_t)source);
    weft_st_weak(&task.row_of[source], (int32_t)row);
    if (task.row_weights && weft_ld_weak(&header->has_weights))
        weft_st_weak(&task.row_weights[row], weft_ld_weak(&weights[place.index]));
    if (!task.row_scales || !weft_ld_weak(&header->has_scales))
        return;
    for (uint32_t i = 0; i < task.scale_cols; i++)
        weft_st_weak(&task.row_scales[(size_t)row * task.scale_cols + i], weft_ld_weak(&scales[i]));
}

/* Ends the job if rows do not fit: it names the first expert that has no room for all its rows. */
WEFT_DEVICE uint32_t fitting(struct weft_gpu_abort abort, const struct weft_experts_task &task,
                             uint32_t expert, uint32_t first, uint32_t count) {
    if (first + count <= task.rows_max)
        return first + count;
    if (weft_block_thread() == 0 && first <= task.rows_max)
        weft_fault(abort, WEFT_GPU_ROWS, (uint32_t)task.me * task.experts_each + expert);
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
        for (size_t slot = begin; slot < end; slot += EXPERTS_FLIGHT) {
            uint32_t found[EXPERTS_FLIGHT];
            WEFT_UNROLL
            for (int k = 0; k < EXPERTS_FLIGHT; k++) {
                found[k] = slot + k < end ? expert_at(task, place) : UINT32_MAX;
                step(task, &place);
            }
            WEFT_UNROLL
            for (int k = 0; k < EXPERTS_FLIGHT; k++) {
                before += found[k] < expert;
                equal += found[k] == expert;
            }
        }
    }
    sum_before(sums, before, &first);
    uint32_t row = first + sum_before(sums, equal, &count);
    if (equal > 0) {
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

extern "C" __global__ void __launch_bounds__(WEFT_EXPERTS_THREADS, 1)
    weftk_experts_place(struct weft_gpu_abort abort, struct weft_experts_task task) {
    weft_dependency_wait();
    WEFT_SHARED(uint32_t, sums, WEFT_EXPERTS_THREADS);
    for (uint32_t expert = weft_block_index(); expert < task.experts_each;
         expert += weft_block_count())
        place_expert(abort, task, expert, sums);
}

/* --- Take ------------------------------------------------------------------------------------- */

/* Copies a part of a token to its rows here. A token's number counts those of all members. Slots
 * that have no place are those of a job that ends. */
WEFT_DEVICE void take_part(const struct weft_experts_task &task, const struct row_part &part,
                           char **room) {
    struct address_list to = list_in(room);
    int member = (int)(part.row / task.tokens_max);
    uint32_t token = (uint32_t)(part.row % task.tokens_max), slot = weft_lane(), row = UINT32_MAX;
    struct slot_place place = {member, token * task.top_k + slot, 0};
    enter_list(task, &place);
    if (slot < task.top_k && expert_at(task, place) != UINT32_MAX)
        row = (uint32_t)weft_ld_weak(&task.row_of[part.row * task.top_k + slot]);
    if (row >= task.rows_max)
        row = UINT32_MAX;
    add_in_order(&to, task.data + row * task.row_bytes + part.begin, row, task.top_k);
    if (to.count > 0)
        spread(to, row_in(task, task.me, member, token) + part.begin, part.bytes);
}

extern "C" __global__ void __launch_bounds__(WEFT_EXPERTS_THREADS, 1)
    weftk_experts_take(struct weft_gpu_abort, struct weft_experts_task task) {
    weft_dependency_wait();
    WEFT_SHARED(char *, room, EXPERTS_LIST);
    size_t pieces = (size_t)task.n * task.tokens_max * task.parts;
    for (size_t piece = warp_index(); piece < pieces; piece += warp_count())
        take_part(task, part_of(task, piece), room);
}
