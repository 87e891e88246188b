/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/choice.h"
#include <stdint.h>
#include <stdio.h>
#include "base/size.h"

enum { PACKET = WEFT_PACKET_BYTES };

/* All bytes of an exchange are read by every member, so a large team uses direct reads from smaller
 * sizes on. With 2 PEs, packets of half a KiB took 82 to 108 ns, and direct reads 200 to 235 ns;
 * from 2 KiB on packets were slower, except where each member reads only a part of a packet. */
/* clang-format off */
const struct weft_choice weft_choices[WEFT_FAMILIES] = {
    /*                   name         most bytes of a member, and of all members; small; large */
    [WEFT_BROADCAST] = {"broadcast", PACKET, SIZE_MAX,
                        "a packet of the root", "all read the root's source"},
    [WEFT_COLLECT]   = {"collect", 1024, 16 << 10,
                        "packets", "sizes in packets, all read all sources"},
    [WEFT_FCOLLECT]  = {"fcollect", 1024, 16 << 10,
                        "packets", "all read all sources"},
    [WEFT_ALLTOALL]  = {"alltoall", PACKET, 64 << 10,
                        "packets", "all read their blocks of all sources"},
    [WEFT_REDUCE]    = {"reduce", 1024, 8 << 10,
                        "packets, all fold all", "each folds a chunk of all sources for all"},
    [WEFT_SCAN]      = {"scan", 1024, 8 << 10,
                        "packets, each folds its own", "each scans a chunk of all sources for all"},
};
/* clang-format on */

int weft_choice_describe(char *text, size_t bytes, enum weft_family family, int npes) {
    const struct weft_choice *choice = &weft_choices[family];
    return snprintf(text, bytes, "%-10s up to %s a PE: %s; else: %s", choice->name,
                    weft_size(weft_choice_packet_max(family, npes)).text, choice->small,
                    choice->large);
}
