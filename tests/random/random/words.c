/* SPDX-License-Identifier: BSD-3-Clause */
#include "words.h"
#include <string.h>

enum { FLAGS_AT = 512, GROUP_BYTES = GROUP_FLAGS * 8 };

struct crowd crowds[PES_MAX][CROWDS];
struct flag_group groups[PES_MAX][GROUPS];

uint32_t flag_offset(int pe, int group, int flag) {
    uint32_t region = group < GROUPS / 2 ? 0 : block_offset(0);
    return region + FLAGS_AT + (uint32_t)(group % (GROUPS / 2)) * GROUP_BYTES +
           (uint32_t)flag * wait_routines[groups[pe][group].row].bytes;
}

uint64_t word_get(int pe, uint32_t offset, uint32_t bytes) {
    uint64_t word = 0;
    memcpy(&word, model[pe] + offset, bytes);
    return word;
}

void word_set(int pe, uint32_t offset, uint32_t bytes, uint64_t value) {
    memcpy(model[pe] + offset, &value, bytes);
}

uint64_t crowd_bits(int pe) {
    uint64_t bits = 0;
    for (int bit = pe; bit < 64; bit += npes)
        bits |= UINT64_C(1) << bit;
    return bits;
}

enum amo_operation crowd_operation(const struct op *op, int pe) {
    static const enum amo_operation operations[] = {
        [CROWD_ADD] = ADD,   [CROWD_TICKET] = INC,  [CROWD_CAS] = INC,   [CROWD_SWAP] = SWAP,
        [CROWD_SET] = FETCH, [CROWD_FETCH] = FETCH, [CROWD_SIGNAL] = ADD};
    return op->verb == CROWD_BITS ? (enum amo_operation)(AND + (pe + op->slot) % 3)
                                  : operations[op->verb];
}

uint64_t crowd_operand(const struct op *op, int pe, uint32_t repeat) {
    struct random random = {op->value + (uint64_t)pe * 0x10000 + repeat};
    uint64_t value = random_next(&random);
    if (op->verb != CROWD_BITS)
        return value;
    value &= crowd_bits(pe);
    return crowd_operation(op, pe) == AND ? ~value : value;
}

bool crowd_has_candidate(const struct crowd *crowd, uint64_t value) {
    for (int i = 0; i < crowd->ncandidates; i++)
        if (crowd->candidates[i] == value)
            return true;
    return false;
}

static void crowd_begin(int pe, int i) {
    struct crowd *crowd = &crowds[pe][i];
    crowd->kind = i == CROWDS - 1 ? LOCKED : (enum crowd_kind)below(CROWD_KINDS);
    do
        crowd->row = (uint8_t)below((uint32_t)AMO_ROWS);
    while (crowd->kind < LOCKED && !amo_routine(crowd->row, crowd->kind == BITS ? AND : ADD));
    memset(crowd->ctxs, 0, sizeof crowd->ctxs);
    crowd->candidates[0] = word_get(pe, crowd_offset(i), amo_routines[crowd->row].bytes);
    crowd->ncandidates = 1;
}

/* The first groups of each region are signals. All flags of a group have the same first value. */
static void group_begin(int pe, int group) {
    bool signals = group % (GROUPS / 2) == 0;
    groups[pe][group] = (struct flag_group){
        .row = (uint8_t)(signals ? WAIT_UINT64 : (int)below((uint32_t)WAIT_ROWS))};
    uint64_t first = random_next(&dice);
    for (int flag = 0; flag < GROUP_FLAGS; flag++)
        word_set(pe, flag_offset(pe, group, flag), wait_routines[groups[pe][group].row].bytes,
                 first);
}

void words_begin(void) {
    for (int pe = 0; pe < npes; pe++) {
        for (int crowd = 0; crowd < CROWDS; crowd++)
            crowd_begin(pe, crowd);
        for (int group = 0; group < GROUPS; group++)
            group_begin(pe, group);
    }
}

static bool compares(const struct wait_routines *type, uint64_t word, int cmp, uint64_t value) {
    unsigned unused = 64 - type->bytes * 8;
    uint64_t sign = type->is_signed ? UINT64_C(1) << 63 : 0;
    uint64_t a = (word << unused) ^ sign, b = (value << unused) ^ sign;
    switch (cmp) {
    case SHMEM_CMP_EQ:
        return a == b;
    case SHMEM_CMP_NE:
        return a != b;
    case SHMEM_CMP_GT:
        return a > b;
    case SHMEM_CMP_GE:
        return a >= b;
    case SHMEM_CMP_LT:
        return a < b;
    default:
        return a <= b;
    }
}

/* The previous and present values of a group's flags. */
struct group_words {
    const struct wait_routines *type;
    uint64_t before[GROUP_FLAGS], after[GROUP_FLAGS];
    uint8_t included;
    bool raised;
};

static struct group_words group_words(const struct op *op) {
    struct group_words words = {
        .type = &wait_routines[op->row], .included = op->included, .raised = op->form};
    for (int i = 0; i < GROUP_FLAGS; i++) {
        uint32_t offset = flag_offset(op->actor, op->team, i);
        words.after[i] = word_get(op->actor, offset, words.type->bytes);
        words.before[i] = groups[op->actor][op->team].flags[i].before;
    }
    return words;
}

/* Sets up comparisons with `value` or, for a vector, with each flag's own value. */
static void plan_values(struct wait_plan *plan, const struct group_words *words, int pivot) {
    bool with_before =
        plan->cmp == SHMEM_CMP_NE || plan->cmp == SHMEM_CMP_GT || plan->cmp == SHMEM_CMP_LT;
    const uint64_t *values = with_before ? words->before : words->after;
    for (int i = 0; i < GROUP_FLAGS; i++) {
        uint64_t value = values[plan->vector ? i : pivot];
        memcpy(plan->values + (uint32_t)i * words->type->bytes, &value, words->type->bytes);
        plan->met[i] = compares(words->type, words->after[i], plan->cmp, value);
    }
}

/* Returns whether the wait ends when all included flags have been raised, no sooner and no
 * later. */
static bool plan_fits(const struct wait_plan *plan, const struct group_words *words) {
    for (int i = 0; i < GROUP_FLAGS; i++) {
        uint64_t value = 0;
        memcpy(&value, plan->values + (uint32_t)i * words->type->bytes, words->type->bytes);
        if (words->included >> i & 1 &&
            (!plan->met[i] ||
             (words->raised && compares(words->type, words->before[i], plan->cmp, value))))
            return false;
    }
    return true;
}

struct wait_plan wait_plan(const struct op *op) {
    struct group_words words = group_words(op);
    struct random random = {op->value};
    struct wait_plan plan = {0};
    for (int i = 0; i < GROUP_FLAGS; i++)
        plan.status[i] = !(op->included >> i & 1);
    for (int attempt = 0; attempt < 12; attempt++) {
        plan.cmp = SHMEM_CMP_EQ + (int)random_below(&random, 6);
        plan.vector = op->verb != WAIT_ONE && op->verb != WAIT_SIGNAL && random_below(&random, 2);
        int pivot = plan.vector || op->verb >= WAIT_ALL ? (int)random_below(&random, GROUP_FLAGS)
                                                        : __builtin_ctz(op->included);
        plan_values(&plan, &words, pivot);
        if (plan_fits(&plan, &words) || (op->class == TEST && !words.raised))
            return plan;
    }
    bool single = op->verb == WAIT_ONE || op->verb == WAIT_SIGNAL;
    plan.cmp = words.raised ? SHMEM_CMP_NE : SHMEM_CMP_EQ;
    plan.vector = !single;
    plan_values(&plan, &words, single ? __builtin_ctz(op->included) : 0);
    return plan;
}
