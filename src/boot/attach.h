/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the attachment. */
#ifndef WEFT_BOOT_ATTACH_H
#define WEFT_BOOT_ATTACH_H

#include <stdbool.h>

/* True if the environment names a launcher of more than one PE. Reads nothing else. */
bool weft_attach_expected(void);

/* Makes the attachment, unless it is there already. Collective over the job, except under oshrun. 0
 * or -errno, logged. */
int weft_attach(void);

#endif
