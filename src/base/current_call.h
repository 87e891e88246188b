/* SPDX-License-Identifier: BSD-3-Clause */
/* The public call that a thread is in, by name, for the lines and texts that tell of it.
 *
 * A name is a parameter as far as the function that enters the call with it, and of weft_misuse_*,
 * which near fast paths end in; everything below reads weft_current_call. Calls nest: a signal
 * handler may call within one, and a routine within itself. */
#ifndef WEFT_BASE_CURRENT_CALL_H
#define WEFT_BASE_CURRENT_CALL_H

/* Outside of calls it names the library, so that it is never NULL. (C++ of kernels
 * includes this.) */
#define WEFT_NO_CALL "weft"
extern __thread const char *weft_current_call;

/* Enters a call, to the end of the block that this stands in. Whoever leaves the block by longjmp
 * does not get there: see weft_boot_tell_end. `name` outlives the block. */
#define WEFT_IN_CALL(name)                                                                \
    __attribute__((cleanup(weft_call_leave), unused)) const char *const weft_outer_call = \
        weft_call_enter(name)

static inline const char *weft_call_enter(const char *name) {
    const char *outer = weft_current_call;
    weft_current_call = name;
    return outer;
}

static inline void weft_call_leave(const char *const *outer) {
    weft_current_call = *outer;
}

#endif
