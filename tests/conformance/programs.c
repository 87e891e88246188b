/* SPDX-License-Identifier: BSD-3-Clause */
/* Small whole programs as users write them: a pipeline with credits, the transpose of a distributed
 * matrix, a sample sort with offsets by scans, a ring sum, a master with workers and mailboxes.
 * Each compares its result with a sequential one. */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include "conformance/ring.h"
#include "tap.h"
#include "api/model.h"

/* Every PE is a stage: it waits for an item, processes it, and passes it on; each stage has a
 * buffer of DEPTH items, whose places the next stage returns as credits. */
static void pipeline(void) {
    enum { ITEMS = 400, DEPTH = 4, LENGTH = 32 };
    static long buffer[DEPTH][LENGTH];
    static uint64_t full[DEPTH]; /* number of the item in each place */
    static uint64_t credits;     /* number of items that the next stage has taken */
    for (uint64_t item = 1; item <= ITEMS; item++) {
        long work[LENGTH];
        size_t place = item % DEPTH;
        if (me == 0) {
            for (int i = 0; i < LENGTH; i++)
                work[i] = (long)item * LENGTH + i;
        } else {
            shmem_signal_wait_until(&full[place], SHMEM_CMP_EQ, item);
            memcpy(work, buffer[place], sizeof work);
            shmem_signal_add(&credits, 1, before);
        }
        for (int i = 0; i < LENGTH; i++)
            work[i] = work[i] * 3 + me;
        if (me < npes - 1) {
            if (item > DEPTH)
                shmem_signal_wait_until(&credits, SHMEM_CMP_GE, item - DEPTH);
            shmem_put_signal(buffer[place], work, LENGTH, &full[place], item, SHMEM_SIGNAL_SET,
                             next);
            continue;
        }
        for (int i = 0; i < LENGTH; i++) {
            long expected = (long)item * LENGTH + i;
            for (int stage = 0; stage < npes; stage++)
                expected = expected * 3 + stage;
            EXPECT(work[i] == expected, "item %llu, element %d: %ld, not %ld",
                   (unsigned long long)item, i, work[i], expected);
        }
    }
    shmem_barrier_all();
}

/* A square matrix in blocks of rows: an alltoall exchanges blocks, and each PE transposes its
 * own. */
static void transpose(void) {
    enum { BLOCK = 12 };
    int n = BLOCK * npes;
    size_t bytes = sizeof(double) * BLOCK * (size_t)n;
    double *rows = shmem_malloc(bytes), *packed = shmem_malloc(bytes),
           *blocks = shmem_malloc(bytes);
    for (int i = 0; i < BLOCK; i++)
        for (int j = 0; j < n; j++)
            rows[i * n + j] = (me * BLOCK + i) * 1000.0 + j;
    for (int pe = 0; pe < npes; pe++)
        for (int i = 0; i < BLOCK; i++)
            memcpy(packed + (pe * BLOCK + i) * BLOCK, rows + i * n + pe * BLOCK,
                   BLOCK * sizeof(double));
    shmem_sync_all();
    EXPECT(shmem_alltoall(SHMEM_TEAM_WORLD, blocks, packed, BLOCK * BLOCK) == 0, "alltoall");
    for (int pe = 0; pe < npes; pe++) /* block `pe` has that PE's rows of my columns */
        for (int i = 0; i < BLOCK; i++)
            for (int j = 0; j < BLOCK; j++)
                rows[j * n + pe * BLOCK + i] = blocks[(pe * BLOCK + i) * BLOCK + j];
    int wrong = 0;
    for (int i = 0; i < BLOCK; i++)
        for (int j = 0; j < n; j++)
            wrong += rows[i * n + j] != j * 1000.0 + (me * BLOCK + i);
    EXPECT(wrong == 0, "%d elements are wrong", wrong);
    /* And back, without an alltoall: each PE fetches columns with block-strided gets. */
    shmem_barrier_all();
    double *column = malloc(sizeof(double) * (size_t)n);
    for (int i = 0; i < BLOCK; i++) {
        for (int pe = 0; pe < npes; pe++)
            shmem_iget(column + pe * BLOCK, rows + me * BLOCK + i, 1, n, BLOCK, pe);
        for (int j = 0; j < n; j++)
            wrong += column[j] != (me * BLOCK + i) * 1000.0 + j;
    }
    EXPECT(wrong == 0, "%d elements of columns are wrong", wrong);
    free(column);
    shmem_free(blocks);
    shmem_free(packed);
    shmem_free(rows);
}

static int compare(const void *a, const void *b) {
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* Sample sort: splitters from all PEs' samples, counts by an alltoall, places by a scan over the
 * counts, keys by puts; then global positions by a scan over the sizes. */
static void sort(void) {
    enum { KEYS = 3000, SAMPLES = 16, PES_MAX = 64 };
    static unsigned keys[KEYS], samples[SAMPLES], all_samples[PES_MAX * SAMPLES],
        splitters[PES_MAX];
    static size_t counts[PES_MAX], places[PES_MAX], to_come[PES_MAX], size, position, total;
    struct random random = random_of(77, me);
    unsigned sum = 0;
    for (int i = 0; i < KEYS; i++)
        sum += keys[i] = (unsigned)random_next(&random);
    qsort(keys, KEYS, sizeof *keys, compare);
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = keys[i * (KEYS / SAMPLES)];
    EXPECT(shmem_fcollect(SHMEM_TEAM_WORLD, all_samples, samples, SAMPLES) == 0, "fcollect");
    qsort(all_samples, (size_t)npes * SAMPLES, sizeof *all_samples, compare);
    for (int pe = 1; pe < npes; pe++)
        splitters[pe] = all_samples[pe * SAMPLES];
    memset(counts, 0, sizeof counts);
    for (int i = 0, pe = 0; i < KEYS; i++) {
        while (pe + 1 < npes && keys[i] >= splitters[pe + 1])
            pe++;
        counts[pe]++;
    }
    /* places[p]: where this PE's keys belong on PE p, after those of the PEs before this one. */
    EXPECT(shmem_sum_exscan(SHMEM_TEAM_WORLD, places, counts, (size_t)npes) == 0, "exscan");
    EXPECT(shmem_sum_reduce(SHMEM_TEAM_WORLD, to_come, counts, (size_t)npes) == 0, "sum");
    size = to_come[me];
    unsigned *sorted = shmem_malloc((size_t)npes * KEYS * sizeof *sorted);
    for (size_t pe = 0, from = 0; pe < (size_t)npes; from += counts[pe++])
        shmem_put_nbi(sorted + places[pe], keys + from, counts[pe], (int)pe);
    shmem_barrier_all();
    qsort(sorted, size, sizeof *sorted, compare);
    EXPECT(shmem_sum_exscan(SHMEM_TEAM_WORLD, &position, &size, 1) == 0, "exscan");
    EXPECT(shmem_sum_reduce(SHMEM_TEAM_WORLD, &total, &size, 1) == 0, "sum");
    EXPECT(total == (size_t)npes * KEYS, "%zu keys", total);
    shmem_barrier_all();
    if (size > 0 && me + 1 < npes) { /* no PE after this one has a smaller key */
        unsigned theirs = shmem_size_g(&size, next) ? shmem_g(&sorted[0], next) : sorted[size - 1];
        EXPECT(sorted[size - 1] <= theirs, "%u before %u", sorted[size - 1], theirs);
    }
    EXPECT(me > 0 || position == 0, "%zu", position);
    static unsigned in, out, all_in, all_out;
    in = sum;
    for (size_t i = 0; i < size; i++)
        out += sorted[i];
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &all_in, &in, 1);
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &all_out, &out, 1);
    EXPECT(all_in == all_out, "other keys came out than went in: %u %u", all_in, all_out);
    shmem_free(sorted);
}

/* PE 0 gives tasks to idle workers, by a mailbox of each worker, and takes results from another
 * mailbox with wait_until_any; a worker gets a task when it asks. */
static void mailboxes(void) {
    enum { TASKS = 300, PES_MAX = 64 };
    static long task, results[PES_MAX]; /* a worker's; on PE 0, one for each worker */
    static uint64_t asked[PES_MAX];     /* on PE 0: the worker's number of requests */
    static uint64_t given;              /* on the worker: the number of answers */
    if (me > 0) {
        for (uint64_t turn = 1;; turn++) {
            shmem_signal_set(&asked[me], turn, 0);
            shmem_signal_wait_until(&given, SHMEM_CMP_GE, turn);
            if (task < 0)
                break;
            long result = task * task + 1;
            shmem_long_put(&results[me], &result, 1, 0);
            shmem_fence();
        }
    } else {
        uint64_t served[PES_MAX] = {0};
        long working_on[PES_MAX], left = TASKS, ended = 0, sum = 0, expected = 0, stop = -1;
        for (int pe = 0; pe < npes; pe++)
            working_on[pe] = -1;
        while (ended < npes - 1) {
            size_t worker = shmem_wait_until_any_vector(&asked[1], (size_t)npes - 1, NULL,
                                                        SHMEM_CMP_GT, &served[1]) +
                            1;
            if (working_on[worker] >= 0)
                sum += results[worker];
            working_on[worker] = left > 0 ? --left : -1;
            const long *answer = working_on[worker] >= 0 ? &working_on[worker] : &stop;
            ended += working_on[worker] < 0;
            shmem_long_put_signal(&task, answer, 1, &given, ++served[worker], SHMEM_SIGNAL_SET,
                                  (int)worker);
        }
        for (long i = 0; i < TASKS && npes > 1; i++)
            expected += i * i + 1;
        EXPECT(sum == expected, "%ld, not %ld", sum, expected);
    }
    shmem_barrier_all();
}

/* The sum of all PEs' vectors around the ring: each PE adds its own and passes the sum on, in two
 * rounds. */
static void ring_sum(void) {
    enum { LENGTH = 100 };
    static long partial[LENGTH], result[LENGTH];
    static uint64_t first_round, second_round;
    long mine[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        mine[i] = me * 100 + i;
    if (me > 0) {
        shmem_signal_wait_until(&first_round, SHMEM_CMP_EQ, 1);
        for (int i = 0; i < LENGTH; i++)
            mine[i] += partial[i];
    }
    if (me < npes - 1)
        shmem_put_signal_nbi(partial, mine, LENGTH, &first_round, 1, SHMEM_SIGNAL_ADD, next);
    else
        shmem_put_signal_nbi(result, mine, LENGTH, &second_round, 1, SHMEM_SIGNAL_ADD, next);
    shmem_signal_wait_until(&second_round, SHMEM_CMP_GE, 1);
    shmem_quiet();
    if (me < npes - 2)
        shmem_put_signal(result, result, LENGTH, &second_round, 1, SHMEM_SIGNAL_ADD, next);
    else if (me == npes - 2)
        shmem_put_signal(result, result, LENGTH, &second_round, 1, SHMEM_SIGNAL_ADD, npes - 1);
    for (int i = 0; i < LENGTH; i++)
        EXPECT(result[i] == (long)npes * (npes - 1) / 2 * 100 + (long)npes * i, "element %d: %ld",
               i, result[i]);
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    ring_start();
    tap_case("a pipeline");
    pipeline();
    tap_case("a transpose");
    transpose();
    tap_case("a sample sort");
    sort();
    tap_case("a master, workers and mailboxes");
    mailboxes();
    tap_case("a sum round the ring");
    ring_sum();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
