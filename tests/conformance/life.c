/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the library in a process (pitfalls 46, 48, 50, 52, 56): nested and repeated
 * initialisation, operations that an inner finalize completes, life after finalize, queries at any
 * time, accessibility at the edges of objects. */
#include <shmem.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "conformance/ring.h"
#include "tap.h"

static long cells[8];

static int initialized(void) {
    int answer = -1;
    shmem_query_initialized(&answer);
    return answer;
}

static void *ask(void *answer) {
    shmem_query_initialized(answer);
    return NULL;
}

static int initialized_by_thread(void) {
    pthread_t thread;
    int answer = -1;
    pthread_create(&thread, NULL, ask, &answer);
    pthread_join(thread, NULL);
    return answer;
}

/* A finalize that is not the last is a barrier_all, and completes the same operations. */
static void inner_finalize(void) {
    for (int late = 0; late < npes; late++) {
        long mine = 10 * late + me + 1;
        int provided = -1;
        shmem_init();
        EXPECT(shmem_init_thread(SHMEM_THREAD_SINGLE, &provided) == 0 && provided >= 0, "%d",
               provided);
        if (me == late)
            usleep(500);
        shmem_long_put_nbi(&cells[0], &mine, 1, next);
        shmem_finalize();
        EXPECT(cells[0] == 10 * late + before + 1, "PE %d late: %ld", late, cells[0]);
        mine = -mine;
        shmem_long_put_nbi(&cells[1], &mine, 1, next);
        shmem_finalize();
        EXPECT(cells[1] == -(10 * late + before + 1), "PE %d late: %ld", late, cells[1]);
        EXPECT(initialized() == 1, "one is left");
        shmem_barrier_all();
    }
}

/* Consecutive jobs: each begins with an empty heap, its own teams and contexts, at any thread
 * level. */
static void job_after_job(void) {
    static const int levels[] = {SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED,
                                 SHMEM_THREAD_SERIALIZED, SHMEM_THREAD_MULTIPLE};
    void *first_of_previous = NULL;
    size_t offset_of_previous = 0;
    for (int turn = 0; turn < 8; turn++) {
        shmem_team_t team;
        shmem_ctx_t ctx;
        int provided = -1, queried = -2;
        shmem_finalize();
        EXPECT(initialized() == 0 && initialized_by_thread() == 0, "after the last finalize");
        cells[2] = turn; /* the process continues, statics are plain memory */
        char *line = malloc(100);
        snprintf(line, 100, "between jobs %d", turn);
        free(line);
        if (turn % 2)
            shmem_init();
        else
            EXPECT(shmem_init_thread(levels[turn / 2 % 4], &provided) == 0, "turn %d", turn);
        shmem_query_thread(&queried);
        EXPECT(turn % 2 || (provided == queried && provided >= levels[turn / 2 % 4]),
               "asked for %d, got %d and %d", levels[turn / 2 % 4], provided, queried);
        EXPECT(shmem_my_pe() == me && shmem_n_pes() == npes, "PE %d of %d", shmem_my_pe(),
               shmem_n_pes());
        char *a = shmem_malloc(1000), *b = shmem_malloc(1000);
        EXPECT(turn == 0 || (size_t)(b - a) == offset_of_previous, "another heap");
        first_of_previous = a;
        offset_of_previous = (size_t)(b - a);
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
        shmem_team_create_ctx(team, 0, &ctx);
        long mine = turn + me;
        shmem_ctx_long_put_nbi(ctx, &cells[3], &mine, 1, next);
        shmem_ctx_quiet(ctx);
        shmem_barrier_all();
        EXPECT(cells[3] == turn + before, "%ld in turn %d", cells[3], turn);
        EXPECT(shmem_long_g(&cells[2], next) == turn, "%ld", cells[2]);
        shmem_barrier_all(); /* finalize with all objects still alive */
    }
    EXPECT(first_of_previous, "a heap");
}

/* The edges of objects and of the numbers of PEs. */
static void reach(void) {
    char *heap = shmem_malloc(777), on_stack;
    static char bytes[3];
    for (int pe = 0; pe < npes; pe++) {
        EXPECT(shmem_pe_accessible(pe) == 1, "PE %d", pe);
        EXPECT(shmem_addr_accessible(heap, pe) == 1 && shmem_addr_accessible(heap + 776, pe) == 1,
               "both ends of an object of PE %d", pe);
        EXPECT(shmem_addr_accessible(&bytes[2], pe) == 1, "a static of PE %d", pe);
        EXPECT(shmem_addr_accessible(&on_stack, pe) == 0, "the stack of PE %d", pe);
        EXPECT(shmem_addr_accessible(stdout, pe) == 0, "memory of libc");
        char *there = shmem_ptr(heap, pe);
        EXPECT(shmem_ptr(heap + 776, pe) == (there ? there + 776 : NULL), "one object");
        EXPECT(shmem_ptr(heap, pe) == there, "not stable");
        EXPECT(shmem_ptr(&on_stack, pe) == NULL, "the stack");
    }
    EXPECT(shmem_ptr(heap, me) == heap && shmem_ptr(bytes, me) == bytes, "my own");
    EXPECT(!shmem_pe_accessible(npes) && !shmem_pe_accessible(-1) && !shmem_pe_accessible(1 << 30),
           "no such PE");
    shmem_free(heap);
}

static void names(void) {
    char name[SHMEM_MAX_NAME_LEN], again[SHMEM_MAX_NAME_LEN];
    int major = 0, minor = 0;
    memset(name, 'x', sizeof name);
    shmem_info_get_name(name);
    shmem_info_get_name(again);
    shmem_info_get_version(&major, &minor);
    EXPECT(memchr(name, '\0', sizeof name) && strcmp(name, again) == 0, "%.60s", name);
    EXPECT(strlen(name) > 0 && strcmp(name, SHMEM_VENDOR_STRING) == 0, "%s", name);
    EXPECT(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION, "%d.%d", major, minor);
    shmem_pcontrol(1);
    shmem_pcontrol(-1, NULL, 2.5, "more");
}

_Static_assert(SHMEM_THREAD_SINGLE < SHMEM_THREAD_FUNNELED, "levels increase");
_Static_assert(SHMEM_THREAD_FUNNELED < SHMEM_THREAD_SERIALIZED, "levels increase");
_Static_assert(SHMEM_THREAD_SERIALIZED < SHMEM_THREAD_MULTIPLE, "levels increase");

int main(void) {
    int at_first = initialized(), by_thread = initialized_by_thread();
    cells[7] = 55;
    shmem_init();
    ring_start();
    tap_case("46: before shmem_init");
    EXPECT(at_first == 0 && by_thread == 0, "%d %d", at_first, by_thread);
    EXPECT(cells[7] == 55 && shmem_long_g(&cells[7], next) == 55, "a static set before init");
    EXPECT(initialized() == 1 && initialized_by_thread() == 1, "after");
    shmem_barrier_all();
    tap_case("46, 48: an inner finalize is a barrier");
    inner_finalize();
    tap_case("46, 48, 50: job after job in one process");
    job_after_job();
    tap_case("52: reach");
    reach();
    tap_case("56: names");
    names();
    shmem_finalize();
    EXPECT(initialized() == 0, "finalized");
    return tap_finish();
}
