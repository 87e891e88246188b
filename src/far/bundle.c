/* SPDX-License-Identifier: BSD-3-Clause */
#include "far/bundle.h"
#include <stdint.h>
#include <string.h>
#include "transport/transport.h"

/* Precedes each payload. */
struct part {
    uint64_t bytes;
};
_Static_assert(sizeof(struct part) % WEFT_ENGINE_ALIGNMENT == 0, "payloads stay aligned");

size_t weft_payload_bytes(const struct iovec *payload, int nparts) {
    size_t bytes = 0;
    for (int i = 0; i < nparts; i++)
        bytes += payload[i].iov_len;
    return bytes;
}

unsigned char *weft_payload_copy(unsigned char *to, const struct iovec *payload, int nparts) {
    for (int i = 0; i < nparts; to += payload[i++].iov_len)
        if (payload[i].iov_len > 0)
            memcpy(to, payload[i].iov_base, payload[i].iov_len);
    return to;
}

size_t weft_bundle_part_bytes(size_t payload_bytes) {
    size_t past = WEFT_ENGINE_ALIGNMENT - 1;
    return sizeof(struct part) + ((payload_bytes + past) & ~past);
}

void weft_bundle_add(unsigned char *at, const struct iovec *payload, int nparts) {
    struct part part = {0};
    unsigned char *end = weft_payload_copy(at + sizeof part, payload, nparts);
    part.bytes = (size_t)(end - at) - sizeof part;
    memcpy(at, &part, sizeof part);
    memset(end, 0, weft_bundle_part_bytes(part.bytes) - (size_t)(end - at));
}

const void *weft_bundle_take(const char **at, size_t *left, size_t *bytes) {
    struct part part;
    if (*left < sizeof part)
        return NULL;
    memcpy(&part, *at, sizeof part);
    if (part.bytes > *left || weft_bundle_part_bytes(part.bytes) > *left)
        return NULL;
    const char *payload = *at + sizeof part;
    *bytes = part.bytes;
    *at += weft_bundle_part_bytes(part.bytes);
    *left -= weft_bundle_part_bytes(part.bytes);
    return payload;
}
