/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: PE 1 closes all descriptors from 3 on, and then all PEs make a team, for which they
 * exchange through the hub. The job ends; no PE gets a team, and no PE waits forever. PEs: none */
#include <shmemx.h>
#include <unistd.h>

int main(void) {
    enum { FROM = 3, TO = 1 << 16 };
    int pes[] = {0, 1, 2};
    shmem_team_t team;
    shmem_init();
    for (int fd = FROM; shmem_my_pe() == 1 && fd < TO; fd++)
        close(fd);
    shmemx_team_create(pes, 3, 1, &team);
    shmem_barrier_all();
    return 0;
}
