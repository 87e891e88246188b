/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: collectives in the order of a stream, on all PEs, on a team with a stride, on one of
 * the last PEs and on a list. Broadcast, fcollect and all-to-all by either engine; every reduction
 * of every type, and reduce-scatter, by one kernel, with the same bits as the host's; in place; in
 * device and host memory; at odd sizes and offsets. PEs: 1 2 3 4, also staged
 * Far: cyclic:2 seed=7,reorder=16 */
#include <errno.h>
#include <math.h>
#include "on_stream.h"
#include "device/device.h"
#include "coll/stream_choice.h"

enum { LARGEST = 300000, MEMBERS = 8, ROOM = LARGEST * MEMBERS, AROUND = 64 };

/* Each is ROOM bytes of the device heap, and of the host heap. */
static unsigned char *dests[2], *sources[2];
static const char *const spaces[] = {"device", "host"};

/* --- Teams ------------------------------------------------------------------------------------ */

static struct {
    const char *name;
    shmem_team_t team;
} teams[4];
static int nteams;

/* The last PE, the first ones, and at four PEs without one. */
static void make_list(int npes) {
    int pes[MEMBERS], count = npes < 4 ? npes : npes - 1, me = shmem_my_pe(), in = 0;
    for (int i = 0; i < count; i++) {
        pes[i] = (npes - 1 + i) % npes;
        in |= pes[i] == me;
    }
    teams[nteams].name = "a list";
    if (in)
        ON(team_create(pes, count, 0, &teams[nteams].team));
    nteams++;
}

static void make_teams(void) {
    int npes = shmem_n_pes();
    teams[nteams].name = "all", teams[nteams++].team = SHMEM_TEAM_WORLD;
    teams[nteams].name = "every second";
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (npes + 1) / 2, NULL, 0,
                             &teams[nteams++].team);
    if (npes > 1) {
        teams[nteams].name = "all but the first";
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, npes - 1, NULL, 0, &teams[nteams++].team);
    }
    make_list(npes);
}

/* A call that the members of a team draw equally. */
struct draw {
    shmem_team_t team;
    int me, n;
    size_t bytes, dest, source; /* offsets */
    int space;
    uint64_t key;
};

/* Returns the key of a member's data. */
static uint64_t of(const struct draw *it, int member) {
    return it->key * 4096 + (uint64_t)member + 1;
}

static struct draw draw(shmem_team_t team, uint64_t key) {
    static const size_t sizes[] = {1,    3,    8,     16,     100,
                                   1000, 4096, 65536, 100001, LARGEST - 2 * AROUND};
    struct draw it = {.team = team, .key = key};
    it.me = shmem_team_my_pe(team);
    it.n = shmem_team_n_pes(team);
    it.bytes = sizes[gpu_draw(key * 8, sizeof sizes / sizeof *sizes)];
    bool aligned = gpu_draw(key * 8 + 1, 2);
    it.dest = AROUND + (aligned ? 0 : gpu_draw(key * 8 + 2, AROUND));
    it.source = aligned ? 0 : gpu_draw(key * 8 + 3, AROUND);
    it.space = (int)gpu_draw(key * 8 + 4, 4) == 0;
    shmemx_set_engine((shmemx_engine_t)gpu_draw(key * 8 + 5, 3));
    return it;
}

static unsigned char *prepare(const struct draw *it, size_t dest_bytes) {
    gpu_poison(dests[it->space], it->dest + dest_bytes + AROUND);
    return dests[it->space] + it->dest;
}

static void check_around(const struct draw *it, size_t dest_bytes) {
    gpu_expect_poison(dests[it->space], it->dest, "before the destination");
    gpu_expect_poison(dests[it->space] + it->dest + dest_bytes, AROUND, "behind the destination");
}

/* --- Copies ----------------------------------------------------------------------------------- */

static void broadcast(const struct draw *it) {
    int root = (int)gpu_draw(it->key * 8 + 7, (uint64_t)it->n);
    unsigned char *dest = prepare(it, it->bytes), *source = sources[it->space] + it->source;
    gpu_write(source, gpu_data(it->bytes, of(it, it->me)), it->bytes);
    ON(broadcastmem_on_stream(it->team, dest, source, it->bytes, root, gpu_stream));
    gpu_drain(gpu_stream);
    gpu_expect(dest, gpu_data(it->bytes, of(it, root)), it->bytes, "%zu bytes of %d, %s", it->bytes,
               root, spaces[it->space]);
    check_around(it, it->bytes);
}

static void fcollect(const struct draw *it) {
    size_t all = it->bytes * (size_t)it->n;
    unsigned char *dest = prepare(it, all), *source = sources[it->space] + it->source;
    gpu_write(source, gpu_data(it->bytes, of(it, it->me)), it->bytes);
    ON(fcollectmem_on_stream(it->team, dest, source, it->bytes, gpu_stream));
    gpu_drain(gpu_stream);
    for (int i = 0; i < it->n; i++)
        gpu_expect(dest + (size_t)i * it->bytes, gpu_data(it->bytes, of(it, i)), it->bytes,
                   "%zu bytes of %d, %s", it->bytes, i, spaces[it->space]);
    check_around(it, all);
}

/* Returns the key of member i's data for member k. */
static uint64_t between(const struct draw *it, int i, int k) {
    return of(it, i) * 64 + (uint64_t)k;
}

static void alltoall(const struct draw *it) {
    size_t all = it->bytes * (size_t)it->n;
    unsigned char *dest = prepare(it, all), *source = sources[it->space] + it->source;
    for (int k = 0; k < it->n; k++)
        gpu_write(source + (size_t)k * it->bytes, gpu_data(it->bytes, between(it, it->me, k)),
                  it->bytes);
    ON(alltoallmem_on_stream(it->team, dest, source, it->bytes, gpu_stream));
    gpu_drain(gpu_stream);
    for (int i = 0; i < it->n; i++)
        gpu_expect(dest + (size_t)i * it->bytes, gpu_data(it->bytes, between(it, i, it->me)),
                   it->bytes, "%zu bytes of %d, %s", it->bytes, i, spaces[it->space]);
    check_around(it, all);
}

static void move(const char *name, void (*call)(const struct draw *), uint64_t key) {
    int rounds = gpu_rounds(16, 5);
    tap_case(name);
    for (int t = 0; t < nteams; t++)
        for (int round = 0; round < rounds && teams[t].team != SHMEM_TEAM_INVALID; round++) {
            struct draw it = draw(teams[t].team, key + (uint64_t)(t * 16 + round));
            call(&it);
        }
    shmemx_set_engine(SHMEMX_ENGINE_AUTO);
    shmem_barrier_all();
}

/* A stream continues while the host has gone on: calls follow each other without checks. */
static void back_to_back(void) {
    tap_case("calls in a row, without the host in between");
    enum { ROUNDS = 30, BYTES = 1000 };
    int me = shmem_my_pe(), n = shmem_n_pes();
    for (int round = 0; round < ROUNDS; round++)
        gpu_write(sources[0] + round * BYTES, gpu_data(BYTES, (uint64_t)(90000 + round * 64 + me)),
                  BYTES);
    gpu_poison(dests[0], (size_t)(ROUNDS * BYTES * n));
    for (int round = 0; round < ROUNDS; round++) {
        shmemx_set_engine((shmemx_engine_t)gpu_draw(90000 + (uint64_t)round, 3));
        ON(fcollectmem_on_stream(SHMEM_TEAM_WORLD, dests[0] + round * BYTES * n,
                                 sources[0] + round * BYTES, BYTES, gpu_stream));
        if (round % 3 == 0)
            ON(barrier_all_on_stream(gpu_stream));
    }
    gpu_drain(gpu_stream);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < n; i++)
            gpu_expect(dests[0] + (round * n + i) * BYTES,
                       gpu_data(BYTES, (uint64_t)(90000 + round * 64 + i)), BYTES, "round %d of %d",
                       round, i);
    shmemx_set_engine(SHMEMX_ENGINE_AUTO);
    shmem_barrier_all();
}

/* --- Reductions --------------------------------------------------------------------------------
 */

typedef int host_call(shmem_team_t, void *, const void *, size_t);
typedef int stream_call(shmem_team_t, void *, const void *, size_t, shmemx_stream_t);
enum kind { INTEGER, FLOAT, DOUBLE };
struct reduction {
    const char *name;
    host_call *host;
    stream_call *reduce, *scatter;
    size_t elem_bytes;
    enum kind kind;
};

/* clang-format off */
#define KIND(T) _Generic((T){0}, float: FLOAT, float _Complex: FLOAT,                              \
                         double: DOUBLE, double _Complex: DOUBLE, default: INTEGER)
#define BITWISE(N, T, ROW)    ROW(N, T, and) ROW(N, T, or) ROW(N, T, xor)
#define ORDERED(N, T, ROW)    ROW(N, T, max) ROW(N, T, min)
#define ARITHMETIC(N, T, ROW) ROW(N, T, sum) ROW(N, T, prod)
#define ALL(ROW)                                                                                   \
    SHMEM_BITWISE_TYPES(BITWISE, ROW) SHMEM_RMA_TYPES(ORDERED, ROW)                                \
    SHMEM_ARITHMETIC_TYPES(ARITHMETIC, ROW)

/* All under one type. */
#define WRAP(N, T, OP)                                                                             \
    static int host_##N##_##OP(shmem_team_t team, void *dest, const void *source, size_t n) {      \
        return shmem_##N##_##OP##_reduce(team, dest, source, n);                                   \
    }                                                                                              \
    static int reduce_##N##_##OP(shmem_team_t team, void *dest, const void *source, size_t n,      \
                                 shmemx_stream_t stream) {                                         \
        return shmemx_##N##_##OP##_reduce_on_stream(team, dest, source, n, stream);                \
    }                                                                                              \
    static int scatter_##N##_##OP(shmem_team_t team, void *dest, const void *source, size_t n,     \
                                  shmemx_stream_t stream) {                                        \
        return shmemx_##N##_##OP##_reducescatter_on_stream(team, dest, source, n, stream);         \
    }
ALL(WRAP)
#define ROW(N, T, OP)                                                                              \
    {#N "_" #OP, host_##N##_##OP, reduce_##N##_##OP, scatter_##N##_##OP, sizeof(T), KIND(T)},
static const struct reduction reductions[] = {ALL(ROW)};
/* clang-format on */
enum { NREDUCTIONS = sizeof reductions / sizeof *reductions };

/* Numbers of very different sizes, so that another order gives other bits. Products of MEMBERS of
 * them are finite, because the bits of a NaN are unspecified. */
static void fill_numbers(void *to, size_t bytes, enum kind kind, uint64_t key) {
    gpu_fill(to, bytes, key);
    uint64_t *bits = malloc(bytes * 8 + 8);
    gpu_fill(bits, bytes * 8, key + 1);
    for (size_t i = 0; kind == FLOAT && i < bytes / sizeof(float); i++)
        ((float *)to)[i] = ldexpf((float)(int32_t)bits[i], (int)(bits[i] >> 40) % 24 - 43);
    for (size_t i = 0; kind == DOUBLE && i < bytes / sizeof(double); i++)
        ((double *)to)[i] = ldexp((double)(int64_t)bits[i], (int)(bits[i] >> 3) % 50 - 63);
    free(bits);
}

static int launches; /* of kernels, by the library */

static int count_launch(const struct weft_cu_launch_config *config, weft_cu_function function,
                        void **arguments, void **extra) {
    launches++;
    return gpu.cuLaunchKernelEx(config, function, arguments, extra);
}

/* 16-bit floats of the same kind: the upper halves of floats. */
static void fill_halves(uint16_t *to, size_t nelems, uint64_t key) {
    float *numbers = malloc(nelems * sizeof *numbers);
    fill_numbers(numbers, nelems * sizeof *numbers, FLOAT, key);
    for (size_t i = 0; i < nelems; i++)
        memcpy(&to[i], (char *)&numbers[i] + 2, sizeof *to);
    free(numbers);
}

/* One reduction by the host and on the stream. `blocks`: how many of nelems source has. */
static void reduce_one(const struct reduction *it, shmem_team_t team, uint64_t key, bool scatter) {
    static _Alignas(16) unsigned char data[ROOM], *host_dest, *host_source;
    static const size_t counts[] = {1, 2, 7, 15, 64, 129, 1000, 4099};
    int me = shmem_team_my_pe(team), n = shmem_team_n_pes(team);
    size_t nelems = counts[gpu_draw(key * 8, 8)], blocks = scatter ? (size_t)n : 1;
    size_t bytes = nelems * it->elem_bytes, all = bytes * blocks;
    size_t to = AROUND + it->elem_bytes * gpu_draw(key * 8 + 1, 4);
    size_t from = AROUND + it->elem_bytes * gpu_draw(key * 8 + 2, 4);
    int space = gpu_draw(key * 8 + 3, 4) == 0;
    bool in_place = gpu_draw(key * 8 + 4, 3) == 0;
    host_dest = dests[1] + ROOM / 2, host_source = sources[1] + ROOM / 2;
    unsigned char *source = sources[space] + from, *dest = dests[space] + to;
    if (in_place)
        dest = scatter ? source + bytes * (size_t)me : source;

    fill_numbers(data, all, it->kind, key * 4096 + 2 * (uint64_t)me);
    memcpy(host_source, data, all);
    if (in_place)
        gpu_poison(source - AROUND, AROUND), gpu_poison(source + all, AROUND);
    else
        gpu_poison(dest - AROUND, bytes + 2 * AROUND);
    gpu_write(source, data, all);
    int rc = it->host(team, host_dest, host_source, all / it->elem_bytes);
    EXPECT(rc == 0, "%s: the host's: %d", it->name, rc);
    launches = 0;
    rc = (scatter ? it->scatter : it->reduce)(team, dest, source, nelems, gpu_stream);
    EXPECT(rc == 0, "%s: %d: %s", it->name, rc, weft_last_error());
    EXPECT(launches == 1 || weft_device.staged, "%s: %d kernels", it->name, launches);
    gpu_drain(gpu_stream);
    gpu_expect(dest, host_dest + (scatter ? bytes * (size_t)me : 0), bytes,
               "%s%s of %zu + %zu from %zu, %s%s", it->name, scatter ? " reducescatter" : "",
               nelems, to, from, spaces[space], in_place ? ", in place" : "");
    if (in_place && scatter) /* between other members' blocks */
        return;
    gpu_expect_poison(dest - AROUND, AROUND, "before the destination");
    gpu_expect_poison(dest + bytes, AROUND, "behind the destination");
}

static void reduce_all(void) {
    for (int t = 0; t < nteams; t++) {
        tap_case(t == 0 ? "every reduction of every type" : "reductions of a team");
        if (teams[t].team != SHMEM_TEAM_INVALID)
            for (int r = t; r < NREDUCTIONS; r += t == 0 ? 1 : 3) {
                uint64_t key = (uint64_t)(1000000 + 10 * (t * NREDUCTIONS + r));
                if (strncmp(reductions[r].name, "longdouble", 10) == 0)
                    continue;
                reduce_one(&reductions[r], teams[t].team, key, false);
                reduce_one(&reductions[r], teams[t].team, key + 1, true);
            }
        shmem_barrier_all();
    }
}

/* --- Sizes at which the algorithm changes ----------------------------------------------------- */

/* The elements of the largest block that an algorithm takes, and one more. */
struct around {
    enum weft_stream_operation operation;
    size_t counts[2];
};

static bool find_around(struct around *around, int operation, int way, size_t elem_bytes) {
    enum { MOST = 2 << 20 };
    enum weft_stream_operation of = (enum weft_stream_operation)operation;
    size_t bytes = weft_stream_bytes_max(of, (enum weft_stream_way)way, shmem_n_pes());
    *around = (struct around){of, {bytes / elem_bytes, bytes / elem_bytes + 1}};
    return bytes > 0 && bytes <= MOST;
}

static void move_around(const struct around *around, uint64_t key) {
    static void (*const calls[])(const struct draw *) = {
        [WEFT_STREAM_ALL_GATHER] = fcollect,
        [WEFT_STREAM_ALL_TO_ALL] = alltoall,
        [WEFT_STREAM_BROADCAST] = broadcast,
    };
    for (int i = 0; i < 2; i++) {
        struct draw it = {.team = SHMEM_TEAM_WORLD,
                          .me = shmem_my_pe(),
                          .n = shmem_n_pes(),
                          .bytes = around->counts[i],
                          .dest = AROUND,
                          .source = (size_t)i,
                          .key = key + (uint64_t)i};
        calls[around->operation](&it);
    }
}

/* For 16-bit floats with weft_'s calls, with the host's bits: average of these, too. */
static void fold_around(const struct around *around, uint64_t key) {
    static uint16_t numbers[ROOM / 2];
    bool scatter = around->operation == WEFT_STREAM_REDUCE_SCATTER;
    size_t blocks = scatter ? (size_t)shmem_n_pes() : 1;
    int (*call)(shmem_team_t, void *, const void *, size_t, weft_dtype, weft_op, weft_stream) =
        scatter ? weft_reduce_scatter : weft_all_reduce;
    for (int i = 0; i < 2; i++) {
        size_t bytes = around->counts[i] * 2, all = bytes * blocks;
        weft_op op = i == 0 ? WEFT_SUM : WEFT_AVG;
        unsigned char *source = sources[0] + 2 * (size_t)i;
        fill_halves(numbers, all / 2, key + (uint64_t)(2 * i + shmem_my_pe() * 100));
        memcpy(sources[1], numbers, all);
        gpu_write(source, numbers, all);
        gpu_poison(dests[0], bytes + AROUND);
        int rc = call(SHMEM_TEAM_WORLD, dests[1], sources[1], around->counts[i], WEFT_BF16, op,
                      WEFT_STREAM_HOST);
        EXPECT(rc == 0, "the host's: %d: %s", rc, weft_last_error());
        rc = call(SHMEM_TEAM_WORLD, dests[0], source, around->counts[i], WEFT_BF16, op,
                  (weft_stream)gpu_stream);
        EXPECT(rc == 0, "%d: %s", rc, weft_last_error());
        gpu_drain(gpu_stream);
        gpu_expect(dests[0], dests[1], bytes, "operation %d of %zu", (int)around->operation,
                   around->counts[i]);
        gpu_expect_poison(dests[0] + bytes, AROUND, "behind the destination");
    }
}

/* Three members are as good as any number. */
static void around_thresholds(void) {
    tap_case("around the sizes at which the way changes");
    for (int operation = 0; operation < WEFT_STREAM_OPERATIONS && shmem_n_pes() == 3; operation++)
        for (int way = 0; way < WEFT_WAY_MEET; way++) {
            bool folds = operation >= WEFT_STREAM_REDUCE_SCATTER;
            struct around around;
            uint64_t key = (uint64_t)(7000000 + 1000 * (operation * WEFT_WAYS + way));
            if (find_around(&around, operation, way, folds ? 2 : 1))
                (folds ? fold_around : move_around)(&around, key);
        }
    shmem_barrier_all();
}

/* A NaN anywhere is in the result, of the smallest as of the largest. */
static void nans(void) {
    tap_case("a NaN in any member's numbers is in max, min and sum");
    enum { N = 200 };
    float data[N];
    int me = shmem_my_pe(), n = shmem_n_pes();
    static int (*const calls[])(shmem_team_t, float *, const float *, size_t, shmemx_stream_t) = {
        shmemx_float_max_reduce_on_stream, shmemx_float_min_reduce_on_stream,
        shmemx_float_sum_reduce_on_stream};
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < N; i++)
            data[i] = i % (n + 1) == me ? NAN : (float)(i * 3 - me);
        gpu_write(sources[0], data, sizeof data);
        int rc = calls[c](SHMEM_TEAM_WORLD, (float *)dests[0], (float *)sources[0], N, gpu_stream);
        EXPECT(rc == 0, "%d: %s", rc, weft_last_error());
        gpu_drain(gpu_stream);
        gpu_write(data, dests[0], sizeof data);
        for (int i = 0; i < N; i++)
            EXPECT(!isnan(data[i]) == (i % (n + 1) == n), "call %d, element %d is %g", c, i,
                   (double)data[i]);
        shmem_barrier_all();
    }
}

/* A product of complex numbers that is infinite is no NaN. */
static void infinities(void) {
    tap_case("an infinite complex product is infinite");
    int n = shmem_n_pes(), me = shmem_my_pe();
    double data[2] = {me == 0 ? (double)INFINITY : 2, me == 0 ? (double)NAN : 1};
    gpu_write(sources[0], data, sizeof data);
    ON(complexd_prod_reduce_on_stream(SHMEM_TEAM_WORLD, (void *)dests[0], (void *)sources[0], 1,
                                      gpu_stream));
    gpu_drain(gpu_stream);
    gpu_write(data, dests[0], sizeof data);
    EXPECT(isinf(data[0]) || isinf(data[1]), "%d PEs: %g %g", n, data[0], data[1]);
    shmem_barrier_all();
}

static void empty(void) {
    tap_case("an empty call waits for nobody");
    if (shmem_my_pe() == 0) {
        ON(broadcastmem_on_stream(SHMEM_TEAM_WORLD, NULL, NULL, 0, 0, gpu_stream));
        ON(fcollectmem_on_stream(SHMEM_TEAM_WORLD, NULL, NULL, 0, gpu_stream));
        ON(alltoallmem_on_stream(SHMEM_TEAM_WORLD, NULL, NULL, 0, gpu_stream));
        ON(int_sum_reduce_on_stream(SHMEM_TEAM_WORLD, NULL, NULL, 0, gpu_stream));
        ON(int_sum_reducescatter_on_stream(SHMEM_TEAM_WORLD, NULL, NULL, 0, gpu_stream));
        gpu_drain(gpu_stream);
    }
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    gpu_start();
    for (int space = 0; space < 2; space++) {
        dests[space] = allocated(shmemx_malloc((shmemx_space_t)!space, ROOM));
        sources[space] = allocated(shmemx_malloc((shmemx_space_t)!space, ROOM));
    }
    weft_cuda.cuLaunchKernelEx = count_launch;
    make_teams();
    move("broadcast", broadcast, 1000);
    move("fcollect", fcollect, 2000);
    move("alltoall", alltoall, 3000);
    back_to_back();
    reduce_all();
    around_thresholds();
    nans();
    infinities();
    empty();
    return gpu_finish();
}
