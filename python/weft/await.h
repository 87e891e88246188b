/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting in Python: other threads run meanwhile, and an interrupt ends it. */
#ifndef PYWEFT_AWAIT_H
#define PYWEFT_AWAIT_H

#include "module.h"

/* Looks until the condition holds: in a hurry at first, later by timer. False with an exception: an
 * interrupt, or another thread has ended the job. `holds` is called without the GIL. */
bool pyweft_await(const char *call, bool (*holds)(void *), void *condition);

#endif
