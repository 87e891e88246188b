/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces tools/weft/gpus.c and plan.c if the library is built without GPU support. */
#include <shmem.h>
#include <stdio.h>
#include "../command.h"

void weft_info_gpus(void) {
    if (shmem_my_pe() == 0)
        printf("GPUs\n  %-12s this Weft was built without GPU support\n", "none:");
}

int weft_info_plan(char **words) {
    (void)words;
    fputs("weft info --plan: this Weft was built without GPU support\n", stderr);
    return 1;
}
