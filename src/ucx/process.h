/* SPDX-License-Identifier: BSD-3-Clause */
/* What UCX has in this process beside memory: a thread that takes connections, and destructors. */
#ifndef WEFT_UCX_PROCESS_H
#define WEFT_UCX_PROCESS_H

/* How many threads of UCX there are now. */
unsigned ucx_process_threads(void);

/* Keeps UCX in working order until the process is gone: its destructors are not run. The loader
 * calls those ahead of the handlers by which returning from main finalizes a job (core/init.c), and
 * that takes messages. */
void ucx_process_keep(void);

#endif
