/* SPDX-License-Identifier: BSD-3-Clause */
/* Put-with-signal of every type and size, set and add, blocking and not: the data that a signal
 * announces has arrived. Signals alone, with and without a context, from one and from all PEs. */
#include <shmem.h>
#include <string.h>
#include "tap.h"
#include "api/model.h"

enum { BYTES = 4096 };

typedef void put_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,
                        uint64_t *sig_addr, uint64_t signal, int sig_op, int pe);
struct routines {
    const char *name;
    size_t bytes;
    put_signal *blocking, *nbi;
};

/* clang-format off */
#define CALL(NAME)                                                                                 \
    static void call_##NAME(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,        \
                            uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) {             \
        if (ctx == SHMEM_CTX_INVALID)                                                              \
            shmem_##NAME(dest, source, nelems, sig_addr, signal, sig_op, pe);                      \
        else                                                                                       \
            shmem_ctx_##NAME(ctx, dest, source, nelems, sig_addr, signal, sig_op, pe);             \
    }
#define TYPED(N, T, _)       CALL(N##_put_signal) CALL(N##_put_signal_nbi)
#define SIZED(BITS, SIZE, _) CALL(put##BITS##_signal) CALL(put##BITS##_signal_nbi)
SHMEM_RMA_TYPES(TYPED, _)
SHMEM_SIZES(SIZED, _)
CALL(putmem_signal) CALL(putmem_signal_nbi)
#define TYPED_ROW(N, T, _) {#N, sizeof(T), call_##N##_put_signal, call_##N##_put_signal_nbi},
#define SIZED_ROW(BITS, SIZE, _)                                                                   \
    {#BITS, SIZE, call_put##BITS##_signal, call_put##BITS##_signal_nbi},
static const struct routines routines[] = {
    SHMEM_RMA_TYPES(TYPED_ROW, _) SHMEM_SIZES(SIZED_ROW, _)
    {"mem", 1, call_putmem_signal, call_putmem_signal_nbi},
};
/* clang-format on */

static unsigned char in_statics[BYTES] __attribute__((aligned(16)));
static uint64_t signals[4];
static uint64_t acknowledged;
static int me, npes;

/* PEs 0 .. npes-1 in a ring: each sends to the next and checks what it received from the one
 * before. The signal word and the payload may lie in different windows. */
static void ring(const struct routines *r, shmem_ctx_t ctx, unsigned char *dest, int round) {
    static uint64_t sent;
    static uint64_t total;
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    unsigned char payload[BYTES], expected[BYTES];
    struct random mine = random_of((uint64_t)round, me),
                  theirs = random_of((uint64_t)round, before);
    size_t nelems = random_below(&mine, BYTES / r->bytes + 1);
    random_fill(&mine, payload, nelems * r->bytes);
    int add = round % 2;
    uint64_t *word = &signals[add];
    uint64_t value = add ? 3 : ++sent;
    (round % 3 ? r->blocking : r->nbi)(ctx, dest, payload, nelems, word, value,
                                       add ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET, next);
    uint64_t wanted = add ? (total += 3) : sent;
    uint64_t got = shmem_signal_wait_until(word, SHMEM_CMP_GE, wanted);
    EXPECT(got == wanted && shmem_signal_fetch(word) == wanted, "%s: signal %llu, not %llu",
           r->name, (unsigned long long)got, (unsigned long long)wanted);
    size_t their_nelems = random_below(&theirs, BYTES / r->bytes + 1);
    random_fill(&theirs, expected, their_nelems * r->bytes);
    EXPECT(memcmp(dest, expected, their_nelems * r->bytes) == 0, "%s: %zu elements", r->name,
           their_nelems);
    shmem_ctx_quiet(SHMEM_CTX_DEFAULT);
    shmem_signal_add(&acknowledged, 1, before);
    shmem_signal_wait_until(&acknowledged, SHMEM_CMP_GE, (uint64_t)round);
}

static void rings(unsigned char *in_heap) {
    int round = 0;
    for (int repeat = 0; repeat < 4; repeat++)
        for (size_t i = 0; i < sizeof routines / sizeof *routines; i++) {
            round++;
            ring(&routines[i], round % 2 ? SHMEM_CTX_INVALID : SHMEM_CTX_DEFAULT,
                 repeat % 2 ? in_heap : in_statics, round);
        }
    shmem_barrier_all();
}

/* A payload that takes a while: the signal must not arrive before its last byte. */
static void large_payload(void) {
    enum { LARGE = 4 << 20 };
    unsigned char *dest = shmem_malloc(LARGE), *source = shmem_malloc(LARGE);
    static uint64_t arrived;
    for (unsigned char turn = 1; turn <= 20; turn++) {
        memset(source, turn, LARGE);
        shmem_barrier_all();
        if (me == turn % npes)
            shmem_putmem_signal(dest, source, LARGE, &arrived, turn, SHMEM_SIGNAL_SET,
                                (me + 1) % npes);
        if (me != (turn + 1) % npes)
            continue;
        shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, turn);
        EXPECT(dest[0] == turn && dest[LARGE / 2] == turn && dest[LARGE - 1] == turn, "%d %d %d",
               dest[0], dest[LARGE / 2], dest[LARGE - 1]);
    }
    shmem_free(source);
    shmem_free(dest);
}

/* An empty put signals, too, with any pointers. */
static void empty_payload(void) {
    shmem_putmem_signal(NULL, NULL, 0, &signals[2], 7, SHMEM_SIGNAL_SET, (me + 1) % npes);
    shmem_double_put_signal_nbi(NULL, NULL, 0, &signals[2], 5, SHMEM_SIGNAL_ADD, (me + 1) % npes);
    EXPECT(shmem_signal_wait_until(&signals[2], SHMEM_CMP_EQ, 12) == 12, "not 12");
    shmem_barrier_all();
}

static void from_all(shmem_ctx_t ctx) {
    enum { TIMES = 1000 };
    for (int i = 0; i < TIMES; i++)
        for (int pe = 0; pe < npes; pe++) {
            shmem_signal_add(&signals[3], 1, pe);
            shmem_ctx_signal_add(ctx, &signals[3], 1, npes - 1 - pe);
        }
    uint64_t got = shmem_signal_wait_until(&signals[3], SHMEM_CMP_EQ, (uint64_t)(2 * TIMES * npes));
    EXPECT(got == (uint64_t)(2 * TIMES * npes), "%llu", (unsigned long long)got);
    shmem_barrier_all();
    shmem_ctx_signal_set(ctx, &signals[3], UINT64_MAX, npes - 1 - me);
    EXPECT(shmem_signal_wait_until(&signals[3], SHMEM_CMP_GT, INT64_MAX) == UINT64_MAX,
           "a signal is unsigned");
    shmem_barrier_all();
    shmem_signal_set(&signals[3], 9, (me + 1) % npes);
    EXPECT(shmem_signal_wait_until(&signals[3], SHMEM_CMP_LT, 10) == 9, "not 9");
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    unsigned char *in_heap = shmem_malloc(BYTES);
    shmem_team_t team;
    shmem_ctx_t reversed;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &team);
    shmem_team_create_ctx(team, 0, &reversed);
    tap_case("payload before signal, every type and size");
    rings(in_heap);
    tap_case("a large payload before its signal");
    large_payload();
    tap_case("an empty put signals");
    empty_payload();
    tap_case("signals of all PEs, in a team's context too");
    from_all(reversed);
    shmem_team_destroy(team); /* which also destroys its context */
    shmem_free(in_heap);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
