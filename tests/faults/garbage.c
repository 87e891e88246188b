/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: not a test by itself: a program whose last PE writes garbage over the control page,
 * which all PEs share, and then continues as if nothing had happened: "garbage SEED WRITES
 * early|late". For tests/faults/garbage.t. It finds the page among its mappings, as a wild pointer
 * might. PEs: none */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint64_t draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 24;
}

static int find_page(uintptr_t *begin, uintptr_t *end) {
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, "weft-control") && sscanf(line, "%lx-%lx", begin, end) == 2;
    if (maps)
        fclose(maps);
    return found;
}

/* Writes bytes, words, small numbers and runs at random places. */
static void scribble(int writes) {
    uintptr_t begin, end;
    if (!find_page(&begin, &end))
        return; /* a single PE has the page in private memory */
    for (int i = 0; i < writes; i++) {
        uintptr_t at = begin + draw() % (end - begin - 64);
        uint64_t value = draw() % 4 ? draw() * draw() : draw() % 8;
        size_t bytes = draw() % 8 == 0 ? 64 : 1u << draw() % 4;
        for (size_t done = 0; done < bytes; done += sizeof value)
            memcpy((void *)(at + done), &value, bytes < sizeof value ? bytes : sizeof value);
    }
}

static void call_everything(void) {
    static long from, to[16], sum, value = 1;
    shmem_team_t team;
    int npes = shmem_n_pes();
    shmem_barrier_all();
    long *block = shmem_malloc(4096);
    shmem_long_fcollect(SHMEM_TEAM_WORLD, to, &from, 1);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &value, 1);
    if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team) == 0)
        shmem_team_destroy(team);
    shmem_free(block);
}

int main(int argc, char **argv) {
    shmem_init();
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    int writes = argc > 2 ? atoi(argv[2]) : 0, early = argc > 3 && strcmp(argv[3], "early") == 0;
    int wild = shmem_my_pe() == shmem_n_pes() - 1;
    call_everything();
    if (wild && early)
        scribble(writes);
    call_everything();
    if (wild && !early)
        scribble(writes);
    shmem_finalize();
    return 0;
}
