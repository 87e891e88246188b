/* SPDX-License-Identifier: BSD-3-Clause */
/* The start text: all that a daemon needs to know, as the front writes it to the daemon's standard
 * input. Nothing of it is ever in arguments or the environment, since its key opens the job.
 *
 *      weft-start 1 2417          layout, and how many bytes follow
 *      version 5                  a name, how many bytes its value has, the value, a newline
 *      0.1.0
 *      key 64
 *      ...
 *
 * Names and how often they may stand are one table in start.c. Values are bounded, have no zero
 * inside, and are checked: the reader may be given anything. */
#ifndef WEFT_LAUNCH_START_H
#define WEFT_LAUNCH_START_H

#include <stddef.h>
#include <stdint.h>
#include "boot/tls.h"
#include "boot/tree.h"
#include "launch/options.h"

enum {
    WEFT_START_ADDRESSES_MAX = 32,
    WEFT_START_BYTES_MAX = 8 << 20,
};

struct weft_start {
    unsigned char key[WEFT_TLS_KEY_BYTES]; /* of this host alone */
    int host;                              /* which of the hosts reads this */
    int nhosts;
    const char **name; /* of each host, shorter than WEFT_TREE_NAME_BYTES */
    int32_t *host_of;  /* of each PE of the job: options.npes */
    int naddresses;
    const char *address[WEFT_START_ADDRESSES_MAX]; /* of the front, numeric; the best first */
    int port;
    int nwords, ncalled; /* of the last program, and names, while they are read */
    int silence_ms;      /* a side that has said nothing for so long is dead (WEFT_HOST_TIMEOUT) */
    bool by_front;       /* the other side is the front itself, which a terminal may stop */

    int below;       /* hosts from `host` on are the reader's: one has a daemon, several a relay, */
    int fan_out;     /* which starts so many others itself, */
    const char *ssh; /* by this command, */
    const char **called; /* under these names */

    /* All programs with all PEs of the job, each with an absolute folder; the environment, which
     * begins with the variables that the front forwards; and the options that launch/option_table.c
     * marks for every host. */
    struct weft_options options;
};

/* The text for host start->host; *text is the caller's to free. 0, or -ENOMEM. */
int weft_start_write(const struct weft_start *start, char **text, size_t *bytes);

/* Reads the text behind its first line. `text` is changed, and *start points into it. 0, -ENOMEM,
 * or -EINVAL, and *why says what is wrong. */
int weft_start_parse(char *text, size_t bytes, struct weft_start *start, const char **why);

/* Reads a whole start text from a descriptor, and not a byte beyond it. 0 or -errno, said. */
int weft_start_read(int fd, struct weft_start *start);

#endif
