/* SPDX-License-Identifier: BSD-3-Clause */
/* How messages of a channel begin, and how several small ones lie in a bundle, which is one:
 *
 *     head | text
 *     head | bytes, text | bytes, text | ...      each text aligned as that of a message is */
#ifndef WEFT_FAR_BUNDLE_H
#define WEFT_FAR_BUNDLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum sort { MESSAGE, ANSWER, CONTROL, BUNDLE };

/* A control message has no number of its own: it says how far its sender has heard, and may ask how
 * far the target has applied. Both only grow, so its order does not matter. Another message may
 * ask, too, up to itself. */
struct head {
    uint32_t number; /* of a control message: up to which it asks */
    uint32_t heard;  /* of the messages that came from the target, all up to this are applied */
    uint32_t from;
    uint8_t sort, asks;
    uint16_t unused; /* 0 */
};

size_t weft_text_bytes(const struct iovec *text, int nparts);

/* What a text of so many bytes takes. */
size_t weft_bundle_part_bytes(size_t text_bytes);

/* Writes a text, behind the others. */
void weft_bundle_add(unsigned char *at, const struct iovec *text, int nparts);

/* The next text of those that are left, which are moved on; NULL: they are damaged. */
const void *weft_bundle_take(const char **at, size_t *left, size_t *bytes);

#endif
