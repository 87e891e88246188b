/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of puts, gets and copies, by a thread, a warp or a block, with barriers or signals. */
#ifndef TESTS_GPU_DEVICE_STRESS_PUTS_CUH
#define TESTS_GPU_DEVICE_STRESS_PUTS_CUH

#include "gpu/device_stress/round.cuh"

/* --- Puts, gets and meetings ---------------------------------------------------------------------
 */

STRESS_PART void put(const struct stress_round *r, int m) {
    char *dest = dest_of(r, r->t->me), *source = source_of(r);
    if (r->scope == THREAD)
        weft_put_t(r->t, dest, source, r->bytes, m);
    else if (r->scope == WARP)
        weft_put_w(r->t, dest, source, r->bytes, m);
    else
        weft_put_b(r->t, dest, source, r->bytes, m);
}

STRESS_PART void get(const struct stress_round *r, int m) {
    char *dest = dest_of(r, m), *source = source_of(r);
    if (r->scope == THREAD)
        weft_get_t(r->t, dest, source, r->bytes, m);
    else if (r->scope == WARP)
        weft_get_w(r->t, dest, source, r->bytes, m);
    else
        weft_get_b(r->t, dest, source, r->bytes, m);
}

/* Meets with a barrier in one of its forms. */
STRESS_PART int meet(const struct stress_round *r, uint32_t form) {
    uint32_t channel = weft_block_index();
    if (form % 4 == 0) {
        weft_arrive_b(r->t, channel);
        return weft_depart_b(r->t, channel);
    }
    if (form % 4 == 1 && !weft_sync_b(r->t, channel))
        return 0;
    return weft_barrier_b(r->t, channel);
}

STRESS_PART int run_put(const struct stress_round *r) {
    for (int d = 0; d < r->t->n; d++)
        put(r, member_at(r, d));
    int met = r->kind == STRESS_GRID ? weft_barrier_grid(r->t) : meet(r, r->variant);
    check_all(r);
    return met;
}

/* No member fills its source again before all have read it. */
STRESS_PART int run_get(const struct stress_round *r) {
    for (int d = 0; d < r->t->n; d++)
        get(r, member_at(r, d));
    weft_block_sync();
    check_all(r);
    return meet(r, r->variant);
}

/* --- Signals -------------------------------------------------------------------------------------
 */

/* A turn of a loop of the kernel's own. */
WEFT_DEVICE bool is_over(const struct stress_round *r) {
    weft_spin_yield();
    return weft_job_over(r->t);
}

/* By a thread alone, in one of several ways. */
WEFT_DEVICE int wait_thread(const struct stress_round *r, const uint64_t *sig, uint64_t value) {
    int met = -1;
    switch (r->variant / 8 % 8) {
    case 0:
        return weft_wait_until(r->t, sig, WEFT_CMP_NE, 0);
    case 1:
        return weft_wait_until(r->t, sig, WEFT_CMP_GT, value - 1);
    case 2:
        return weft_wait_eq(r->t, sig, value);
    case 3:
        while (met < 0)
            met = weft_wait_until_ns(r->t, sig, WEFT_CMP_GE, value, 3000);
        return met;
    case 4:
        while (!weft_test_until(r->t, sig, WEFT_CMP_EQ, value))
            if (is_over(r))
                return 0;
        return 1;
    case 5:
        while (weft_signal_fetch(r->t, sig) != value)
            if (is_over(r))
                return 0;
        return 1;
    case 6:
        met = weft_wait_until_relaxed(r->t, sig, WEFT_CMP_EQ, value);
        weft_fence();
        return met;
    default:
        return weft_wait_ge(r->t, sig, value);
    }
}

WEFT_DEVICE int wait_group(const struct stress_round *r, const uint64_t *sig, uint64_t value) {
    bool is_ge = r->variant / 8 % 2 == 0;
    if (r->scope == THREAD)
        return wait_thread(r, sig, value);
    if (r->scope == WARP)
        return is_ge ? weft_wait_ge_w(r->t, sig, value)
                     : weft_wait_until_w(r->t, sig, WEFT_CMP_EQ, value);
    return is_ge ? weft_wait_ge_b(r->t, sig, value)
                 : weft_wait_until_b(r->t, sig, WEFT_CMP_EQ, value);
}

/* Waits for each member's word in turn, and checks its data. */
STRESS_PART int take_signalled(const struct stress_round *r) {
    for (int d = 0; d < r->t->n; d++) {
        int from = member_at(r, d);
        uint64_t *sig = signal_of(r, from), value = value_of(r, from);
        if (!wait_group(r, sig, value))
            return 0;
        expect(r, from, -1, weft_ld_relaxed_sys_u64(sig), value);
        check_from(r, from);
    }
    return 1;
}

/* Puts the first whole word with the signal, and everything else before it, by a thread. Returns
 * false if there is no whole word. */
STRESS_PART bool put_word_signal(const struct stress_round *r, uint64_t *sig, uint64_t value,
                                 int op, int m) {
    char *dest = dest_of(r, r->t->me), *source = source_of(r);
    size_t head = -(uintptr_t)dest & 7, tail = head + 8;
    if (tail > r->bytes)
        return false;
    uint64_t word = 0;
    for (size_t k = 0; k < 8; k++)
        word |= (uint64_t)(unsigned char)weft_ld_weak(&source[head + k]) << k * 8;
    weft_put_t(r->t, dest, source, head, m);
    weft_put_t(r->t, dest + tail, source + tail, r->bytes - tail, m);
    weft_fence();
    weft_p64_signal(r->t, (uint64_t *)(dest + head), word, sig, value, op, m);
    return true;
}

STRESS_PART void put_signal(const struct stress_round *r, int m) {
    int op = r->variant % 2 ? WEFT_SIGNAL_SET : WEFT_SIGNAL_ADD;
    char *dest = dest_of(r, r->t->me), *source = source_of(r);
    uint64_t *sig = signal_of(r, r->t->me), value = value_of(r, r->t->me);
    if (r->scope == THREAD && r->variant / 2 % 2 && put_word_signal(r, sig, value, op, m))
        return;
    if (r->scope == THREAD)
        weft_put_signal_t(r->t, dest, source, r->bytes, sig, value, op, m);
    else if (r->scope == WARP)
        weft_put_signal_w(r->t, dest, source, r->bytes, sig, value, op, m);
    else
        weft_put_signal_b(r->t, dest, source, r->bytes, sig, value, op, m);
}

STRESS_PART int run_signal(const struct stress_round *r) {
    for (int d = 0; d < r->t->n; d++)
        put_signal(r, member_at(r, d));
    return take_signalled(r);
}

STRESS_PART void copy(const struct stress_round *r, int m) {
    void *dest = weft_at(r->t, dest_of(r, r->t->me), m);
    if (r->scope == THREAD)
        weft_copy_t(dest, source_of(r), r->bytes);
    else if (r->scope == WARP)
        weft_copy_w(dest, source_of(r), r->bytes);
    else
        weft_copy_b(dest, source_of(r), r->bytes);
}

/* One thread announces the stores of the whole group. */
WEFT_DEVICE void gather_group(const struct stress_round *r) {
    if (r->scope == WARP)
        weft_warp_sync();
    else if (r->scope == BLOCK && r->variant % 2)
        weft_fence_b();
    else if (r->scope == BLOCK)
        weft_block_sync();
}

STRESS_PART int run_copy(const struct stress_round *r) {
    uint64_t *sig = signal_of(r, r->t->me), value = value_of(r, r->t->me);
    for (int d = 0; d < r->t->n; d++)
        copy(r, member_at(r, d));
    gather_group(r);
    for (int d = 0; d < r->t->n && r->lane == 0; d++) {
        int m = member_at(r, d);
        switch (r->variant / 2 % 4) {
        case 0:
            weft_signal(r->t, sig, value, m);
            break;
        case 1:
            weft_signal_add(r->t, sig, value, m);
            break;
        case 2:
            weft_fence();
            weft_signal_relaxed(r->t, sig, value, m);
            break;
        default:
            weft_quiet();
            weft_p64(r->t, sig, value, m);
        }
    }
    return take_signalled(r);
}

#endif
