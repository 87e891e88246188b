/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: threads of a PE put, get, fetch, wait and complete at the same time, each with its
 * peer's thread of the same number, while the messages of all share the same channels. PEs: 2 3
 * Far: each
 * Far: cyclic:2 seed=5,reorder=16,delay_us=20,refuse=5
 * Far: cyclic:2 seed=6,reorder=16 WEFT_PROXIES=host */
#include <pthread.h>
#include <string.h>
#include "draw.h"

enum { THREADS = 4, BYTES = 20000 };

static struct ground {
    unsigned char put[BYTES], got_from[BYTES];
    uint64_t signal, flag, count;
} grounds[THREADS];
static uint64_t all; /* counted by the threads of all PEs */
static int me, npes, to, from, turns;

struct worker {
    struct ground *ground;
    uint64_t key;
    int number, wrong;
    shmem_ctx_t ctx;
    unsigned char copy[BYTES];
};

static void expect(struct worker *worker, bool right) {
    worker->wrong += !right;
}

static void turn(struct worker *worker, uint64_t turn) {
    struct ground *ground = worker->ground;
    uint64_t key = worker->key + turn, state = key;
    size_t bytes = 1 + draw(&state) % BYTES;
    fill(worker->copy, bytes, key);
    shmem_ctx_putmem(worker->ctx, ground->put, worker->copy, bytes, to);
    shmem_ctx_quiet(worker->ctx);
    memset(worker->copy, 0, bytes);
    shmem_ctx_getmem_nbi(worker->ctx, worker->copy, ground->put, bytes, to);
    shmem_ctx_quiet(worker->ctx);
    expect(worker, differs(worker->copy, bytes, key) == bytes);
    fill(worker->copy, bytes, ~key);
    shmem_ctx_putmem_signal(worker->ctx, ground->got_from, worker->copy, bytes, &ground->signal,
                            turn, SHMEM_SIGNAL_SET, to);
    shmem_signal_wait_until(&ground->signal, SHMEM_CMP_EQ, turn);
    uint64_t theirs = (uint64_t)from * 1000 + (uint64_t)worker->number * 10000000 + turn;
    state = theirs;
    size_t come = 1 + draw(&state) % BYTES;
    expect(worker, differs(ground->got_from, come, ~theirs) == come);
    expect(worker, shmem_uint64_atomic_fetch_inc(&ground->count, to) == turn - 1);
    shmem_uint64_atomic_inc(&all, to);
    shmem_ctx_fence(worker->ctx);
    shmem_uint64_p(&ground->flag, turn, from); /* the peer has read this thread's data */
    shmem_uint64_wait_until(&ground->flag, SHMEM_CMP_EQ, turn);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    for (int i = 1; i <= turns; i++)
        turn(worker, (uint64_t)i);
    return NULL;
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    to = (me + 1) % npes;
    from = (me + npes - 1) % npes;
    turns = rounds(50);
    tap_start(me);
    tap_case("each thread finds what its peer has sent, and what it has sent itself");
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i].ground = &grounds[i];
        workers[i].number = i;
        workers[i].key = (uint64_t)me * 1000 + (uint64_t)i * 10000000;
        EXPECT(shmem_ctx_create(i % 2 ? 0 : SHMEM_CTX_SERIALIZED, &workers[i].ctx) == 0,
               "no context");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &workers[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        EXPECT(workers[i].wrong == 0, "thread %d: %d times", i, workers[i].wrong);
        shmem_ctx_destroy(workers[i].ctx);
    }
    shmem_barrier_all();
    EXPECT(all == (uint64_t)turns * THREADS, "%lu of %d", (unsigned long)all, turns * THREADS);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
