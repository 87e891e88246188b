/* SPDX-License-Identifier: BSD-3-Clause */
/* Who am I, and what do we all know that nobody else does: asked of whatever started this process.
 *
 * A source is one way to be started, and one file. It says which PE of how many this process is,
 * and carries PE 0's job key to the others: through a small store, or by a way of its own. With the
 * job key the PEs find each other on this host (boot/meet.h); the source is not needed any more
 * then. Sources are tried in the order of the table in source.c, unless WEFT_LAUNCHER names one. */
#ifndef WEFT_BOOT_SOURCE_H
#define WEFT_BOOT_SOURCE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_JOB_KEY_BYTES 32

struct weft_job_key {
    unsigned char secret[WEFT_JOB_KEY_BYTES]; /* separates this job from all others */
    uint64_t host;                            /* where PE 0 runs; 0: it is not said */
};

struct weft_identity {
    int pe, npes;
    struct weft_job_key job_key;
    char because[128]; /* what in the environment says so: "RANK=0 and ..."; or nothing */
};

/* What can fail returns 0 or -errno, logged. */
struct weft_source {
    const char *name; /* as WEFT_LAUNCHER calls it */

    /* How many PEs the environment speaks of: 0, it is not of this source; WEFT_NPES_UNKNOWN, of
     * some. Asked before main: nothing but getenv. */
    int (*promises)(void);

    /* May block until all PEs have come. A NULL: the source is none that is opened (oshrun). */
    int (*open)(int *pe, int *npes);

    /* A store. What PEs put before their fence, all can get behind it. Values are text without
     * blanks, of at most WEFT_STORE_VALUE_MAX bytes with the end. */
    int (*put)(const char *key, const char *value);
    int (*fence)(void);
    int (*get)(int pe, const char *key, char *value, size_t bytes);

    /* In place of a store, NULL with one: PE 0's job key comes to all. On entry PE 0's has been
     * drawn.
     */
    int (*share)(int pe, int npes, struct weft_job_key *job_key);

    /* Writes the variables that say which PE this is, where they may have been left over from
     * something else. May be NULL. */
    void (*describe)(char *text, size_t bytes);

    /* At the end of the process, in order. May be NULL. */
    void (*close)(void);
};

#define WEFT_NPES_UNKNOWN    INT_MAX
#define WEFT_STORE_VALUE_MAX 256

extern const struct weft_source weft_source_given, weft_source_oshrun, weft_source_pmix,
    weft_source_pmi1, weft_source_pmi2, weft_source_torchrun, weft_source_slurm;

/* The source that this process was started by; NULL: none, it is alone, as a privileged program
 * always is. 0, or -EINVAL when WEFT_LAUNCHER names none (not logged: asked before main, too). */
int weft_source_find(const struct weft_source **source);

/* The first source that speaks of several PEs, whether or not it is believed; NULL: none does. */
const struct weft_source *weft_source_announced(void);

/* Opens it and has PE 0's job key brought; `identity` is complete then. 0 or -errno, logged. */
int weft_source_identify(const struct weft_source *source, struct weft_identity *identity);

/* Draws a job key for a new job. 0 or -errno, logged. */
int weft_job_key_draw(struct weft_job_key *job_key);

/* Only digits, at most `max`; -1 otherwise, and for NULL. */
int weft_source_number(const char *text, int max);

#endif
