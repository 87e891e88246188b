/* SPDX-License-Identifier: BSD-3-Clause */
/* The target's side of letters: the memory of this PE changes as they say. */
#ifndef WEFT_CORE_FAR_APPLY_H
#define WEFT_CORE_FAR_APPLY_H

#include <stddef.h>
#include "core/letter.h"

/* As struct weft_letter_user has them. */
void weft_far_apply(int from, const void *text, size_t bytes);
void weft_far_answered(int from, const struct weft_letter_request *request, const void *text,
                       size_t bytes);

#endif
