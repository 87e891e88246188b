/* SPDX-License-Identifier: BSD-3-Clause */
/* PEs that find each other by a unique id: PE 0 makes it and writes it as a line of hexadecimal
 * digits, and the others read it from stdin. */
#ifndef WEFT_TESTS_HOSTS_BY_ID_H
#define WEFT_TESTS_HOSTS_BY_ID_H

#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft.h>

static void id_write(const shmemx_uniqueid_t *id) {
    for (size_t i = 0; i < sizeof id->bytes; i++)
        printf("%02x", id->bytes[i]);
    printf("\n");
    fflush(stdout);
}

static void id_read(shmemx_uniqueid_t *id) {
    unsigned byte;
    for (size_t i = 0; i < sizeof id->bytes && scanf("%2x", &byte) == 1; i++)
        id->bytes[i] = (unsigned char)byte;
}

static void init_by_id(int pe, int npes) {
    shmemx_uniqueid_t id = {.bytes = {0}};
    shmemx_init_attr_t attr = {.pe = pe, .npes = npes, .uniqueid = &id};
    int error = pe == 0 ? shmemx_get_uniqueid(&id) : 0;
    if (error == 0 && pe == 0)
        id_write(&id);
    else if (error == 0)
        id_read(&id);
    error = error ? error : shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr);
    if (error == 0)
        return;
    fprintf(stderr, "by a unique id: %s\n", weft_last_error());
    exit(9);
}

#endif
