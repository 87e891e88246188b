/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up and query: nested and repeated initialisation, accessibility, pointers to the peers'
 * objects, names, versions and the network. */
#include <shmemx.h>
#include <stdlib.h>
#include <string.h>
#include "reach.h"
#include "tap.h"

static long statics[64];
static const int constant = 5;
static int me, npes;
static shmem_ctx_t static_ctx = SHMEM_CTX_DEFAULT;
static shmem_team_t static_team = SHMEM_TEAM_WORLD;

static int initialized(void) {
    int answer = -1;
    shmem_query_initialized(&answer);
    return answer;
}

static void nested(void) {
    int provided = -1;
    EXPECT(initialized() == 1, "not initialized");
    shmem_init();
    EXPECT(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0, "the third");
    EXPECT(provided == SHMEM_THREAD_MULTIPLE, "%d", provided);
    shmem_query_thread(&provided);
    EXPECT(provided == SHMEM_THREAD_MULTIPLE, "%d", provided);
    shmem_finalize();
    shmem_finalize();
    EXPECT(initialized() == 1 && shmem_my_pe() == me && shmem_n_pes() == npes, "one is left");
    EXPECT(shmem_init_thread(77, &provided) != 0, "no such level");
    shmem_barrier_all();
}

/* A second job in one process: nothing of the first is left. */
static void again(void) {
    shmem_ctx_t ctx;
    shmem_team_t team;
    void *heap = shmem_malloc(100);
    shmem_ctx_create(0, &ctx);
    statics[0] = me + 1;
    shmem_finalize();
    EXPECT(initialized() == 0, "still initialized");
    shmem_init();
    EXPECT(initialized() == 1 && shmem_my_pe() == me && shmem_n_pes() == npes, "another job");
    EXPECT(shmem_ctx_get_team(ctx, &team) != 0, "a context from before");
    EXPECT(shmem_malloc(100) != NULL && heap != NULL, "no heap");
    EXPECT(shmem_long_g(&statics[0], (me + 1) % npes) == (me + 1) % npes + 1, "statics are lost");
    shmem_barrier_all();
}

static void accessible(void) {
    int on_stack = 0, *heap = shmem_malloc(8 * sizeof *heap), *private = malloc(sizeof *private);
    for (int pe = 0; pe < npes; pe++) {
        EXPECT(shmem_pe_accessible(pe) == 1, "PE %d", pe);
        EXPECT(shmem_addr_accessible(heap, pe) == 1, "heap of %d", pe);
        EXPECT(shmem_addr_accessible(statics, pe) == 1, "statics of %d", pe);
        EXPECT(shmem_addr_accessible(&on_stack, pe) == 0, "stack of %d", pe);
        EXPECT(shmem_addr_accessible(private, pe) == 0, "malloc of %d", pe);
        EXPECT(shmem_addr_accessible(NULL, pe) == 0, "NULL");
        EXPECT(shmem_addr_accessible((const void *)(uintptr_t)printf, pe) == 0, "code of libc");
    }
    EXPECT(shmem_pe_accessible(-1) == 0 && shmem_pe_accessible(npes) == 0, "no such PE");
    EXPECT(shmem_addr_accessible(heap, npes) == 0 && shmem_addr_accessible(heap, -1) == 0,
           "no such PE");
    free(private);
    shmem_free(heap);
    EXPECT(constant == 5, "%d", constant);
}

/* Loads and stores through the pointers, and the pointers to this PE's objects. */
static void pointers(void) {
    long *heap = shmem_malloc(8 * sizeof *heap);
    int next = (me + 1) % npes, before = (me + npes - 1) % npes, on_stack;
    EXPECT(shmem_ptr(heap, me) == heap && shmem_ptr(statics, me) == statics, "my own elsewhere");
    EXPECT(shmem_ptr(&on_stack, next) == NULL && shmem_ptr(NULL, next) == NULL, "not symmetric");
    EXPECT(shmem_ptr(heap, npes) == NULL && shmem_ptr(heap, -1) == NULL, "no such PE");
    EXPECT(!!shmem_ptr(heap, next) == reach_is_near(next), "%p", shmem_ptr(heap, next));
    EXPECT(!!shmem_ptr(statics, next) == reach_is_near(next), "%p", shmem_ptr(statics, next));
    reach_store(&heap[3], me, next);
    reach_store(&statics[5], me + 100, next);
    shmem_barrier_all();
    EXPECT(heap[3] == before && statics[5] == before + 100, "%ld %ld", heap[3], statics[5]);
    EXPECT(!reach_is_near(next) || *(long *)shmem_ptr(&heap[3], next) == me, "read back");
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, npes - 1, -1, npes, NULL, 0, &team);
    for (int i = 0; i < npes; i++)
        EXPECT(shmem_team_ptr(team, heap, i) == shmem_ptr(heap, npes - 1 - i), "member %d", i);
    EXPECT(shmem_team_ptr(team, heap, npes) == NULL && shmem_team_ptr(team, heap, -1) == NULL,
           "no such member");
    EXPECT(shmem_team_ptr(SHMEM_TEAM_INVALID, heap, 0) == NULL, "no team");
    shmem_team_destroy(team);
    shmem_free(heap);
}

static void names(void) {
    int major = -1, minor = -1;
    char name[SHMEM_MAX_NAME_LEN + 8];
    memset(name, 'x', sizeof name);
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    EXPECT(major == 1 && minor == 6, "%d.%d", major, minor);
    EXPECT(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION, "%d.%d", major, minor);
    EXPECT(strcmp(name, "Weft " WEFT_VERSION_STRING) == 0, "%.40s", name);
    EXPECT(strcmp(name, SHMEM_VENDOR_STRING) == 0, "%.40s", name);
    EXPECT(name[SHMEM_MAX_NAME_LEN] == 'x', "too long");
    shmem_pcontrol(0);
    shmem_pcontrol(3, "anything", 5);
}

/* In a job over hosts, oshrun tells programs which network interface they use. */
static void network(void) {
    const char *told = getenv("WEFT_INTERFACE"), *found = shmemx_network();
    EXPECT(told ? found && strcmp(found, told) == 0 : !found, "%s, not %s", found ? found : "none",
           told ? told : "none");
}

/* Barriers order earlier stores, in many rounds. */
static void barriers(void) {
    static long stored, put;
    int next = (me + 1) % npes;
    for (long turn = 1; turn <= 300; turn++) {
        reach_store(&stored, turn, next);
        shmem_long_put_nbi(&put, &turn, 1, next);
        shmem_barrier_all();
        EXPECT(stored == turn && put == turn, "%ld %ld in turn %ld", stored, put, turn);
        shmem_sync_all();
    }
}

int main(void) {
    int before = initialized();
    shmem_putmem(NULL, NULL, 0, 0); /* an empty call does nothing, also here */
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("before shmem_init");
    EXPECT(before == 0, "%d", before);
    EXPECT(static_ctx == SHMEM_CTX_DEFAULT && static_team == SHMEM_TEAM_WORLD, "static handles");
    tap_case("nested initialisation");
    nested();
    tap_case("a second job in one process");
    again();
    tap_case("accessible PEs and addresses");
    accessible();
    tap_case("pointers to objects");
    pointers();
    tap_case("names and versions");
    names();
    tap_case("the network");
    network();
    tap_case("barriers");
    barriers();
    int result = tap_finish();
    shmem_finalize();
    shmem_finalize(); /* programs do that, and it has no effect */
    return result;
}
