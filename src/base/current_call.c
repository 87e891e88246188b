/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/current_call.h"

__thread const char *weft_current_call = WEFT_NO_CALL;
