/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits and tests. Waits for raised flags repeat until the last flag has been reported; the result
 * for flags that are down is known. */
#include <string.h>
#include "execute.h"

struct waiting {
    const struct op *op;
    const struct wait_routines *type;
    struct wait_plan plan;
    struct wait_set set;
    size_t indices[GROUP_FLAGS];
    uint8_t left; /* not reported yet */
};

static bool tests(const struct waiting *waiting) {
    return waiting->op->class == TEST;
}

/* Returns how many of the included flags meet the condition in the model. */
static int count_met(const struct waiting *waiting) {
    int met = 0;
    for (int i = 0; i < GROUP_FLAGS; i++)
        met += waiting->op->included >> i & 1 && waiting->plan.met[i];
    return met;
}

static void one(struct waiting *waiting) {
    int flag = __builtin_ctz(waiting->op->included);
    uint32_t bytes = waiting->type->bytes;
    unsigned char *ivar = (unsigned char *)waiting->set.ivars + (uint32_t)flag * bytes;
    const void *value = waiting->plan.values + (uint32_t)flag * bytes;
    int cmp = waiting->plan.cmp, met;
    uint64_t bound = 0, word;
    memcpy(&bound, value, bytes);
    if (waiting->op->verb == WAIT_SIGNAL && !tests(waiting)) {
        uint64_t got = shmem_signal_wait_until((uint64_t *)(void *)ivar, cmp, bound);
        word = word_get(me, flag_offset(me, waiting->op->team, flag), 8);
        if (got != word)
            diverge(waiting->op, "shmem_signal_wait_until returned %#llx, not %#llx",
                    (unsigned long long)got, (unsigned long long)word);
    } else if (!tests(waiting))
        waiting->type->wait_until(ivar, cmp, value);
    else {
        while ((met = waiting->type->test(ivar, cmp, value)) == 0 && waiting->op->form)
            ;
        if (met != waiting->plan.met[flag])
            diverge(waiting->op, "test is %d", met);
    }
}

static void all(struct waiting *waiting) {
    bool want = count_met(waiting) == __builtin_popcount(waiting->op->included);
    bool met = true;
    if (!tests(waiting))
        waiting->type->wait_until_all(&waiting->set);
    else
        while (!(met = waiting->type->test_all(&waiting->set)) && waiting->op->form)
            ;
    if (met != want)
        diverge(waiting->op, "test_all is %d", met);
}

/* Checks a reported index: it was asked for and, if flags are down, meets the condition. */
static void report(struct waiting *waiting, size_t index) {
    if (index >= GROUP_FLAGS || !(waiting->left >> index & 1) || !waiting->plan.met[index])
        diverge(waiting->op, "index %zu was reported, of %#x", index, waiting->left);
    waiting->left &= (uint8_t) ~(1 << index);
    waiting->plan.status[index] = 1;
    waiting->set.status = waiting->plan.status;
}

static size_t report_next(struct waiting *waiting) {
    bool any = waiting->op->verb == WAIT_ANY;
    const struct wait_routines *type = waiting->type;
    if (any) {
        size_t index = (tests(waiting) ? type->test_any : type->wait_until_any)(&waiting->set);
        if (index != SIZE_MAX)
            report(waiting, index);
        return index != SIZE_MAX;
    }
    size_t found = (tests(waiting) ? type->test_some : type->wait_until_some)(&waiting->set);
    for (size_t i = 0; i < found && i < GROUP_FLAGS; i++)
        report(waiting, waiting->indices[i]);
    return found;
}

static void until_all_reported(struct waiting *waiting) {
    int want = count_met(waiting);
    for (int found = 0; found < want || (want == 0 && !found);) {
        size_t next = report_next(waiting);
        found += (int)next;
        if (next == 0 && !waiting->op->form && found < want)
            diverge(waiting->op, "%d of %d were reported", found, want);
        if (next == 0 && want == 0)
            return;
    }
}

/* Compares from the end, which was put last. */
static void check_payload(const struct op *op, struct extent payload) {
    uint32_t begin = payload.offset, end = payload.offset + payload.bytes;
    if (memory_differs(end - 1, end) < SPACE)
        diverge_at(op, end - 1);
    if (memory_differs(begin, end) < SPACE)
        diverge_at(op, memory_differs(begin, end));
}

void execute_await(const struct op *op) {
    uint32_t offset = flag_offset(me, op->team, op->slot);
    uint64_t want = word_get(me, offset, 8), got = want;
    if (op->number % 2)
        shmem_uint64_wait_until(memory_real(offset), SHMEM_CMP_EQ, want);
    else
        got = shmem_signal_wait_until(memory_real(offset), SHMEM_CMP_EQ, want);
    if (got != want)
        diverge(op, "shmem_signal_wait_until returned %#llx, not %#llx", (unsigned long long)got,
                (unsigned long long)want);
    if (op_remote_span(op))
        check_payload(op, extent_of(me, op->remote, op_remote_span(op)));
}

void execute_wait(const struct op *op) {
    struct waiting waiting = {
        .op = op, .type = &wait_routines[op->row], .plan = wait_plan(op), .left = op->included};
    bool everything = op->included == 0xFF && op->value & 1;
    waiting.set = (struct wait_set){.ivars = memory_real(flag_offset(me, op->team, 0)),
                                    .nelems = GROUP_FLAGS,
                                    .indices = waiting.indices,
                                    .status = everything ? NULL : waiting.plan.status,
                                    .cmp = waiting.plan.cmp,
                                    .values = waiting.plan.values,
                                    .vector = waiting.plan.vector};
    if (op->verb == WAIT_ONE || op->verb == WAIT_SIGNAL)
        one(&waiting);
    else if (op->verb == WAIT_ALL)
        all(&waiting);
    else
        until_all_reported(&waiting);
    for (int flag = 0; flag < GROUP_FLAGS; flag++)
        if (op->payloads >> flag & 1)
            check_payload(op, groups[me][op->team].flags[flag].from.payload);
    uint32_t begin = flag_offset(me, op->team, 0), bytes = waiting.type->bytes;
    for (uint32_t i = 0; i < GROUP_FLAGS; i++)
        if (op->included >> i & 1 &&
            memory_differs(begin + i * bytes, begin + (i + 1) * bytes) < SPACE)
            diverge_at(op, memory_differs(begin + i * bytes, begin + (i + 1) * bytes));
}
