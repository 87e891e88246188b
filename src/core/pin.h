/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device of any near PE has registered of the host heap is pinned: were its pages given
 * back, the device would go on to use the old ones. So a PE says to all of them that it registers,
 * before it does, and none gives memory back from then on to the end of the job. */
#ifndef WEFT_CORE_PIN_H
#define WEFT_CORE_PIN_H

#include <stdbool.h>

/* This PE is about to register memory of the heap, its own and the near peers'. On return none of
 * them gives any back, or will. Local, by one thread at a time. */
void weft_pin_announce(void);

/* Whether some near PE has announced that. */
bool weft_pinned(void);

/* Whether memory may be given back, which keeps announcers waiting till weft_pin_end. */
bool weft_pin_hold_off(void);
void weft_pin_end(void);

#endif
