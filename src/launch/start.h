/* SPDX-License-Identifier: BSD-3-Clause */
/* The start text: all data that a daemon needs, which the front, or a relay, writes to the standard
 * input of a daemon or relay. It is never passed in arguments or in the environment, because it
 * contains the job's key.
 *
 *      weft-start 4 2417          layout, and the number of bytes that follow
 *      version 5                  a name, the size of its value, then the value and a newline
 *      0.1.0
 *      key 64
 *      ...
 *
 * The table in start.c lists the names and how often they may occur. Values have a maximal size,
 * contain no zero, and are checked: the reader must accept any input. */
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
    unsigned char key[WEFT_TLS_KEY_BYTES]; /* of this host only */
    int host;                              /* index of the host that reads this text */
    int nhosts;
    const char **name; /* of each host; shorter than WEFT_TREE_NAME_BYTES */
    int32_t *host_of;  /* of each of the options.npes PEs */
    int naddresses;
    const char *address[WEFT_START_ADDRESSES_MAX]; /* of the node that started it; the best first */
    int port;
    int nwords, ncalled; /* words of the last program and number of `called` while they are read */
    int silence_ms;      /* a side that is silent for this time is lost (WEFT_HOST_TIMEOUT) */
    bool by_front;       /* the other side is the front itself, which a terminal may stop */

    int below;   /* hosts, from `host` on, that the reader serves; more than one: it is a relay */
    int fan_out; /* maximal number of children of a relay */
    const char *ssh;     /* command by which a relay starts them */
    const char **called; /* names of its hosts for that command */

    /* All programs with all PEs of the job, each with an absolute folder; the environment,
     * beginning with the variables that the front forwards; and the options that
     * launch/option_table.c marks for every host. */
    struct weft_options options;
};

/* Writes the text for host start->host. The caller frees *text. Returns 0 or -ENOMEM. */
int weft_start_write(const struct weft_start *start, char **text, size_t *bytes);

/* Parses the text after its first line. Modifies `text`; *start points into it. Returns 0, -ENOMEM,
 * or -EINVAL with the reason in *why. */
int weft_start_parse(char *text, size_t bytes, struct weft_start *start, const char **why);

/* Reads a whole start text from a descriptor, and no byte after it. Returns 0, or -errno after
 * logging the reason. */
int weft_start_read(int fd, struct weft_start *start);

#endif
