/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts and ends: what a job costs that does nothing. */
#include <shmem.h>

int main(void) {
    shmem_init();
    shmem_finalize();
    return 0;
}
