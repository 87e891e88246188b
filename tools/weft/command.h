/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of `weft`, one file for each. They return the exit status. */
#ifndef WEFT_TOOLS_COMMAND_H
#define WEFT_TOOLS_COMMAND_H

int weft_info(void);

/* Prints the section of `weft info` on GPUs. Collective; PE 0 prints. */
void weft_info_gpus(void);

/* Prints how GPUs multiply M x K by K x N: `words` are M, N and K. */
int weft_info_plan(char **words);

/* Runs the measurements; `arguments` are the words after `perf`, ended by NULL. */
int weft_perf(char **arguments);
extern const char weft_perf_usage[];

#endif
