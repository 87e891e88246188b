/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun --daemon: the launcher of one host of several. The front (launch/front.h) starts it, and
 * writes what it is to do to its standard input (launch/start.h). */
#ifndef WEFT_LAUNCH_DAEMON_H
#define WEFT_LAUNCH_DAEMON_H

/* The exit status. */
int weft_daemon_main(void);

#endif
