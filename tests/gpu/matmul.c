/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the products of weft.h on streams, for all types of factors, at odd sizes, with
 * empty, strided and transposed matrices, in all kinds of GPU memory, of teams of all kinds:
 * results against double, the same bits on all members, nothing written beside them; graphs that
 * are launched again with other data, between calls of the host; calls without waiting, with one
 * member late; and wrong arguments, which are an error of the member that passes them.
 * PEs: 1 2 3 4, also staged
 * Far: cyclic:2 seed=7,reorder=16 */
#include <errno.h>
#include <time.h>
#include "gpu/gather.h"
#include "gpu/graph.h"
#include "gpu/reduction.h"

/* --- All-gather + product --------------------------------------------------------------------- */

/* The shard is in any kind of memory from `least` on. */
static void gather_draw(uint64_t key, enum kind least) {
    draw_alike(key);
    g.dtype = all_dtypes[random_below(4)];
    g.rows = draw_size(20);
    g.k = draw_size(24);
    bool transposed = random_below(2);
    g.copies = !transposed && random_below(2);
    draw_alone(key);
    g.nb = random_below(5) == 0 && g.copies ? 0 : 1 + random_below(NB_MAX);
    size_t ld = (transposed ? g.rows : g.k) + random_below(2) * 3;
    weft_matrix shape = {NULL, g.rows, g.k, ld, g.dtype, transposed};
    struct tensor shard = tensor_of(PRIVATE, shape);
    tensor_fill(&shard, seed_of(key, group.me, 0));
    g.shard = place((enum kind)(least + random_below(KINDS - least)), shard);
    for (size_t j = 0; j < g.nb; j++) {
        size_t n = draw_size(20);
        g.b[j] = factor(random_below(2) ? OWN : SYMMETRIC, g.k, n, g.dtype,
                        seed_of(key, group.me, 1 + j));
        g.c[j] = result(g.rows * (size_t)group.n, n, g.dtype);
    }
    if (g.copies)
        g.full = result(g.rows * (size_t)group.n, g.k, g.dtype);
}

/* --- Product + reduction ---------------------------------------------------------------------- */

/* `used`: bytes of the pools that hold other matrices, or NULL. */
static void reduce_draw(uint64_t key, bool scatters, const size_t *used) {
    draw_alike(key);
    for (int kind = 0; kind < KINDS && used; kind++)
        pools[kind].used = used[kind];
    size_t rows = draw_size(20);
    r.dtype = all_dtypes[random_below(4)];
    r.op = random_below(2) ? WEFT_SUM : WEFT_AVG;
    r.roundings = 1;
    r.scatters = scatters;
    r.m = scatters ? rows * (size_t)group.n : rows;
    r.n = draw_size(20);
    for (int member = 0; member < group.n; member++)
        r.depths[member] = mix(key * 77 + (uint64_t)member) % 24; /* K differs between members */
    draw_alone(key);
    enum kind of_a = random_below(2) ? OWN : SYMMETRIC, of_b = random_below(2) ? OWN : SYMMETRIC;
    r.a = factor(of_a, r.m, r.depths[group.me], r.dtype, seed_of(key, group.me, 0));
    r.b = factor(of_b, r.depths[group.me], r.n, r.dtype, seed_of(key, group.me, 1));
    r.c = result(rows, r.n, r.dtype);
}

/* --- Cases ------------------------------------------------------------------------------------ */

static void one_of_each(void) {
    for (int i = 0; i < gpu_rounds_together(200, 20); i++) {
        uint64_t key = 10 + 3 * (uint64_t)i;
        gather_draw(key, HOST);
        gather_enqueue();
        gather_check(key, 1);
        gather_free();
        for (int scatters = 0; scatters < 2; scatters++) {
            reduce_draw(key, scatters, NULL);
            reduce_enqueue();
            reduce_check(key, 1);
            if (!scatters)
                same_bits();
            reduce_free();
        }
    }
}

/* Draws the matrices of a gather and of a reduction, side by side in the pools. */
static void draw_both(uint64_t key) {
    gather_draw(key, OWN);
    size_t used[KINDS] = {pools[HOST].used, pools[OWN].used, pools[SYMMETRIC].used};
    reduce_draw(key, true, used);
}

static void enqueue_both(void) {
    gather_enqueue();
    reduce_enqueue();
    gather_enqueue();
}

static void write_both(uint64_t key) {
    gather_write(key);
    write_again(&r.a, seed_of(key, group.me, 0));
    write_again(&r.b, seed_of(key, group.me, 1));
}

/* One member at a time is late. */
static void be_late(uint64_t key) {
    struct timespec pause = {0, 1000 * (long)gpu_draw(key * 2, 400)};
    if ((int)gpu_draw(key * 2 + 1, (uint64_t)group.n) == group.me)
        nanosleep(&pause, NULL);
}

/* A graph of an odd number of calls: when it is launched again, its first call has the half of its
 * last one. */
static void graphs(void) {
    for (uint64_t key = 900; key < 903; key++) {
        draw_both(key);
        weft_cu_graph_exec graph = graph_capture(gpu_stream, enqueue_both);
        for (uint64_t turn = 0; turn < 6; turn++) {
            write_both(key + 100 * turn);
            be_late(key + turn);
            if (turn % 3 == 2)
                enqueue_both();
            else
                graph_replay(graph, gpu_stream);
            if (turn % 2 == 0)
                graph_replay(graph, gpu_stream);
            gather_check(key + 100 * turn, 1);
            reduce_check(key + 100 * turn, 1);
        }
        graph_drop(graph);
        gather_free();
        reduce_free();
    }
}

/* --- Members of unlike speed ------------------------------------------------------------------ */

/* The slow member's products take much longer, so the others are a call ahead of it: what they push
 * must not reach the slots that it still reads. Nobody waits for a stream before the end: inputs
 * and results of turn t are copied in the order of the stream. The number of turns is odd: the
 * first call of a graph that is launched again has the half of its last one. */
enum { TURNS = 5, ROWS = 4, DEEP = 300, WIDE = 48 };

static struct race {
    int slow;
    bool scatters;
    weft_matrix in, b, out; /* in: the shard, or a */
    weft_matrix inputs[TURNS], results[TURNS];
} race;

static weft_matrix on_gpu(size_t rows, size_t cols) {
    struct placed p = place(OWN, tensor_new(PRIVATE, rows, cols, cols, WEFT_F32));
    tensor_free(&p.image);
    return p.m;
}

static size_t bytes_of(const weft_matrix *m) {
    return m->rows * m->cols * sizeof(float);
}

static void copy_in_order(void *to, const void *from, size_t bytes) {
    gpu_enter();
    GPU(cuMemcpyAsync((weft_cu_address)to, (weft_cu_address)from, bytes, gpu_stream));
    gpu_leave();
}

/* All elements of turn t's input are t + 1 times those of member 0, of which member m has m + 1
 * times. All of b are 1. */
static void fill_turn(weft_matrix *m, double value) {
    static float all[64 * DEEP];
    for (size_t i = 0; i < m->rows * m->cols; i++)
        all[i] = (float)value;
    gpu_write(m->data, all, bytes_of(m));
}

static size_t race_depth(int member) {
    return !race.scatters || member == race.slow ? DEEP : 1;
}

static double race_result(int turn, size_t row) {
    double sum = 0;
    if (!race.scatters)
        return (turn + 1) * (double)(row / ROWS + 1) * DEEP;
    for (int member = 0; member < group.n; member++)
        sum += (turn + 1) * (double)(member + 1) * (double)race_depth(member);
    return sum;
}

static void race_check(int turn, const weft_matrix *result) {
    float found[64 * DEEP];
    gpu_copy(found, result->data, bytes_of(result));
    for (size_t i = 0; i < result->rows * result->cols; i++) {
        double wanted = race_result(turn, i / result->cols);
        EXPECT(found[i] == wanted, "%s, member %d slow, turn %d: element %zu is %g, not %g",
               race.scatters ? "reduce_scatter" : "all_gather", race.slow, turn, i, found[i],
               wanted);
    }
}

static int race_call(void) {
    if (race.scatters)
        return weft_matmul_reduce_scatter(group.team, &race.in, &race.b, WEFT_SUM, &race.out,
                                          stream());
    return weft_all_gather_matmul(group.team, &race.in, &race.b, 1, &race.out, NULL, stream());
}

static void race_enqueue(void) {
    for (int turn = 0; turn < TURNS; turn++) {
        copy_in_order(race.in.data, race.inputs[turn].data, bytes_of(&race.in));
        done(race_call(), "a call of the race");
        copy_in_order(race.results[turn].data, race.out.data, bytes_of(&race.out));
    }
}

static void race_draw(int slow, bool scatters) {
    draw_alike(20);
    race = (struct race){.slow = slow, .scatters = scatters};
    size_t all = ROWS * (size_t)group.n, depth = race_depth(group.me);
    race.in = on_gpu(scatters ? all : ROWS, depth);
    race.b = on_gpu(depth, scatters || group.me == slow ? WIDE : 1);
    race.out = on_gpu(scatters ? ROWS : all, race.b.cols);
    fill_turn(&race.b, 1);
    for (int turn = 0; turn < TURNS; turn++) {
        race.inputs[turn] = on_gpu(race.in.rows, depth);
        race.results[turn] = on_gpu(race.out.rows, race.out.cols);
        fill_turn(&race.inputs[turn], (turn + 1) * (double)(group.me + 1));
    }
}

static void race_finish(void) {
    gpu_drain(gpu_stream);
    for (int turn = 0; turn < TURNS; turn++)
        race_check(turn, &race.results[turn]);
}

static void each_race(void (*run)(void)) {
    for (int round = 0; round < gpu_rounds_together(50, 1); round++)
        for (int slow = 0; slow < group.n; slow++)
            for (int scatters = 0; scatters < 2; scatters++) {
                race_draw(slow, scatters);
                run();
                race_finish();
            }
}

static void race_without_graphs(void) {
    race_enqueue();
    race_enqueue();
}

static void races_without_graphs(void) {
    each_race(race_without_graphs);
}

static void race_of_graphs(void) {
    weft_cu_graph_exec graph = graph_capture(gpu_stream, race_enqueue);
    graph_replay(graph, gpu_stream);
    graph_replay(graph, gpu_stream);
    race_enqueue();
    graph_replay(graph, gpu_stream);
    race_finish();
    graph_drop(graph);
}

static void races_of_graphs(void) {
    each_race(race_of_graphs);
}

/* --- Several streams, and the end of a team --------------------------------------------------- */

/* Calls of a team on two streams in turns, of which neither is waited for: they use the same memory
 * one after the other, also if the team has one member. */
static void two_streams(void) {
    enum { MANY = 40 };
    weft_cu_stream streams[] = {gpu_stream, gpu_stream_new()};
    draw_alike(30);
    weft_matrix x = on_gpu(MANY, DEEP), ones = on_gpu(DEEP, WIDE), results[TURNS];
    fill_turn(&x, group.me + 1);
    fill_turn(&ones, 1);
    for (int turn = 0; turn < TURNS; turn++) {
        results[turn] = on_gpu(MANY * (size_t)group.n, WIDE);
        done(weft_all_gather_matmul(group.team, &x, &ones, 1, &results[turn], NULL,
                                    (weft_stream)streams[turn % 2]),
             "a call on one of two streams");
    }
    gpu_drain(streams[0]);
    gpu_drain(streams[1]);
    for (int turn = 0; turn < TURNS; turn++) {
        static float found[MANY * WIDE * 64];
        gpu_copy(found, results[turn].data, bytes_of(&results[turn]));
        for (size_t i = 0; i < results[turn].rows * WIDE; i++)
            EXPECT(found[i] == (float)((i / WIDE / MANY + 1) * DEEP), "turn %d: element %zu is %g",
                   turn, i, (double)found[i]);
    }
}

/* A team may be destroyed while its last call is under way. */
static void team_ends(void) {
    shmem_team_t alone = SHMEM_TEAM_INVALID, own;
    for (int pe = 0; pe < shmem_n_pes(); pe++) {
        shmem_team_split_strided(SHMEM_TEAM_WORLD, pe, 1, 1, NULL, 0, &own);
        alone = pe == shmem_my_pe() ? own : alone;
    }
    draw_alike(31);
    weft_matrix x = on_gpu(ROWS, DEEP), ones = on_gpu(DEEP, WIDE), c = on_gpu(ROWS, WIDE);
    fill_turn(&x, 2);
    fill_turn(&ones, 1);
    done(weft_matmul_all_reduce(alone, &x, &ones, WEFT_SUM, &c, stream()), "the last call");
    shmem_team_destroy(alone);
    gpu_drain(gpu_stream);
    float found[ROWS * WIDE];
    gpu_copy(found, c.data, bytes_of(&c));
    EXPECT(found[ROWS * WIDE - 1] == 2 * DEEP, "after the end: %g", (double)found[ROWS * WIDE - 1]);
}

/* --- Errors ----------------------------------------------------------------------------------- */

static void refused(int rc, int wanted, const char *text) {
    EXPECT(rc == wanted && strstr(weft_last_error(), text), "%d, '%s', not %d with '%s'", rc,
           weft_last_error(), wanted, text);
}

static void errors(void) {
    draw_alike(8);
    size_t n = (size_t)group.n;
    weft_matrix a = on_gpu(4, 6), b = on_gpu(6, 5), c = on_gpu(4 * n, 5);
    struct placed host = place(HOST, tensor_new(PRIVATE, 6, 5, 5, WEFT_F32));
    weft_matrix wrong = c, f64 = b;
    wrong.rows++;
    refused(weft_all_gather_matmul(group.team, &a, &b, 1, &wrong, NULL, stream()), -EINVAL,
            "c[0].rows is");
    wrong = a, wrong.ld = 3;
    refused(weft_all_gather_matmul(group.team, &wrong, &b, 1, &c, NULL, stream()), -EINVAL,
            "a_shard->ld is 3");
    f64.dtype = WEFT_F64;
    refused(weft_all_gather_matmul(group.team, &a, &f64, 1, &c, NULL, stream()), -EINVAL,
            "b[0].dtype is");
    refused(weft_all_gather_matmul(group.team, &a, &host.m, 1, &c, NULL, stream()), -ENOTSUP,
            "b[0].data is in host memory");
    wrong = c, wrong.transposed = true, wrong.ld = c.rows;
    refused(weft_all_gather_matmul(group.team, &a, &b, 1, &wrong, NULL, stream()), -EINVAL,
            "c[0].transposed is true");
    refused(weft_matmul_all_reduce(group.team, &a, &b, WEFT_MAX, &c, stream()), -EINVAL, "");
    refused(weft_matmul_reduce_scatter(group.team, &a, &b, WEFT_SUM, NULL, stream()), -EINVAL,
            "c_shard is NULL");
    wrong = a, wrong.rows = 1;
    refused(weft_matmul_reduce_scatter(group.team, &a, &b, WEFT_SUM, &wrong, stream()), -EINVAL,
            "is");
    refused(weft_matmul_all_reduce(SHMEM_TEAM_INVALID, &a, &b, WEFT_SUM, &c, stream()), -EINVAL,
            "team");
    a.dtype = b.dtype = c.dtype = WEFT_I32, c.rows = a.rows;
    refused(weft_matmul_all_reduce(group.team, &a, &b, WEFT_SUM, &c, stream()), -EINVAL,
            "dtype is WEFT_I32");
    free(host.image.block);
}

int main(void) {
    matrices_start();
    shmem_team_t list = gpu_list_team();
    with_group(SHMEM_TEAM_WORLD, "of all PEs", one_of_each);
    with_group(list, "of a list of PEs", one_of_each);
    with_group(SHMEM_TEAM_WORLD, "members of unlike speed", races_without_graphs);
    with_group(list, "members of unlike speed, in graphs, of a list of PEs", races_of_graphs);
    with_group(SHMEM_TEAM_WORLD, "members of unlike speed, in graphs", races_of_graphs);
    with_group(SHMEM_TEAM_WORLD, "graphs, launched again and between calls of the host", graphs);
    with_group(SHMEM_TEAM_WORLD, "calls on two streams", two_streams);
    with_group(SHMEM_TEAM_WORLD, "a team of one PE ends while it multiplies", team_ends);
    with_group(SHMEM_TEAM_WORLD, "wrong arguments are named, and change nothing", errors);
    return gpu_finish();
}
