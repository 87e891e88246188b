/* SPDX-License-Identifier: BSD-3-Clause */
/* Places in the program, for the messages about crashes, misuse and waits that last. */
#ifndef WEFT_BASE_PLACE_H
#define WEFT_BASE_PLACE_H

#include <stdbool.h>
#include <stddef.h>

enum { WEFT_PLACE_BYTES = 192, WEFT_PLACE_CALLS = 48 };

/* Writes where an instruction is, as "ring+0x1342 (main)": the offset is what addr2line takes, the
 * name that of the function if the file has it. Does not allocate. */
void weft_place_write(const void *code, char *text, size_t bytes);

/* The same for a call, by the address that it returns to: the offset lies within the call, so that
 * addr2line names its line and not the next one. */
static inline void weft_place_write_call(const void *return_address, char *text, size_t bytes) {
    weft_place_write((const char *)return_address - 1, text, bytes);
}

/* Reads the calls that this thread is in, by their return addresses: from the call into Weft
 * outwards, without Weft's own or those of the C library at the process's exit, up to main where it
 * is known by name. Returns how many; 0 where nobody is to learn of places (WEFT_BACKTRACE=0, a
 * privileged program). The first use allocates.
 */
int weft_place_calls(void *calls[WEFT_PLACE_CALLS]);

/* Whether messages may name places. */
bool weft_place_wanted(void);

#endif
