/* SPDX-License-Identifier: BSD-3-Clause */
#include "far/bundle.h"
#include <stdint.h>
#include <string.h>
#include "transport/transport.h"

/* Before each text. */
struct part {
    uint64_t bytes;
};
_Static_assert(sizeof(struct part) % WEFT_ENGINE_ALIGNMENT == 0, "texts stay aligned");

size_t weft_text_bytes(const struct iovec *text, int nparts) {
    size_t bytes = 0;
    for (int i = 0; i < nparts; i++)
        bytes += text[i].iov_len;
    return bytes;
}

size_t weft_bundle_part_bytes(size_t text_bytes) {
    size_t past = WEFT_ENGINE_ALIGNMENT - 1;
    return sizeof(struct part) + ((text_bytes + past) & ~past);
}

void weft_bundle_add(unsigned char *at, const struct iovec *text, int nparts) {
    struct part part = {0};
    unsigned char *end = at + sizeof part;
    for (int i = 0; i < nparts; end += text[i++].iov_len)
        memcpy(end, text[i].iov_base, text[i].iov_len);
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
    const char *text = *at + sizeof part;
    *bytes = part.bytes;
    *at += weft_bundle_part_bytes(part.bytes);
    *left -= weft_bundle_part_bytes(part.bytes);
    return text;
}
