/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers that only set variables: torchrun, and srun without a PMI. The key of the job is a hash
 * of variables that have the same values on all its PEs. It distinguishes jobs, but is not a
 * secret: the kernel reports the user of a socket, which keeps others out (boot/rendezvous.c).
 * Several hosts need a secret, which torchrun's store carries. MASTER_PORT is read, never bound. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "boot/source.h"
#include "boot/tcpstore.h"

enum { FACTS_MAX = 5 };

struct dialect {
    const char *pe, *npes;
    const char *here;             /* PEs on this host, or */
    const char *hosts;            /* the number of hosts; NULL or absent: not known */
    const char *facts[FACTS_MAX]; /* the first must be set */
};

static const struct dialect torchrun = {
    .pe = "RANK",
    .npes = "WORLD_SIZE",
    .here = "LOCAL_WORLD_SIZE",
    .facts = {"MASTER_PORT", "MASTER_ADDR", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}};

/* A batch script has SLURM_PROCID, but no SLURM_STEP_NUM_TASKS. */
static const struct dialect slurm = {
    .pe = "SLURM_PROCID",
    .npes = "SLURM_STEP_NUM_TASKS",
    .hosts = "SLURM_STEP_NUM_NODES",
    .facts = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}};

static int variable_number(const char *name) {
    return name ? weft_source_number(getenv(name), WEFT_WIRE_PES_MAX) : -1;
}

static int dialect_promises(const struct dialect *dialect) {
    int npes = variable_number(dialect->npes);
    return npes > 0 && variable_number(dialect->pe) >= 0 && getenv(dialect->facts[0]) ? npes : 0;
}

static const struct dialect *dialect_of(const struct weft_identity *self) {
    return self->source == &weft_source_slurm ? &slurm : &torchrun;
}

static int dialect_open(struct weft_identity *self) {
    const struct dialect *dialect = dialect_of(self);
    self->pe = variable_number(dialect->pe);
    self->npes = variable_number(dialect->npes);
    if (!dialect_promises(dialect)) {
        weft_log("%s: %s, %s and %s must be in the environment", self->source->name, dialect->pe,
                 dialect->npes, dialect->facts[0]);
        return -EINVAL;
    }
    int here = variable_number(dialect->here), hosts = variable_number(dialect->hosts);
    self->here = here > 0 ? here : self->npes;
    if (hosts <= 1)
        return 0;
    weft_log("%s: %s=%d, and srun without a PMI cannot carry a secret between hosts: use "
             "srun --mpi=pmi2 or --mpi=pmix",
             self->source->name, dialect->hosts, hosts);
    return -EHOSTUNREACH;
}

/* Each byte of the key is a hash of all facts, the number of PEs, and the index of the byte. The
 * index comes last, with eight bytes: only after that many does a change of the last fact's last
 * digit, as by a restart, reach the bits of the hash that are used. */
static void facts_hash(struct weft_identity *self) {
    const char *const *facts = dialect_of(self)->facts;
    for (uint64_t at = 0; at < WEFT_JOB_KEY_BYTES; at++) {
        uint64_t sum = WEFT_HASH_BASIS + (uint64_t)self->npes;
        for (int i = 0; i < FACTS_MAX && facts[i]; i++) {
            const char *value = getenv(facts[i]);
            sum = value ? weft_hash(sum, value, strlen(value)) : sum;
            sum = weft_hash(sum, "\xff", 1);
        }
        sum = weft_hash(sum, &at, sizeof at);
        self->job_key.secret[at] = (unsigned char)(sum >> 32);
    }
    self->job_key.host = 0;
}

/* The name of the entry in the store is unique to this start of the job. */
static int torchrun_share_far(struct weft_identity *self) {
    struct weft_tcpstore store;
    char name[32], text[WEFT_STORE_VALUE_MAX];
    uint64_t start;
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    memcpy(&start, self->job_key.secret, sizeof start);
    snprintf(name, sizeof name, "weft-key-%016" PRIx64, start);
    int error = weft_tcpstore_open(&store, host ? host : "localhost", port);
    if (error == 0 && self->pe == 0 && (error = weft_job_key_draw(&self->job_key)) == 0) {
        weft_job_key_write(&self->job_key, text);
        error = weft_tcpstore_put(&store, name, text);
    } else if (error == 0) {
        error = weft_tcpstore_get(&store, name, text, sizeof text);
        error = error ? error : weft_job_key_read(self, text);
    }
    weft_tcpstore_close(&store);
    return error;
}

static int dialect_share(struct weft_identity *self) {
    facts_hash(self);
    return self->here < self->npes ? torchrun_share_far(self) : 0;
}

/* Writes the variables that say which PE this is, such as "RANK=0, WORLD_SIZE=2 and
 * MASTER_PORT=29500". */
static void dialect_describe(struct weft_identity *self) {
    const struct dialect *dialect = dialect_of(self);
    snprintf(self->because, sizeof self->because, "%s=%d, %s=%d and %s=%.40s", dialect->pe,
             self->pe, dialect->npes, self->npes, dialect->facts[0], getenv(dialect->facts[0]));
}

static int torchrun_promises(void) {
    return dialect_promises(&torchrun);
}

static int slurm_promises(void) {
    return dialect_promises(&slurm);
}

const struct weft_source weft_source_torchrun = {.name = "torchrun",
                                                 .promises = torchrun_promises,
                                                 .open = dialect_open,
                                                 .share = dialect_share,
                                                 .describe = dialect_describe};

const struct weft_source weft_source_slurm = {.name = "slurm",
                                              .promises = slurm_promises,
                                              .open = dialect_open,
                                              .share = dialect_share,
                                              .describe = dialect_describe};
