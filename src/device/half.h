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
    bool meets;
    int sms; /* the least number of multiprocessors of a member's GPU */
};
enum { WEFT_HALF_WORDS = 16384 };

/* Returns a half of at least `bytes`, the same number on all members, for a call in which all
 * members meet at least once. Calls that need more than those before allocate memory, collectively
 * on the host, also during capture. Returns 0 or -errno with text, the same on all members.
 * Conditions as for weft_device_channels. */
int weft_device_channels_half(struct weft_device_half *half, const struct weft_team *team,
                              size_t bytes, weft_cu_stream stream);

/* --- What the members know --------------------------------------------------------------------
 * Called between weft_gpu_enter and _leave, for teams whose GPUs are up. */

/* Exchanges data among the members on the host, also during capture. Returns 0 or -errno with text,
 * the same on all members. */
int weft_device_channels_exchange(const struct weft_team *team, struct weft_exchange *exchange);

/* Returns `bytes`, the same number in all calls, of host memory, which is zero at first and lives
 * as long as the team; NULL if there is no memory. */
void *weft_device_channels_notes(const struct weft_team *team, size_t bytes);

/* Returns whether the team's kernels may take all multiprocessors of this GPU and wait for other
 * members: the first team that asks may, until it ends. Callable by any thread. */
bool weft_device_channels_claim(const struct weft_team *team);

/* Ends the team's claim, so that another team may have it. No kernel of this team needs the claim.
 */
void weft_device_channels_unclaim(const struct weft_team *team);

#endif
