/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get of every type and size, contiguous, strided, block-strided, blocking and not, without
 * a context, with the default one and with a context of a team in reverse order; on the heap and in
 * static data. Random shapes; the result, and everything around it, is compared byte by byte with a
 * model that copies single bytes. */
#include <shmem.h>
#include <stdbool.h>
#include <string.h>
#include "tap.h"

enum { ELEMS = 64, BYTES = ELEMS * 16, ROUNDS = 6 };
#include "api/shape.h"

typedef void copy(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, int pe);
typedef void copy_strided(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                          ptrdiff_t sst, size_t nelems, int pe);
typedef void copy_blocks(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                         ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);

/* The routines of a type; SHMEM_CTX_INVALID means the form without a context. */
struct routines {
    const char *name;
    size_t bytes; /* of an element */
    copy *put, *get, *put_nbi, *get_nbi;
    copy_strided *iput, *iget;
    copy_blocks *ibput, *ibget;
};

/* clang-format off */
#define COPY(NAME)                                                                                 \
    static void call_##NAME(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,        \
                            int pe) {                                                              \
        if (ctx == SHMEM_CTX_INVALID)                                                              \
            shmem_##NAME(dest, source, nelems, pe);                                                \
        else                                                                                       \
            shmem_ctx_##NAME(ctx, dest, source, nelems, pe);                                       \
    }
#define STRIDED(NAME)                                                                              \
    static void call_##NAME(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,        \
                            ptrdiff_t sst, size_t nelems, int pe) {                                \
        if (ctx == SHMEM_CTX_INVALID)                                                              \
            shmem_##NAME(dest, source, dst, sst, nelems, pe);                                      \
        else                                                                                       \
            shmem_ctx_##NAME(ctx, dest, source, dst, sst, nelems, pe);                             \
    }
#define BLOCKS(NAME)                                                                               \
    static void call_##NAME(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,        \
                            ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) {                 \
        if (ctx == SHMEM_CTX_INVALID)                                                              \
            shmem_##NAME(dest, source, dst, sst, bsize, nblocks, pe);                              \
        else                                                                                       \
            shmem_ctx_##NAME(ctx, dest, source, dst, sst, bsize, nblocks, pe);                     \
    }
#define TYPED(N, T, _)                                                                             \
    COPY(N##_put) COPY(N##_get) COPY(N##_put_nbi) COPY(N##_get_nbi)                                \
    STRIDED(N##_iput) STRIDED(N##_iget) BLOCKS(N##_ibput) BLOCKS(N##_ibget)
#define SIZED(BITS, SIZE, _)                                                                       \
    COPY(put##BITS) COPY(get##BITS) COPY(put##BITS##_nbi) COPY(get##BITS##_nbi)                    \
    STRIDED(iput##BITS) STRIDED(iget##BITS) BLOCKS(ibput##BITS) BLOCKS(ibget##BITS)
SHMEM_RMA_TYPES(TYPED, _)
SHMEM_SIZES(SIZED, _)
COPY(putmem) COPY(getmem) COPY(putmem_nbi) COPY(getmem_nbi)

#define TYPED_ROW(N, T, _)                                                                         \
    {#N, sizeof(T), call_##N##_put, call_##N##_get, call_##N##_put_nbi, call_##N##_get_nbi,        \
     call_##N##_iput, call_##N##_iget, call_##N##_ibput, call_##N##_ibget},
#define SIZED_ROW(BITS, SIZE, _)                                                                   \
    {#BITS " bits", SIZE, call_put##BITS, call_get##BITS, call_put##BITS##_nbi,                    \
     call_get##BITS##_nbi, call_iput##BITS, call_iget##BITS, call_ibput##BITS, call_ibget##BITS},
static const struct routines routines[] = {
    SHMEM_RMA_TYPES(TYPED_ROW, _)
    SHMEM_SIZES(SIZED_ROW, _)
    {"mem", 1, call_putmem, call_getmem, call_putmem_nbi, call_getmem_nbi, NULL, NULL, NULL, NULL},
};
/* clang-format on */

static unsigned char in_statics[BYTES] __attribute__((aligned(16)));
static int me, npes;

enum verb { PUT, PUT_NBI, IPUT, IBPUT, GET, GET_NBI, IGET, IBGET, VERBS };

static void call(const struct routines *r, enum verb verb, shmem_ctx_t ctx, unsigned char *dest,
                 const unsigned char *source, const struct shape *shape, int pe) {
    void *to = dest + shape->dest_first * r->bytes;
    const void *from = source + shape->source_first * r->bytes;
    switch (verb) {
    case PUT:
        r->put(ctx, to, from, shape->nblocks, pe);
        break;
    case PUT_NBI:
        r->put_nbi(ctx, to, from, shape->nblocks, pe);
        break;
    case IPUT:
        r->iput(ctx, to, from, shape->dst, shape->sst, shape->nblocks, pe);
        break;
    case IBPUT:
        r->ibput(ctx, to, from, shape->dst, shape->sst, shape->bsize, shape->nblocks, pe);
        break;
    case GET:
        r->get(ctx, to, from, shape->nblocks, pe);
        break;
    case GET_NBI:
        r->get_nbi(ctx, to, from, shape->nblocks, pe);
        break;
    case IGET:
        r->iget(ctx, to, from, shape->dst, shape->sst, shape->nblocks, pe);
        break;
    default:
        r->ibget(ctx, to, from, shape->dst, shape->sst, shape->bsize, shape->nblocks, pe);
    }
}

/* One round: every PE puts to, or gets from, the PE whose number is `shift` higher. */
static void one_round(const struct routines *r, enum verb verb, shmem_ctx_t ctx, bool reversed,
                      unsigned char *symmetric, uint64_t seed) {
    static const char *const names[] = {"put", "put_nbi", "iput", "ibput",
                                        "get", "get_nbi", "iget", "ibget"};
    bool is_put = verb < GET,
         strided = verb != PUT && verb != PUT_NBI && verb != GET && verb != GET_NBI;
    int shift = (int)(seed % (uint64_t)npes);
    int other = (me + shift) % npes, writer = (me + npes - shift) % npes;
    unsigned char local[BYTES], expected[BYTES], source[BYTES];

    struct random fill = random_of(seed, me);
    random_fill(&fill, symmetric, BYTES);
    memcpy(expected, symmetric, BYTES);
    shmem_barrier_all();

    /* A put's model runs at its target, with the writer's numbers; a get's at the reader. */
    struct random mine = random_of(~seed, me);
    struct shape shape = random_shape(&mine, strided, verb == IBPUT || verb == IBGET);
    random_fill(&mine, local, BYTES);
    int pe = reversed ? npes - 1 - other : other;
    if (is_put) {
        call(r, verb, ctx, symmetric, local, &shape, pe);
        ctx == SHMEM_CTX_INVALID ? shmem_quiet() : shmem_ctx_quiet(ctx);
        struct random theirs = random_of(~seed, writer);
        shape = random_shape(&theirs, strided, verb == IBPUT);
        random_fill(&theirs, source, BYTES);
        model_copy(expected, source, &shape, r->bytes);
    } else {
        memcpy(expected, local, BYTES);
        struct random theirs = random_of(seed, other);
        random_fill(&theirs, source, BYTES);
        model_copy(expected, source, &shape, r->bytes);
        call(r, verb, ctx, local, symmetric, &shape, pe);
        ctx == SHMEM_CTX_INVALID ? shmem_quiet() : shmem_ctx_quiet(ctx);
    }
    shmem_barrier_all();
    EXPECT(memcmp(is_put ? symmetric : local, expected, BYTES) == 0, "%s %s, seed %llu", r->name,
           names[verb], (unsigned long long)seed);
    shmem_barrier_all();
}

static void all_rounds(const char *name, shmem_ctx_t ctx, bool reversed, unsigned char *symmetric) {
    static uint64_t seed;
    tap_case(name);
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++)
        for (enum verb verb = PUT; verb < VERBS; verb++)
            for (int round = 0; round < ROUNDS; round++) {
                bool has_verb = routines[i].iput || verb == PUT || verb == PUT_NBI || verb == GET ||
                                verb == GET_NBI;
                if (has_verb)
                    one_round(&routines[i], verb, ctx, reversed, symmetric, ++seed);
            }
}

/* clang-format off */
#define ELEMENT(N, T, _)                                                                           \
    static void element_##N(shmem_ctx_t ctx, int there, int back) {                                \
        static T word, plain;                                                                      \
        shmem_ctx_##N##_p(ctx, &word, (T)(me + 1), there);                                         \
        shmem_##N##_p(&plain, (T)(me + 51), (me + 1) % npes);                                      \
        shmem_barrier_all();                                                                       \
        T fetched = shmem_ctx_##N##_g(ctx, &word, back);                                           \
        T fetched_plain = shmem_##N##_g(&plain, me);                                               \
        EXPECT(fetched == (T)((me + npes - 1) % npes + 1), #N "_g of the own word through the team"); \
        EXPECT(fetched_plain == (T)((me + npes - 1) % npes + 51), #N "_g");                        \
        EXPECT(word == fetched && plain == fetched_plain, #N "_p");                                \
        shmem_barrier_all();                                                                       \
    }
SHMEM_RMA_TYPES(ELEMENT, _)
/* clang-format on */

static void elements(shmem_ctx_t reversed) {
    int there = npes - 1 - (me + 1) % npes, back = npes - 1 - me;
#define ONE(N, T, _) element_##N(reversed, there, back);
    SHMEM_RMA_TYPES(ONE, _)
#undef ONE
}

/* libc copies large blocks with other code than small ones. */
static void large(void) {
    enum { LARGE = 9 << 20 };
    unsigned char *symmetric = shmem_malloc(LARGE), *local = shmem_malloc(LARGE);
    for (size_t i = 0; i < LARGE; i++)
        local[i] = (unsigned char)(i * 7 + (size_t)me);
    for (size_t bytes = 1; bytes <= LARGE; bytes = bytes * 3 + 1) {
        memset(symmetric, 0, bytes + 1 < LARGE ? bytes + 1 : LARGE);
        shmem_barrier_all();
        shmem_putmem(symmetric, local, bytes, (me + 1) % npes);
        shmem_barrier_all();
        size_t wrong = 0;
        for (size_t i = 0; i < bytes; i++)
            wrong += symmetric[i] != (unsigned char)(i * 7 + (size_t)((me + npes - 1) % npes));
        EXPECT(wrong == 0, "%zu of %zu bytes", wrong, bytes);
        EXPECT(bytes == LARGE || symmetric[bytes] == 0, "byte behind %zu", bytes);
        shmem_barrier_all();
    }
    shmem_free(local);
    shmem_free(symmetric);
}

/* An empty call moves and touches nothing, whatever the pointers are. */
static void empty(shmem_ctx_t ctx) {
    shmem_putmem(NULL, NULL, 0, 0);
    shmem_getmem(NULL, NULL, 0, 0);
    shmem_int_put(NULL, NULL, 0, npes - 1);
    shmem_ctx_int_get(ctx, NULL, NULL, 0, npes - 1);
    shmem_putmem_nbi((void *)1, (void *)1, 0, 0);
    shmem_long_iput(NULL, NULL, 1, 1, 0, 0);
    shmem_long_iget((long *)8, (long *)8, 5, 7, 0, 0);
    shmem_long_ibput(NULL, NULL, 1, 1, 0, 5, 0);
    shmem_long_ibget(NULL, NULL, 1, 1, 5, 0, 0);
    shmem_ctx_ibput64(ctx, NULL, NULL, PTRDIFF_MAX, PTRDIFF_MIN, 0, SIZE_MAX, 0);
    EXPECT(1, "still here");
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    unsigned char *in_heap = shmem_align(16, BYTES);
    shmem_team_t team;
    shmem_ctx_t reversed;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &team);
    int failed = shmem_team_create_ctx(team, 0, &reversed);

    all_rounds("without a context, on the heap", SHMEM_CTX_INVALID, false, in_heap);
    all_rounds("without a context, in static data", SHMEM_CTX_INVALID, false, in_statics);
    all_rounds("in the default context", SHMEM_CTX_DEFAULT, false, in_heap);
    all_rounds("in a context of a team in reverse order", reversed, true, in_statics);
    EXPECT(!failed, "shmem_team_create_ctx: %d", failed);
    tap_case("single elements of every type");
    elements(reversed);
    tap_case("copies up to megabytes");
    large();
    tap_case("empty calls");
    empty(reversed);

    shmem_ctx_destroy(reversed);
    shmem_team_destroy(team);
    shmem_free(in_heap);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
