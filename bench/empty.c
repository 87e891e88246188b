/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts and ends: the cost of a job that does nothing. */
#include <shmem.h>

int main(void) {
    shmem_init();
    shmem_finalize();
    return 0;
}
