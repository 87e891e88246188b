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
#include <stdint.h>

/* Those that are open; NULL: there is no memory, and nothing will be marked. */
struct ucx_descriptors;
struct ucx_descriptors *ucx_descriptors_note(void);

/* Marks what a library of sockets and epolls may have opened since, and frees the note. */
void ucx_descriptors_mark_new(struct ucx_descriptors *note);

/* Marks an epoll, and what it waits for. */
void ucx_descriptors_mark(int epoll);

/* An epoll whose number is looked at, and the status flags by which it is known. */
struct ucx_witness {
    int descriptor, flags;
    uint64_t asked_ns, looked_ns;
};

/* Gives the epoll flags that mean nothing to an epoll, and that hardly any file has. */
struct ucx_witness ucx_descriptors_witness(int epoll);

/* Whether the program has closed the epoll, or uses its number for something else. Takes the answer
 * from before where it was asked a microsecond ago: the caller waits, and the program has not run.
 */
bool ucx_descriptors_are_closed(struct ucx_witness *witness);

#endif
