/* SPDX-License-Identifier: BSD-3-Clause */
#include "mutate.h"
#include <string.h>
#include "input.h"

enum { CHANGES_MAX = 4 };

static uint64_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static size_t below(uint64_t *state, size_t limit) {
    return limit ? (size_t)(draw(state) % limit) : 0;
}

/* A number of 1, 2, 4 or 8 bytes that is at some edge, or near what was there. */
static void number_change(unsigned char *at, size_t room, uint64_t *state) {
    static const uint64_t edges[] = {0, 1, 7, 8, 9, 4096, 16384, INT32_MAX, INT64_MAX, UINT64_MAX};
    size_t bytes = (size_t)1 << below(state, 4);
    uint64_t number = 0;
    if (bytes > room)
        return;
    memcpy(&number, at, bytes);
    number = draw(state) % 2 ? edges[below(state, sizeof edges / sizeof *edges)]
                             : number + below(state, 33) - 16;
    memcpy(at, &number, bytes);
}

/* [from, + bytes) of another input, or of this one, in the place of what was there. */
static size_t part_insert(unsigned char *input, size_t length, const unsigned char *other,
                          size_t other_bytes, uint64_t *state) {
    unsigned char part[INPUT_BYTES_MAX];
    size_t from = below(state, other_bytes), bytes = 1 + below(state, other_bytes - from);
    size_t at = below(state, length + 1);
    bytes = bytes < other_bytes - from ? bytes : other_bytes - from;
    if (length + bytes > INPUT_BYTES_MAX)
        return length;
    memcpy(part, other + from, bytes);
    memmove(input + at + bytes, input + at, length - at);
    memcpy(input + at, part, bytes);
    return length + bytes;
}

static size_t part_remove(unsigned char *input, size_t length, uint64_t *state) {
    size_t at = below(state, length), bytes = 1 + below(state, 32);
    bytes = bytes < length - at ? bytes : length - at;
    memmove(input + at, input + at + bytes, length - at - bytes);
    return length - bytes;
}

size_t input_mutate(unsigned char *to, const unsigned char *one, size_t one_bytes,
                    const unsigned char *other, size_t other_bytes, uint64_t *state) {
    size_t length = one_bytes < INPUT_BYTES_MAX ? one_bytes : INPUT_BYTES_MAX;
    memcpy(to, one, length);
    for (size_t changes = 1 + below(state, CHANGES_MAX); changes > 0; changes--) {
        size_t at = below(state, length);
        switch (draw(state) % 8) {
        case 0:
            length = part_insert(to, length, other, other_bytes, state);
            break;
        case 1:
            length = part_insert(to, length, to, length, state);
            break;
        case 2:
            length = length ? part_remove(to, length, state) : 0;
            break;
        case 3:
            if (length)
                to[at] ^= (unsigned char)(1 << below(state, 8));
            break;
        default:
            number_change(to + at, length - at, state);
        }
    }
    return length;
}
