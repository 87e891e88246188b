/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a job for stopped.t, not a test itself: all PEs except PE 1 wait in the call that
 * the argument names; PE 1 prints its process number and sleeps. PEs: none */
#include <shmem.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int flag;

int main(int argc, char **argv) {
    const char *call = argc > 1 ? argv[1] : "barrier";
    shmem_team_t team;
    shmem_init();
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    if (shmem_my_pe() == 1)
        sleep(60);
    if (strcmp(call, "barrier") == 0)
        shmem_barrier_all();
    else if (strcmp(call, "until") == 0)
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
    else if (strcmp(call, "team") == 0)
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
    return 0;
}
