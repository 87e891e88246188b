/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX's presence in this process besides memory: a thread that accepts connections, and
 * destructors. */
#ifndef WEFT_UCX_PROCESS_H
#define WEFT_UCX_PROCESS_H

/* Returns the number of UCX's threads. */
unsigned ucx_process_threads(void);

/* Keeps UCX usable until the process has ended, by disabling its destructors. The loader would call
 * them before the exit handlers through which a return from main finalizes a job (core/init.c),
 * which still needs messages. */
void ucx_process_keep(void);

#endif
