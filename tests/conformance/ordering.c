/* SPDX-License-Identifier: BSD-3-Clause */
/* Ordering and completion (pitfalls 9 to 11, 13 to 16): operations that a fence orders before a
 * flag, operations that a quiet completes and for which PEs, the contexts that both concern, and
 * the data that a signal announces. */
#include <shmem.h>
#include <string.h>
#include "conformance/ring.h"
#include "tap.h"
#include "api/model.h"

enum { TURNS = 200, NELEMS = 300 };

/* All that a fence orders: each kind of operation on the next PE, a fence, a flag. */
static struct {
    long element, put[NELEMS], put_nbi[NELEMS], strided[NELEMS], atomic, stored;
    uint64_t announced;
} box;

static void fill_box(shmem_ctx_t ctx, long turn) {
    static long values[NELEMS], strided[NELEMS / 3]; /* in use until the caller's quiet */
    for (int i = 0; i < NELEMS; i++)
        values[i] = turn * NELEMS + i;
    for (int i = 0; i < NELEMS / 3; i++)
        strided[i] = turn * NELEMS + 3 * i;
    shmem_ctx_long_p(ctx, &box.element, turn, next);
    shmem_ctx_long_put(ctx, box.put, values, NELEMS, next);
    shmem_ctx_long_iput(ctx, box.strided, strided, 3, 1, NELEMS / 3, next);
    shmem_ctx_long_atomic_add(ctx, &box.atomic, 1, next);
    shmem_ctx_long_put_signal_nbi(ctx, box.put_nbi, values, NELEMS, &box.announced, 1,
                                  SHMEM_SIGNAL_ADD, next);
    long *stored = shmem_ptr(&box.stored, next);
    if (stored)
        *stored = turn;
    else
        shmem_ctx_long_p(ctx, &box.stored, turn, next);
    shmem_ctx_fence(ctx);
}

static void check_box(long turn, const char *how) {
    long wrong = 0;
    for (int i = 0; i < NELEMS; i++)
        wrong += (box.put[i] != turn * NELEMS + i) + (box.put_nbi[i] != turn * NELEMS + i);
    for (int i = 0; i < NELEMS; i += 3)
        wrong += box.strided[i] != turn * NELEMS + i;
    EXPECT(wrong == 0, "%s, turn %ld: %ld wrong elements", how, turn, wrong);
    EXPECT(box.element == turn && box.atomic == turn && box.stored == turn &&
               box.announced == (uint64_t)turn,
           "%s, turn %ld: %ld %ld %ld %llu", how, turn, box.element, box.atomic, box.stored,
           (unsigned long long)box.announced);
}

static void fences(const char *how, shmem_ctx_t ctx) {
    static long flag;
    static uint64_t sig, taken;
    memset(&box, 0, sizeof box);
    flag = 0;
    sig = taken = 0;
    shmem_barrier_all();
    for (long turn = 1; turn <= TURNS; turn++) {
        fill_box(ctx, turn);
        switch (turn % 4) {
        case 0:
            shmem_ctx_long_p(ctx, &flag, turn, next);
            break;
        case 1:
            shmem_ctx_long_put_nbi(ctx, &flag, &turn, 1, next);
            break;
        case 2:
            shmem_ctx_long_atomic_set(ctx, &flag, turn, next);
            break;
        default:
            shmem_ctx_signal_set(ctx, &sig, (uint64_t)turn, next);
        }
        shmem_ctx_quiet(ctx);
        if (turn % 4 == 3)
            shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, (uint64_t)turn);
        else
            shmem_long_wait_until(&flag, SHMEM_CMP_EQ, turn);
        check_box(turn, how);
        shmem_signal_set(&taken, (uint64_t)turn, before);
        shmem_signal_wait_until(&taken, SHMEM_CMP_GE, (uint64_t)turn);
    }
    shmem_barrier_all();
}

/* Stores to this PE's symmetric memory, then a quiet: a PE that is notified may get them. */
static void own_stores(void) {
    static long mine[NELEMS];
    static long told, done;
    for (long turn = 1; turn <= TURNS; turn++) {
        for (int i = 0; i < NELEMS; i++)
            mine[i] = turn + i + me;
        turn % 2 ? shmem_quiet() : shmem_fence();
        shmem_long_atomic_set(&told, turn, next);
        shmem_long_wait_until(&told, SHMEM_CMP_EQ, turn);
        long theirs[NELEMS];
        shmem_long_get(theirs, mine, NELEMS, before);
        for (int i = 0; i < NELEMS; i++)
            EXPECT(theirs[i] == turn + i + before, "turn %ld, element %d: %ld", turn, i, theirs[i]);
        shmem_long_atomic_set(&done, turn, before);
        shmem_long_wait_until(&done, SHMEM_CMP_EQ, turn);
    }
    shmem_barrier_all();
}

/* A put, then a quiet, then a notification of a third PE, which reads from the second: visible to
 * all. */
static void visible_to_all(void) {
    static long data[NELEMS];
    static long told, done;
    int third = (me + 2) % npes, first = (me + npes - 2) % npes;
    for (long turn = 1; turn <= TURNS; turn++) {
        long values[NELEMS], theirs[NELEMS];
        for (int i = 0; i < NELEMS; i++)
            values[i] = turn * 1000 + i + me;
        shmem_long_put_nbi(data, values, NELEMS, next);
        shmem_quiet();
        shmem_long_atomic_set(&told, turn, third);
        shmem_long_wait_until(&told, SHMEM_CMP_EQ, turn);
        shmem_long_get(theirs, data, NELEMS,
                       (first + 1) % npes); /* PE `first` has written to the next one */
        for (int i = 0; i < NELEMS; i++)
            EXPECT(theirs[i] == turn * 1000 + i + first, "turn %ld, element %d: %ld", turn, i,
                   theirs[i]);
        shmem_long_atomic_set(&done, turn, first);
        shmem_long_wait_until(&done, SHMEM_CMP_EQ, turn);
    }
    shmem_barrier_all();
}

/* The source of a blocking put may change immediately; results of nbi gets are there after a
 * quiet. */
static void reuse(void) {
    static int data[NELEMS];
    static long word;
    int values[NELEMS], back[NELEMS];
    for (int turn = 1; turn <= TURNS; turn++) {
        for (int i = 0; i < NELEMS; i++)
            values[i] = turn + i;
        shmem_int_put(data, values, NELEMS, next);
        memset(values, 0, sizeof values);
        shmem_fence(); /* otherwise the two puts could arrive in the other order */
        shmem_int_put(data, values, 1, next);
        memset(values, 0xFF, sizeof values);
        shmem_quiet();
        shmem_int_get_nbi(back, data, NELEMS, next);
        long before_swap = -1, fetched = -1;
        shmem_long_atomic_swap_nbi(&before_swap, &word, turn, next);
        shmem_quiet();
        shmem_long_atomic_fetch_nbi(&fetched, &word, next);
        shmem_quiet();
        EXPECT(back[0] == 0 && back[1] == turn + 1 && back[NELEMS - 1] == turn + NELEMS - 1,
               "turn %d: %d %d %d", turn, back[0], back[1], back[NELEMS - 1]);
        EXPECT(before_swap == turn - 1 && fetched == turn, "%ld %ld", before_swap, fetched);
    }
    shmem_barrier_all();
    EXPECT(data[0] == 0 && data[2] == TURNS + 2, "%d %d", data[0], data[2]);
    shmem_barrier_all();
}

/* Quiet of some PEs, some twice, or no PE; in a team's context, by its members' numbers. */
static void quiet_of_some(void) {
    static long data[16], told;
    shmem_team_t team;
    shmem_ctx_t ctx;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &team);
    if (shmem_team_create_ctx(team, 0, &ctx) != 0)
        ctx = SHMEM_CTX_INVALID;
    shmem_pe_quiet(NULL, 0);
    shmem_pe_quiet((const int *)(uintptr_t)4, 0);
    shmem_ctx_pe_quiet(ctx, NULL, 0);
    shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, &me, 1);
    for (long turn = 1; turn <= 50; turn++) {
        long value = turn * 10 + me, fetched = -1;
        int targets[3] = {next, me, next};
        if (turn % 2 && ctx != SHMEM_CTX_INVALID) {
            targets[0] = targets[2] = npes - 1 - next;
            targets[1] = npes - 1 - me;
            shmem_ctx_long_put_nbi(ctx, &data[turn % 16], &value, 1, npes - 1 - next);
            shmem_ctx_long_get_nbi(ctx, &fetched, &data[turn % 16], 1, npes - 1 - next);
            shmem_ctx_pe_quiet(ctx, targets, 3);
        } else {
            shmem_long_put_nbi(&data[turn % 16], &value, 1, next);
            shmem_pe_quiet(targets, 3);
            shmem_long_atomic_fetch_nbi(&fetched, &data[turn % 16], next);
            shmem_pe_quiet(targets, 1);
            EXPECT(fetched == value, "an atomic fetch that pe_quiet completed: %ld", fetched);
        }
        shmem_long_atomic_set(&told, turn, next);
        shmem_long_wait_until(&told, SHMEM_CMP_EQ, turn);
        EXPECT(data[turn % 16] == turn * 10 + before, "%ld", data[turn % 16]);
        shmem_barrier_all();
    }
    shmem_ctx_destroy(ctx);
    shmem_team_destroy(team);
}

/* A context that is destroyed with operations pending completes them. */
static void destroy_completes(void) {
    static long data[NELEMS], told;
    static const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE};
    for (long turn = 1; turn <= 100; turn++) {
        shmem_ctx_t ctx;
        long values[NELEMS], back[NELEMS];
        if (shmem_ctx_create(options[turn % 4], &ctx) != 0)
            continue;
        for (int i = 0; i < NELEMS; i++)
            values[i] = turn * 7 + i + me;
        shmem_ctx_long_put_nbi(ctx, data, values, NELEMS, next);
        shmem_ctx_fence(ctx);
        shmem_ctx_long_get_nbi(ctx, back, data, 1, me);
        shmem_ctx_destroy(ctx);
        shmem_long_atomic_set(&told, turn, next);
        shmem_long_wait_until(&told, SHMEM_CMP_EQ, turn);
        for (int i = 0; i < NELEMS; i++)
            EXPECT(data[i] == turn * 7 + i + before, "turn %ld, element %d: %ld", turn, i, data[i]);
        shmem_barrier_all();
    }
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
}

/* barrier_all completes the pending operations of the default context; a sync only shows stores. */
static void barriers(void) {
    static long put[NELEMS], stored;
    for (long turn = 1; turn <= TURNS; turn++) {
        long values[NELEMS], got = -1;
        for (int i = 0; i < NELEMS; i++)
            values[i] = turn + i * me;
        shmem_long_put_nbi(put, values, NELEMS, next);
        shmem_long_get_nbi(&got, &stored, 1, me);
        shmem_barrier_all();
        for (int i = 0; i < NELEMS; i++)
            EXPECT(put[i] == turn + i * before, "element %d: %ld", i, put[i]);
        EXPECT(got == (turn == 1 ? 0 : turn - 1), "%ld in turn %ld", got, turn);
        long *there = shmem_ptr(&stored, next);
        if (there)
            *there = turn;
        else
            shmem_long_p(&stored, turn, next), shmem_quiet();
        turn % 2 ? shmem_sync_all() : (void)shmem_team_sync(SHMEM_TEAM_WORLD);
        EXPECT(stored == turn, "%ld in turn %ld", stored, turn);
    }
    shmem_barrier_all();
}

/* Many signals under way at once: each announces its own payload, in any order. */
static void signals(void) {
    enum { LANES = 16 };
    static long payload[LANES][64];
    static uint64_t words[LANES], taken;
    long values[LANES][64];
    for (uint64_t turn = 1; turn <= TURNS; turn++) {
        for (int lane = 0; lane < LANES; lane++) {
            for (int i = 0; i < 64; i++)
                values[lane][i] = (long)turn * 10000 + lane * 100 + i + me;
            shmem_long_put_signal_nbi(payload[lane], values[lane], 64, &words[lane],
                                      lane % 2 ? 1 : turn,
                                      lane % 2 ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET, next);
        }
        for (int lane = LANES - 1; lane >= 0; lane--) {
            uint64_t got = shmem_signal_wait_until(&words[lane], SHMEM_CMP_GE, turn);
            EXPECT(got == turn && shmem_signal_fetch(&words[lane]) == turn, "lane %d: %llu", lane,
                   (unsigned long long)got);
            for (int i = 0; i < 64; i++)
                EXPECT(payload[lane][i] == (long)turn * 10000 + lane * 100 + i + before,
                       "lane %d, element %d: %ld", lane, i, payload[lane][i]);
        }
        shmem_quiet();
        shmem_signal_add(&taken, 1, before);
        shmem_signal_wait_until(&taken, SHMEM_CMP_GE, turn);
    }
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    ring_start();
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    tap_case("9, 10: a fence before a flag");
    fences("the default context", SHMEM_CTX_DEFAULT);
    shmem_ctx_create(0, &ctx);
    fences("a context", ctx);
    shmem_ctx_destroy(ctx);
    tap_case("10: the caller's own stores");
    own_stores();
    tap_case("9: a quiet makes puts visible to third PEs");
    visible_to_all();
    tap_case("13: when buffers may be used again");
    reuse();
    tap_case("14: the quiet of some PEs");
    quiet_of_some();
    tap_case("11, 15: the end of a context completes, an invalid one has nothing to complete");
    destroy_completes();
    tap_case("15: barriers and syncs");
    barriers();
    tap_case("16: a signal announces its own payload");
    signals();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
