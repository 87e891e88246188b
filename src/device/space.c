/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/space.h"
#include "core/space.h"
#include "device/device.h"
#include "device/rma.h"
#include "device/share.h"

static void space_close(void) {
    weft_device_rma_close();
    weft_device_close();
}

static const struct weft_space space = {
    .grown = weft_device_heap_grown,
    .quiet = weft_device_quiet,
    .finish = weft_device_finish,
    .close = space_close,
    .share = &weft_device_share,
};

void weft_device_register(void) {
    weft_space_device = &space;
}
