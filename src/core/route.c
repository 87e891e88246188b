/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/route.h"

bool weft_route_finds(const void *p, size_t bytes, int pe) {
    if (weft_job.devices && weft_space_device->route->near(p, bytes, pe))
        return true;
    return weft_job.far && weft_is_far(pe) && weft_near(p, bytes, weft_job.pe);
}
