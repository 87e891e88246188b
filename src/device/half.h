/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory through which the members of a team exchange data in calls on streams. */
#ifndef WEFT_DEVICE_HALF_H
#define WEFT_DEVICE_HALF_H

#include "device/device.h"

/* Memory in which the members write to each other during a call: `all` has this call's part of each
 * member's, by the number of the member. Two parts, the halves of a region, take turns. A member
 * that has met the others in call i, after its writes of that call, knows that all of them have
 * finished call i - 1; so nobody uses the half of call i + 1 any more, and members need not meet
 * before they write. If `meets` is set, a graph may still use the half, so members must meet before
 * they write. It is set on all members or on none if they have captured the same calls. */
struct weft_device_half {
    struct weft_array all;
    struct weft_array words; /* WEFT_HALF_WORDS bytes of each member's, for kernels that count the
                                calls of both halves; zero when the region is made */
    int capability;          /* the least compute capability of the members' GPUs */
    bool meets;
};
enum { WEFT_HALF_WORDS = 16384 };

/* Returns a half of at least `bytes`, the same number on all members, for a call in which all
 * members meet at least once. Calls that need more than those before allocate memory, collectively
 * on the host, also during capture. Returns 0 or -errno with text, the same on all members.
 * Conditions as for weft_device_channels. */
int weft_device_channels_half(struct weft_device_half *half, const struct weft_team *team,
                              size_t bytes, weft_cu_stream stream);

#endif
