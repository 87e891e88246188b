/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX opens its descriptors for programs that are executed, too, which would keep connections open
 * when the PE is gone. They are marked here behind its back: those of an opening at once, and
 * connections, of which some are taken by its own thread, when they are found in its epolls.
 *
 * They have low numbers, which cannot be changed. A program that closes numbers that it has not
 * opened, and uses them again, would have UCX write to its files and close them: so UCX is called
 * only while its epoll is still what it was. */
#ifndef WEFT_UCX_DESCRIPTORS_H
#define WEFT_UCX_DESCRIPTORS_H

#include <stdbool.h>
#include <sys/types.h>

/* Those that are open; NULL: there is no memory, and nothing will be marked. */
struct ucx_descriptors;
struct ucx_descriptors *ucx_descriptors_note(void);

/* Marks what a library of sockets and epolls may have opened since, and frees the note. */
void ucx_descriptors_mark_new(struct ucx_descriptors *note);

/* Marks an epoll, and what it waits for. */
void ucx_descriptors_mark(int epoll);

/* What a number stood for. Inode 0: nothing was noted. */
struct ucx_witness {
    int descriptor;
    dev_t device;
    ino_t inode;
};

struct ucx_witness ucx_descriptors_witness(int descriptor);

/* Whether the program has closed it. All eventfds and epolls count as the same file. */
bool ucx_descriptors_are_closed(const struct ucx_witness *witness);

#endif
