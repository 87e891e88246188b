/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: GPUs that cannot access each other's memory, and copies between them through host
 * memory: of all sizes around a piece, by calls of the host, of threads at once, on streams and in
 * graphs; a waiting stream delays no other; words that all PEs change atomically; and no addresses
 * for kernels. PEs: 2 3 */
#include <errno.h>
#include <pthread.h>
#include "graph.h"
#include "on_stream.h"

enum { PIECE = 1 << 20, BYTES_MAX = 9 * PIECE / 2 + 77, THREADS = 3, ADDS = 40 };

static const size_t sizes[] = {1, 8, 4097, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, BYTES_MAX};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int me, npes, next;
static unsigned char *box, *data, *landing; /* device memory of all */
static unsigned char *private_data;

static uint64_t key_of(int pe, size_t i) {
    return (uint64_t)pe * 100 + i;
}

static void expect_box(int from, size_t i, const char *what) {
    gpu_expect(box, gpu_data(sizes[i], key_of(from, i)), sizes[i], "%s, %zu bytes", what, sizes[i]);
}

/* PE me - 1 puts into my box; I get the data back from the box of PE me + 1. */
static void host_calls(void) {
    int before = (me + npes - 1) % npes;
    for (size_t i = 0; i < SIZES; i++) {
        bool from_gpu = i % 2;
        gpu_poison(box, BYTES_MAX);
        gpu_write(from_gpu ? data : private_data, gpu_data(sizes[i], key_of(me, i)), sizes[i]);
        shmem_barrier_all();
        shmem_putmem(box, from_gpu ? data : private_data, sizes[i], next);
        shmem_barrier_all();
        expect_box(before, i, from_gpu ? "a put from a GPU" : "a put from the host");
        gpu_expect_poison(box + sizes[i], BYTES_MAX - sizes[i], "behind a put");
        gpu_poison(landing, BYTES_MAX);
        shmem_getmem(landing, box, sizes[i], next);
        gpu_expect(landing, gpu_data(sizes[i], key_of(me, i)), sizes[i], "a get to a GPU");
        shmem_getmem(private_data, box, sizes[i], next);
        gpu_expect(private_data, gpu_data(sizes[i], key_of(me, i)), sizes[i], "a get to the host");
        shmem_barrier_all();
    }
}

static void *in_thread(void *number) {
    size_t part = BYTES_MAX / THREADS, at = (uintptr_t)number * part;
    for (int times = 0; times < 4; times++)
        shmem_putmem(box + at, data + at, part, next);
    return NULL;
}

static void threads(void) {
    pthread_t thread[THREADS];
    int before = (me + npes - 1) % npes;
    gpu_write(data, gpu_data(BYTES_MAX, key_of(me, SIZES)), BYTES_MAX);
    gpu_poison(box, BYTES_MAX);
    shmem_barrier_all();
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, in_thread, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    shmem_barrier_all();
    size_t whole = BYTES_MAX / THREADS * THREADS;
    gpu_expect(box, gpu_data(BYTES_MAX, key_of(before, SIZES)), whole, "puts of threads");
    shmem_barrier_all();
}

static size_t size_now;
static uint64_t *signal_word, *gate;

/* A put, a signal after it, and a get back. */
static void round_trip(void) {
    ON(putmem_signal_on_stream(box, data, size_now, signal_word, 1, SHMEM_SIGNAL_ADD, next,
                               gpu_stream));
    ON(barrier_all_on_stream(gpu_stream));
    ON(getmem_on_stream(landing, box, size_now, next, gpu_stream));
    ON(barrier_all_on_stream(gpu_stream));
}

static void expect_round(int round, uint64_t signals, const char *what) {
    int before = (me + npes - 1) % npes;
    gpu_drain(gpu_stream);
    gpu_expect(box, gpu_data(size_now, key_of(before, (size_t)round)), size_now, "%s: put", what);
    gpu_expect(landing, gpu_data(size_now, key_of(me, (size_t)round)), size_now, "%s: get", what);
    uint64_t found = shmem_uint64_g(signal_word, me);
    EXPECT(found == signals, "%s: %llu signals", what, (unsigned long long)found);
    shmem_barrier_all();
}

static void renew(int round) {
    gpu_write(data, gpu_data(size_now, key_of(me, (size_t)round)), size_now);
    gpu_poison(box, BYTES_MAX);
    gpu_poison(landing, BYTES_MAX);
    shmem_barrier_all();
}

static void streams_and_graphs(void) {
    uint64_t signals = 0;
    int round = 20;
    for (size_t i = 0; i < SIZES; i++) {
        size_now = sizes[i];
        renew(++round);
        round_trip();
        expect_round(round, ++signals, "on a stream");
        weft_cu_graph_exec graph = graph_capture(gpu_stream, round_trip);
        for (int times = 0; times < 2; times++) {
            renew(++round);
            graph_replay(graph, gpu_stream);
            expect_round(round, ++signals, "in a graph");
        }
        graph_drop(graph);
    }
}

/* The first stream's put follows a wait for the second stream's put. */
static void no_stream_waits_for_another(void) {
    weft_cu_stream second = gpu_stream_new();
    size_now = PIECE + 5;
    renew(7);
    shmem_uint64_p(gate, 0, me);
    shmem_barrier_all();
    ON(signal_wait_until_on_stream(gate, SHMEM_CMP_EQ, 3, gpu_stream));
    ON(putmem_on_stream(box, data, size_now, next, gpu_stream));
    ON(getmem_on_stream(landing, data, 64, next, second));
    ON(signal_op_on_stream(gate, 3, SHMEM_SIGNAL_SET, next, second));
    gpu_drain(second);
    gpu_drain(gpu_stream);
    shmem_barrier_all();
    gpu_expect(box, gpu_data(size_now, key_of((me + npes - 1) % npes, 7)), size_now, "the put");
    shmem_barrier_all();
}

static void atomics(void) {
    shmem_uint64_p(gate, 0, me);
    shmem_uint64_p(signal_word, 0, me);
    shmem_barrier_all();
    uint64_t seen = 0;
    for (int i = 0; i < ADDS; i++)
        for (int pe = 0; pe < npes; pe++) {
            if (i % 2)
                shmem_uint64_atomic_inc(gate, pe);
            else
                seen += shmem_uint64_atomic_fetch_add(gate, 1, pe) < (uint64_t)(ADDS * npes);
            shmem_signal_add(signal_word, 1, pe);
        }
    shmem_barrier_all();
    EXPECT(seen == (uint64_t)(ADDS / 2 * npes), "%llu fetched", (unsigned long long)seen);
    uint64_t sum = shmem_uint64_atomic_fetch(gate, next);
    EXPECT(sum == (uint64_t)(ADDS * npes), "%llu", (unsigned long long)sum);
    sum = shmem_uint64_atomic_fetch(signal_word, next);
    EXPECT(sum == (uint64_t)(ADDS * npes), "%llu signals", (unsigned long long)sum);
    shmem_barrier_all();
}

/* Slices whose numbers the host knows are ordinary copies; others would need a kernel that can
 * access both sides. */
static void slices(void) {
    enum { BEGIN = 1000, NELEMS = 300000, ELEM = 4 };
    shmemx_slice_t to = {box, PIECE / 2, {.value = BEGIN}}, from = {data, PIECE / 2, {.value = 7}};
    shmemx_slice_t words = {signal_word, 2, {.value = 1}};
    shmemx_number_t nelems = {.value = NELEMS}, one = {.value = 1}, three = {.value = 3},
                    unknown = {0};
    size_now = BYTES_MAX;
    shmem_uint64_p(signal_word, 0, me);
    renew(9);
    unknown.at = gate;
    unknown.bytes = 8;
    int rc = shmemx_put_slice_on_stream(&to, &from, unknown, ELEM, next, gpu_stream);
    EXPECT(rc == -ENOTSUP && strstr(weft_last_error(), "pass numbers that do not lie in memory"),
           "%d: %s", rc, weft_last_error());
    rc = shmemx_int32_signal_op_on_stream(&words, unknown, SHMEM_SIGNAL_SET, next, gpu_stream);
    EXPECT(rc == -ENOTSUP && strstr(weft_last_error(), "pass numbers that do not lie in memory"),
           "%d: %s", rc, weft_last_error());
    ON(put_slice_signal_on_stream(&to, &from, nelems, ELEM, &words, three, SHMEM_SIGNAL_SET, next,
                                  gpu_stream));
    ON(int32_signal_op_on_stream(&words, one, SHMEM_SIGNAL_ADD, next, gpu_stream));
    ON(int32_signal_wait_until_on_stream(&words, SHMEM_CMP_EQ, (shmemx_number_t){.value = 4},
                                         gpu_stream));
    gpu_drain(gpu_stream);
    const char *expected = (const char *)gpu_data(BYTES_MAX, key_of((me + npes - 1) % npes, 9));
    gpu_expect_poison(box, BEGIN * ELEM, "before the slice");
    gpu_expect(box + BEGIN * ELEM, expected + 7 * ELEM, (size_t)NELEMS * ELEM, "the slice");
    shmem_barrier_all();
}

static void addresses(void) {
    for (int pe = 0; pe < npes; pe++) {
        void *p = shmemx_ptr(SHMEMX_SPACE_DEVICE, box, pe);
        EXPECT(pe == me ? p == box : p == NULL, "of PE %d: %p", pe, p);
        EXPECT(shmem_addr_accessible(box, pe), "of PE %d", pe);
    }
}

int main(void) {
    int provided;
    setenv("SHMEMX_PEER_ACCESS", "off", 1);
    setenv("WEFT_FAKE_NO_PEER", "0-1,0-2,1-2", 1);
    setenv("WEFT_FAKE_GPUS", "3", 1);
    if (getenv("WEFT_FAKE_DELAY_US")) /* longer than a piece takes */
        setenv("WEFT_FAKE_DELAY_US", "2000", 1);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    gpu_start();
    me = shmem_my_pe(), npes = shmem_n_pes(), next = (me + 1) % npes;
    if (gpu_count < npes)
        gpu_skip("every PE needs a GPU of its own");
    box = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, BYTES_MAX));
    data = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, BYTES_MAX));
    landing = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, BYTES_MAX));
    signal_word = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 2, sizeof *signal_word));
    gate = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *gate));
    private_data = allocated(malloc(BYTES_MAX + 8));
    tap_case("no address for kernels");
    addresses();
    tap_case("calls of the host");
    host_calls();
    tap_case("threads at once");
    threads();
    tap_case("streams and graphs");
    streams_and_graphs();
    tap_case("no stream waits for another");
    no_stream_waits_for_another();
    tap_case("slices");
    slices();
    tap_case("atomics");
    atomics();
    return gpu_finish();
}
