/* SPDX-License-Identifier: BSD-3-Clause */
/* Which engine reaches far PEs: that over TCP, which is part of Weft, or one of a library. */
#ifndef WEFT_FAR_ENGINE_H
#define WEFT_FAR_ENGINE_H

#include "transport/transport.h"

/* As WEFT_ENGINE has it: tcp; ucx; a library's name or path; or auto. 0, and *engine, which stays
 * for good; or -errno, with the reason in `reason`, of WEFT_ENGINE_TEXT_BYTES. */
int weft_far_engine(const struct weft_engine **engine, char *reason);

#endif
