/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines about what keeps oshrun from starting a job. */
#ifndef WEFT_LAUNCH_FAILURE_H
#define WEFT_LAUNCH_FAILURE_H

/* The name of this host, for a daemon or a relay; it must stay. */
void weft_failure_set_host(const char *name);

/* Says why this oshrun cannot start: "oshrun: cannot start on host b: WHAT: strerror; remedy", with
 * the host that was set. The words name the system call, and what it is called for.
 * Returns `error`, a negative errno; -ENOMEM is one of malloc or of the call. */
int weft_failure_say(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
