/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: PEs that oshrun has not started.
 *
 *   starts KIND           as the launcher says
 *   starts KIND PE NPES   by a unique id, which PE 0 makes and writes as a line of hexadecimal
 *                         digits, and the others read from stdin
 *
 * Each prints "pid PE PID", and the network that it uses. KIND is work, all kinds of calls with all
 * PEs; wait, in which all wait for the last PE; exit, in which the last PE calls
 * shmem_global_exit(7); again, which initialises a second time. For launchers.t; not a test by
 * itself. PEs: none */
#include "hosts/by_id.h"
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft.h>

enum { NELEMS = 1000 };

static long inbox[NELEMS], gathered[64 * NELEMS], sum, counter;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, weft_last_error());
    exit(9);
}

static void work(int me, int npes) {
    long source[NELEMS], mine = me + 1;
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    for (int i = 0; i < NELEMS; i++)
        source[i] = 1000 * me + i;
    counter = 0;
    shmem_barrier_all();
    shmem_long_put(inbox, source, NELEMS, next);
    shmem_long_atomic_add(&counter, mine, 0);
    shmem_barrier_all();
    if (inbox[NELEMS - 1] != 1000 * before + NELEMS - 1 ||
        shmem_long_g(&inbox[7], next) != 1000 * me + 7)
        fail("a put or a get is wrong");
    if (shmem_long_atomic_fetch(&counter, 0) != (long)npes * (npes + 1) / 2)
        fail("an atomic is wrong");
    long *heap = shmem_malloc(sizeof *heap);
    *heap = mine;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, heap, 1);
    shmem_long_fcollect(SHMEM_TEAM_WORLD, gathered, inbox, NELEMS);
    if (sum != (long)npes * (npes + 1) / 2 || gathered[NELEMS] != (npes > 1 ? 0 : gathered[NELEMS]))
        fail("a collective is wrong");
    shmem_free(heap);
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "work";
    int rounds = strcmp(kind, "again") == 0 ? 2 : 1;
    for (int i = 0; i < rounds; i++) {
        if (argc > 3 && i == 0)
            init_by_id(atoi(argv[2]), atoi(argv[3]));
        else
            shmem_init();
        int me = shmem_my_pe(), npes = shmem_n_pes();
        char host[64] = "";
        gethostname(host, sizeof host - 1);
        const char *network = shmemx_network();
        printf("pid %d %d on %s of %d by %s\n", me, (int)getpid(), host, npes,
               network ? network : "itself");
        fflush(stdout);
        work(me, npes);
        if (strcmp(kind, "wait") == 0 && me == npes - 1)
            pause();
        while (strcmp(kind, "put") == 0) {
            shmem_long_p(&inbox[0], me, (me + 1) % npes);
            shmem_quiet();
        }
        if (strcmp(kind, "exit") == 0 && me == npes - 1)
            shmem_global_exit(7);
        if (strcmp(kind, "wait") == 0 || strcmp(kind, "exit") == 0)
            shmem_barrier_all();
        shmem_finalize();
    }
    return 0;
}
