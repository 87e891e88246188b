/* SPDX-License-Identifier: BSD-3-Clause */
/* A random program of all calls, compared with a model of all calls. PEs: 1 2 3 4 8
 *
 * Every PE derives the same program from one seed: it draws each operation (random/draw.h), applies
 * it to its model of all memory (random/model.h) and, if it takes part, calls the library and
 * compares (random/execute.h). random/order.h knows what the standard orders: the program has no
 * races, so the model's order has the only possible result, except on words that are made for races
 * (random/words.h). An epoch begins with fresh memory and can be repeated alone.
 *
 *   random [--seed S] [--ops N] [--epoch E] [--to K] [--trace]
 *
 * --epoch runs only that epoch, --to only its first K operations; --trace prints all operations.
 * With WEFT_TEST_LONG the program makes ten million operations, over all PE counts. */
#include <shmem.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include "reach.h"
#include "tap.h"
#include "random/execute.h"

enum { EPOCH_OPS = 4000, WATCH_SECONDS = 100 };

static const struct option option_names[] = {
    {"seed", required_argument, NULL, 's'},  {"ops", required_argument, NULL, 'o'},
    {"epoch", required_argument, NULL, 'e'}, {"to", required_argument, NULL, 't'},
    {"trace", no_argument, NULL, 'v'},       {0}};
static struct {
    uint64_t seed, ops;
    uint32_t epoch, to;
    bool has_seed, one_epoch, trace;
} options = {.to = EPOCH_OPS};

int me, npes;

/* A few seconds, or ten million operations over the PE counts of the head; far over 2, 3 and 4. */
static uint64_t default_ops(void) {
    static const uint64_t millions[][PES_MAX + 1] = {{0, 2, 3, 2, 2, 1, 1, 1, 1},
                                                     {0, 2, 5, 3, 2, 1, 1, 1, 1}};
    if (getenv("WEFT_TEST_LONG"))
        return millions[!reach_is_near_to_all()][npes] * 1000000;
    return npes > 4 ? 20000 : 60000;
}

static bool read_options(int argc, char **argv) {
    int option;
    while ((option = getopt_long(argc, argv, "", option_names, NULL)) != -1) {
        unsigned long long value = optarg ? strtoull(optarg, NULL, 0) : 0;
        switch (option) {
        case 's':
            options.seed = value;
            options.has_seed = true;
            break;
        case 'o':
            options.ops = value;
            break;
        case 'e':
            options.epoch = (uint32_t)value;
            options.one_epoch = true;
            break;
        case 't':
            options.to = value < EPOCH_OPS ? (uint32_t)value : EPOCH_OPS;
            break;
        case 'v':
            options.trace = true;
            break;
        default:
            return false;
        }
    }
    return optind == argc;
}

/* All PEs use PE 0's choice: an option, WEFT_TEST_SEED, or a random seed. */
static uint64_t agree_on_seed(void) {
    static uint64_t seed;
    const char *given = getenv("WEFT_TEST_SEED");
    uint64_t drawn = options.has_seed || !given ? options.seed : strtoull(given, NULL, 0);
    if (!options.has_seed && !given && getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
        drawn = 1;
    if (me == 0)
        for (int pe = 0; pe < npes; pe++)
            shmem_uint64_p(&seed, drawn, pe);
    shmem_barrier_all();
    return seed;
}

static void step(uint32_t number) {
    struct op *op = &run.log[number];
    run.logged = number + 1;
    draw(op, number);
    struct outcome outcome = model_apply(op);
    run.counts[op->class]++;
    if (options.trace && me == 0)
        report_op(op);
    run.ops++;
    if (op->members >> me & 1)
        execute(op, outcome);
}

/* Completes all operations, then compares the whole memory of this PE. */
static void finish_epoch(uint32_t number) {
    struct op *last = &run.log[number];
    *last = (struct op){.class = BARRIER, .number = number};
    order_step(0);
    draw_flush(last);
    execute(last, (struct outcome){0});
    crowds_check(last);
    psyncs_check(last);
    uint32_t offset = memory_differs(0, SPACE);
    if (offset < SPACE)
        diverge_at(last, offset);
    shmem_barrier_all();
    objects_end();
    memory_end();
}

static void run_epoch(uint32_t epoch, uint32_t ops) {
    run.epoch = epoch;
    dice = random_of(run.seed, (int)epoch);
    report_watch(WATCH_SECONDS);
    order_begin();
    draw_begin();
    objects_begin();
    memory_begin();
    words_begin();
    memory_load(0, STATIC_BYTES);
    memory_load(block_offset(0), BLOCK_BYTES);
    shmem_barrier_all();
    for (uint32_t number = 0; number < ops; number++)
        step(number);
    finish_epoch(ops);
    report_watch(0);
}

static void run_program(void) {
    uint64_t ops = options.ops ? options.ops : default_ops();
    if (options.one_epoch) {
        run_epoch(options.epoch, options.to);
        return;
    }
    for (uint32_t epoch = 0; run.ops < ops; epoch++)
        run_epoch(epoch, EPOCH_OPS);
}

int main(int argc, char **argv) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided); /* for the class `threads` */
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    if (!read_options(argc, argv) || npes > PES_MAX) {
        fprintf(
            stderr,
            "usage: random [--seed S] [--ops N] [--epoch E] [--to K] [--trace], on 1 to %d PEs\n",
            PES_MAX);
        return 2;
    }
    objects_find_near();
    run.seed = agree_on_seed();
    if (me == 0)
        printf("# seed %llu\n", (unsigned long long)run.seed);
    memory_open(run.seed);
    execute_open();
    tap_case("a random program does what the model says");
    run_program();
    tap_case("every class of operations has its share");
    EXPECT(report_counts() || options.one_epoch, "less than %d %% of %llu", 2,
           (unsigned long long)run.ops);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
