/* SPDX-License-Identifier: BSD-3-Clause */
/* The program itself provides the PE number, and either a job key that it has distributed, or a
 * function that gathers bytes of all PEs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "boot/boot.h"
#include "boot/source.h"

_Static_assert(WEFT_BOOT_KEY_BYTES == sizeof(struct weft_job_key),
               "opaque to the program, and as large");

static struct weft_boot_given given; /* npes is 0 until the program has given it */

void weft_boot_give(const struct weft_boot_given *what) {
    given = *what;
}

int weft_boot_key(unsigned char bytes[WEFT_BOOT_KEY_BYTES]) {
    struct weft_job_key job_key;
    int error = weft_job_key_draw(&job_key);
    if (error == 0)
        memcpy(bytes, &job_key, sizeof job_key);
    return error;
}

static int given_promises(void) {
    return given.npes;
}

static int given_open(struct weft_identity *self) {
    if (given.npes == 0) {
        weft_log("WEFT_LAUNCHER=init_attr: the program has to call shmemx_init_attr first");
        return -EINVAL;
    }
    self->pe = given.pe;
    self->npes = given.npes;
    return 0;
}

/* A PE's contribution to the program's allgather. */
struct given_entry {
    int32_t pe, npes;
    uint64_t host;
    struct weft_job_key job_key;
};

/* Takes PE 0's job key, if every entry is at the index of its PE. */
static int given_pick(const struct given_entry *all, struct weft_identity *self) {
    self->here = 0;
    for (int pe = 0; pe < given.npes; pe++) {
        if (all[pe].pe != pe || all[pe].npes != given.npes) {
            weft_log("shmemx_init_attr: argument attr: allgather has brought the data of PE %d of "
                     "%d to place %d of %d: pe and npes must be those of its group",
                     all[pe].pe, all[pe].npes, pe, given.npes);
            return -EINVAL;
        }
        self->here += all[pe].host == all[self->pe].host;
    }
    self->job_key = all[0].job_key;
    return 0;
}

static int given_gather(struct weft_identity *self) {
    struct given_entry mine = {.pe = given.pe, .npes = given.npes, .host = weft_source_host()};
    struct given_entry *all = calloc((size_t)given.npes, sizeof *all);
    if (!all)
        return -ENOMEM;
    int error = self->pe == 0 ? weft_job_key_draw(&mine.job_key) : 0;
    if (error) /* logged: all must take part */
        memset(&mine.job_key, 0, sizeof mine.job_key);
    error = given.allgather(&mine, all, sizeof mine, given.context);
    if (error) {
        weft_log("shmemx_init_attr: argument attr: allgather returns %d", error);
        error = -EIO;
    }
    error = error ? error : given_pick(all, self);
    free(all);
    return error;
}

static int given_share(struct weft_identity *self) {
    if (given.allgather)
        return given_gather(self);
    memcpy(&self->job_key, given.job_key, sizeof self->job_key);
    return 0;
}

const struct weft_source weft_source_given = {
    .name = "init_attr", .promises = given_promises, .open = given_open, .share = given_share};
