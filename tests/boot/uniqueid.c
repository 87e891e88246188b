/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a process of a job by unique id, for uniqueid.t; not a test itself. "uniqueid make"
 * writes an id to stdout; "uniqueid PE NPES" reads an id from stdin, joins and leaves in order;
 * "uniqueid PE NPES die" ends right after joining. PEs: none */
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weft.h>

int main(int argc, char **argv) {
    shmemx_uniqueid_t id;
    if (argc == 2)
        return shmemx_get_uniqueid(&id) || fwrite(&id, sizeof id, 1, stdout) != 1;
    if (argc < 3)
        return 2;
    size_t given = fread(&id, 1, sizeof id, stdin);
    shmemx_init_attr_t attr = {.pe = atoi(argv[1]), .npes = atoi(argv[2]), .uniqueid = &id};
    int rc = given == sizeof id ? shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) : 1;
    if (rc) {
        fprintf(stderr, "error %d: %s\n", rc, weft_last_error());
        return 9;
    }
    if (argc > 3)
        _exit(0);
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
