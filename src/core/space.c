/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/space.h"

const struct weft_space *weft_space_device;
