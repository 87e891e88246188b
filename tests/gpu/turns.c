/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: calls of one team on several streams run one after the other, in the order in which
 * they are made: also if the first stream has been destroyed meanwhile, with the default stream,
 * and around captures. A team that ends waits for its own calls and for nothing else. Channels of a
 * team that a graph uses outlive the team. PEs: 2 3 */
#include "graph.h"
#include "on_stream.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { CALLS = 60, NELEMS = 1000, HELD_US = 5000 };

static int me, npes;
static weft_cu_stream a, b, letting;
static uint64_t *word; /* device heap */
static uint64_t turn;  /* the value that is waited for */
static int *source, *dest;

static bool is_done(weft_cu_stream stream) {
    gpu_enter();
    int error = gpu.cuStreamQuery(stream);
    gpu_leave();
    return error == WEFT_CU_SUCCESS;
}

/* PE 0's part of a barrier on the first stream is late, and it makes no other call between that and
 * the barrier on the second: no member may pass either before. */
static void hold_first(weft_cu_stream first, bool destroyed, const char *name) {
    tap_case(name);
    turn++;
    if (me == 0)
        ON(signal_wait_until_on_stream(word, SHMEM_CMP_GE, turn, first));
    ON(barrier_on_stream(SHMEM_TEAM_WORLD, first));
    if (destroyed) {
        gpu_enter();
        GPU(cuStreamDestroy(first));
        gpu_leave();
    }
    weft_cu_stream second = destroyed ? gpu_stream_new() : b;
    ON(sync_on_stream(SHMEM_TEAM_WORLD, second));
    usleep(HELD_US);
    EXPECT(!is_done(second), "the second call did not wait for the first");
    shmem_barrier_all();
    if (me == 0)
        ON(signal_op_on_stream(word, turn, SHMEM_SIGNAL_SET, 0, letting));
    gpu_drain(second);
    if (!destroyed)
        gpu_drain(first);
    shmem_barrier_all();
}

/* Call `call` sums into a part of dest of its own. */
static void sum(int call, weft_cu_stream stream) {
    ON(int_sum_reduce_on_stream(SHMEM_TEAM_WORLD, dest + call * NELEMS, source + call * NELEMS,
                                NELEMS, stream));
}

static void check_sums(void) {
    static int expected[NELEMS];
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < NELEMS; i++)
            expected[i] = npes * (npes + 1) / 2 * (call * 7 + i);
        gpu_expect(dest + call * NELEMS, expected, sizeof expected, "call %d", call);
    }
    shmem_barrier_all();
    gpu_poison(dest, sizeof(int) * CALLS * NELEMS);
    shmem_barrier_all();
}

static void mixed(void) {
    tap_case("many calls on streams that are drawn, the default stream among them");
    weft_cu_stream streams[] = {a, b, letting, NULL};
    for (int call = 0; call < CALLS; call++)
        sum(call, streams[gpu_draw((uint64_t)call, 4)]);
    for (int i = 0; i < 4; i++)
        gpu_drain(streams[i]);
    check_sums();
}

static void first_half(void) {
    for (int call = 0; call < CALLS / 2; call++)
        sum(call, a);
}

static void captured(void) {
    tap_case("a capture is not disturbed by a call elsewhere, nor a call by a capture");
    weft_cu_graph_exec graph = graph_capture(a, first_half);
    gpu_poison(dest, sizeof(int) * CALLS * NELEMS);
    shmem_barrier_all();
    for (int call = CALLS / 2; call < CALLS; call++)
        sum(call, call % 2 ? b : NULL);
    gpu_drain(b);
    gpu_drain(NULL);
    graph_replay(graph, a);
    gpu_drain(a);
    check_sums();
    graph_drop(graph);
}

static shmem_team_t team;

static void sum_of_team(void) {
    ON(int_sum_reduce_on_stream(team, dest, source, NELEMS, a));
}

/* Another thread releases the wait for this PE's word: when it is told to, or after a limit. */
static atomic_bool told;
static int patience_ms;

static void *let_go(void *unused) {
    for (int ms = 0; ms < patience_ms && !told; ms++)
        usleep(1000);
    gpu_enter();
    GPU(cuMemcpyAsync((uintptr_t)word, (uintptr_t)&turn, sizeof turn, letting));
    GPU(cuStreamSynchronize(letting));
    gpu_leave();
    return unused;
}

static pthread_t hold(weft_cu_stream stream, int milliseconds) {
    pthread_t thread;
    turn++;
    told = false;
    patience_ms = milliseconds;
    ON(signal_wait_until_on_stream(word, SHMEM_CMP_GE, turn, stream));
    EXPECT(pthread_create(&thread, NULL, let_go, NULL) == 0, "no thread");
    return thread;
}

static void let_go_now(pthread_t thread, weft_cu_stream stream) {
    told = true;
    pthread_join(thread, NULL);
    gpu_drain(stream);
    shmem_barrier_all();
}

/* A member's call that is under way still needs the words of the team, and writes there. */
static void ends_behind_calls(void) {
    tap_case("a team that ends waits for its calls");
    weft_cu_stream streams[] = {a, NULL};
    for (int i = 0; i < 4; i++) {
        weft_cu_stream stream = streams[i % 2];
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
        pthread_t thread = hold(stream, me == i % npes ? 20 : 0);
        ON(barrier_on_stream(team, stream));
        ON(barrier_on_stream(team, stream));
        shmem_team_destroy(team);
        EXPECT(is_done(stream), "calls of a team that has ended are under way");
        let_go_now(thread, stream);
    }
}

static void ends_beside_others(void) {
    tap_case("and for nothing else");
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
    sum_of_team();
    size_t before = gpu_memory_left();
    pthread_t thread = hold(b, 10000);
    shmem_team_destroy(team);
    EXPECT(!is_done(b), "a team that ends waited for others' work");
    size_t after = gpu_memory_left();
    if (gpu_is_pretended())
        EXPECT(after > before, "%zu bytes left with the team, and %zu without", before, after);
    let_go_now(thread, b);
}

/* All members launch the graph, so it gives correct results again: nothing of the team has been
 * freed. */
static void outlived(void) {
    tap_case("a graph of collectives by one kernel may outlive its team");
    static int expected[NELEMS];
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
    weft_cu_graph_exec graph = graph_capture(a, sum_of_team);
    shmem_team_destroy(team);
    shmem_barrier_all();
    gpu_poison(dest, sizeof expected);
    shmem_barrier_all();
    for (int launch = 0; launch < 3; launch++)
        graph_replay(graph, a);
    gpu_drain(a);
    for (int i = 0; i < NELEMS; i++)
        expected[i] = npes * (npes + 1) / 2 * i;
    gpu_expect(dest, expected, sizeof expected, "the sum");
    shmem_barrier_all();
    graph_drop(graph);
}

int main(void) {
    static int fill[CALLS * NELEMS];
    shmem_init();
    gpu_start();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    word = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *word));
    source = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, sizeof fill));
    dest = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, sizeof fill));
    a = gpu_stream_new();
    b = gpu_stream_new();
    letting = gpu_stream_new();
    for (int i = 0; i < CALLS * NELEMS; i++)
        fill[i] = (me + 1) * (i / NELEMS * 7 + i % NELEMS);
    gpu_write(source, fill, sizeof fill);
    shmem_barrier_all();
    hold_first(a, false, "a call waits for the team's last one, on another stream");
    hold_first(gpu_stream_new(), true, "and for one on a stream that is no more");
    hold_first(NULL, false, "and for one on the default stream");
    mixed();
    captured();
    ends_behind_calls();
    ends_beside_others();
    outlived();
    return gpu_finish();
}
