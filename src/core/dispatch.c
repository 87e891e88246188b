/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/dispatch.h"

bool weft_dispatch_finds(const void *p, size_t bytes, int pe) {
    bool far = weft_job.far && weft_is_far(pe);
    int where = far ? weft_job.pe : pe;
    if (weft_job.devices && weft_space_device->operations->near(p, bytes, where))
        return true;
    return far && weft_near(p, bytes, where) && !weft_statics_meet_hole(p, bytes);
}
