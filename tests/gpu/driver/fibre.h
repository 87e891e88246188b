/* SPDX-License-Identifier: BSD-3-Clause */
/* Fibres: stacks between which one thread of the host switches. A fibre runs when it is entered,
 * until it leaves or ends; only the thread that entered it first enters it again.
 *
 * Stacks come from a pool of the process. They are mapped lazily, so what a fibre does not touch
 * costs nothing, and one that has ended hands its stack, still warm, to the next. */
#ifndef TESTS_GPU_DRIVER_FIBRE_H
#define TESTS_GPU_DRIVER_FIBRE_H

#include <stdbool.h>
#include <stddef.h>

struct fibre {
    struct fibre_stack *stack; /* NULL: has not begun, or has ended */
};

/* The fibre of this call begins with `body`, which does not return to it but by fibre_leave. */
void fibre_begin(struct fibre *fibre, void (*body)(void *argument), void *argument);

/* Runs it until it leaves. */
void fibre_enter(struct fibre *fibre);

/* Switches back to where the running fibre was entered; finally if `ends`. */
void fibre_leave(struct fibre *fibre, bool ends);

/* Frees the stack of a fibre that has left finally or will not run any more. */
void fibre_drop(struct fibre *fibre);

#endif
