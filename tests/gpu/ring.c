/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: large reductions that push, launched directly: reduce-scatter and all-reduce of
 * every number that they take, sums and averages, around the limits of units, tiles, blocks and
 * chunks, empty ones too, in place, at any offset, on a list of PEs, one behind the other with
 * other kernels of the team, and in graphs that are replayed. Bits are the host's. PEs: 2 3 5 */
#include <math.h>
#include "channels.h"
#include "base/clock.h"
#include "graph.h"
#include "coll/elements.h"
#include "coll/push.h"
#include "coll/ring.h"

enum { ROOM = 4 << 20, AROUND = 64, MEMBERS = 8, CALLS = 6, PART = ROOM / CALLS / 128 * 128 };

static char *dests, *sources; /* ROOM bytes of the device heap */
static struct channels_team team;

static const struct number {
    const char *name;
    enum weft_number number;
    weft_dtype dtype;
    size_t bytes;
} numbers[] = {{"f32", WEFT_NUMBER_FLOAT, WEFT_F32, 4},
               {"f64", WEFT_NUMBER_DOUBLE, WEFT_F64, 8},
               {"bf16", WEFT_NUMBER_BF16, WEFT_BF16, 2},
               {"f16", WEFT_NUMBER_F16, WEFT_F16, 2}};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

struct draw {
    uint64_t key;
    const struct number *number;
    size_t nelems;
    bool scatter, average, in_place;
    size_t dest, source; /* offsets */
    unsigned blocks, threads;
    struct weft_ring_shape shape;
    struct weft_gpu_collective task;
};

static size_t bytes_of(const struct draw *it) {
    return it->nelems * it->number->bytes;
}

/* Small shapes, so that a few kilobytes go round the rings several times. */
static void draw_shape(struct draw *it) {
    unsigned blocks, threads;
    it->shape = weft_ring_shape_of(&team.channels, &it->task, &blocks, &threads);
    it->blocks = 1 + (unsigned)gpu_draw(it->key * 16 + 8, 3);
    it->threads = 128 + 64 * (unsigned)gpu_draw(it->key * 16 + 9, 2);
    it->shape.tile_bytes = 16 * (1 + (unsigned)gpu_draw(it->key * 16 + 10, 200));
    size_t chunk = it->scatter ? bytes_of(it) : bytes_of(it) / (size_t)team.n + 256;
    it->shape.tiles = (uint32_t)(chunk / (it->blocks * it->shape.tile_bytes) + 1);
}

static struct draw draw(uint64_t key, size_t most, size_t at) {
    struct draw it = {.key = key, .number = &numbers[gpu_draw(key * 16, NUMBERS)]};
    size_t sizes[] = {1, 7, 128, 1000, 4096, most};
    size_t bytes = sizes[gpu_draw(key * 16 + 1, 6)];
    if (gpu_draw(key * 16 + 2, 2))
        bytes = 1 + gpu_draw(key * 16 + 3, most);
    it.nelems = bytes / it.number->bytes + 1;
    it.scatter = gpu_draw(key * 16 + 4, 2);
    it.average = gpu_draw(key * 16 + 5, 2);
    it.in_place = gpu_draw(key * 16 + 6, 3) == 0;
    bool aligned = gpu_draw(key * 16 + 7, 2);
    it.dest = at + AROUND + (aligned ? 0 : gpu_draw(key * 16 + 11, 16) * it.number->bytes);
    it.source = at + AROUND + (aligned ? 0 : gpu_draw(key * 16 + 12, 16) * it.number->bytes);
    it.task = (struct weft_gpu_collective){.source = sources + it.source,
                                           .bytes = bytes_of(&it),
                                           .source_step = it.scatter ? bytes_of(&it) : 0,
                                           .op = WEFT_FOLD_SUM,
                                           .number = (int)it.number->number,
                                           .divisor = it.average ? team.n : 0};
    it.task.dest = dests + it.dest;
    if (it.in_place)
        it.task.dest = sources + it.source + it.task.source_step * (size_t)team.me;
    char *alike = it.in_place && !it.scatter ? sources + it.source : dests + it.dest;
    it.task.dests = channels_array(&team, alike);
    draw_shape(&it);
    return it;
}

/* --- One call ----------------------------------------------------------------------------------
 */

/* Numbers of very different sizes, so that another order gives other bits: what member i has for
 * member k. */
static void fill_numbers(void *to, const struct draw *it, int i, int k) {
    uint64_t key = (it->key * 64 + (uint64_t)i) * 64 + (uint64_t)k;
    float *wide = malloc(it->nelems * sizeof *wide);
    for (size_t e = 0; e < it->nelems; e++) {
        uint64_t bits = gpu_mix(gpu_seed ^ (key * 65536 + e));
        wide[e] = ldexpf((float)(int32_t)bits, (int)(bits >> 40) % 14 - 36);
        if (it->number->number == WEFT_NUMBER_DOUBLE)
            ((double *)to)[e] = ldexp((double)(int64_t)bits, (int)(bits >> 3) % 50 - 63);
    }
    if (it->number->number != WEFT_NUMBER_DOUBLE)
        weft_elements_narrow(to, it->number->dtype, wide, it->nelems);
    free(wide);
}

static void prepare(const struct draw *it) {
    size_t bytes = bytes_of(it);
    char *data = malloc(bytes);
    gpu_poison(dests + it->dest - AROUND, bytes + 2 * AROUND);
    for (int k = 0; k < (it->scatter ? team.n : 1); k++) {
        fill_numbers(data, it, team.me, k);
        gpu_write((char *)it->task.source + bytes * (size_t)k, data, bytes);
    }
    free(data);
}

static void check(const struct draw *it) {
    size_t bytes = bytes_of(it);
    weft_matrix of[MEMBERS], dest = {malloc(bytes), 1, it->nelems, it->nelems, it->number->dtype};
    for (int i = 0; i < team.n; i++) {
        of[i] = dest;
        of[i].data = malloc(bytes);
        fill_numbers(of[i].data, it, i, it->scatter ? team.me : 0);
    }
    weft_elements_reduce(&dest, of, team.n, it->average ? WEFT_AVG : WEFT_SUM);
    gpu_expect(it->task.dest, dest.data, bytes, "%s of %zu %s%s, tiles of %u, %u blocks of %u",
               it->scatter ? "reduce-scatter" : "all-reduce", it->nelems, it->number->name,
               it->in_place ? " in place" : "", it->shape.tile_bytes, it->blocks, it->threads);
    if (!it->in_place) {
        gpu_expect_poison(it->task.dest - AROUND, AROUND, "before the destination");
        gpu_expect_poison(it->task.dest + bytes, AROUND, "behind the destination");
    }
    for (int i = 0; i < team.n; i++)
        free(of[i].data);
    free(dest.data);
}

static void enqueue(const struct draw *it) {
    INSIDE(weft_ring_reduce_as(&team.channels, &it->task, it->shape, it->blocks, it->threads,
                               gpu_stream));
}

static void one_by_one(int rounds, uint64_t key) {
    for (int round = 0; round < rounds; round++) {
        struct draw it = draw(key + (uint64_t)round, 60000, 0);
        prepare(&it);
        enqueue(&it);
        gpu_drain(gpu_stream);
        check(&it);
    }
}

/* --- In a row, and in graphs -------------------------------------------------------------------
 */

static struct draw row[CALLS];

/* With exchanges in between, which use the same channels. */
static void enqueue_row(void) {
    struct weft_gpu_collective task = {.source = sources + ROOM,
                                       .dest = dests + ROOM,
                                       .dests = channels_array(&team, dests + ROOM),
                                       .bytes = 40,
                                       .dest_step = 40};
    for (int i = 0; i < CALLS; i++) {
        enqueue(&row[i]);
        if (i % 2)
            INSIDE(weft_push_exchange(&team.channels, &task, gpu_stream));
    }
}

static void replay_rows(int replays, uint64_t key) {
    for (int i = 0; i < CALLS; i++)
        row[i] = draw(key + (uint64_t)i, PART / MEMBERS - 500, (size_t)(i * PART));
    weft_cu_graph_exec exec = graph_capture(gpu_stream, enqueue_row);
    for (int replay = 0; replay < replays; replay++) {
        for (int i = 0; i < CALLS; i++) {
            row[i].key += 100;
            prepare(&row[i]);
        }
        if (replay % 2)
            enqueue_row();
        else
            graph_replay(exec, gpu_stream);
        gpu_drain(gpu_stream);
        for (int i = 0; i < CALLS; i++)
            check(&row[i]);
    }
    graph_drop(exec);
}

/* As calls of the library are cut. */
static void as_chosen(size_t bytes, uint64_t key) {
    struct draw it = draw(key, bytes, 0);
    it.shape = weft_ring_shape_of(&team.channels, &it.task, &it.blocks, &it.threads);
    prepare(&it);
    INSIDE(weft_ring_reduce(&team.channels, &it.task, gpu_stream));
    gpu_drain(gpu_stream);
    check(&it);
}

/* --- What shapes cost, on real GPUs ------------------------------------------------------------
 */

static struct draw timed;

static void enqueue_timed(void) {
    for (int i = 0; i < 10; i++)
        enqueue(&timed);
}

static double replay_us(void) {
    weft_cu_graph_exec exec = graph_capture(gpu_stream, enqueue_timed);
    double best = 1e30;
    for (int i = 0; i < 6; i++) {
        gpu_drain(gpu_stream);
        shmem_barrier_all();
        uint64_t begin = weft_clock_ns();
        graph_replay(exec, gpu_stream);
        gpu_drain(gpu_stream);
        double us = (double)(weft_clock_ns() - begin) / 1e4;
        best = us < best ? us : best;
    }
    graph_drop(exec);
    shmem_barrier_all();
    return best;
}

/* How the time of a shape depends on its parts. */
static void time_shapes(size_t mib) {
    static const unsigned blocks[] = {8, 16, 32, 64}, tiles[] = {4, 7, 14, 28, 42, 56};
    size_t bytes = mib << 20;
    char *from = inside_malloc(bytes), *to = inside_malloc(bytes);
    for (int scatter = 0; scatter < 2; scatter++)
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
            for (size_t t = 0; t < sizeof tiles / sizeof *tiles; t++)
                for (unsigned depth = 2; depth <= 8; depth *= 2) {
                    timed = (struct draw){.number = &numbers[2], .threads = WEFT_RING_THREADS};
                    timed.blocks = blocks[b];
                    timed.task = (struct weft_gpu_collective){
                        .source = from,
                        .dest = to,
                        .dests = channels_array(&team, to),
                        .bytes = scatter ? bytes / (size_t)team.n : bytes,
                        .number = WEFT_NUMBER_BF16};
                    timed.task.source_step = scatter ? timed.task.bytes : 0;
                    struct weft_ring_shape *shape = &timed.shape;
                    size_t chunk = bytes / (size_t)team.n;
                    shape->areas = 64 / blocks[b];
                    shape->depth = depth;
                    shape->place_bytes = shape->areas * 2 * team.channels.slot_units / depth * 16;
                    shape->tile_bytes = tiles[t] * 1024;
                    if (shape->tile_bytes > shape->place_bytes ||
                        chunk / shape->tile_bytes / blocks[b] < 4)
                        continue;
                    size_t step = (size_t)shape->tile_bytes * blocks[b];
                    shape->tiles = (uint32_t)((chunk + step - 1) / step);
                    double us = replay_us();
                    if (me == 0)
                        printf("# ring %s %zu MiB, %u blocks, tiles of %u KiB, depth %u: %.1f us\n",
                               scatter ? "reduce-scatter" : "all-reduce", mib, blocks[b], tiles[t],
                               depth, us);
                }
}

int main(void) {
    shmem_init();
    inside_start();
    dests = inside_malloc(ROOM + 40 * MEMBERS);
    sources = inside_malloc(ROOM + 40 * MEMBERS);
    team = channels_of(SHMEM_TEAM_WORLD, WEFT_FORM_RING);
    tap_case("one call at a time, on all PEs");
    one_by_one(gpu_rounds(200, 16), 1000);
    tap_case("calls in a row, alone and in graphs that are replayed");
    replay_rows(gpu_rounds(20, 2), 3000);
    tap_case("shapes as they are chosen");
    for (int round = 0; round < gpu_rounds(10, 2); round++)
        as_chosen(ROOM / MEMBERS / 2, 4000 + (uint64_t)round);
    if (!gpu_is_pretended() && npes <= gpu_count && npes > 1) {
        tap_case("times of shapes");
        time_shapes(8);
        time_shapes(64);
        time_shapes(256);
    }
    tap_case("on a list of PEs");
    shmem_team_t list = gpu_list_team();
    if (list != SHMEM_TEAM_INVALID) {
        team = channels_of(list, WEFT_FORM_RING);
        if (team.n > 1)
            one_by_one(gpu_rounds(50, 6), 2000);
    }
    shmem_barrier_all();
    return gpu_finish();
}
