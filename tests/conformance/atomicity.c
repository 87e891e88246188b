/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomicity (pitfalls 19 to 24): one word, many writers, by all routines that must be atomic with
 * each other. All types of each operation are in tests/api/amo.c. */
#include <shmem.h>
#include <limits.h>
#include <stdlib.h>
#include "tap.h"

enum { TIMES = 500 };

static int me, npes;

/* One word through the default context, and contexts of the world, of a team in reverse order,
 * of the neighbours and of TEAM_SHARED: these teams have a common ancestor, or share memory. */
static void domain_of_contexts(void) {
    static long counter;
    shmem_team_t reversed, solo;
    shmem_ctx_t ctx[4] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID, SHMEM_CTX_INVALID,
                          SHMEM_CTX_INVALID};
    shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &reversed);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &solo);
    EXPECT(shmem_ctx_create(SHMEM_CTX_NOSTORE, &ctx[1]) == 0, "no context");
    EXPECT(shmem_team_create_ctx(reversed, SHMEM_CTX_SERIALIZED, &ctx[2]) == 0, "no context");
    if (solo != SHMEM_TEAM_INVALID)
        EXPECT(shmem_team_create_ctx(solo, 0, &ctx[3]) == 0, "no context");
    shmem_barrier_all();
    long expected = 3L * TIMES * npes + TIMES;
    for (int i = 0; i < TIMES; i++) {
        shmem_ctx_long_atomic_inc(ctx[0], &counter, 0);
        shmem_ctx_long_atomic_add(ctx[1], &counter, 1, 0);
        shmem_ctx_long_atomic_fetch_inc(ctx[2], &counter, npes - 1);
        if (ctx[3] != SHMEM_CTX_INVALID)
            shmem_ctx_long_atomic_fetch_add(ctx[3], &counter, 1, 0);
    }
    if (me == 0) {
        shmem_long_wait_until(&counter, SHMEM_CMP_EQ, expected);
        EXPECT(shmem_long_atomic_fetch(&counter, 0) == expected, "%ld", counter);
    }
    for (int i = 1; i < 4; i++)
        shmem_ctx_destroy(ctx[i]);
    shmem_team_destroy(solo);
    shmem_team_destroy(reversed);
    shmem_barrier_all();
}

/* Reals are swapped: each value that was written is fetched once, or remains at the end. */
static void reals(void) {
    static double wide, in, out;
    static float narrow, narrow_sum;
    wide = narrow = 0;
    shmem_barrier_all();
    double taken = 0;
    float narrow_taken = 0;
    for (int i = 1; i <= TIMES; i++) {
        taken += shmem_double_atomic_swap(&wide, me * TIMES + i + 0.25, 0);
        narrow_taken += shmem_float_atomic_swap(&narrow, (float)(1 + me), npes - 1);
    }
    shmem_double_p(&out, taken, me);
    in = taken;
    shmem_float_p(&narrow_sum, narrow_taken, me);
    shmem_barrier_all();
    double all_in = 0, all_out = shmem_double_atomic_fetch(&wide, 0), fetched = -1;
    double narrow_out = shmem_float_atomic_fetch(&narrow, npes - 1);
    for (int pe = 0; pe < npes; pe++) {
        all_out += shmem_double_g(&out, pe);
        narrow_out += shmem_float_g(&narrow_sum, pe);
        for (int i = 1; i <= TIMES; i++)
            all_in += pe * TIMES + i + 0.25;
    }
    EXPECT(all_in == all_out, "%.17g went in, %.17g came out", all_in, all_out);
    EXPECT(narrow_out == TIMES * npes * (npes + 1) / 2, "%g", narrow_out);
    EXPECT(in == out, "%g %g", in, out);
    shmem_barrier_all();
    shmem_double_atomic_set(&wide, -0.5, me);
    shmem_double_atomic_fetch_nbi(&fetched, &wide, me);
    shmem_quiet();
    EXPECT(fetched == -0.5, "%g", fetched);
    shmem_barrier_all();
}

/* One 32-bit and one 64-bit word under the names of all their types at once. */
static void names_of_one_width(void) {
    static union {
        int by_int;
        int32_t by_int32;
        unsigned by_uint;
        uint32_t by_uint32;
    } narrow;
    static union {
        long by_long;
        long long by_longlong;
        int64_t by_int64;
        unsigned long by_ulong;
        unsigned long long by_ulonglong;
        uint64_t by_uint64;
        size_t by_size;
        ptrdiff_t by_ptrdiff;
    } wide;
    shmem_barrier_all();
    for (int i = 0; i < TIMES; i++) {
        shmem_int_atomic_add(&narrow.by_int, 1, 0);
        shmem_int32_atomic_inc(&narrow.by_int32, 0);
        shmem_uint_atomic_fetch_add(&narrow.by_uint, 1, 0);
        shmem_uint32_atomic_fetch_inc(&narrow.by_uint32, 0);
        shmem_atomic_add(&narrow.by_int32, 1, 0);
        shmem_long_atomic_inc(&wide.by_long, 0);
        shmem_longlong_atomic_add(&wide.by_longlong, 1, 0);
        shmem_int64_atomic_fetch_inc(&wide.by_int64, 0);
        shmem_ulong_atomic_fetch_add(&wide.by_ulong, 1, 0);
        shmem_ulonglong_atomic_inc(&wide.by_ulonglong, 0);
        shmem_uint64_atomic_add(&wide.by_uint64, 1, 0);
        shmem_size_atomic_fetch_inc(&wide.by_size, 0);
        shmem_ptrdiff_atomic_inc(&wide.by_ptrdiff, 0);
        shmem_atomic_inc(&wide.by_size, 0);
        shmem_signal_add(&wide.by_uint64, 1, 0);
    }
    shmem_barrier_all();
    EXPECT(me != 0 || narrow.by_int == 5 * TIMES * npes, "%d", narrow.by_int);
    EXPECT(me != 0 || wide.by_long == 10L * TIMES * npes, "%ld", wide.by_long);
}

/* Signals of all PEs on one word, by put_signal and by signal operations alone; then many PEs set
 * another word. */
static void signals(void) {
    static uint64_t sum, last;
    static long data[64][4];
    long payload[4] = {me, me + 1, me + 2, me + 3};
    shmem_barrier_all();
    for (int i = 0; i < TIMES; i++) {
        shmem_signal_add(&sum, 1, 0);
        shmem_long_put_signal(data[me], payload, 4, &sum, 2, SHMEM_SIGNAL_ADD, 0);
        shmem_putmem_signal_nbi(data[me], payload, sizeof payload, &sum, 3, SHMEM_SIGNAL_ADD, 0);
        shmem_signal_set(&last, (uint64_t)(me + 1) << 32, 0);
        shmem_long_put_signal(data[me], payload, 0, &last, (uint64_t)(me + 1) << 32,
                              SHMEM_SIGNAL_SET, 0);
    }
    if (me == 0) {
        uint64_t all = (uint64_t)(6 * TIMES * npes);
        uint64_t got = shmem_signal_wait_until(&sum, SHMEM_CMP_GE, all);
        EXPECT(got == all, "%llu", (unsigned long long)got);
        got = shmem_signal_fetch(&last);
        EXPECT((uint32_t)got == 0 && got >> 32 <= (uint64_t)npes, "%#llx", (unsigned long long)got);
        for (int pe = 0; pe < npes; pe++)
            EXPECT(data[pe][0] == pe && data[pe][3] == pe + 3, "PE %d's payload", pe);
    }
    shmem_barrier_all();
}

/* A static in a function, a member, an element of an array in the heap; each has neighbours. */
static long *in_function(void) {
    static long count[3];
    return count;
}

static void places(void) {
    static struct {
        char tag;
        unsigned before, count, after;
    } record = {'t', UINT_MAX, 0, UINT_MAX};
    long *heap = shmem_calloc(1000, sizeof *heap);
    for (int i = 0; i < TIMES; i++)
        for (int pe = 0; pe < npes; pe++) {
            shmem_long_atomic_inc(&in_function()[1], pe);
            shmem_uint_atomic_add(&record.count, UINT_MAX, pe);
            shmem_long_atomic_add(&heap[999], -3, pe);
        }
    shmem_barrier_all();
    EXPECT(in_function()[1] == TIMES * npes && in_function()[0] == 0 && in_function()[2] == 0,
           "%ld", in_function()[1]);
    EXPECT(record.count == (unsigned)-TIMES * (unsigned)npes, "%u", record.count);
    EXPECT(record.before == UINT_MAX && record.after == UINT_MAX && record.tag == 't',
           "the neighbours %u %u", record.before, record.after);
    EXPECT(heap[999] == -3L * TIMES * npes && heap[998] == 0, "%ld", heap[999]);
    shmem_free(heap);
}

/* The source of a fetch may be const; arithmetic wraps around; the bits of one PE are its own. */
static void corners(void) {
    static int smallest = INT_MIN;
    static uint64_t bits;
    static long word = 40;
    const long *source = &word;
    EXPECT(shmem_long_atomic_fetch(source, me) == 40 && shmem_atomic_fetch(source, me) == 40,
           "a const source");
    EXPECT(shmem_int_atomic_fetch_add(&smallest, -1, me) == INT_MIN && smallest == INT_MAX,
           "%d has no end", smallest);
    EXPECT(shmem_int_atomic_fetch_inc(&smallest, me) == INT_MAX && smallest == INT_MIN, "%d",
           smallest);
    EXPECT(shmem_long_atomic_compare_swap(&word, 41, 5, me) == 40 && word == 40, "not equal");
    EXPECT(shmem_long_atomic_compare_swap(&word, 40, 5, me) == 40 && word == 5, "equal");
    shmem_barrier_all();
    for (int i = 0; i < TIMES; i++) {
        uint64_t mine = UINT64_C(1) << me;
        uint64_t was = shmem_uint64_atomic_fetch_or(&bits, mine, 0);
        EXPECT(!(was & mine), "my bit was set");
        was = shmem_uint64_atomic_fetch_and(&bits, ~mine, 0);
        EXPECT(was & mine, "my bit was not set");
        was = shmem_uint64_atomic_fetch_xor(&bits, mine | mine << 32, 0);
        EXPECT(!(was & mine), "my bit was set");
        shmem_uint64_atomic_and(&bits, ~mine, 0);
    }
    shmem_barrier_all();
    EXPECT(me != 0 || bits == 0, "%#llx", (unsigned long long)bits);
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("19: one word through many contexts");
    domain_of_contexts();
    tap_case("20: reals are fetched, set and swapped");
    reals();
    tap_case("21: types of one width");
    names_of_one_width();
    tap_case("22: signals");
    signals();
    tap_case("23: where the word lies");
    places();
    tap_case("24: const sources, wrapping, bits");
    corners();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
