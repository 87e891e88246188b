/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: an OpenSHMEM program that ends early, for scripts of this room: PE 1 does what the
 * first argument says, PE 0 waits in a barrier, PE 2 computes, all others wait for a word that is
 * never set. With a third argument "compute" all others compute for ever; with "return" they return
 * 0 after 0.2 s. Not a test itself. PEs: none */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long word;

static void end(const char *how, int number) {
    if (strcmp(how, "global_exit") == 0)
        shmem_global_exit(number);
    if (strcmp(how, "raise") == 0)
        raise(number);
    if (strcmp(how, "exit") == 0)
        exit(number);
    if (strcmp(how, "finalize_exit") == 0) {
        shmem_finalize();
        exit(number);
    }
    if (strcmp(how, "_exit") == 0)
        _exit(number);
    if (strcmp(how, "misuse") == 0)
        shmem_long_p(&word, 1, 99);
    if (strcmp(how, "exec") == 0)
        execlp("sleep", "sleep", "1", (char *)NULL);
}

int main(int argc, char **argv) {
    shmem_init();
    printf("pid %d %d\n", shmem_my_pe(), (int)getpid());
    fflush(stdout);
    shmem_barrier_all();
    if (shmem_my_pe() == 1 && argc > 2)
        end(argv[1], atoi(argv[2]));
    if (argc > 3 && strcmp(argv[3], "return") == 0) {
        usleep(200000);
        printf("returns %d\n", shmem_my_pe());
        return 0;
    }
    if (shmem_my_pe() == 2 || argc > 3)
        for (volatile unsigned turns = 0;; turns++)
            ;
    if (shmem_my_pe() == 0)
        shmem_barrier_all();
    shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
    return 0;
}
