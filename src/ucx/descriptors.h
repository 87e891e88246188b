/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX opens its descriptors without close-on-exec, so that a program that the PE executes would
 * keep connections open after the PE has ended. This file marks them without UCX's knowledge:
 * descriptors of an opening at once, and connections, some of which UCX's own thread accepts, when
 * they are found in UCX's epolls.
 *
 * UCX's descriptors have low numbers, which cannot be changed. If a program closes numbers that it
 * has not opened, and uses them again, UCX would write to its files and close them. So UCX is
 * called only while the number of its epoll still stands for that epoll. */
#ifndef WEFT_UCX_DESCRIPTORS_H
#define WEFT_UCX_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* The descriptors that were open at some time. ucx_descriptors_note returns NULL if there is no
 * memory; then nothing is marked later. */
struct ucx_descriptors;
struct ucx_descriptors *ucx_descriptors_note(void);

/* Marks every descriptor that was opened since the note and may belong to a library of sockets and
 * epolls. Frees the note. */
void ucx_descriptors_mark_new(struct ucx_descriptors *note);

/* Marks an epoll, and the descriptors that it waits for. */
void ucx_descriptors_mark(int epoll);

/* An epoll's number, and the status flags that identify the epoll. */
struct ucx_witness {
    int descriptor, flags;
    uint64_t asked_ns, looked_ns;
};

/* Sets status flags that have no effect on an epoll and that hardly any file has. */
struct ucx_witness ucx_descriptors_witness(int epoll);

/* Returns whether the program has closed the epoll, or uses its number for something else. Repeats
 * the last answer if it was asked microseconds ago: then the caller is polling, and the program has
 * not run in between. */
bool ucx_descriptors_are_closed(struct ucx_witness *witness);

#endif
