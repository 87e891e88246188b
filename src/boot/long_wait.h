/* SPDX-License-Identifier: BSD-3-Clause */
/* Long waits are published in the control page for all PEs of the job, so that a PE that has waited
 * for long can report what the others are doing. */
#ifndef WEFT_BOOT_LONG_WAIT_H
#define WEFT_BOOT_LONG_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include "boot/control.h"

/* Publishes a wait of this thread of PE `pe`. Returns NULL if WEFT_LONG_WAITS threads of the PE
 * have published one. */
struct weft_long_wait *weft_long_wait_show(struct weft_control *control, int pe,
                                           const struct weft_long_wait_facts *facts);
void weft_long_wait_hide(struct weft_long_wait *wait);

/* Writes a wait of a PE on another host, as received from there, or removes it if `facts` is NULL.
 * Other threads must not write the entry. */
void weft_long_wait_write(struct weft_long_wait *wait, const struct weft_long_wait_facts *facts,
                          bool reported);

/* Reads a published wait, with unprintable characters replaced. Returns false if there is none. */
bool weft_long_wait_read(struct weft_long_wait *wait, struct weft_long_wait_facts *facts);

/* Returns what the process is doing according to the kernel: "runs", "sleeps", "is stopped"; "" if
 * unknown. */
const char *weft_long_wait_activity(int pid);

/* A handler that writes the place in the program from which this thread has made its call, or "".
 * It is called when a wait has become long; languages other than C set it
 * (shmemx_set_where_handler). Without a handler the place is that of the call instruction. */
typedef void weft_where_handler(char *where, size_t bytes);
void weft_long_wait_set_where_handler(weft_where_handler *handler);
bool weft_long_wait_where_handled(void);
void weft_long_wait_where(char *where, size_t bytes);

/* Returns a call with its place: "shmem_quiet at ring+0x1342 (main)"; "shmem_team_sync
 * (weft.barrier at train.py:8)" if the handler names the call, too; "weft.wait at train.py:8" if
 * both names are equal; or only the call if `where` is "". */
struct weft_long_wait_text {
    char text[sizeof((struct weft_long_wait_facts *)0)->call +
              sizeof((struct weft_long_wait_facts *)0)->where + 4];
};
struct weft_long_wait_text weft_long_wait_call(const char *call, const char *where);

#endif
