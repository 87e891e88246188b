/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses host lists, reads the batch system's allocation, and assigns PEs to hosts. */
#ifndef WEFT_LAUNCH_HOSTS_H
#define WEFT_LAUNCH_HOSTS_H

#include "launch/options.h"

/* Returns the name of this host, for tags and error lines. */
const char *weft_hosts_own_name(void);

/* Take a list such as "localhost:2,b", or a file with a host per line; `option` is for error lines.
 * Return -1, or the exit status after an error. */
int weft_hosts_take_list(struct weft_options *options, const char *option, const char *list);
int weft_hosts_take_file(struct weft_options *options, const char *option, const char *path);

/* Finds the number of PEs to start if the command line does not give it: the number of slots of a
 * host list, of tasks of a Slurm allocation, or 1. Stores it in *npes. Returns -1, or the exit
 * status after an error. */
int weft_hosts_count(const struct weft_options *options, int *npes);

/* Assigns each PE a host, and removes hosts without PEs from the list. PEs are assigned in blocks
 * or round-robin, up to the slots of each host, or in proportion to the slots if there are more PEs
 * than slots. options->hosts.of stays NULL if all PEs run on this host. Returns -1, or the exit
 * status after an error. */
int weft_hosts_place(struct weft_options *options);

#endif
