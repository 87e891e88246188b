/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: exchanges by one kernel: all-gather, all-to-all and broadcast on all PEs and on a
 * list, of sizes around a unit, a block of threads and all of them, from and to any offset, in
 * place, in succession, and in graphs of mixed calls that are replayed. PEs: 2 3 5 */
#include "channels.h"
#include "coll/push.h"
#include "graph.h"

enum { LARGEST = 150000, MEMBERS = 8, ROOM = LARGEST * MEMBERS, AROUND = 64, CALLS = 6 };
enum kind { GATHER, ALL_TO_ALL, BROADCAST, KINDS };
static const char *const names[] = {"all-gather", "all-to-all", "broadcast"};

static char *dests, *sources;
static struct channels_team team;

struct draw {
    enum kind kind;
    uint64_t key;
    size_t bytes, dest, source; /* offsets */
    int root;
    bool in_place;
};

static struct draw draw(uint64_t key, size_t most) {
    static const size_t sizes[] = {1, 15, 16, 17, 100, 1000, 8192, 8193, 65536, LARGEST};
    struct draw it = {.key = key, .kind = (enum kind)gpu_draw(key * 8, KINDS)};
    it.bytes = sizes[gpu_draw(key * 8 + 1, sizeof sizes / sizeof *sizes)];
    if (it.bytes > most || gpu_draw(key * 8 + 2, 2))
        it.bytes = 1 + gpu_draw(key * 8 + 3, most - 1);
    bool aligned = gpu_draw(key * 8 + 4, 2);
    it.dest = AROUND + (aligned ? 0 : gpu_draw(key * 8 + 5, AROUND));
    it.source = aligned ? 0 : gpu_draw(key * 8 + 6, AROUND);
    it.root = (int)gpu_draw(key * 8 + 7, (uint64_t)team.n);
    it.in_place = it.kind != ALL_TO_ALL && key % 3 == 0;
    return it;
}

/* Returns the key of member i's data for member k. */
static uint64_t between(const struct draw *it, int i, int k) {
    return (it->key * 64 + (uint64_t)i) * 64 + (uint64_t)(it->kind == ALL_TO_ALL ? k : 0);
}

static size_t dest_bytes(const struct draw *it) {
    return it->kind == BROADCAST ? it->bytes : it->bytes * (size_t)team.n;
}

/* --- One call ----------------------------------------------------------------------------------
 */

static struct weft_gpu_collective task_of(const struct draw *it, char *dest, char *source) {
    struct weft_gpu_collective task = {.source = source,
                                       .dest = dest,
                                       .dests = channels_array(&team, dest),
                                       .bytes = it->bytes,
                                       .root = it->root};
    task.dest_step = it->kind == BROADCAST ? 0 : it->bytes;
    task.source_step = it->kind == ALL_TO_ALL ? it->bytes : 0;
    if (it->in_place)
        task.source = dest + (size_t)team.me * task.dest_step;
    return task;
}

/* Fills the source, and all of dest that the source is not with poison. */
static void prepare(const struct draw *it, const struct weft_gpu_collective *task) {
    gpu_poison(task->dest - it->dest, it->dest + dest_bytes(it) + AROUND);
    size_t blocks = it->kind == ALL_TO_ALL ? (size_t)team.n : 1;
    for (size_t k = 0; k < blocks && !(it->kind == BROADCAST && it->root != team.me); k++)
        gpu_write((char *)task->source + k * it->bytes,
                  gpu_data(it->bytes, between(it, team.me, (int)k)), it->bytes);
}

static void check(const struct draw *it, const char *dest) {
    for (int i = 0; i < team.n; i++)
        if (it->kind != BROADCAST || i == it->root)
            gpu_expect(dest + (it->kind == BROADCAST ? 0 : (size_t)i * it->bytes),
                       gpu_data(it->bytes, between(it, i, team.me)), it->bytes,
                       "%s of %zu bytes from %d%s, offsets %zu and %zu", names[it->kind], it->bytes,
                       i, it->in_place ? " in place" : "", it->source % 16, it->dest % 16);
    gpu_expect_poison(dest - it->dest, it->dest, "before the destination");
    gpu_expect_poison(dest + dest_bytes(it), AROUND, "behind the destination");
}

static void one_by_one(int rounds, uint64_t key) {
    for (int round = 0; round < rounds; round++) {
        struct draw it = draw(key + (uint64_t)round, LARGEST);
        struct weft_gpu_collective task = task_of(&it, dests + it.dest, sources + it.source);
        prepare(&it, &task);
        INSIDE(weft_push_exchange(&team.channels, &task, gpu_stream));
        gpu_drain(gpu_stream);
        check(&it, dests + it.dest);
    }
}

/* --- In a row, and in graphs -------------------------------------------------------------------
 */

enum { SMALL = 20000, PART = (SMALL + 2 * AROUND) * MEMBERS };
_Static_assert(CALLS *PART <= ROOM, "a row fits");
static struct draw row[CALLS];
static struct weft_gpu_collective tasks[CALLS];

static void draw_row(uint64_t key) {
    for (int i = 0; i < CALLS; i++) {
        row[i] = draw(key + (uint64_t)i, SMALL);
        tasks[i] =
            task_of(&row[i], dests + i * PART + row[i].dest, sources + i * PART + row[i].source);
    }
}

static void enqueue_row(void) {
    for (int i = 0; i < CALLS; i++)
        INSIDE(weft_push_exchange(&team.channels, &tasks[i], gpu_stream));
}

static void replay_rows(int replays, uint64_t key) {
    draw_row(key);
    weft_cu_graph_exec exec = graph_capture(gpu_stream, enqueue_row);
    for (int replay = 0; replay < replays; replay++) {
        for (int i = 0; i < CALLS; i++) {
            row[i].key += 100;
            prepare(&row[i], &tasks[i]);
        }
        if (replay % 2)
            enqueue_row();
        else
            graph_replay(exec, gpu_stream);
        gpu_drain(gpu_stream);
        for (int i = 0; i < CALLS; i++)
            check(&row[i], tasks[i].dest);
    }
    graph_drop(exec);
}

int main(void) {
    shmem_init();
    inside_start();
    dests = inside_malloc(ROOM + 3 * AROUND);
    sources = inside_malloc(ROOM + 3 * AROUND);
    team = channels_of(SHMEM_TEAM_WORLD, WEFT_FORM_LL);
    tap_case("one call at a time, on all PEs");
    one_by_one(gpu_rounds(80, 14), 1000);
    tap_case("calls in a row, alone and in graphs that are replayed");
    replay_rows(gpu_rounds(8, 2), 3000);
    tap_case("on a list of PEs");
    shmem_team_t list = gpu_list_team();
    if (list != SHMEM_TEAM_INVALID) {
        team = channels_of(list, WEFT_FORM_LL);
        if (team.n > 1)
            one_by_one(gpu_rounds(40, 6), 2000);
    }
    shmem_barrier_all();
    return gpu_finish();
}
