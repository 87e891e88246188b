/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries about the operators. All are local and per thread. */
#include <weft.h>
#include "coll/elements.h"
#include "coll/meeting.h"

const char *weft_last_error(void) {
    return weft_fail_text();
}

size_t weft_dtype_bytes(weft_dtype dtype) {
    return weft_element_bytes(dtype);
}

double weft_wait_seconds(void) {
    return weft_meeting_waited();
}
