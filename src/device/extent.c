/* SPDX-License-Identifier: BSD-3-Clause */
/* An agreement: each PE does its own part, then all learn whether all succeeded. A PE that fails
 * returns its reason; the others name that PE. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "device/device.h"

int weft_device_agree(int error) {
    uint64_t culprit = error ? (uint64_t)weft_job.pe : UINT64_MAX;
    culprit = weft_sync_min(weft_team_find(SHMEM_TEAM_WORLD), culprit);
    if (error || culprit == UINT64_MAX)
        return error;
    return weft_fail(-ENODEV, "PE %d%s has failed: its weft_last_error() has the reason",
                     (int)culprit, weft_boot_on((int)culprit).text);
}

/* Adds an explanation to the driver's error when it cannot attach memory for this PE's GPU. */
static int attach_explain(int error, int pe) {
    char text[256];
    snprintf(text, sizeof text, "%s", weft_fail_text());
    if (weft_device.peers[pe].ordinal >= 0)
        return error;
    return weft_fail(
        error,
        "the GPU of PE %d is hidden from this PE (CUDA_VISIBLE_DEVICES), and its "
        "memory seems to be out of reach: make all GPUs visible to all PEs, then data that "
        "cannot be copied directly pass through host memory (%s)",
        pe, text);
}

int weft_device_window_alloc(struct weft_gpu_window *window, size_t slot_bytes) {
    const struct weft_segment *near = &weft_windows.scratch;
    *window = (struct weft_gpu_window){.gpu = weft_device.gpu, .mine = near->mine};
    int error = weft_gpu_window_alloc(window, near->window.count, slot_bytes);
    window->window.first = near->window.first;
    window->window.step = near->window.step;
    return error;
}

static int peers_attach(const int *fds, void *window) {
    int error = 0;
    for (int slot = 0; slot < weft_device_near_count() && error == 0; slot++) {
        int pe = weft_device_near_pe(slot);
        if (pe != weft_job.pe && (error = weft_gpu_window_attach(window, (uint32_t)slot, fds[pe],
                                                                 &weft_device.peers[pe])) != 0)
            error = attach_explain(error, pe);
    }
    return error;
}

int weft_device_show(int fd, int (*attach)(const int *fds, void *context), void *context) {
    size_t npes = (size_t)weft_job.npes;
    int *fds = calloc(npes, sizeof *fds);
    char mine = 0, *all = malloc(npes); /* an exchange needs at least one byte */
    int error = weft_device_agree(fds && all ? 0 : weft_fail(-ENOMEM, "no memory"));
    struct weft_exchange exchange = {
        .mine = &mine, .bytes = sizeof mine, .all = all, .fds = &fd, .nfds = 1, .all_fds = fds};
    if (error == 0 && (error = weft_boot_exchange(&exchange)) == 0) {
        error = attach(fds, context);
        for (int pe = 0; pe < weft_job.npes; pe++)
            if (fds[pe] >= 0) /* no descriptor can arrive from another host */
                close(fds[pe]);
        error = weft_device_agree(error);
    }
    free(fds);
    free(all);
    return error;
}

int weft_device_extend(struct weft_gpu_window *window, size_t bytes) {
    int fd = -1, own = weft_gpu_window_commit(window, bytes, &fd);
    int error = weft_device_agree(own);
    if (error == 0)
        error = weft_device_show(fd, peers_attach, window);
    if (error && own == 0)
        weft_gpu_window_retract(window);
    if (error == 0)
        weft_gpu_window_show(window);
    if (fd >= 0)
        close(fd);
    return error;
}
