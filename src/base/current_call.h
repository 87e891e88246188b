/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of the public call that a thread is in, for error and log lines.
 *
 * A name is passed as a parameter only to the function that enters the call and to weft_misuse_*,
 * where near fast paths end; all other code reads weft_current_call. Calls nest: a signal handler
 * may call Weft within a call, and a routine may call itself. */
#ifndef WEFT_BASE_CURRENT_CALL_H
#define WEFT_BASE_CURRENT_CALL_H

/* Names the library outside of calls, so that it is never NULL. (C++ code of kernels includes this
 * file.) */
#define WEFT_NO_CALL "weft"
extern __thread const char *weft_current_call;

/* An entered call, and the enclosing one. The address of the thread's variable is looked up once:
 * in a library that may be opened late the lookup is a function call, which the compiler would
 * repeat at the end. */
struct weft_entered_call {
    const char **current;
    const char *outer;
};

/* Enters a call until the end of the enclosing block. A longjmp out of the block skips the end: see
 * weft_boot_tell_end. `name` must outlive the block. */
#define WEFT_IN_CALL(name)                                                                       \
    __attribute__((cleanup(weft_call_leave), unused)) const struct weft_entered_call weft_call = \
        weft_call_enter(name)

static inline struct weft_entered_call weft_call_enter(const char *name) {
    const char **current = &weft_current_call;
    __asm__("" : "+r"(current)); /* hides the address's origin from the compiler */
    struct weft_entered_call call = {current, *current};
    *current = name;
    return call;
}

static inline void weft_call_leave(const struct weft_entered_call *call) {
    *call->current = call->outer;
}

#endif
