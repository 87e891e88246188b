/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/space.h"
#include <errno.h>

const struct weft_memory_space *weft_space_device;

int weft_space_missing(void) {
    return weft_fail(-ENOSYS, "this Weft was built without GPU support");
}
