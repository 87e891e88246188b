/* SPDX-License-Identifier: BSD-3-Clause */
/* What UCX has in this process beside memory: a thread that takes connections, and descriptors. */
#ifndef WEFT_UCX_PROCESS_H
#define WEFT_UCX_PROCESS_H

/* How many threads of UCX there are now. */
unsigned ucx_process_threads(void);

#endif
