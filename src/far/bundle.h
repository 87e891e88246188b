/* SPDX-License-Identifier: BSD-3-Clause */
/* The head of messages, and the layout of a bundle, which holds several small messages:
 *
 *     head | payload                                    a payload is laid out by far/protocol.h
 *     head | bytes, payload | bytes, payload | ...      each payload aligned as that of a message
 */
#ifndef WEFT_FAR_BUNDLE_H
#define WEFT_FAR_BUNDLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum sort { MESSAGE, ANSWER, CONTROL, BUNDLE };

/* A control message has no number in the stream: it acknowledges, and may ask for an
 * acknowledgment. Both numbers only grow, so the order of control messages does not matter. Any
 * other message may ask for its own acknowledgment. */
struct head {
    uint32_t number;       /* of a control message: asks for the acknowledgment up to this number */
    uint32_t acknowledged; /* messages from the target are applied up to this number */
    uint32_t from;
    uint8_t sort, asks;
    uint16_t unused; /* 0 */
};

size_t weft_payload_bytes(const struct iovec *payload, int nparts);

/* Copies the parts of a payload one after the other, and returns the end of the copy. A part
 * without bytes may have no address. */
unsigned char *weft_payload_copy(unsigned char *to, const struct iovec *payload, int nparts);

/* Returns the bytes that such a payload takes in a bundle. */
size_t weft_bundle_part_bytes(size_t payload_bytes);

/* Appends a payload. */
void weft_bundle_add(unsigned char *at, const struct iovec *payload, int nparts);

/* Returns the next payload of the *left bytes at *at, and moves both past it. Returns NULL if they
 * are malformed. */
const void *weft_bundle_take(const char **at, size_t *left, size_t *bytes);

#endif
