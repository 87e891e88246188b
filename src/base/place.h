/* SPDX-License-Identifier: BSD-3-Clause */
/* Places in the program, for messages about crashes, misuse and long waits. */
#ifndef WEFT_BASE_PLACE_H
#define WEFT_BASE_PLACE_H

#include <stdbool.h>
#include <stddef.h>

enum { WEFT_PLACE_BYTES = 192, WEFT_PLACE_CALLS = 48 };

/* Writes the place of an instruction, as "ring+0x1342 (main)": the offset is an argument for
 * addr2line, and the function's name is added if the file contains it. Does not allocate. */
void weft_place_write(const void *code, char *text, size_t bytes);

/* Writes the place of a call, given its return address: the offset lies within the call, so that
 * addr2line names the line of the call and not the next one. */
static inline void weft_place_write_call(const void *return_address, char *text, size_t bytes) {
    weft_place_write((const char *)return_address - 1, text, bytes);
}

/* Stores the return addresses of the calls that this thread is in: from the call into Weft
 * outwards, without Weft's own calls and those of the C library at exit, up to main if its name is
 * known. Returns their number, or 0 if places must not be shown (WEFT_BACKTRACE=0, or a privileged
 * program). The first use allocates. */
int weft_place_calls(void *calls[WEFT_PLACE_CALLS]);

/* Returns whether messages may name places. */
bool weft_place_wanted(void);

#endif
