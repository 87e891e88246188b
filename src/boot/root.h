/* SPDX-License-Identifier: BSD-3-Clause */
/* PE 0 as the root of the hub, where no launcher of ours is. Descriptors move only in a call that
 * every PE is in, PE 0 too: so it serves the hub while it is in the exchange itself, and no thread
 * and no process is needed for it. */
#ifndef WEFT_BOOT_ROOT_H
#define WEFT_BOOT_ROOT_H

/* Waits until a PE has sent something or can be sent more, or something is there for PE 0 itself,
 * or a moment is over; then serves all. */
void weft_root_turn(void);

/* Serves until every PE has been sent all of the rounds that are complete. */
void weft_root_finish(void);

#endif
