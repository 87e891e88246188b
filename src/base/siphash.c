/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/siphash.h"
#include <stdint.h>

struct siphash {
    uint64_t v[4];
};

static uint64_t rotated(uint64_t word, int bits) {
    return word << bits | word >> (64 - bits);
}

static void rounds(struct siphash *hash, int count) {
    uint64_t *v = hash->v;
    while (count-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotated(v[1], 13) ^ v[0];
        v[3] = rotated(v[3], 16) ^ v[2];
        v[0] = rotated(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotated(v[1], 17) ^ v[2];
        v[3] = rotated(v[3], 21) ^ v[0];
        v[2] = rotated(v[2], 32);
    }
}

/* The last word of a message contains the remaining bytes and, in its highest byte, the message's
 * length. */
static uint64_t word_load(const unsigned char *from, size_t bytes) {
    uint64_t word = 0;
    for (size_t i = 0; i < bytes; i++)
        word |= (uint64_t)from[i] << 8 * i;
    return word;
}

static void word_take(struct siphash *hash, uint64_t word) {
    hash->v[3] ^= word;
    rounds(hash, 2);
    hash->v[0] ^= word;
}

static void word_store(unsigned char *to, const struct siphash *hash) {
    uint64_t word = hash->v[0] ^ hash->v[1] ^ hash->v[2] ^ hash->v[3];
    for (size_t i = 0; i < sizeof word; i++)
        to[i] = (unsigned char)(word >> 8 * i);
}

void weft_siphash(unsigned char code[WEFT_SIPHASH_BYTES],
                  const unsigned char key[WEFT_SIPHASH_BYTES], const void *message, size_t bytes) {
    const unsigned char *at = message;
    uint64_t low = word_load(key, 8), high = word_load(key + 8, 8);
    struct siphash hash = {{low ^ UINT64_C(0x736f6d6570736575), high ^ UINT64_C(0x646f72616e646f83),
                            low ^ UINT64_C(0x6c7967656e657261),
                            high ^ UINT64_C(0x7465646279746573)}};
    size_t left = bytes;
    for (; left >= 8; at += 8, left -= 8)
        word_take(&hash, word_load(at, 8));
    word_take(&hash, word_load(at, left) | (uint64_t)bytes << 56);
    hash.v[2] ^= 0xee;
    rounds(&hash, 4);
    word_store(code, &hash);
    hash.v[1] ^= 0xdd;
    rounds(&hash, 4);
    word_store(code + 8, &hash);
}

bool weft_siphash_equal(const unsigned char a[WEFT_SIPHASH_BYTES],
                        const unsigned char b[WEFT_SIPHASH_BYTES]) {
    unsigned different = 0;
    for (int i = 0; i < WEFT_SIPHASH_BYTES; i++)
        different |= (unsigned)(a[i] ^ b[i]);
    return different == 0;
}
