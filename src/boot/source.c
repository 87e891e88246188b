/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of the sources, and PE 0's job key through a store: as hexadecimal text. */
#include "boot/source.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include "base/hash.h"
#include "base/machine.h"
#include "base/privilege.h"

/* The order: the program's own word comes first, then oshrun's, then the sources that can be asked
 * for most. PMI-2 servers speak PMI-1 too, so PMI-2 comes into play only when it is named. */
static const struct weft_source *const sources[] = {
    &weft_source_given, &weft_source_oshrun,   &weft_source_pmix, &weft_source_pmi1,
    &weft_source_pmi2,  &weft_source_torchrun, &weft_source_slurm};

enum { NSOURCES = sizeof sources / sizeof *sources };

int weft_source_number(const char *text, int max) {
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || *end || value > max ? -1 : (int)value;
}

int weft_source_find(const struct weft_source **source) {
    const char *wanted = getenv("WEFT_LAUNCHER");
    if (wanted && strcmp(wanted, "auto") == 0)
        wanted = NULL;
    *source = NULL;
    if (weft_privileged())
        return 0;
    if (weft_source_given.promises())
        *source = &weft_source_given;
    if (*source || (wanted && strcmp(wanted, "none") == 0))
        return 0;
    for (int i = 0; i < NSOURCES; i++) {
        if (wanted ? strcmp(wanted, sources[i]->name) != 0 : !sources[i]->promises())
            continue;
        *source = sources[i];
        return 0;
    }
    return wanted ? -EINVAL : 0;
}

const struct weft_source *weft_source_announced(void) {
    for (int i = 0; i < NSOURCES; i++)
        if (sources[i]->promises() > 1)
            return sources[i];
    return NULL;
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
    weft_log("no random numbers to make a key of (getrandom): %s%s", strerror(errno),
             weft_remedy(-errno).text);
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
        weft_log("%s: what PE 0 has put is '%s', and no key of a job of ours: do all PEs run the "
                 "same version of Weft?",
                 self->source->name, text);
        return -EPROTO;
    }
    for (size_t i = 0; i < sizeof self->job_key && sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
        bytes[i] = (unsigned char)byte;
    return 0;
}

static int store_share_key(struct weft_identity *self) {
    static const char key[] = "weft-key";
    const struct weft_source *source = self->source;
    char text[WEFT_STORE_VALUE_MAX];
    int error = self->pe == 0 ? weft_job_key_draw(&self->job_key) : 0;
    weft_job_key_write(&self->job_key, text);
    if (error == 0 && self->pe == 0)
        error = source->put(key, text);
    error = error ? error : source->fence();
    error = error ? error : source->get(key, text, sizeof text);
    return error ? error : weft_job_key_read(self, text);
}

bool weft_source_is_elsewhere(const struct weft_identity *self) {
    return self->job_key.host && self->job_key.host != weft_source_host();
}

/* A PE on another host than PE 0 calls it. */
static int host_check(const struct weft_identity *self) {
    if (!weft_source_is_elsewhere(self))
        return 0;
    if (self->pe == 0)
        weft_log("%s: PE 0 has to run on the host where the unique id was made, and in the process "
                 "that has made it, if PEs are on several hosts",
                 self->source->name);
    else if (!self->job_key.invitation.port)
        weft_log("%s: PE 0 runs on another host than PE %d, or in another network namespace, and "
                 "has no address there that others could call",
                 self->source->name, self->pe);
    else
        return 0;
    return -EHOSTUNREACH;
}

static int place_check(const struct weft_identity *self) {
    if (self->npes >= 1 && self->npes <= WEFT_WIRE_PES_MAX && self->pe >= 0 &&
        self->pe < self->npes)
        return 0;
    weft_log("%s: PE %d of %d is no place in a job of 1 to %d PEs", self->source->name, self->pe,
             self->npes, WEFT_WIRE_PES_MAX);
    return -EINVAL;
}

int weft_source_identify(const struct weft_source *source, struct weft_identity *self) {
    *self = (struct weft_identity){.source = source, .pe = -1};
    int error = source->open(self);
    error = error ? error : place_check(self);
    if (error == 0 && self->npes > 1)
        weft_log_set_pe(self->pe);
    if (self->here < 0 || self->here > self->npes)
        self->here = 0; /* a launcher that says so knows nothing */
    if (error || self->npes == 1)
        return error;
    if (source->describe)
        source->describe(self);
    error = source->share ? source->share(self) : store_share_key(self);
    return error ? error : host_check(self);
}
