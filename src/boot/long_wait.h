/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits that last, for every PE of the job to see, in the control page: so that one which has
 * waited for long can say what the others are doing meanwhile. */
#ifndef WEFT_BOOT_LONG_WAIT_H
#define WEFT_BOOT_LONG_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include "boot/control.h"

/* Shows a wait of this thread of PE `pe`. NULL where as many threads of the PE show one already. */
struct weft_long_wait *weft_long_wait_show(struct weft_control *control, int pe,
                                           const struct weft_long_wait_facts *facts);
void weft_long_wait_hide(struct weft_long_wait *wait);

/* Writes what a PE on another host shows, as its launcher has told; NULL: nothing. The entry is the
 * caller's alone. */
void weft_long_wait_write(struct weft_long_wait *wait, const struct weft_long_wait_facts *facts,
                          bool reported);

/* Reads what another PE shows, made safe to print; false if it shows nothing. */
bool weft_long_wait_read(struct weft_long_wait *wait, struct weft_long_wait_facts *facts);

/* Says what the PE is doing as far as the system knows: "runs", "sleeps", "is stopped"; "" when
 * that is not known. */
const char *weft_long_wait_activity(int pid);

/* A handler that writes the place in the program from which this thread has made its call, or "".
 * It is asked once a wait lasts; languages other than C set it (shmemx_set_where_handler). Without
 * a handler the place is the instruction that has called. */
typedef void weft_where_handler(char *where, size_t bytes);
void weft_long_wait_set_where_handler(weft_where_handler *handler);
bool weft_long_wait_where_handled(void);
void weft_long_wait_where(char *where, size_t bytes);

/* Names a call with its place: "shmem_quiet at ring+0x1342 (main)"; "shmem_team_sync (weft.barrier
 * at train.py:8)" if the handler names the call, too; "weft.wait at train.py:8" if it names it by
 * the same name; or the call alone if `where` is "". */
struct weft_long_wait_text {
    char text[sizeof((struct weft_long_wait_facts *)0)->call +
              sizeof((struct weft_long_wait_facts *)0)->where + 4];
};
struct weft_long_wait_text weft_long_wait_call(const char *call, const char *where);

#endif
