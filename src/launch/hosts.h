/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of hosts, and what a batch system has granted: on this host alone, so far. */
#ifndef WEFT_LAUNCH_HOSTS_H
#define WEFT_LAUNCH_HOSTS_H

#include "launch/options.h"

/* Take "localhost:2,localhost" and a file of such lines; `option` is for messages. -1, or the exit
 * status after an error. */
int weft_hosts_take_list(struct weft_options *options, const char *option, const char *list);
int weft_hosts_take_file(struct weft_options *options, const char *option, const char *path);

/* Finds how many PEs to start if the command line does not say: the slots of a host list, one for
 * each task of an allocation of Slurm, or 1. The number goes to *npes. -1, or the exit status after
 * an error. */
int weft_hosts_count(const struct weft_options *options, int *npes);

#endif
