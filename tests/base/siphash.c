/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash computes the codes of its authors' reference for keys and messages 0 1 2 ...; one changed
 * bit changes the code. PEs: 1 */
#include "base/siphash.h"
#include <string.h>
#include "tap.h"

static const struct {
    size_t bytes;
    unsigned char code[WEFT_SIPHASH_BYTES + 1];
} known[] = {
    {0, "\xa3\x81\x7f\x04\xba\x25\xa8\xe6\x6d\xf6\x72\x14\xc7\x55\x02\x93"},
    {1, "\xda\x87\xc1\xd8\x6b\x99\xaf\x44\x34\x76\x59\x11\x9b\x22\xfc\x45"},
    {2, "\x81\x77\x22\x8d\xa4\xa4\x5d\xc7\xfc\xa3\x8b\xde\xf6\x0a\xff\xe4"},
};

int main(void) {
    unsigned char key[WEFT_SIPHASH_BYTES], message[64], code[WEFT_SIPHASH_BYTES];
    unsigned char other[WEFT_SIPHASH_BYTES];
    tap_start(0);
    for (unsigned i = 0; i < sizeof message; i++)
        message[i] = (unsigned char)i;
    memcpy(key, message, sizeof key);
    tap_case("codes are those of the reference");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        weft_siphash(code, key, message, known[i].bytes);
        EXPECT(weft_siphash_equal(code, known[i].code), "%zu bytes", known[i].bytes);
    }
    tap_case("every bit of message and key counts");
    weft_siphash(code, key, message, sizeof message);
    for (unsigned bit = 0; bit < 8 * sizeof message; bit++) {
        message[bit / 8] ^= (unsigned char)(1 << bit % 8);
        weft_siphash(other, key, message, sizeof message);
        EXPECT(!weft_siphash_equal(code, other), "bit %u of the message", bit);
        message[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (unsigned bit = 0; bit < 8 * sizeof key; bit++) {
        key[bit / 8] ^= (unsigned char)(1 << bit % 8);
        weft_siphash(other, key, message, sizeof message);
        EXPECT(!weft_siphash_equal(code, other), "bit %u of the key", bit);
        key[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    return tap_finish();
}
