/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/choice.h"
#include <stdint.h>
#include <stdio.h>
#include "core/sync.h"

/* All bytes of an exchange pass every member, so a large team turns to direct reads earlier. */
const struct weft_choice weft_choices[WEFT_FAMILIES] = {
    [WEFT_BROADCAST] = {"broadcast", "a packet of the root", "all read the root's source",
                        WEFT_PACKET_BYTES, SIZE_MAX},
    [WEFT_COLLECT] = {"collect", "packets", "sizes in packets; all read all sources", 1024,
                      16 << 10},
    [WEFT_FCOLLECT] = {"fcollect", "packets", "all read all sources", 1024, 16 << 10},
    [WEFT_ALLTOALL] = {"alltoall", "packets", "all read their parts of all sources",
                       WEFT_PACKET_BYTES, 64 << 10},
    [WEFT_REDUCE] = {"reduce", "packets; all reduce all",
                     "each reduces a chunk of all sources and writes it to all", 1024, 8 << 10},
    [WEFT_SCAN] = {"scan", "packets; each adds what comes before it",
                   "each scans a chunk of all sources and writes it to all", 1024, 8 << 10},
};

int weft_choice_describe(char *text, size_t bytes, enum weft_family family, int npes) {
    const struct weft_choice *choice = &weft_choices[family];
    return snprintf(text, bytes, "%-10s up to %zu bytes a PE: %s; above: %s", choice->name,
                    weft_choice_packet_max(family, npes), choice->small, choice->large);
}
