/* SPDX-License-Identifier: BSD-3-Clause */
/* A process inherits three descriptors from oshrun, named by the environment: the hub's socket, the
 * control page and the life socket. All become close-on-exec, so that a PE which turns into another
 * program is seen to be gone. Nothing is ever sent on the life socket: it becomes readable only
 * when the launcher's end closes, and then the kernel kills this process (fcntl(2), F_SETSIG). */
#ifndef WEFT_BOOT_INHERIT_H
#define WEFT_BOOT_INHERIT_H

/* Fills weft_attachment. 0 or -errno, logged. */
int weft_inherit(void);

#endif
