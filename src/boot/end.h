/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions by which a PE ends its job, or itself when the job has ended. */
#ifndef WEFT_BOOT_END_H
#define WEFT_BOOT_END_H

#include <stdbool.h>

/* Ends the job, or asks oshrun to. `error`: this PE has logged an error (WEFT_ABORT_ERROR);
 * otherwise the reason is shmem_global_exit. Returns when the end has begun; the caller then exits
 * with `status`. Does nothing in a job of one PE that oshrun has not started. */
void weft_boot_end_job(int status, bool error);

/* Ends the job, or asks oshrun to, because PE `pe` has called exit with this status but not
 * shmem_finalize. `pe` is this PE, or another PE for which this PE waits. Returns when the end has
 * begun; this PE then finds the job aborted, or continues its exit. */
void weft_boot_end_for(int pe, int status);

/* Reports that this PE cannot reach another host; the job ends if that host is alive. Called again
 * while the condition lasts. */
void weft_boot_tell_cut(int host);

/* A handler called instead of ending this process because of a failure elsewhere: by a thread that
 * is in a call of Weft, which the handler may leave by longjmp, or by a thread of the library. */
typedef void weft_end_handler(const char *reason);
void weft_boot_set_end_handler(weft_end_handler *handler);
bool weft_boot_end_handled(void); /* a handler is set */
void weft_boot_tell_end(void);

/* Calls the handler for a failure of this PE that has not been logged. */
void weft_boot_tell_error(const char *line);

/* The program continues after the loss of its peers, which a wait with a time limit has reported.
 * The end of the job no longer ends this process. Does nothing under oshrun, which ends all PEs of
 * a job. */
void weft_boot_go_alone(void);
bool weft_boot_is_alone(void);

/* Ends this process because the hub has closed its socket: the job or the process that serves the
 * hub has ended. */
_Noreturn void weft_boot_lost(void);

/* Ends this process as _exit does, after the agent, if it runs here, has sent what other hosts have
 * to know. */
_Noreturn void weft_boot_exit(int status);

/* Does the same, but returns, for a process that ends by itself. */
void weft_boot_part(void);

/* Tells the source that this process ends normally. Does nothing the second time. */
void weft_boot_close_source(void);

/* Ends this process from another thread because the program has not noticed the end of the job.
 * Logs the line that the program would have logged, followed by `remark` (may be ""). */
_Noreturn void weft_boot_end_self(const char *remark);

/* Returns the cause of the job's end, such as "PE 3 (pid 4711) was killed by signal 9 (Killed)".
 * Valid until the next call. */
const char *weft_boot_abort_text(void);

#endif
