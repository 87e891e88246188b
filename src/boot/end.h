/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE ends its job by these, or itself when the job is over. */
#ifndef WEFT_BOOT_END_H
#define WEFT_BOOT_END_H

#include <stdbool.h>

/* Ends the whole job, or asks oshrun to; `error` says that it is a failure of which this PE has
 * written a line already (WEFT_ABORT_ERROR), otherwise it is shmem_global_exit. Returns once that
 * is under way; the caller then exits by itself with `status`. Nothing when alone. */
void weft_boot_end_job(int status, bool error);

/* Ends the job, or asks oshrun to, because PE `pe` calls exit with this status and without
 * shmem_finalize: this PE does, or another one for which this PE waits. Returns once that is under
 * way; this PE then finds the job aborted, or goes on with its exit. */
void weft_boot_end_for(int pe, int status);

/* Tells whoever watches over the job that this PE cannot reach another host: if that one lives, the
 * job ends for it. Said again as long as that lasts. */
void weft_boot_tell_cut(int host);

/* Called where this process would end because of a failure elsewhere, by a thread that is in a
 * call, which it may leave by longjmp; and by one of the library's own where that comes first. */
typedef void weft_end_handler(const char *reason);
void weft_boot_set_end_handler(weft_end_handler *handler);
bool weft_boot_end_handled(void); /* whether there is one */
void weft_boot_tell_end(void);

/* The same of a failure of this PE, whose line nobody has written yet. */
void weft_boot_tell_error(const char *line);

/* A wait to which the program has set a limit has found its peers gone: the program learns of that
 * and goes on to an end of its own, which the job's end does not hasten any more. Nothing under
 * oshrun, which ends all PEs of a job. */
void weft_boot_go_alone(void);
bool weft_boot_is_alone(void);

/* The hub's side has closed the socket: the job is over, or its root is. */
_Noreturn void weft_boot_lost(void);

/* Leaves this process at once, but in order as far as another launcher can tell. */
_Noreturn void weft_boot_quit(int status);

/* Ends this process at once, as _exit, but other hosts hear first what there is to hear of this
 * one, where this process speaks for it. */
_Noreturn void weft_boot_exit(int status);

/* The same where the process ends by itself: nothing of the job is to come. */
void weft_boot_part(void);

/* Tells the source that this process ends in order. Nothing the second time. */
void weft_boot_close_source(void);

/* The job is over and the program has not seen it: ends this process from another thread, with the
 * line that its own end would have had, and `remark` behind it ("" if there is nothing to add). */
_Noreturn void weft_boot_end_self(const char *remark);

/* The reason for the job's end, for a person: "PE 3 (pid 4711) was killed by signal 9 (Killed)" and
 * so on. Lives until the next call. */
const char *weft_boot_abort_text(void);

#endif
