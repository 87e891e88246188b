/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of `weft`, a file each. They return the exit status. */
#ifndef WEFT_TOOLS_COMMAND_H
#define WEFT_TOOLS_COMMAND_H

int weft_info(void);

/* The section of `weft info` on GPUs. Collective; PE 0 prints. */
void weft_info_gpus(void);

/* Measures; `arguments` are the words after `perf`, up to NULL. */
int weft_perf(char **arguments);
extern const char weft_perf_usage[];

#endif
