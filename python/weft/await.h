/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting that other Python threads and signals can interrupt. */
#ifndef PYWEFT_AWAIT_H
#define PYWEFT_AWAIT_H

#include "module.h"

/* Blocks until holds(condition) is true. Polls at first, later by timer. Returns false with an
 * exception after a signal (KeyboardInterrupt), or when another thread has ended the job. `holds`
 * is called without the GIL. */
bool pyweft_await(const char *call, bool (*holds)(void *), void *condition);

#endif
