/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: sums by marked words, launched directly: one shot and two, all-reduce and
 * reduce-scatter, at sizes around their limits, at any address, in place, of several teams, of
 * numbers that include marks, every sort of NaN, and infinities; mixed, with packets between them,
 * and in graphs. Bits are the host's, equal on all members, and the inbox contains only marks after
 * every call. PEs: 2 3 7 */
#include "inside.h"
#include "graph.h"
#include "base/hash.h"
#include "coll/elements.h"
#include "coll/ll.h"
#include "coll/marked.h"
#include <math.h>

enum { ROOM = 16 << 20, AROUND = 64, MEMBERS = 16 };

static char *dests, *sources; /* ROOM bytes of the device heap */

struct side {
    const char *name;
    shmem_team_t team;
    struct weft_gpu_channels marked, packets; /* without members if this PE is no member */
};
enum { SIDES = 3 };
static struct side sides[SIDES];

static void side_fill(struct side *side, const char *name, shmem_team_t handle) {
    const struct weft_team *team = weft_team_find(handle);
    side->name = name, side->team = handle;
    if (handle == SHMEM_TEAM_INVALID || team->npes < 2)
        return;
    INSIDE(weft_device_channels(&side->marked, team, WEFT_FORM_MARKED));
    INSIDE(weft_device_channels(&side->packets, team, WEFT_FORM_LL));
}

static void sides_make(void) {
    shmem_team_t first, second;
    side_fill(&sides[0], "all", SHMEM_TEAM_WORLD);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, npes - 1, NULL, 0, &first);
    side_fill(&sides[1], "all but the first", first);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes > 3 ? npes - 2 : 1, NULL, 0, &second);
    side_fill(&sides[2], "all but two", second);
}

/* --- Numbers ---------------------------------------------------------------------------------- */

struct number {
    const char *name;
    enum weft_number number;
    weft_dtype dtype;
    size_t bytes;
};
static const struct number numbers[] = {{"f32", WEFT_NUMBER_FLOAT, WEFT_F32, 4},
                                        {"bf16", WEFT_NUMBER_BF16, WEFT_BF16, 2},
                                        {"f16", WEFT_NUMBER_F16, WEFT_F16, 2}};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* Numbers of very different sizes, so that another order gives other bits; and one word in 16 that
 * may be mistaken for a mark, or is no finite number. */
static void fill_numbers(void *to, const struct number *it, size_t nelems, uint64_t key) {
    static const uint32_t odd[] = {0xffffffff, 0x7fffffff, 0xffff7fff, 0x7fffffff,
                                   0x80000000, 0x80008000, 0x00000001, 0x7f800000,
                                   0xff800000, 0xffffffff, 0x7c00ffff, 0xfffffffe,
                                   0xfffeffff, 0x00000000, 0x00010001, 0x7f800001};
    float *wide = calloc(nelems + 1, sizeof *wide);
    uint64_t state = gpu_mix(gpu_seed ^ gpu_mix(key));
    for (size_t i = 0; i < nelems; i++) {
        uint64_t bits = gpu_mix(state + i);
        wide[i] = ldexpf((float)(int32_t)bits, (int)(bits >> 40) % 14 - 36);
    }
    weft_elements_narrow(to, it->dtype, wide, nelems);
    for (size_t at = 0; at + 4 <= nelems * it->bytes; at += 4) {
        uint64_t bits = gpu_mix(state ^ ~at);
        if (bits % 16 == 0)
            memcpy((char *)to + at, &odd[bits / 16 % 16], 4);
    }
    free(wide);
}

static uint64_t key_of(uint64_t key, int i, int k) {
    return (key * MEMBERS + (uint64_t)i) * MEMBERS + (uint64_t)k;
}

/* Folds all members' data for member k. */
static void fold_on_host(void *to, int n, const struct number *it, size_t nelems, weft_op op,
                         uint64_t key, int k) {
    weft_matrix of[MEMBERS], dest = {to, 1, nelems, nelems, it->dtype, false};
    for (int i = 0; i < n; i++) {
        of[i] = dest;
        of[i].data = malloc(nelems * it->bytes + 1);
        fill_numbers(of[i].data, it, nelems, key_of(key, i, k));
    }
    weft_elements_reduce(&dest, of, n, op);
    for (int i = 0; i < n; i++)
        free(of[i].data);
}

static bool is_nan(const void *numbers_at, const struct number *it, size_t i) {
    float wide;
    weft_elements_widen(&wide, (const char *)numbers_at + i * it->bytes, it->dtype, 1);
    return isnan(wide);
}

/* A processor's sum of two NaNs has the bits of either, depending on the compiler; a GPU's always
 * has the same bits. */
static void settle_nans(void *found, const void *expected, const struct number *it, size_t nelems) {
    for (size_t i = 0; i < nelems && gpu_is_pretended(); i++)
        if (is_nan(found, it, i) && is_nan(expected, it, i))
            memcpy((char *)found + i * it->bytes, (const char *)expected + i * it->bytes,
                   it->bytes);
}

/* Expects equal bits, except for those of NaNs. */
static void expect_numbers(const void *found, const void *expected, const struct number *it,
                           size_t nelems, const char *what) {
    for (size_t i = 0; i < nelems; i++) {
        const unsigned char *is = (const unsigned char *)found + i * it->bytes;
        const unsigned char *should = (const unsigned char *)expected + i * it->bytes;
        if (memcmp(is, should, it->bytes) == 0 || (is_nan(found, it, i) && is_nan(expected, it, i)))
            continue;
        uint32_t bits[2] = {0, 0};
        memcpy(&bits[0], is, it->bytes);
        memcpy(&bits[1], should, it->bytes);
        EXPECT(false, "%s: element %zu of %zu %s is %#x, not %#x", what, i, nelems, it->name,
               bits[0], bits[1]);
        return;
    }
}

/* --- Calls ------------------------------------------------------------------------------------ */

enum way { ONE_SHOT, TWO_SHOTS, SCATTER, WAYS };
static const char *const ways[] = {"one shot", "two shots", "reduce-scatter"};

static size_t bytes_max(const struct side *side, enum way way) {
    return (way == TWO_SHOTS ? weft_marked_all_reduce_max : weft_marked_reduce_max)(&side->marked);
}

/* Expects only marks, as at the start: all words sent have been taken, and nothing else was
 * written. */
static void expect_marks(const struct side *side, const char *what) {
    const struct weft_gpu_channels *channels = &side->marked;
    size_t bytes = weft_gpu_inbox_bytes(WEFT_FORM_MARKED, channels->n);
    const char *inbox = weft_array_at(&channels->inbox, channels->me);
    uint64_t *words = malloc(bytes);
    gpu_copy(words, inbox, bytes);
    for (size_t i = 0; i < bytes / 8; i++)
        if (words[i] != UINT64_MAX) {
            EXPECT(false, "%s: word %zu of the inbox is %#llx", what, i,
                   (unsigned long long)words[i]);
            break;
        }
    free(words);
}

/* Expects equal bits on all members, also for NaNs. */
static void expect_same(const struct side *side, const void *found, size_t bytes,
                        const char *what) {
    static uint64_t mine, first;
    const struct weft_team *team = weft_team_find(side->team);
    mine = weft_hash(WEFT_HASH_BASIS, found, bytes);
    shmem_team_sync(side->team);
    shmem_getmem(&first, &mine, sizeof first, weft_team_world_pe(team, 0));
    EXPECT(first == mine, "%s: other bits than those of member 0", what);
    shmem_team_sync(side->team);
}

static char *place(char *array, uint64_t key, size_t elem_bytes) {
    return array + AROUND +
           (gpu_draw(key, 2) ? gpu_draw(key + 1, 16) / elem_bytes * elem_bytes : 0);
}

/* A call, as its members draw it. */
struct call {
    const struct number *it;
    size_t nelems;
    enum way way;
    weft_op op;
    bool in_place;
    bool crowded; /* one block does it all: its threads have several units */
    uint64_t key;
    struct weft_gpu_collective task;
};

static struct call draw(const struct side *side, enum way way, size_t bytes, uint64_t key) {
    const struct number *it = &numbers[gpu_draw(key * 8, NUMBERS)];
    size_t nelems = bytes < it->bytes ? 1 : bytes / it->bytes;
    struct call call = {.it = it,
                        .nelems = nelems,
                        .way = way,
                        .op = gpu_draw(key * 8 + 1, 2) ? WEFT_SUM : WEFT_AVG,
                        .in_place = gpu_draw(key * 8 + 2, 3) == 0,
                        .key = key};
    bytes = nelems * it->bytes;
    size_t chunk = way == TWO_SHOTS ? bytes / (size_t)side->marked.n + 32 : bytes;
    call.crowded = chunk <= (size_t)side->marked.slot_units * 16 && gpu_draw(key * 8 + 7, 2);
    char *source = place(sources, key * 8 + 3, it->bytes);
    char *dest = place(dests, key * 8 + 5, it->bytes);
    size_t own = way == SCATTER ? (size_t)side->marked.me * bytes : 0;
    call.task = (struct weft_gpu_collective){.source = source,
                                             .dest = call.in_place ? source + own : dest,
                                             .bytes = bytes,
                                             .source_step = way == SCATTER ? bytes : 0,
                                             .op = WEFT_FOLD_SUM,
                                             .number = it->number,
                                             .divisor = call.op == WEFT_AVG ? side->marked.n : 0};
    return call;
}

static void prepare(const struct side *side, const struct call *call) {
    size_t bytes = call->task.bytes;
    char *data = malloc(bytes + 1);
    if (!call->in_place)
        gpu_poison(call->task.dest - AROUND, bytes + 2 * AROUND);
    for (int k = 0; k < (call->way == SCATTER ? side->marked.n : 1); k++) {
        fill_numbers(data, call->it, call->nelems, key_of(call->key, side->marked.me, k));
        gpu_write((char *)call->task.source + bytes * (size_t)k, data, bytes);
    }
    free(data);
}

static void enqueue(const struct side *side, const struct call *call) {
    struct weft_gpu_channels channels = side->marked;
    if (call->crowded)
        channels.blocks_max = 1;
    INSIDE((call->way == TWO_SHOTS ? weft_marked_all_reduce
                                   : weft_marked_reduce)(&channels, &call->task, gpu_stream));
}

static void check(const struct side *side, const struct call *call) {
    size_t bytes = call->task.bytes;
    char *expected = malloc(bytes + 1), *found = malloc(bytes + 1), what[99];
    snprintf(what, sizeof what, "%s of %s%s", ways[call->way], side->name,
             call->in_place ? ", in place" : "");
    fold_on_host(expected, side->marked.n, call->it, call->nelems, call->op, call->key,
                 call->way == SCATTER ? side->marked.me : 0);
    gpu_copy(found, call->task.dest, bytes);
    expect_numbers(found, expected, call->it, call->nelems, what);
    settle_nans(found, expected, call->it, call->nelems);
    if (call->way != SCATTER)
        expect_same(side, found, bytes, what);
    if (!call->in_place) {
        gpu_expect_poison(call->task.dest - AROUND, AROUND, "before the destination");
        gpu_expect_poison(call->task.dest + bytes, AROUND, "behind the destination");
    }
    free(expected);
    free(found);
}

static void call_once(const struct side *side, enum way way, size_t bytes, uint64_t key) {
    struct call call = draw(side, way, bytes, key);
    prepare(side, &call);
    enqueue(side, &call);
    gpu_drain(gpu_stream);
    if (gpu_draw(key, 8) == 0) {
        expect_marks(side, ways[way]);
        shmem_team_sync(side->team); /* no member has begun the next one before */
    }
    check(side, &call);
}

/* --- Cases ------------------------------------------------------------------------------------ */

/* About the limits of a unit, a member's chunk, and a block. */
static size_t size_of(const struct side *side, uint64_t key) {
    size_t n = (size_t)side->marked.n;
    const size_t limits[] = {16, 16 * n, 128 * n, 512 * 16, 8192, 8192 * n, 16384};
    if (gpu_draw(key * 3, 3) == 0)
        return 2 + gpu_draw(key * 3 + 1, 300);
    size_t limit = limits[gpu_draw(key * 3 + 1, sizeof limits / sizeof *limits)];
    return (limit + gpu_draw(key * 3 + 2, 17) - 8) / 2 * 2;
}

static void calls(enum way way) {
    tap_case(ways[way]);
    for (int s = 0; s < SIDES; s++) {
        int rounds = gpu_rounds(200, s == 0 ? 12 : 4);
        for (int i = 0; i < rounds && sides[s].marked.n > 0; i++) {
            uint64_t key = (uint64_t)((s * WAYS + (int)way) * 1000 + i);
            call_once(&sides[s], way, size_of(&sides[s], key), key);
        }
    }
}

/* Every block, and threads with several units, for each algorithm, unless it takes too long. */
static void largest(void) {
    tap_case("the largest");
    int one = (int)gpu_draw(500000, WAYS);
    for (int way = 0; way < WAYS; way++)
        if ((way == (npes == 2 ? TWO_SHOTS : one) && npes < 4) || gpu_rounds(2, 1) == 2)
            call_once(&sides[0], (enum way)way, bytes_max(&sides[0], (enum way)way),
                      500001 + (uint64_t)way);
}

/* Calls in succession without checks in between: only the last result is checked. Packets have
 * epochs of their own. */
static void mixed(void) {
    tap_case("any behind each other, and packets between them");
    const struct side *side = &sides[0];
    for (int row = 0; row < gpu_rounds(60, 3); row++) {
        struct call call = draw(side, ONE_SHOT, 4, 0);
        for (int i = 0; i < 9; i++) {
            uint64_t key = 600000 + (uint64_t)(row * 10 + i);
            enum way way = (enum way)gpu_draw(key * 5, WAYS);
            call = draw(side, way, size_of(side, key), key);
            call.in_place = false;
            call.task.dest = place(dests, key, call.it->bytes);
            prepare(side, &call);
            enqueue(side, &call);
            struct weft_gpu_collective packets = call.task;
            packets.bytes = 64;
            packets.dest = dests + ROOM / 2;
            if (gpu_draw(key * 5 + 1, 2))
                INSIDE(weft_ll_reduce(&side->packets, &packets, gpu_stream));
        }
        gpu_drain(gpu_stream);
        check(side, &call);
    }
    expect_marks(side, "all of them");
    shmem_barrier_all();
}

static struct call captured[3];

static void enqueue_captured(void) {
    for (int i = 0; i < 3; i++)
        enqueue(&sides[0], &captured[i]);
}

/* Three calls in a graph, so that epochs are odd and even in turns. */
static void graphs(void) {
    tap_case("captured, and replayed with other data");
    static const size_t sizes[] = {40000, 70000, 100};
    for (int i = 0; i < 3; i++) {
        captured[i] = draw(&sides[0], (enum way)i, sizes[i], 700000 + (uint64_t)i);
        captured[i].in_place = false;
        size_t apart = (size_t)i * (ROOM / 4);
        captured[i].task.source = sources + apart + 2 * AROUND;
        captured[i].task.dest = dests + apart + 2 * AROUND;
    }
    weft_cu_graph_exec exec = graph_capture(gpu_stream, enqueue_captured);
    for (int round = 0; round < gpu_rounds(200, 3); round++) {
        for (int i = 0; i < 3; i++) {
            captured[i].key = 800000 + (uint64_t)(round * 3 + i);
            prepare(&sides[0], &captured[i]);
        }
        graph_replay(exec, gpu_stream);
        gpu_drain(gpu_stream);
        for (int i = 0; i < 3; i++)
            check(&sides[0], &captured[i]);
    }
    graph_drop(exec);
}

int main(void) {
    shmem_init();
    inside_start();
    dests = inside_malloc(ROOM);
    sources = inside_malloc(ROOM);
    sides_make();
    for (int way = 0; way < WAYS; way++)
        calls((enum way)way);
    largest();
    mixed();
    graphs();
    return gpu_finish();
}
