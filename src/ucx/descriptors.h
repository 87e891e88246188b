/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX opens its descriptors for programs that are executed, too, which would keep connections open
 * when the PE is gone. They are marked here behind its back: those of an opening at once, and
 * connections, of which some are taken by its own thread, when they are found in its epolls. */
#ifndef WEFT_UCX_DESCRIPTORS_H
#define WEFT_UCX_DESCRIPTORS_H

#include <stddef.h>

/* Those that are open; NULL: there is no memory, and nothing will be marked. */
struct ucx_descriptors;
struct ucx_descriptors *ucx_descriptors_note(void);

/* Marks what a library of sockets and epolls may have opened since, and frees the note. */
void ucx_descriptors_mark_new(struct ucx_descriptors *note);

/* Marks an epoll, and what it waits for. */
void ucx_descriptors_mark(int epoll);

#endif
