/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of hosts, what a batch system has granted, and which PE runs where. */
#ifndef WEFT_LAUNCH_HOSTS_H
#define WEFT_LAUNCH_HOSTS_H

#include "launch/options.h"

/* The name of this host, for tags and messages. */
const char *weft_hosts_own_name(void);

/* Take "localhost:2,b" and a file of such lines; `option` is for messages. -1, or the exit status
 * after an error. */
int weft_hosts_take_list(struct weft_options *options, const char *option, const char *list);
int weft_hosts_take_file(struct weft_options *options, const char *option, const char *path);

/* Finds how many PEs to start if the command line does not say: the slots of a host list, one for
 * each task of an allocation of Slurm, or 1. The number goes to *npes. -1, or the exit status after
 * an error. */
int weft_hosts_count(const struct weft_options *options, int *npes);

/* Gives each PE its host, and strikes hosts without PEs off the list. Block by block, or in turn,
 * up to the slots of each host; if there are more PEs than slots, in proportion to these.
 * options->hosts.of stays NULL where all run here. -1, or the exit status after an error. */
int weft_hosts_place(struct weft_options *options);

#endif
