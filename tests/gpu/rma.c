/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: put and get of every type and size with GPU memory on one side or both: own and
 * peers', contiguous, strided with steps of either sign, block-strided, blocking and not, with the
 * device heap, the host heap, statics, malloc's memory, the stack and CUDA memory of the program on
 * the other side. Random shapes and data; the result, and everything around it, is compared byte by
 * byte with a model. PEs: 1 2 3 4, also staged Far: cyclic:2 seed=7,reorder=16 */
#include "gpu/places.h"
#include "random/random/routines.h"

enum { ELEMS = 64, BYTES = ELEMS * 16 };
#include "api/shape.h"

enum verb { PUT_, PUT_NBI_, IPUT_, IBPUT_, GET_, GET_NBI_, IGET_, IBGET_, VERBS };
static const char *const verbs[] = {"put", "put_nbi", "iput", "ibput",
                                    "get", "get_nbi", "iget", "ibget"};

static bool is_put(enum verb verb) {
    return verb < GET_;
}

static bool is_strided(enum verb verb) {
    return verb != PUT_ && verb != PUT_NBI_ && verb != GET_ && verb != GET_NBI_;
}

static bool is_blocked(enum verb verb) {
    return verb == IBPUT_ || verb == IBGET_;
}

static void call(const struct rma_routines *r, enum verb verb, void *dest, const void *source,
                 const struct shape *s, int pe) {
    const shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    void *to = (char *)dest + s->dest_first * r->bytes;
    const void *from = (const char *)source + s->source_first * r->bytes;
    copy *plain[VERBS] = {
        [PUT_] = r->put, [PUT_NBI_] = r->put_nbi, [GET_] = r->get, [GET_NBI_] = r->get_nbi};
    if (plain[verb])
        plain[verb](ctx, to, from, s->nblocks, pe);
    else if (is_blocked(verb))
        (verb == IBPUT_ ? r->ibput : r->ibget)(ctx, to, from, s->dst, s->sst, s->bsize, s->nblocks,
                                               pe);
    else
        (verb == IPUT_ ? r->iput : r->iget)(ctx, to, from, s->dst, s->sst, s->nblocks, pe);
}

/* The data of this PE's model: a put has the numbers of its writer. */
struct round {
    const struct rma_routines *r;
    enum verb verb;
    enum place there, here; /* of the symmetric and the local side */
    uint64_t key;
};

static struct random random_for(uint64_t key, int pe) {
    return random_of(gpu_draw(key, UINT64_MAX), pe);
}

/* Every PE puts to, or gets from, the PE whose number is `shift` higher; 0 is the PE itself. */
static void one_round(const struct round *round) {
    const struct rma_routines *r = round->r;
    bool put = is_put(round->verb);
    int shift = (int)gpu_draw(round->key, (uint64_t)npes);
    int other = (me + shift) % npes, writer = (me + npes - shift) % npes;
    unsigned char *symmetric = area[round->there];
    unsigned char *local = area[round->here] + (round->here == round->there ? BYTES : 0);
    unsigned char before[BYTES], mine[BYTES], expected[BYTES];

    struct random random = random_for(round->key + 1, me);
    random_fill(&random, before, BYTES);
    gpu_write(symmetric, before, BYTES);
    random = random_for(round->key + 2, me);
    struct shape shape = random_shape(&random, is_strided(round->verb), is_blocked(round->verb));
    random_fill(&random, mine, BYTES);
    gpu_write(local, mine, BYTES);
    shmem_barrier_all();
    call(r, round->verb, put ? symmetric : local, put ? local : symmetric, &shape, other);
    shmem_quiet();
    if (put) {
        random = random_for(round->key + 2, writer);
        shape = random_shape(&random, is_strided(round->verb), is_blocked(round->verb));
        random_fill(&random, mine, BYTES);
        memcpy(expected, before, BYTES);
        model_copy(expected, mine, &shape, r->bytes);
    } else {
        random = random_for(round->key + 1, other);
        random_fill(&random, before, BYTES);
        memcpy(expected, mine, BYTES);
        model_copy(expected, before, &shape, r->bytes);
    }
    shmem_barrier_all();
    gpu_expect(put ? symmetric : local, expected, BYTES, "%s %s of %zu (%zu, %td, %td) %s %s, %s",
               r->name, verbs[round->verb], shape.nblocks, shape.bsize, shape.dst, shape.sst,
               put ? "from" : "into", place_names[round->here], place_names[round->there]);
    shmem_barrier_all();
}

/* Every pair of places with a GPU's memory in it, `each` times. */
static void every_pair(const struct rma_routines *r, enum verb verb, int each) {
    static uint64_t key;
    for (enum place there = 0; there < SYMMETRIC_PLACES; there++)
        for (enum place here = 0; here < PLACES; here++)
            for (int i = 0; i < each && (on_gpu(there) || on_gpu(here)); i++)
                one_round(&(struct round){r, verb, there, here, key += 16});
}

/* Every type with each verb, between two places at random. */
static void every_type(enum verb verb) {
    static uint64_t key = UINT64_C(1) << 40;
    for (int row = 0; row < RMA_ROWS; row++) {
        enum place there = (enum place)gpu_draw(key += 16, SYMMETRIC_PLACES);
        enum place here = (enum place)gpu_draw(key + 1, PLACES);
        if (!on_gpu(there) && !on_gpu(here))
            there = DEVICE;
        if (row < RMA_STRIDED_ROWS || !is_strided(verb))
            one_round(&(struct round){&rma_routines[row], verb, there, here, key + 2});
    }
}

static const struct rma_routines *row_of(const char *name) {
    for (int row = 0; row < RMA_ROWS; row++)
        if (strcmp(rma_routines[row].name, name) == 0)
            return &rma_routines[row];
    abort();
}

/* One element: `g` reads the value that `p` has written to GPU memory, and nothing beside it
 * changes. */
static void elements(void) {
    unsigned char *words = area[DEVICE], expected[3 * 16];
    for (int row = 0; row < RMA_TYPED_ROWS; row++) {
        const struct rma_routines *r = &rma_routines[row];
        unsigned char value[16] __attribute__((aligned(16))), back[16] __attribute__((aligned(16)));
        int next = (me + 1) % npes, before = (me + npes - 1) % npes;
        gpu_poison(words, sizeof expected);
        memset(expected, GPU_POISON, sizeof expected);
        gpu_fill(value, r->bytes, (uint64_t)(row * 64 + me));
        if (r->value_bytes < r->bytes)
            continue; /* any bits are no long double */
        shmem_barrier_all();
        r->p(SHMEM_CTX_INVALID, words + 16, value, next);
        shmem_barrier_all();
        gpu_fill(expected + 16, r->bytes, (uint64_t)(row * 64 + before));
        memset(expected + 16 + r->bytes, GPU_POISON, sizeof expected - 16 - r->bytes);
        gpu_expect(words, expected, sizeof expected, "%s_p", r->name);
        r->g(SHMEM_CTX_DEFAULT, back, words + 16, next);
        EXPECT(memcmp(back, value, r->bytes) == 0, "%s_g", r->name);
        shmem_barrier_all();
    }
}

/* Sizes up to megabytes, at odd addresses, to and from each kind of memory. */
static void large(enum place here) {
    enum { LARGE = 5 << 20 };
    unsigned char *symmetric = shmemx_malloc(SHMEMX_SPACE_DEVICE, LARGE + 64);
    unsigned char *heap = shmem_malloc(LARGE + 64), *own = malloc(LARGE + 64);
    unsigned char *foreign = own_memory(LARGE + 64);
    unsigned char *local = here == HEAP ? heap : here == FOREIGN ? foreign : own;
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    for (size_t bytes = 1; bytes <= LARGE; bytes = bytes * 5 + 3) {
        size_t to = bytes % 7, from = bytes % 5;
        gpu_poison(symmetric, bytes + 64);
        gpu_write(local + from, gpu_data(bytes, bytes * 8 + (uint64_t)me), bytes);
        shmem_barrier_all();
        shmem_putmem(symmetric + to, local + from, bytes, next);
        shmem_barrier_all();
        gpu_expect_poison(symmetric, to, "in front of a put");
        gpu_expect(symmetric + to, gpu_data(bytes, bytes * 8 + (uint64_t)before), bytes,
                   "put of %zu bytes from %s", bytes, place_names[here]);
        gpu_expect_poison(symmetric + to + bytes, 8, "behind a put");
        gpu_poison(local, bytes + 64);
        shmem_getmem(local + from, symmetric + to, bytes, next);
        gpu_expect(local + from, gpu_data(bytes, bytes * 8 + (uint64_t)me), bytes,
                   "get of %zu bytes into %s", bytes, place_names[here]);
        gpu_expect_poison(local + from + bytes, 8, "behind a get");
        shmem_barrier_all();
    }
    free(own);
    shmem_free(heap);
    shmem_free(symmetric);
}

/* Many at once, completed together. */
static void many_at_once(void) {
    enum { EACH = 509, PARTS = 24 };
    int parts = npes < 5 ? PARTS : PARTS * 5 / npes; /* as many as fit */
    unsigned char *to = area[DEVICE], *from = area[PRIVATE];
    gpu_poison(to, AREA_BYTES_MAX);
    gpu_fill(from, EACH * PARTS, 77 + (uint64_t)me);
    shmem_barrier_all();
    for (int part = 0; part < parts; part++)
        shmem_putmem_nbi(to + (part * npes + me) * EACH, from + part * EACH, EACH, part % npes);
    shmem_barrier_all();
    for (int part = me; part < parts; part += npes)
        for (int pe = 0; pe < npes; pe++) {
            unsigned char expected[EACH * PARTS];
            gpu_fill(expected, sizeof expected, 77 + (uint64_t)pe);
            gpu_expect(to + (part * npes + pe) * EACH, expected + part * EACH, EACH,
                       "part %d of PE %d", part, pe);
        }
    shmem_barrier_all();
}

/* Nothing is moved, nothing is touched, whatever the pointers are. */
static void empty(void) {
    unsigned char *words = area[DEVICE];
    gpu_poison(words, 256);
    shmem_barrier_all();
    shmem_putmem(words, NULL, 0, 0);
    shmem_getmem(NULL, words, 0, npes - 1);
    shmem_putmem_nbi(words, words, 0, 0);
    shmem_long_iput((long *)words, NULL, 1, 1, 0, 0);
    shmem_long_ibget((long *)words, (long *)words, 1, 1, 5, 0, 0);
    shmem_ibput64(words, words, PTRDIFF_MAX, PTRDIFF_MIN, 0, SIZE_MAX, 0);
    shmem_barrier_all();
    gpu_expect_poison(words, 256, "empty calls");
}

int main(void) {
    unsigned char on_stack[AREA_BYTES_MAX] __attribute__((aligned(64)));
    places_start(on_stack);
    for (enum verb verb = PUT_; verb < VERBS; verb++) {
        tap_case(verbs[verb]);
        if (!is_strided(verb))
            every_pair(row_of("mem"), verb, 3);
        every_pair(row_of("uint64"), verb, 3);
        every_type(verb);
    }
    tap_case("single elements of every type");
    elements();
    tap_case("sizes up to megabytes, with the host heap");
    large(HEAP);
    tap_case("sizes up to megabytes, with malloc's memory");
    large(PRIVATE);
    tap_case("sizes up to megabytes, with CUDA memory");
    large(FOREIGN);
    tap_case("many non-blocking puts");
    many_at_once();
    tap_case("empty calls");
    empty();
    return places_finish();
}
