/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: collectives of the host on GPU memory: broadcast, collect, fcollect, alltoall and
 * alltoalls of every type, reductions and scans of every type and operation, in place and not, on
 * teams of all shapes and on active sets, with dest and source in every mix of device heap, host
 * heap and statics; sizes of one element to some hundred kilobytes. PEs: 1 2 3 4, also staged
 * Far: cyclic:2 seed=7,reorder=16 */
#include "gpu/places.h"
#include "conformance/groups.h"
#include "random/random/coll_routines.h"

enum { GUARD = 64, HALF = AREA_BYTES_MAX / 2 };

static long psync[4][SHMEM_SYNC_SIZE];
static unsigned char pwrk[AREA_BYTES_MAX] __attribute__((aligned(64)));
static struct group groups[GROUPS];
static unsigned char expected[HALF], part[HALF];

/* The choices that are equal on all members of a group. */
struct round {
    const struct group *group;
    enum place to, from; /* with a GPU's memory among them */
    uint64_t key;
    unsigned char *dest;
    unsigned char *source;
};

static struct round open_round(const struct group *group) {
    static uint64_t key;
    struct round round = {.group = group, .key = key += 256};
    uint64_t shared = round.key + (uint64_t)group->world[0] * 64; /* teams differ */
    round.to = (enum place)gpu_draw(shared, SYMMETRIC_PLACES);
    round.from = (enum place)gpu_draw(shared + 1, SYMMETRIC_PLACES);
    if (!on_gpu(round.to) && !on_gpu(round.from))
        round.to = DEVICE;
    round.dest = area[round.to] + GUARD;
    round.source = area[round.from] + HALF + GUARD;
    return round;
}

/* One for all members, below the limit. */
static size_t draw(const struct round *round, uint64_t which, size_t limit) {
    return (size_t)gpu_draw(round->key + which + (uint64_t)round->group->world[0] * 64, limit);
}

static uint64_t key_of(const struct round *round, int member) {
    return round->key + (UINT64_C(1) << 32) * (uint64_t)(round->group->world[member] + 1);
}

/* Elements of a member's source. Padding of long doubles is compared nowhere. */
static void fill(const struct round *round, int member, void *to, size_t bytes) {
    gpu_fill(to, bytes, key_of(round, member));
}

static void begin(const struct round *round, size_t source_bytes) {
    gpu_poison(round->dest - GUARD, HALF);
    fill(round, round->group->my_pe, part, source_bytes);
    gpu_write(round->source, part, source_bytes);
    shmem_team_sync(round->group->team);
}

static void end(const struct round *round, size_t dest_bytes, const char *type, const char *what,
                size_t nelems) {
    gpu_expect(round->dest, expected, dest_bytes, "%s %s of %zu on %s, from %s to %s", type, what,
               nelems, round->group->name, place_names[round->from], place_names[round->to]);
    gpu_expect_poison(round->dest - GUARD, GUARD, "in front of dest");
    gpu_expect_poison(round->dest + dest_bytes, GUARD, "behind dest");
    shmem_team_sync(round->group->team);
}

/* Elements of one member, so that all members' fit. */
static size_t draw_nelems(const struct round *round, size_t bytes) {
    const size_t limits[] = {1, 5, 40, 700, HALF * 3 / 4 / (size_t)npes};
    size_t limit = limits[draw(round, 2, 5)] / bytes;
    return draw(round, 3, limit + 1) + 1;
}

/* --- Moves ----------------------------------------------------------------------------------- */

static void broadcast(const struct group *group, const struct move_routines *r) {
    struct round round = open_round(group);
    size_t nelems = draw_nelems(&round, r->bytes), bytes = nelems * r->bytes;
    int root = (int)draw(&round, 4, (size_t)group->npes);
    begin(&round, bytes);
    EXPECT(r->broadcast(group->team, round.dest, round.source, nelems, root) == 0, "broadcast");
    fill(&round, root, expected, bytes);
    end(&round, bytes, r->name, "broadcast", nelems);
}

static void fcollect(const struct group *group, const struct move_routines *r) {
    struct round round = open_round(group);
    size_t nelems = draw_nelems(&round, r->bytes), bytes = nelems * r->bytes;
    begin(&round, bytes);
    EXPECT(r->fcollect(group->team, round.dest, round.source, nelems) == 0, "fcollect");
    for (int member = 0; member < group->npes; member++)
        fill(&round, member, expected + (size_t)member * bytes, bytes);
    end(&round, bytes * (size_t)group->npes, r->name, "fcollect", nelems);
}

/* Every third member contributes nothing, and passes no pointer either. */
static size_t collect_nelems(const struct round *round, int member, size_t most) {
    return (size_t)gpu_draw(key_of(round, member) + 1, 3) == 0
               ? 0
               : (size_t)gpu_draw(key_of(round, member) + 2, most + 1);
}

static void collect(const struct group *group, const struct move_routines *r) {
    struct round round = open_round(group);
    size_t most = draw_nelems(&round, r->bytes), at = 0;
    size_t mine = collect_nelems(&round, group->my_pe, most);
    begin(&round, most * r->bytes);
    EXPECT(r->collect(group->team, round.dest, mine ? round.source : NULL, mine) == 0, "collect");
    for (int member = 0; member < group->npes; member++) {
        size_t bytes = collect_nelems(&round, member, most) * r->bytes;
        fill(&round, member, part, bytes);
        memcpy(expected + at, part, bytes);
        at += bytes;
    }
    end(&round, at, r->name, "collect", mine);
}

static void alltoall(const struct group *group, const struct move_routines *r) {
    struct round round = open_round(group);
    size_t nelems = draw_nelems(&round, r->bytes), bytes = nelems * r->bytes;
    size_t n = (size_t)group->npes;
    begin(&round, bytes * n);
    EXPECT(r->alltoall(group->team, round.dest, round.source, nelems) == 0, "alltoall");
    for (int member = 0; member < group->npes; member++) {
        fill(&round, member, part, bytes * n);
        memcpy(expected + (size_t)member * bytes, part + (size_t)group->my_pe * bytes, bytes);
    }
    end(&round, bytes * n, r->name, "alltoall", nelems);
}

static void alltoalls(const struct group *group, const struct move_routines *r) {
    struct round round = open_round(group);
    size_t nelems = draw(&round, 3, 20) + 1, b = r->bytes, n = (size_t)group->npes;
    size_t dst = draw(&round, 4, 4) + 1, sst = draw(&round, 5, 4) + 1;
    size_t extent = ((nelems * n - 1) * dst + 1) * b;
    begin(&round, nelems * n * sst * b);
    memset(expected, GPU_POISON, extent);
    EXPECT(r->alltoalls(group->team, round.dest, round.source, (ptrdiff_t)dst, (ptrdiff_t)sst,
                        nelems) == 0,
           "alltoalls");
    for (size_t member = 0; member < n; member++) {
        fill(&round, (int)member, part, nelems * n * sst * b);
        for (size_t i = 0; i < nelems; i++)
            memcpy(expected + (member * nelems + i) * dst * b,
                   part + ((size_t)group->my_pe * nelems + i) * sst * b, b);
    }
    end(&round, extent, r->name, "alltoalls", nelems);
}

static void every_move(const char *name,
                       void move(const struct group *group, const struct move_routines *r)) {
    tap_case(name);
    for (int row = 0; row < MOVE_ROWS; row++)
        for (int i = 0; i < 3; i++)
            move(&groups[(row + i * 3) % GROUPS], &move_routines[row]);
    shmem_barrier_all();
}

/* --- Folds ----------------------------------------------------------------------------------- */

static void operands(const struct fold_routines *r, const struct round *round, int member,
                     unsigned char *to, size_t nelems) {
    fill(round, member, to, nelems * r->bytes);
    for (size_t i = 0; i < nelems && r->operand; i++)
        r->operand(to + i * r->bytes, gpu_draw(key_of(round, member) + 8 + i * 256, UINT64_MAX));
}

/* Clears the bytes of an element that have no meaning: the last six of the x87's. */
static void clear_padding(const struct fold_routines *r, unsigned char *elements, size_t nelems) {
    for (size_t i = 0; i < nelems; i++)
        memset(elements + i * r->bytes + r->value_bytes, 0, r->bytes - r->value_bytes);
}

static void compare(const struct fold_routines *r, const struct round *round, size_t nelems,
                    const char *what) {
    unsigned char *found = malloc(nelems * r->bytes);
    gpu_copy(found, round->dest, nelems * r->bytes);
    clear_padding(r, found, nelems);
    clear_padding(r, expected, nelems);
    EXPECT(memcmp(found, expected, nelems * r->bytes) == 0, "%s %s of %zu on %s, from %s to %s%s",
           r->name, what, nelems, round->group->name, place_names[round->from],
           place_names[round->to], round->dest == round->source ? " in place" : "");
    free(found);
    if (round->dest != round->source)
        gpu_expect_poison(round->dest - GUARD, GUARD, "in front of dest");
    gpu_expect_poison(round->dest + nelems * r->bytes, GUARD, "behind dest");
}

/* The fold of members [0, count). */
static void expect_fold(const struct fold_routines *r, const struct round *round, int count,
                        size_t nelems) {
    memset(expected, 0, nelems * r->bytes);
    for (int member = 0; member < count; member++) {
        operands(r, round, member, member == 0 ? expected : part, nelems);
        if (member > 0)
            r->fold(expected, part, nelems);
    }
}

static void fold(const struct group *group, const struct fold_routines *r, gather *routine,
                 int count, const char *what) {
    struct round round = open_round(group);
    size_t nelems = draw_nelems(&round, r->bytes);
    gpu_poison(round.dest - GUARD, HALF);
    gpu_poison(round.source - GUARD, HALF);
    operands(r, &round, group->my_pe, part, nelems);
    gpu_write(round.source, part, nelems * r->bytes);
    if (on_gpu(round.from) && draw(&round, 5, 2))
        round.dest = round.source, round.to = round.from;
    shmem_team_sync(group->team);
    int result = routine(group->team, round.dest, round.source, nelems);
    EXPECT(result == 0, "%s: %d", r->name, result);
    expect_fold(r, &round, count, nelems);
    compare(r, &round, nelems, what);
    shmem_team_sync(group->team);
}

static void every_reduction(void) {
    for (int row = 0; row < REDUCE_ROWS; row++)
        for (int i = 0; i < 2; i++) {
            const struct group *group = &groups[(row + i * 5) % GROUPS];
            fold(group, &reduce_routines[row], reduce_routines[row].reduce, group->npes, "reduce");
        }
}

static void every_scan(void) {
    for (int row = 0; row < SCAN_ROWS; row++)
        for (int i = 0; i < 2; i++) {
            const struct group *group = &groups[(row + i * 5) % GROUPS];
            const struct fold_routines *r = &scan_routines[row];
            fold(group, r, r->inscan, group->my_pe + 1, "inscan");
            fold(group, r, r->exscan, group->my_pe, "exscan");
        }
}

/* More than one stage of every member's chunk. */
static void large_sum(void) {
    enum { NELEMS = 300 * 1000 };
    long *dest = shmemx_malloc(SHMEMX_SPACE_DEVICE, NELEMS * sizeof *dest);
    long *source = shmemx_malloc(SHMEMX_SPACE_DEVICE, NELEMS * sizeof *source);
    long *sum = calloc(NELEMS, sizeof *sum), *one = malloc(NELEMS * sizeof *one);
    for (int pe = 0; pe < npes; pe++) {
        gpu_fill(one, NELEMS * sizeof *one, 900 + (uint64_t)pe);
        for (int i = 0; i < NELEMS; i++)
            sum[i] = (long)((unsigned long)sum[i] + (unsigned long)one[i]);
    }
    gpu_poison(dest, NELEMS * sizeof *dest);
    gpu_fill(one, NELEMS * sizeof *one, 900 + (uint64_t)me);
    gpu_write(source, one, NELEMS * sizeof *one);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, NELEMS);
    gpu_expect(dest, sum, NELEMS * sizeof *sum, "a sum of %d", NELEMS);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, source, source, NELEMS);
    gpu_expect(source, sum, NELEMS * sizeof *sum, "a sum of %d in place", NELEMS);
    shmem_barrier_all();
    free(one);
    free(sum);
    shmem_free(source);
    shmem_free(dest);
}

/* --- Active sets ----------------------------------------------------------------------------- */

/* The set of all PEs; sets use their words alternately. */
static struct active_set whole_set(void) {
    static unsigned turn;
    return (struct active_set){0, 0, npes, psync[turn++ % 4]};
}

static void active_moves(const struct active_routines *r) {
    const struct group *group = &groups[0];
    struct round round = open_round(group);
    struct active_set set = whole_set();
    size_t nelems = draw_nelems(&round, r->bytes), bytes = nelems * r->bytes;
    int root = (int)draw(&round, 4, (size_t)npes);
    begin(&round, bytes);
    r->broadcast(round.dest, round.source, nelems, root, &set);
    if (me == root)
        memset(expected, GPU_POISON, bytes); /* the root's dest is not written */
    else
        fill(&round, root, expected, bytes);
    end(&round, bytes, r->name, "active broadcast", nelems);

    round = open_round(group);
    set = whole_set();
    begin(&round, bytes);
    (draw(&round, 6, 2) ? r->fcollect : r->collect)(round.dest, round.source, nelems, &set);
    for (int member = 0; member < npes; member++)
        fill(&round, member, expected + (size_t)member * bytes, bytes);
    end(&round, bytes * (size_t)npes, r->name, "active collect", nelems);
}

static void active_fold(const struct fold_routines *r) {
    struct round round = open_round(&groups[0]);
    struct active_set set = whole_set();
    size_t nelems = draw_nelems(&round, r->bytes);
    gpu_poison(round.dest - GUARD, HALF);
    operands(r, &round, me, part, nelems);
    gpu_write(round.source, part, nelems * r->bytes);
    shmem_barrier_all();
    r->to_all(round.dest, round.source, (int)nelems, &set, pwrk);
    expect_fold(r, &round, npes, nelems);
    compare(r, &round, nelems, "to_all");
    shmem_barrier_all();
}

int main(void) {
    unsigned char on_stack[AREA_BYTES_MAX] __attribute__((aligned(64)));
    places_start(on_stack);
    groups_make(groups);
    every_move("broadcast", broadcast);
    every_move("fcollect", fcollect);
    every_move("collect", collect);
    every_move("alltoall", alltoall);
    every_move("alltoalls", alltoalls);
    tap_case("reductions");
    every_reduction();
    tap_case("scans");
    every_scan();
    shmem_barrier_all();
    tap_case("a large sum");
    large_sum();
    tap_case("active sets");
    for (int i = 0; i < 12; i++)
        active_moves(&active_routines[i % 2]);
    for (int row = 0; row < TO_ALL_ROWS; row++)
        active_fold(&to_all_routines[row]);
    groups_drop(groups);
    return places_finish();
}
