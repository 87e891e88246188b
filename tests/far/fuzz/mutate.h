/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs by lot from others. */
#ifndef TESTS_FAR_FUZZ_MUTATE_H
#define TESTS_FAR_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Writes a mutation of `one`, some of which may come from `other`, and returns how long it is:
 * INPUT_BYTES_MAX at most. */
size_t input_mutate(unsigned char *to, const unsigned char *one, size_t one_bytes,
                    const unsigned char *other, size_t other_bytes, uint64_t *state);

#endif
