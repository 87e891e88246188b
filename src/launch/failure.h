/* SPDX-License-Identifier: BSD-3-Clause */
/* Error lines about what keeps oshrun from starting a job. */
#ifndef WEFT_LAUNCH_FAILURE_H
#define WEFT_LAUNCH_FAILURE_H

/* Sets the name of this host, for a daemon or a relay. The string is not copied. */
void weft_failure_set_host(const char *name);

/* Logs why oshrun cannot start: "oshrun: cannot start on host b: WHAT: strerror; remedy", with the
 * host that was set. WHAT is the system call and its purpose. Returns `error`, a negative errno;
 * pass -ENOMEM for a failed malloc. */
int weft_failure_say(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
