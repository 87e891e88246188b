/* SPDX-License-Identifier: BSD-3-Clause */
/* A source is one way in which a process was started: by oshrun, another launcher, or the program.
 * It provides the number of this PE and the number of PEs, and carries PE 0's job key, a secret, to
 * all PEs: through a small store, or in its own way. With the job key the PEs find each other
 * (boot/meet.h), and the source is not needed any more. Sources are tried in the order of the table
 * in source_find.c, unless WEFT_LAUNCHER names one.
 *
 * This header brings what all sources need: the log, and boot/wire.h's limit to the number of PEs.
 */
#ifndef WEFT_BOOT_SOURCE_H
#define WEFT_BOOT_SOURCE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/log.h"
#include "boot/invitation.h"
#include "boot/wire.h"

#define WEFT_JOB_KEY_BYTES 32

struct weft_job_key {
    unsigned char secret[WEFT_JOB_KEY_BYTES]; /* separates this job from all others */
    uint64_t host;                            /* of PE 0 (weft_source_host); 0: not known */
    struct weft_invitation invitation; /* PE 0's addresses and port, for PEs of other hosts */
};

/* After three seconds of waiting one line names the missing PEs and the reason; after five minutes
 * the start fails. A PE that is refused gets the reason as text. */
enum { WEFT_MEET_HINT_MS = 3000, WEFT_MEET_LIMIT_MS = 300000, WEFT_REFUSAL_BYTES = 256 };

struct weft_source;

struct weft_identity {
    const struct weft_source *source;
    int pe, npes;
    int here; /* PEs on this host; 0: not known */
    struct weft_job_key job_key;
    char because[128]; /* the variables that say so: "RANK=0 and ..."; or empty */
};

/* Functions that can fail return 0 or -errno, logged. */
struct weft_source {
    const char *name; /* as WEFT_LAUNCHER calls it */

    /* Returns the number of PEs according to the environment: 0 if that is not of this source,
     * WEFT_NPES_UNKNOWN if it does not say. It is called before main, and may call nothing but
     * getenv. */
    int (*promises)(void);

    /* Opens the source, and fills in pe and npes; it may block until all PEs have arrived. NULL for
     * a source that needs no opening (oshrun). */
    int (*open)(struct weft_identity *self);

    /* The source's store: all PEs can get after their fence what PE 0 has put before. Values are
     * text without blanks, of at most WEFT_STORE_VALUE_MAX bytes with the end. */
    int (*put)(const char *key, const char *value);
    int (*fence)(void);
    int (*get)(const char *key, char *value, size_t bytes);

    /* Brings PE 0's job key, which it draws, to all PEs. For sources without a store; NULL for
     * those with one. */
    int (*share)(struct weft_identity *self);

    /* Writes the variables that say which PE this is to `because`, where they may have been left
     * over from something else. May be NULL. */
    void (*describe)(struct weft_identity *self);

    /* Closes the source at the end of a process that ends normally. May be NULL. */
    void (*close)(void);
};

#define WEFT_NPES_UNKNOWN    INT_MAX
#define WEFT_STORE_VALUE_MAX 256

extern const struct weft_source weft_source_given, weft_source_oshrun, weft_source_pmix,
    weft_source_pmi1, weft_source_pmi2, weft_source_torchrun, weft_source_slurm;

/* Finds the source that started this process; NULL if it is alone, as a privileged program always
 * is. 0, or -EINVAL when WEFT_LAUNCHER names none (not logged: asked before main, too). */
int weft_source_find(const struct weft_source **source);

/* Returns the first source that announces several PEs, even if it is not used; NULL: none does. */
const struct weft_source *weft_source_announced(void);

/* Opens the source and fetches PE 0's job key. Fills in all of `self`. Returns 0 or -errno, logged.
 */
int weft_source_identify(const struct weft_source *source, struct weft_identity *self);

/* Logs "waiting for PE 1 of 2 to call shmem_init", and the variables that announce that PE. */
void weft_source_hint(const struct weft_identity *self, const char *missing);

/* Returns a number that processes have in common exactly if they can reach each other by abstract
 * sockets: those of one host and network namespace. Never 0. */
uint64_t weft_source_host(void);

/* True if PE 0 runs on another host. */
bool weft_source_is_elsewhere(const struct weft_identity *self);

/* Draws a job key for a new job. 0 or -errno, logged. */
int weft_job_key_draw(struct weft_job_key *job_key);

/* Write a job key as text of at most WEFT_STORE_VALUE_MAX bytes with the zero, and read such text,
 * which may be anything, into `self`: 0, or -EPROTO, logged. */
void weft_job_key_write(const struct weft_job_key *job_key, char *text);
int weft_job_key_read(struct weft_identity *self, char *text);

/* Returns the number that the text consists of, 0 to `max`, or -1: anything else, and NULL. */
int weft_source_number(const char *text, int max);

#endif
