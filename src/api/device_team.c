/* SPDX-License-Identifier: BSD-3-Clause */
/* Extension: handles through which the program's kernels use a team. A member with invalid
 * arguments reports that to the others. */
#include <errno.h>
#include <shmemx.h>
#include "job/space.h"
#include "core/team.h"
#include "api/refuse.h"

static int check_channels(uint32_t channels) {
    if (channels >= 1 && channels <= WEFT_DEVICE_CHANNELS_MAX)
        return 0;
    return weft_fail(-EINVAL, "argument channels is %u: pass 1 to %d", channels,
                     WEFT_DEVICE_CHANNELS_MAX);
}

static int check_slot(uint32_t slot_bytes) {
    if (slot_bytes % 16 == 0 && slot_bytes <= WEFT_DEVICE_SLOT_BYTES_MAX)
        return 0;
    return weft_fail(-EINVAL, "argument slot_bytes is %u: pass a multiple of 16, up to %d",
                     slot_bytes, WEFT_DEVICE_SLOT_BYTES_MAX);
}

static int check_device(void) {
    int result = weft_refuse_phase();
    return result == 0 && !weft_space_device ? weft_space_missing() : result;
}

int shmemx_device_team(shmem_team_t team, uint32_t channels, uint32_t slot_bytes,
                       struct weft_device_team *handle) {
    WEFT_IN_CALL(__func__);
    int result = check_device();
    if (result)
        return result;
    const struct weft_team *members = weft_team_find(team);
    if (!members)
        return weft_team_refuse(team);
    struct weft_device_wish wish = {.channels = channels, .slot_bytes = slot_bytes};
    wish.error = weft_refuse_null("handle", handle);
    wish.error = wish.error ? wish.error : check_channels(channels);
    wish.error = wish.error ? wish.error : check_slot(slot_bytes);
    return weft_space_device->device_team(handle, members, &wish);
}

int shmemx_device_team_free(struct weft_device_team *handle) {
    WEFT_IN_CALL(__func__);
    if (!handle || handle->version == 0)
        return 0;
    if (weft_job.npes == 0) { /* the end of the job has freed it */
        *handle = (struct weft_device_team){0};
        return 0;
    }
    int result = check_device();
    return result ? result : weft_space_device->device_team_free(handle);
}

int shmemx_device_team_address(const struct weft_device_team *handle,
                               const struct weft_device_team **address) {
    WEFT_IN_CALL(__func__);
    int result = weft_refuse_null("handle", handle);
    result = result ? result : weft_refuse_null("address", address);
    result = result ? result : check_device();
    return result ? result : weft_space_device->device_team_address(handle, address);
}
