/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job asks of memory that is not the host's: a table of functions, which the room that has
 * such memory registers before the job comes up (device/space.h). Core calls nothing else of it, so
 * that it needs neither that room nor a driver. */
#ifndef WEFT_CORE_SPACE_H
#define WEFT_CORE_SPACE_H

#include <stddef.h>

struct weft_share_space;

/* All are local, and quick where nobody has used such memory yet. `call` is the public name. */
struct weft_space {
    /* The host heap has been committed further, on all PEs: devices come to reach what is new. */
    void (*grown)(const char *call);

    /* Completes what calls of the host have begun there. */
    void (*quiet)(const char *call);

    /* Waits for all work of this process on its devices, also the program's own: before the PEs
     * part, because peers may still wait for some of it, and it may need this PE's memory. */
    void (*finish)(void);

    /* Gives everything back, while the host's memory is still mapped: devices know it. */
    void (*close)(void);

    /* Memory that only some PEs share. */
    const struct weft_share_space *share;
};

/* That of GPUs; NULL: the library has none. */
extern const struct weft_space *weft_space_device;

static inline void weft_space_grown(const char *call) {
    if (weft_space_device)
        weft_space_device->grown(call);
}

static inline void weft_space_quiet(const char *call) {
    if (weft_space_device)
        weft_space_device->quiet(call);
}

static inline void weft_space_finish(void) {
    if (weft_space_device)
        weft_space_device->finish();
}

static inline void weft_space_close(void) {
    if (weft_space_device)
        weft_space_device->close();
}

#endif
