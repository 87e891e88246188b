/* SPDX-License-Identifier: BSD-3-Clause */
/* Heap memory that a device of a near PE has registered is pinned: if its pages were returned to
 * the system, the device would go on using the old ones. So a PE announces to its near PEs that
 * it is about to register memory. From then on none of them returns memory, until the end of the
 * job. */
#ifndef WEFT_CORE_PIN_H
#define WEFT_CORE_PIN_H

#include <stdbool.h>

/* Announces that this PE is about to register heap memory, its own and its near peers'. When it
 * returns, none of these PEs is returning memory, or will. Local; called by one thread at a
 * time. */
void weft_pin_announce(void);

/* Returns whether some near PE has announced that. */
bool weft_pinned(void);

/* Returns whether memory may be returned to the system. If so, PEs that announce are blocked until
 * weft_pin_end. */
bool weft_pin_hold_off(void);
void weft_pin_end(void);

#endif
