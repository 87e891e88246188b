/* SPDX-License-Identifier: BSD-3-Clause */
/* What sources share: numbers in variables, the job key, which a store carries as hexadecimal text,
 * and the identity of this host. */
#include "boot/source.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include "base/hash.h"
#include "base/machine.h"

int weft_source_number(const char *text, int max) {
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || *end || value > max ? -1 : (int)value;
}

uint64_t weft_source_host(void) {
    char boot_id[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(boot_id, sizeof boot_id, file))
        boot_id[0] = '\0';
    if (file)
        fclose(file);
    struct stat network = {0};
    stat("/proc/self/ns/net", &network);
    uint64_t inode = network.st_ino, sum = WEFT_HASH_BASIS;
    return weft_hash(weft_hash(sum, boot_id, sizeof boot_id), &inode, sizeof inode) | 1;
}

void weft_source_hint(const struct weft_identity *self, const char *missing) {
    if (*self->because)
        weft_note("waiting for PE %s of %d to call shmem_init, since the environment has %s: unset "
                  "these, or set WEFT_LAUNCHER=none, for a process alone",
                  missing, self->npes, self->because);
    else
        weft_note("waiting for PE %s of %d to call shmem_init", missing, self->npes);
}

int weft_job_key_draw(struct weft_job_key *job_key) {
    job_key->host = weft_source_host();
    weft_invitation_make(&job_key->invitation);
    if (getrandom(job_key->secret, sizeof job_key->secret, 0) == sizeof job_key->secret)
        return 0;
    weft_log("cannot make a key (getrandom): %s%s", strerror(errno), weft_remedy(-errno).text);
    return -EIO;
}

void weft_job_key_write(const struct weft_job_key *job_key, char *text) {
    const unsigned char *bytes = (const unsigned char *)job_key;
    _Static_assert(2 * sizeof *job_key < WEFT_STORE_VALUE_MAX, "the text of a key fits");
    for (size_t i = 0; i < sizeof *job_key; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
}

int weft_job_key_read(struct weft_identity *self, char *text) {
    enum { SHOWN_BYTES = 81 };
    unsigned char *bytes = (unsigned char *)&self->job_key;
    size_t digits = 2 * sizeof self->job_key;
    unsigned byte;
    if (strspn(text, "0123456789abcdef") != digits || text[digits]) {
        weft_log_make_printable(text, SHOWN_BYTES);
        weft_log("%s: PE 0 has put '%s', which is not the key of a job: do all PEs run the same "
                 "version of Weft?",
                 self->source->name, text);
        return -EPROTO;
    }
    for (size_t i = 0; i < sizeof self->job_key && sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
        bytes[i] = (unsigned char)byte;
    return 0;
}

bool weft_source_is_elsewhere(const struct weft_identity *self) {
    return self->job_key.host && self->job_key.host != weft_source_host();
}
