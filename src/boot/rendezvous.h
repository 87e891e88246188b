/* SPDX-License-Identifier: BSD-3-Clause */
/* Where PEs of one host find each other: an abstract socket whose name begins with what the job's
 * key gives and ends at random, so that it can be recognised, but not be taken before. Others are
 * kept out by the user that the kernel says is at the other end, whatever they know. */
#ifndef WEFT_BOOT_RENDEZVOUS_H
#define WEFT_BOOT_RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* A listening socket that does not block. fd or -errno. */
int weft_rendezvous_listen(const unsigned char *key);

/* The next process that has come, or -EAGAIN. Of another user, or gone again: -EACCES. No room for
 * it, such as -EMFILE: it still waits. */
int weft_rendezvous_accept(int listening, pid_t *pid);

/* Tries the listening sockets for this key that `listing`, /proc/net/unix, names from here on. fd;
 * -ENOENT when there is none (any more); or another -errno when this process can make no socket. */
int weft_rendezvous_connect(FILE *listing, const unsigned char *key);

/* A listening socket whose name is 64 random bits and known to nobody who is not told. fd or
 * -errno. */
int weft_rendezvous_listen_private(uint64_t *name);

/* Through that listening socket, by a socket that does not block. fd or -errno; -EACCES when it is
 * not there (any more), or another user's. */
int weft_rendezvous_connect_private(uint64_t name);

#endif
