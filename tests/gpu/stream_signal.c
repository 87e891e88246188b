/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: signals and waits in the order of a stream. A ring of puts with signal without any
 * host, by words in each kind of symmetric memory, set and added; all six comparisons, which hold
 * the stream until they are satisfied; and sums of many PEs' additions, from streams and from hosts
 * at once. PEs: 1 2 3 4, also staged Far: cyclic:2 seed=7,reorder=16 */
#include "on_stream.h"
#include <time.h>

enum { ROUNDS = 24, LARGEST = 40000 };

struct words {
    uint64_t ready, taken, sum, other;
};
static struct words static_words;
static struct words *words[3];
static const char *const names[] = {"the device heap", "the host heap", "statics"};
static unsigned char *box, *source, *record;

static void clear(void) {
    static const struct words zero;
    for (int w = 0; w < 3; w++)
        gpu_write(words[w], &zero, sizeof zero);
    shmem_barrier_all();
}

static size_t bytes_of(uint64_t round) {
    static const size_t sizes[] = {0, 1, 8, 100, 4096, 32767, 32768, 32769, LARGEST};
    return sizes[gpu_draw(round, sizeof sizes / sizeof *sizes)];
}

static uint64_t key_of(int w, int op, int round, int pe) {
    return (uint64_t)(((w * 2 + op) * ROUNDS + round) * 64 + pe + 1);
}

/* Everything is enqueued before anything is checked: arrivals are recorded in stream order, and the
 * left neighbour is told that the box is free again. */
static void enqueue_ring(int w, int op) {
    int me = shmem_my_pe(), npes = shmem_n_pes();
    int right = (me + 1) % npes, left = (me + npes - 1) % npes;
    int sig_op = op ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET;
    for (int round = 1; round <= ROUNDS; round++) {
        uint64_t count = (uint64_t)round, signal = op ? 1 : count;
        size_t bytes = bytes_of(count), at = (size_t)(round - 1) * LARGEST;
        ON(signal_wait_until_on_stream(&words[w]->taken, SHMEM_CMP_GE, count - 1, gpu_stream));
        ON(putmem_signal_on_stream(box, source + at, bytes, &words[w]->ready, signal, sig_op, right,
                                   gpu_stream));
        ON(signal_wait_until_on_stream(&words[w]->ready, SHMEM_CMP_EQ, count, gpu_stream));
        ON(putmem_on_stream(record + at, box, bytes, me, gpu_stream));
        ON(signal_op_on_stream(&words[w]->taken, signal, sig_op, left, gpu_stream));
    }
}

static void ring(int w, int op) {
    int me = shmem_my_pe(), npes = shmem_n_pes(), left = (me + npes - 1) % npes;
    clear();
    gpu_poison(record, (size_t)ROUNDS * LARGEST);
    for (int round = 0; round < ROUNDS; round++)
        gpu_write(source + (size_t)round * LARGEST, gpu_data(LARGEST, key_of(w, op, round, me)),
                  LARGEST);
    shmem_barrier_all();
    enqueue_ring(w, op);
    gpu_drain(gpu_stream);
    for (int round = 0; round < ROUNDS; round++) {
        size_t bytes = bytes_of((uint64_t)round + 1);
        unsigned char *at = record + (size_t)round * LARGEST;
        gpu_expect(at, gpu_data(bytes + 1, key_of(w, op, round, left)), bytes, "%s, round %d",
                   names[w], round);
        gpu_expect_poison(at + bytes, LARGEST - bytes, "behind it");
    }
    shmem_barrier_all();
}

static void rings(void) {
    for (int engine = 0; engine < 3; engine++) {
        static const char *const cases[] = {"a ring of puts with signal", "by multiprocessors",
                                            "by copy engines"};
        tap_case(cases[engine]);
        shmemx_set_engine((shmemx_engine_t)engine);
        for (int w = 0; w < 3; w++)
            for (int op = 0; op < 2; op++)
                ring(w, op);
    }
    shmemx_set_engine(SHMEMX_ENGINE_AUTO);
}

/* --- Comparisons ------------------------------------------------------------------------------ */

static void rest(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
}

static bool passed(weft_cu_event event) {
    gpu_enter();
    int error = gpu.cuEventQuery(event);
    gpu_leave();
    return error == WEFT_CU_SUCCESS;
}

/* The word changes from `before`, which does not satisfy the condition, to `after`, which does. */
struct condition {
    int cmp;
    const char *name;
    uint64_t before, bound, after;
};
static const struct condition conditions[] = {
    {SHMEM_CMP_EQ, "EQ", 6, 7, 7},
    {SHMEM_CMP_NE, "NE", 7, 7, UINT64_MAX},
    {SHMEM_CMP_GT, "GT", 7, 7, 8},
    {SHMEM_CMP_GE, "GE", 6, 7, 7},
    {SHMEM_CMP_LT, "LT", 7, 7, 6},
    {SHMEM_CMP_LE, "LE", 8, 7, 7},
    {SHMEM_CMP_GT, "GT of large numbers", 1, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1},
    {SHMEM_CMP_LT, "LT of large numbers", UINT64_MAX, 1, 0},
};

static void await(const struct condition *condition, int w, weft_cu_event event) {
    int me = shmem_my_pe(), npes = shmem_n_pes(), right = (me + 1) % npes;
    uint64_t *word = &words[w]->ready;
    gpu_write(word, &condition->before, sizeof *word);
    shmem_barrier_all();
    ON(signal_wait_until_on_stream(word, condition->cmp, condition->bound, gpu_stream));
    gpu_enter();
    GPU(cuEventRecord(event, gpu_stream));
    gpu_leave();
    rest(3);
    EXPECT(!passed(event), "%s in %s: went on before", condition->name, names[w]);
    shmem_barrier_all();
    ON(signal_op_on_stream(&words[w]->ready, condition->after, SHMEM_SIGNAL_SET, right, NULL));
    gpu_drain(gpu_stream);
    EXPECT(passed(event), "%s in %s: did not go on", condition->name, names[w]);
    shmem_barrier_all();
}

static void comparisons(void) {
    tap_case("the six comparisons hold a stream until they are met");
    weft_cu_event event;
    gpu_enter();
    GPU(cuEventCreate(&event, WEFT_CU_EVENT_NO_TIMING));
    gpu_leave();
    for (size_t c = 0; c < sizeof conditions / sizeof *conditions; c++)
        for (int w = 0; w < 3; w++)
            await(&conditions[c], w, event);
}

/* The host gives a signal that a stream waits for, and waits for one that a stream gives. */
static void host_and_stream(void) {
    tap_case("hosts and streams signal each other");
    int me = shmem_my_pe(), npes = shmem_n_pes(), right = (me + 1) % npes;
    for (int w = 0; w < 3; w++) {
        clear();
        for (uint64_t round = 1; round <= 10; round++) {
            ON(signal_wait_until_on_stream(&words[w]->ready, SHMEM_CMP_GE, round, gpu_stream));
            ON(signal_op_on_stream(&words[w]->other, round, SHMEM_SIGNAL_SET, right, gpu_stream));
            shmem_signal_set(&words[w]->ready, round, right);
            shmem_signal_wait_until(&words[w]->other, SHMEM_CMP_GE, round);
        }
        gpu_drain(gpu_stream);
        shmem_barrier_all();
    }
}

static void sums(void) {
    tap_case("no addition is lost, from streams or from hosts");
    int npes = shmem_n_pes(), additions = gpu_rounds(200, 60);
    for (int w = 0; w < 3; w++) {
        clear();
        for (int i = 0; i < additions; i++) {
            ON(signal_op_on_stream(&words[w]->sum, 3, SHMEM_SIGNAL_ADD, 0, gpu_stream));
            shmem_signal_add(&words[w]->sum, 5, 0);
        }
        gpu_drain(gpu_stream);
        shmem_barrier_all();
        uint64_t sum = 0, expected = (uint64_t)(8 * additions * npes);
        gpu_write(&sum, &words[w]->sum, sizeof sum);
        EXPECT(shmem_my_pe() != 0 || sum == expected, "in %s: %llu, not %llu", names[w],
               (unsigned long long)sum, (unsigned long long)expected);
        shmem_barrier_all();
    }
}

int main(void) {
    shmem_init();
    gpu_start();
    words[0] = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, sizeof *words[0]));
    words[1] = allocated(shmem_malloc(sizeof *words[1]));
    words[2] = &static_words;
    box = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, LARGEST));
    source = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, (size_t)ROUNDS * LARGEST));
    record = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, (size_t)ROUNDS * LARGEST));
    rings();
    comparisons();
    host_and_stream();
    sums();
    return gpu_finish();
}
