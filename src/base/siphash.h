/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4 with 128 bits (Aumasson and Bernstein, "SipHash: a fast short-input PRF"): nobody
 * without the key can compute or forge the code of a message. */
#ifndef WEFT_BASE_SIPHASH_H
#define WEFT_BASE_SIPHASH_H

#include <stdbool.h>
#include <stddef.h>

enum { WEFT_SIPHASH_BYTES = 16 }; /* of a key, and of a code */

void weft_siphash(unsigned char code[WEFT_SIPHASH_BYTES],
                  const unsigned char key[WEFT_SIPHASH_BYTES], const void *message, size_t bytes);

/* Compares two codes in a time that does not depend on where they differ. */
bool weft_siphash_equal(const unsigned char a[WEFT_SIPHASH_BYTES],
                        const unsigned char b[WEFT_SIPHASH_BYTES]);

#endif
