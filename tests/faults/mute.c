/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: PE 1 closes all descriptors from 3 on, and then all PEs make a team, for which they
 * exchange through the hub. The job ends; no PE gets a team, and no PE waits forever. If there is
 * an argument, each PE first writes its pid, and PE 1 stops its parent, the launcher. PEs: none */
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    enum { FROM = 3, TO = 1 << 16 };
    int pes[] = {0, 1, 2};
    shmem_team_t team;
    (void)argv;
    shmem_init();
    if (argc > 1) {
        printf("pid %d\n", (int)getpid());
        fflush(stdout);
        shmem_barrier_all();
        if (shmem_my_pe() == 1)
            kill(getppid(), SIGSTOP);
    }
    for (int fd = FROM; shmem_my_pe() == 1 && fd < TO; fd++)
        close(fd);
    shmemx_team_create(pes, 3, 1, &team);
    shmem_barrier_all();
    return 0;
}
