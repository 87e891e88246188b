/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/stream.h"

static void *space_malloc(struct weft_arena *arena, size_t bytes, size_t alignment, bool zero) {
    return weft_device_open() < 0 ? NULL : weft_device_malloc(arena, bytes, alignment, zero);
}

static void space_team_ended(const struct weft_team *team) {
    bool finished = weft_device_turns_finish(team);
    weft_device_words_reset(team);
    weft_device_channels_end(team, finished);
    weft_proxy_team_ended(team, finished);
    weft_device_turns_end(team);
}

/* If all PEs are members, first brings up the GPUs, so that there is a heap. */
static int space_device_team(struct weft_device_team *handle, const struct weft_team *team,
                             const struct weft_device_wish *wish) {
    int error = team->npes == weft_job.npes ? weft_device_open() : 0;
    return error ? error : weft_device_team_make(handle, team, wish);
}

static const struct weft_operations operations = {
    .concerns = weft_device_concerns,
    .near = weft_device_near,
    .put = weft_device_put,
    .get = weft_device_get,
    .put_strided = weft_device_put_strided,
    .get_strided = weft_device_get_strided,
    .put_signal = weft_device_put_signal,
    .signal = weft_device_signal,
    .amo = weft_device_amo,
    .look = weft_device_look,
    .quiet = weft_device_quiet,
};

static const struct weft_memory_space space = {
    .grown = weft_device_heap_grown,
    .finish = weft_device_gpus_finish,
    .close = weft_device_close,
    .team_ended = space_team_ended,
    .team_parted = weft_device_channels_sweep,
    .heap = {.window = &weft_device.heap.window,
             .arena = &weft_device_arena,
             .malloc = space_malloc,
             .realloc = weft_device_realloc,
             .free = weft_device_free},
    .pointer = weft_device_pointer,
    .pad = weft_device_pad,
    .device_team = space_device_team,
    .device_team_free = weft_device_team_free,
    .device_team_address = weft_device_team_address,
    .operations = &operations,
    .share = &weft_device_share,
    .messages = &weft_device_messages,
};

void weft_device_register(void) {
    weft_space_device = &space;
}
