/* SPDX-License-Identifier: BSD-3-Clause */
/* PEs of one host find each other by an abstract socket. Its name begins with a hash of the job's
 * key, so that PEs can find it, and ends with random digits, so that no other user can bind it
 * before. Other users are rejected even if they know the key, because the kernel reports the user
 * at the other end. */
#ifndef WEFT_BOOT_RENDEZVOUS_H
#define WEFT_BOOT_RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Opens a non-blocking listening socket. Returns its descriptor or -errno. */
int weft_rendezvous_listen(const unsigned char *key);

/* Accepts the next connection. Returns its descriptor; -EAGAIN if there is none; -EACCES if it was
 * another user's or has closed. After other errors such as -EMFILE the connection still waits. */
int weft_rendezvous_accept(int listening, pid_t *pid);

/* Tries the listening sockets for this key in the rest of `listing`, which is /proc/net/unix.
 * Returns a descriptor; -ENOENT if there are no more; or another -errno if this process cannot
 * create a socket. */
int weft_rendezvous_connect(FILE *listing, const unsigned char *key);

#endif
