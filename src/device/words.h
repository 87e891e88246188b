/* SPDX-License-Identifier: BSD-3-Clause */
/* The words that GPUs synchronise teams with. */
#ifndef WEFT_DEVICE_WORDS_H
#define WEFT_DEVICE_WORDS_H

#include "transport/gpu_word.h"
#include "core/team.h"

/* The words that GPUs synchronise teams with, reset and in place: in GPU memory, or in memory of
 * the host where some GPUs do not reach each other's. Collective over WORLD. */
int weft_device_words_open(void);
void weft_device_words_close(void);

/* The words that the members of a team meet with. The first call of a team that is a list shows its
 * GPU the list. Local; 0 or -errno with text; between weft_gpu_enter and _leave. */
int weft_device_words(struct weft_array *words, const struct weft_team *team);

/* Memory of the host of a team's members, whole pages that the GPUs of all of them reach: what
 * passes through where GPUs do not reach each other's memory (weft_device.staged). The first call
 * of a team registers it. As weft_device_words. */
struct weft_device_area {
    struct weft_array all;
    size_t bytes;
};
int weft_device_area(struct weft_device_area *area, const struct weft_team *team);

/* The team ends: its words are 0 again for the next one in its slot. Before the members part;
 * their streams have done with it. Local; nothing where there is no device. */
void weft_device_words_reset(const struct weft_team *team);

#endif
