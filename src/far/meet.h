/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges among some PEs that are on several hosts, by messages (boot/boot.h has the contract).
 */
#ifndef WEFT_FAR_MEET_H
#define WEFT_FAR_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_boot_subset;
struct weft_exchange;

/* A weft_boot_courier. */
int weft_far_meet(const struct weft_boot_subset *subset, uint64_t number,
                  struct weft_exchange *exchange);

/* What a message of PE `from` gives to an exchange; false: it has been refused. Under the lock of
 * messages. */
bool weft_far_meet_keep(int from, uint64_t exchange, const void *given, size_t bytes);

/* When messages are closed: what is kept belongs to no job any more. */
void weft_far_meet_forget(void);

#endif
