/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: small collectives by packets, launched directly: all-gather, all-to-all, all-reduce,
 * reduce-scatter with every operation on every type that they accept, and broadcast, at sizes
 * around their limits, at any address, in place, of several teams, mixed, in graphs that are
 * replayed, and while the flags of packets wrap around. Bits are the host's. PEs: 2 3 5 */
#include <shmemx.h>
#include "inside.h"
#include "graph.h"
#include "coll/elements.h"
#include "coll/fold.h"
#include "coll/ll.h"
#include <math.h>
#include <unistd.h>

enum { ROOM = 4 << 20, AROUND = 64, MEMBERS = 32 };

static char *dests, *sources; /* ROOM bytes of the device heap */

/* A team's channels, as this member has them. */
struct side {
    const char *name;
    struct weft_gpu_channels all, directed;
};
enum { SIDES = 3 };
static struct side sides[SIDES]; /* without channels if this PE is no member */

static void side_fill(struct side *side, const char *name, shmem_team_t handle) {
    const struct weft_team *team = weft_team_find(handle);
    side->name = name;
    if (handle == SHMEM_TEAM_INVALID || team->npes < 2)
        return;
    INSIDE(weft_device_channels(&side->all, team, WEFT_FORM_LL));
    INSIDE(weft_device_channels(&side->directed, team, WEFT_FORM_DIRECTED));
}

static void sides_make(void) {
    shmem_team_t strided, list = SHMEM_TEAM_INVALID;
    int pes[3] = {npes - 1, 0, npes / 2}, count = npes < 3 ? npes : 3;
    side_fill(&sides[0], "all", SHMEM_TEAM_WORLD);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, npes / 2, NULL, 0, &strided);
    side_fill(&sides[1], "every second", strided);
    if (me == pes[0] || me == pes[1] || (count > 2 && me == pes[2]))
        shmemx_team_create(pes, count, 0, &list);
    side_fill(&sides[2], "a list", list);
}

/* --- Calls ------------------------------------------------------------------------------------ */

/* Returns the key of member i's data for member k. */
static uint64_t key_of(uint64_t key, int i, int k) {
    return (key * MEMBERS + (uint64_t)i) * MEMBERS + (uint64_t)k;
}

/* Offsets of both arrays: like the words' in one call of two. */
static char *place(char *array, uint64_t key) {
    return array + AROUND + (gpu_draw(key, 2) ? gpu_draw(key + 1, 16) : 0);
}

static void expect_around(const char *dest, size_t bytes) {
    gpu_expect_poison(dest - AROUND, AROUND, "before the destination");
    gpu_expect_poison(dest + bytes, AROUND, "behind the destination");
}

/* All-gather, or all-to-all. */
static void exchange(const struct side *side, size_t bytes, bool same, uint64_t key) {
    int own = side->all.me, n = side->all.n;
    size_t all = bytes * (size_t)n;
    char *dest = place(dests, key * 4), *source = place(sources, key * 4 + 2);
    gpu_poison(dest - AROUND, all + 2 * AROUND);
    if (gpu_draw(key * 4 + 3, 3) == 0) /* in place */
        source = dest + (same ? bytes * (size_t)own : 0);
    for (int k = 0; k < (same ? 1 : n); k++)
        gpu_write(source + bytes * (size_t)k, gpu_data(bytes, key_of(key, own, k)), bytes);
    struct weft_gpu_collective task = {.source = source,
                                       .dest = dest,
                                       .bytes = bytes,
                                       .source_step = same ? 0 : bytes,
                                       .dest_step = bytes};
    INSIDE(weft_ll_exchange(&side->all, &task, gpu_stream));
    gpu_drain(gpu_stream);
    for (int i = 0; i < n; i++)
        gpu_expect(dest + bytes * (size_t)i, gpu_data(bytes, key_of(key, i, same ? 0 : own)), bytes,
                   "%s of %s, %zu bytes of %d", same ? "all-gather" : "all-to-all", side->name,
                   bytes, i);
    expect_around(dest, all);
}

static void broadcast(const struct side *side, size_t bytes, uint64_t key) {
    int root = (int)gpu_draw(key * 4 + 3, (uint64_t)side->all.n);
    char *dest = place(dests, key * 4), *source = place(sources, key * 4 + 2);
    gpu_poison(dest - AROUND, bytes + 2 * AROUND);
    gpu_write(source, gpu_data(bytes, key_of(key, side->all.me, 0)), bytes);
    struct weft_gpu_collective task = {
        .source = source, .dest = dest, .bytes = bytes, .root = root};
    INSIDE(weft_ll_broadcast(&side->directed, &task, gpu_stream));
    gpu_drain(gpu_stream);
    gpu_expect(dest, gpu_data(bytes, key_of(key, root, 0)), bytes, "broadcast in %s of %zu bytes",
               side->name, bytes);
    expect_around(dest, bytes);
}

/* --- Reductions ------------------------------------------------------------------------------- */

struct number {
    const char *name;
    enum weft_number number;
    weft_dtype dtype;
    size_t bytes;
};
static const struct number numbers[] = {
    {"f32", WEFT_NUMBER_FLOAT, WEFT_F32, 4},
    {"f64", WEFT_NUMBER_DOUBLE, WEFT_F64, 8},
    {"bf16", WEFT_NUMBER_BF16, WEFT_BF16, 2},
    {"f16", WEFT_NUMBER_F16, WEFT_F16, 2},
    {"i8", WEFT_NUMBER_I8, 0, 1},
    {"u8", WEFT_NUMBER_U8, 0, 1},
    {"i16", WEFT_NUMBER_I16, 0, 2},
    {"u16", WEFT_NUMBER_U16, 0, 2},
    {"i32", WEFT_NUMBER_I32, 0, 4},
    {"u32", WEFT_NUMBER_U32, 0, 4},
    {"i64", WEFT_NUMBER_I64, 0, 8},
    {"u64", WEFT_NUMBER_U64, 0, 8},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };
static const char *const op_names[] = {"and", "or", "xor", "max", "min", "sum", "prod"};

/* Numbers of very different sizes, so that another order gives other bits; products are finite. */
static void fill_numbers(void *to, const struct number *it, size_t nelems, uint64_t key) {
    gpu_fill(to, nelems * it->bytes, key);
    float *wide = malloc(nelems * sizeof *wide + 1);
    for (size_t i = 0; i < nelems; i++) {
        uint64_t bits = gpu_mix(gpu_seed ^ (key * 65536 + i));
        wide[i] = ldexpf((float)(int32_t)bits, (int)(bits >> 40) % 14 - 36);
        if (it->number == WEFT_NUMBER_DOUBLE)
            ((double *)to)[i] = ldexp((double)(int64_t)bits, (int)(bits >> 3) % 50 - 63);
    }
    if (it->dtype && it->number != WEFT_NUMBER_DOUBLE)
        weft_elements_narrow(to, it->dtype, wide, nelems);
    free(wide);
}

/* Averages, and floats of 16 bits, as tensors; the rest as arrays of the standard's types. */
static void fold_arrays(void *to, void *const *of, int n, const struct number *it, size_t nelems,
                        enum weft_fold_op op, bool average) {
    if (!it->dtype || (it->bytes > 2 && !average)) {
        weft_fold_all(
            &weft_folds[op][it->number], to,
            &(struct weft_chunk){.sources = (const void *const *)of, .n = n, .nelems = nelems});
        return;
    }
    weft_matrix sources[MEMBERS], dest = {to, 1, nelems, nelems, it->dtype, false};
    weft_op tensor_op = op == WEFT_FOLD_MAX   ? WEFT_MAX
                        : op == WEFT_FOLD_MIN ? WEFT_MIN
                        : average             ? WEFT_AVG
                                              : WEFT_SUM;
    for (int i = 0; i < n; i++)
        sources[i] = dest, sources[i].data = of[i];
    weft_elements_reduce(&dest, sources, n, tensor_op);
}

/* Folds all members' data for member k. */
static void fold_on_host(void *to, const struct side *side, const struct number *it, size_t nelems,
                         enum weft_fold_op op, bool average, uint64_t key, int k) {
    int n = side->all.n;
    void *of[MEMBERS];
    for (int i = 0; i < n; i++) {
        of[i] = malloc(nelems * it->bytes + 1);
        fill_numbers(of[i], it, nelems, key_of(key, i, k));
    }
    fold_arrays(to, of, n, it, nelems, op, average);
    for (int i = 0; i < n; i++)
        free(of[i]);
}

/* Half of them sums. */
static enum weft_fold_op op_of(const struct number *it, uint64_t key) {
    enum weft_fold_op op = (enum weft_fold_op)gpu_draw(key + 7, 2 * WEFT_FOLD_OPS);
    return op < WEFT_FOLD_OPS && weft_ll_takes(op, it->number) ? op : WEFT_FOLD_SUM;
}

/* All-reduce, or reduce-scatter. */
static void reduce(const struct side *side, const struct number *it, size_t nelems, bool same,
                   uint64_t key) {
    int own = side->all.me, n = side->all.n;
    enum weft_fold_op op = op_of(it, key);
    bool average = op == WEFT_FOLD_SUM && it->dtype && gpu_draw(key * 4 + 3, 2);
    size_t bytes = nelems * it->bytes;
    char *dest = place(dests, key * 4), *source = place(sources, key * 4 + 2);
    char *expected = malloc(bytes + 1), *data = malloc(bytes + 1);
    gpu_poison(dest - AROUND, bytes + 2 * AROUND);
    bool in_place = gpu_draw(key * 4 + 1, 3) == 0;
    for (int k = 0; k < (same ? 1 : n); k++) {
        fill_numbers(data, it, nelems, key_of(key, own, k));
        gpu_write(source + bytes * (size_t)k, data, bytes);
    }
    struct weft_gpu_collective task = {.source = source,
                                       .dest = in_place ? source + (same ? 0 : bytes * (size_t)own)
                                                        : dest,
                                       .bytes = bytes,
                                       .source_step = same ? 0 : bytes,
                                       .op = op,
                                       .number = it->number,
                                       .divisor = average ? n : 0};
    INSIDE(weft_ll_reduce(&side->all, &task, gpu_stream));
    gpu_drain(gpu_stream);
    fold_on_host(expected, side, it, nelems, op, average, key, same ? 0 : own);
    gpu_expect(task.dest, expected, bytes, "%s of %s, %s of %zu %s",
               same ? "all-reduce" : "reduce-scatter", side->name, op_names[op], nelems, it->name);
    if (!in_place)
        expect_around(dest, bytes);
    free(expected);
    free(data);
}

/* --- Cases ------------------------------------------------------------------------------------ */

/* Returns the size of the n-th call: first all small ones, then those around the limits of a
 * thread, a block and the call. */
static size_t size_of(const struct side *side, int call) {
    size_t most = weft_ll_bytes_max(&side->all), slot = side->all.slot_units * (size_t)8;
    const size_t sizes[] = {255,  256,      257,      511,      512,      513,      1024, 4095,
                            4097, slot - 1, slot + 1, 2 * slot, most / 2, most - 7, most};
    return call < 200 ? (size_t)call + 1 : sizes[(size_t)call % (sizeof sizes / sizeof *sizes)];
}
enum { SIZES = 215 };

/* Makes calls of all teams, a part of the sequence, beginning with another one in each run. */
static void calls(const char *name, void (*call)(const struct side *, size_t bytes, uint64_t key)) {
    tap_case(name);
    for (int s = 0; s < SIDES; s++) {
        int step = gpu_rounds(1, 6) * (s == 0 ? 1 : 5);
        if (sides[s].all.n > 0)
            for (int i = (int)gpu_draw((uint64_t)s, (uint64_t)step); i < SIZES; i += step)
                call(&sides[s], size_of(&sides[s], i), (uint64_t)(s * SIZES + i));
    }
}

static void all_gather(const struct side *side, size_t bytes, uint64_t key) {
    exchange(side, bytes, true, key);
}

static void all_to_all(const struct side *side, size_t bytes, uint64_t key) {
    exchange(side, bytes, false, key);
}

static const struct number *number_of(uint64_t key) {
    return &numbers[gpu_draw(key + 5, NUMBERS)];
}

static void all_reduce(const struct side *side, size_t bytes, uint64_t key) {
    const struct number *it = number_of(key);
    reduce(side, it, bytes < it->bytes ? 1 : bytes / it->bytes, true, key);
}

static void reduce_scatter(const struct side *side, size_t bytes, uint64_t key) {
    const struct number *it = number_of(key);
    reduce(side, it, bytes < it->bytes ? 1 : bytes / it->bytes, false, key);
}

/* Packets of the other class are on their way, too. */
static void mixed(const struct side *side, size_t bytes, uint64_t key) {
    size_t most = weft_ll_bytes_max(&side->directed);
    broadcast(side, bytes < most ? bytes : most, key);
    if (gpu_draw(key, 3) == 0)
        all_reduce(side, bytes, key);
}

/* --- In a row --------------------------------------------------------------------------------- */

/* Streams continue while hosts have gone on: a root finishes a call before the others have begun
 * it. The last PE is late. */
static void in_a_row(void) {
    enum { ROW = 8, BYTES = 1000, STEP = 1024, LATE_US = 20000 };
    const struct side *side = &sides[0];
    tap_case("calls in a row, without the host in between");
    for (int root = 0; root < npes; root++) {
        uint64_t key = (uint64_t)(20000 + root);
        for (int i = 0; i < ROW; i++)
            gpu_write(sources + i * STEP, gpu_data(BYTES, key_of(key, me, i)), BYTES);
        gpu_poison(dests, ROW * STEP * (size_t)(npes + 1));
        if (me == npes - 1)
            usleep(LATE_US);
        for (int i = 0; i < ROW; i++) {
            struct weft_gpu_collective task = {.source = sources + i * STEP,
                                               .dest = dests + i * STEP * (npes + 1),
                                               .bytes = BYTES,
                                               .root = root};
            INSIDE(weft_ll_broadcast(&side->directed, &task, gpu_stream));
            task.dest += STEP, task.dest_step = STEP;
            if (root == npes - 1)
                INSIDE(weft_ll_exchange(&side->all, &task, gpu_stream));
        }
        gpu_drain(gpu_stream);
        for (int i = 0; i < ROW; i++)
            for (int k = -1; k < (root == npes - 1 ? npes : 0); k++)
                gpu_expect(dests + (i * (npes + 1) + k + 1) * STEP,
                           gpu_data(BYTES, key_of(key, k < 0 ? root : k, i)), BYTES,
                           "call %d of root %d, block %d", i, root, k);
    }
}

/* --- Flags come round ------------------------------------------------------------------------- */

/* Sets the epochs of all channels, as after that many calls. */
static void set_epochs(const struct side *side, uint64_t epoch) {
    shmem_barrier_all();
    for (uint32_t channel = 0; channel < WEFT_GPU_CHANNELS; channel++) {
        struct weft_gpu_channel_head *head =
            weft_gpu_channel_head(&side->all, side->all.me, channel);
        gpu_write(&head->packets, &epoch, sizeof epoch);
        gpu_write(&head->directed, &epoch, sizeof epoch);
    }
    shmem_barrier_all();
}

/* The last PE is late, so the others poll the present content of their inboxes. */
static void exchange_late(const struct side *side, size_t bytes, uint64_t key) {
    enum { LATE_US = 20000 };
    if (me == npes - 1)
        usleep(LATE_US);
    all_to_all(side, bytes, key);
    shmem_barrier_all();
    if (me == npes - 1)
        usleep(LATE_US);
    broadcast(side, bytes, key);
    shmem_barrier_all();
}

/* Large calls leave packets with the flags 3 and 4. When these flags recur, all calls in between
 * have been too small to overwrite them. */
static void come_round(void) {
    enum { LARGE = 500, SMALL = 8, CALLS = 2 };
    static const uint64_t round = UINT64_C(1) << 32;
    const struct side *side = &sides[0];
    tap_case("flags come round");
    set_epochs(side, 5 * round + 2);
    for (uint64_t i = 0; i < CALLS; i++)
        exchange_late(side, LARGE, 30000 + i);
    set_epochs(side, 6 * round - 4);
    for (uint64_t i = 0; i < 4; i++) {
        all_to_all(side, SMALL, 31000 + i);
        broadcast(side, SMALL, 31000 + i);
    }
    for (uint64_t i = 0; i < CALLS; i++)
        exchange_late(side, LARGE, 32000 + i);
    uint64_t epoch;
    gpu_copy(&epoch, &weft_gpu_channel_head(&side->all, me, 0)->packets, sizeof epoch);
    EXPECT(epoch == 6 * round + 4, "%llx", (unsigned long long)epoch);
    set_epochs(side, 6 * round + 100); /* equal on all channels again */
}

/* --- Graphs ----------------------------------------------------------------------------------- */

static size_t captured_bytes;

static void enqueue_some(void) {
    const struct side *side = &sides[0];
    size_t all = captured_bytes * (size_t)npes;
    struct weft_gpu_collective task = {
        .source = sources, .dest = dests, .bytes = captured_bytes, .dest_step = captured_bytes};
    INSIDE(weft_ll_exchange(&side->all, &task, gpu_stream));
    task.dest_step = 0, task.dest += all, task.op = WEFT_FOLD_SUM, task.number = WEFT_NUMBER_I32;
    INSIDE(weft_ll_reduce(&side->all, &task, gpu_stream));
    task.dest += captured_bytes, task.root = npes - 1;
    INSIDE(weft_ll_broadcast(&side->directed, &task, gpu_stream));
}

static void replays(void) {
    enum { GRAPHS = 2, REPLAYS = 6 };
    static const size_t bytes[GRAPHS] = {40, 4000};
    weft_cu_graph_exec graphs[GRAPHS];
    tap_case("graphs of different sizes in turns");
    for (int g = 0; g < GRAPHS; g++) {
        captured_bytes = bytes[g];
        graphs[g] = graph_capture(gpu_stream, enqueue_some);
    }
    for (int i = 0; i < REPLAYS; i++) {
        uint64_t key = (uint64_t)(40000 + i);
        size_t each = bytes[i % GRAPHS], all = each * (size_t)npes;
        int32_t *sums = calloc(each / 4, 4);
        gpu_write(sources, gpu_data(each, key_of(key, me, 0)), each);
        graph_replay(graphs[i % GRAPHS], gpu_stream);
        gpu_drain(gpu_stream);
        for (int k = 0; k < npes; k++) {
            const uint32_t *of_k = gpu_data(each, key_of(key, k, 0));
            gpu_expect(dests + each * (size_t)k, of_k, each, "replay %d, of %d", i, k);
            for (size_t e = 0; e < each / 4; e++)
                sums[e] = (int32_t)((uint32_t)sums[e] + of_k[e]);
        }
        gpu_expect(dests + all, sums, each, "replay %d, sums", i);
        gpu_expect(dests + all + each, gpu_data(each, key_of(key, npes - 1, 0)), each,
                   "replay %d, broadcast", i);
        free(sums);
    }
    for (int g = 0; g < GRAPHS; g++)
        graph_drop(graphs[g]);
}

int main(void) {
    shmem_init();
    inside_start();
    dests = inside_malloc(ROOM);
    sources = inside_malloc(ROOM);
    sides_make();
    calls("all-gather", all_gather);
    calls("all-to-all", all_to_all);
    calls("all-reduce", all_reduce);
    calls("reduce-scatter", reduce_scatter);
    calls("broadcasts of any root, and all-reduce between them", mixed);
    in_a_row();
    come_round();
    replays();
    return gpu_finish();
}
