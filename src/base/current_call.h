/* SPDX-License-Identifier: BSD-3-Clause */
/* The public call that a thread is in, by name, for the lines and texts that tell of it.
 *
 * A name is a parameter as far as the function that enters the call with it, and of weft_misuse_*,
 * which near fast paths end in; everything below reads weft_current_call. Calls nest: a signal
 * handler may call within one, and a routine within itself. */
#ifndef WEFT_BASE_CURRENT_CALL_H
#define WEFT_BASE_CURRENT_CALL_H

/* Outside of calls it names the library, so that it is never NULL. (C++ of kernels includes this.)
 */
#define WEFT_NO_CALL "weft"
extern __thread const char *weft_current_call;

/* A call that has been entered, and the one around it. The thread's variable is looked up once: in
 * a library that may be opened late this is a call, which the compiler would make again at the end.
 */
struct weft_entered_call {
    const char **current;
    const char *outer;
};

/* Enters a call, to the end of the block that this stands in. Whoever leaves the block by longjmp
 * does not get there: see weft_boot_tell_end. `name` outlives the block. */
#define WEFT_IN_CALL(name)                                                                       \
    __attribute__((cleanup(weft_call_leave), unused)) const struct weft_entered_call weft_call = \
        weft_call_enter(name)

static inline struct weft_entered_call weft_call_enter(const char *name) {
    const char **current = &weft_current_call;
    __asm__("" : "+r"(current)); /* it no longer knows where this is from */
    struct weft_entered_call call = {current, *current};
    *current = name;
    return call;
}

static inline void weft_call_leave(const struct weft_entered_call *call) {
    *call->current = call->outer;
}

#endif
