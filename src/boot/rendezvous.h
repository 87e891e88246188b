/* SPDX-License-Identifier: BSD-3-Clause */
/* PEs of one host find each other at an abstract socket. Its name begins with a hash of the job's
 * key, so that it can be recognised, and ends at random, so that nobody can take it before. Other
 * users are kept out whatever they know, because the kernel names the user at the other end. */
#ifndef WEFT_BOOT_RENDEZVOUS_H
#define WEFT_BOOT_RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* A listening socket that does not block. fd or -errno. */
int weft_rendezvous_listen(const unsigned char *key);

/* Accepts the next connection, or returns -EAGAIN if there is none. -EACCES: it was another user's,
 * or is gone again. Other errors such as -EMFILE: there is no room for it, and it still waits. */
int weft_rendezvous_accept(int listening, pid_t *pid);

/* Tries the listening sockets for this key that `listing`, /proc/net/unix, names from here on. fd;
 * -ENOENT when there is none (any more); or another -errno when this process can make no socket. */
int weft_rendezvous_connect(FILE *listing, const unsigned char *key);

#endif
