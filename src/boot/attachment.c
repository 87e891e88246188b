/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/attachment.h"

struct weft_attachment weft_attachment = {.hub = -1, .life = -1};
