/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs of a job: each PE queries its own GPU, and the links from there to the others, without
 * opening any. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>
#include "command.h"
#include "base/env.h"
#include "base/log.h"
#include "coll/stream_choice.h"
#include "device/device.h"

/* A PE's view of its GPU; without a name the PE has no GPU, and `reason` explains why. */
struct card {
    struct weft_cu_uuid uuid;
    size_t memory_bytes;
    int ordinal, capability, sms;
    char name[64], reason[192];
};

/* The link between two PEs, seen from the first one. */
struct link {
    int from, to;
    struct weft_gpu_peer peer;
};

/* In symmetric memory: [npes], and [npairs] in the order of `from`; no pairs in large jobs. */
enum { PES_WITH_LINKS_MAX = 64 };
static struct card *cards;
static struct link *links;
static size_t npes, npairs;
static struct weft_gpu gpu; /* this PE's */

static void look(struct card *card) {
    WEFT_IN_CALL("weft info");
    if (weft_device_inspect(&gpu) < 0) {
        snprintf(card->reason, sizeof card->reason, "%s", weft_last_error());
        return;
    }
    card->uuid = gpu.uuid;
    card->memory_bytes = gpu.memory_bytes;
    card->ordinal = gpu.ordinal;
    card->capability = gpu.capability;
    card->sms = gpu.sms;
    snprintf(card->name, sizeof card->name, "%s", gpu.name);
}

static void look_around(struct link *row, int me) {
    for (int pe = 0; pe < (int)npes; pe++) {
        row[pe] = (struct link){me, pe, {.ordinal = -1}};
        if (*cards[me].name && *cards[pe].name)
            row[pe].peer = weft_gpu_peer_of(&gpu, &cards[pe].uuid);
    }
}

static void gather(void) {
    int me = shmem_my_pe();
    struct card *mine = shmem_calloc(1, sizeof *mine);
    struct link *row = shmem_calloc(npes, sizeof *row);
    cards = shmem_calloc(npes, sizeof *cards);
    npairs = npes <= PES_WITH_LINKS_MAX ? npes * npes : 0;
    links = shmem_calloc(npairs + 1, sizeof *links);
    if (!mine || !row || !cards || !links)
        return;
    look(mine);
    shmem_fcollectmem(SHMEM_TEAM_WORLD, cards, mine, sizeof *mine);
    look_around(row, me);
    if (npairs > 0)
        shmem_fcollectmem(SHMEM_TEAM_WORLD, links, row, npes * sizeof *row);
}

static void print_card(int pe) {
    const struct card *card = &cards[pe];
    char label[16];
    snprintf(label, sizeof label, "PE %d", pe);
    if (*card->name)
        printf("  %-12s GPU %d, %s, %.4g GiB, capability %d.%d, %d multiprocessors\n", label,
               card->ordinal, card->name, (double)card->memory_bytes / (1 << 30),
               card->capability / 10, card->capability % 10, card->sms);
    else
        printf("  %-12s none: %s\n", label, card->reason);
}

static void describe(char *text, size_t bytes, const struct weft_gpu_peer *peer) {
    if (peer->same)
        snprintf(text, bytes, "the same GPU");
    else if (peer->ordinal < 0)
        snprintf(text, bytes, "not visible to each other (CUDA_VISIBLE_DEVICES)");
    else if (!peer->access)
        snprintf(text, bytes, "staged through host memory (no peer access)");
    else
        snprintf(text, bytes, "load and store, atomics%s, rank %d",
                 peer->atomics ? "" : " by the other GPU", peer->rank);
}

static bool alike(const struct weft_gpu_peer *a, const struct weft_gpu_peer *b) {
    char one[96], other[96];
    describe(one, sizeof one, a);
    describe(other, sizeof other, b);
    return strcmp(one, other) == 0;
}

static bool between_gpus(const struct link *link) {
    return link->from != link->to && *cards[link->from].name && *cards[link->to].name;
}

/* Prints the pairs with the same link as `first`, unless an earlier pair has it, too. */
static void print_kind(size_t first, const char *label) {
    char text[96];
    for (size_t i = 0; i < first; i++)
        if (between_gpus(&links[i]) && alike(&links[i].peer, &links[first].peer))
            return;
    describe(text, sizeof text, &links[first].peer);
    printf("  %-12s %s:", label, text);
    for (size_t i = first; i < npairs; i++)
        if (between_gpus(&links[i]) && alike(&links[i].peer, &links[first].peer))
            printf(" %d-%d", links[i].from, links[i].to);
    printf("\n");
}

static void print_links(void) {
    const char *label = "links";
    for (size_t i = 0; i < npairs; i++)
        if (between_gpus(&links[i])) {
            print_kind(i, label);
            label = "";
        }
}

static void print_engines(void) {
    const char *label = "copies";
    for (int direction = 0; direction < WEFT_DIRECTIONS; direction++, label = "") {
        char line[160];
        weft_engine_describe(line, sizeof line, (enum weft_direction)direction);
        printf("  %-12s %s\n", label, line);
    }
}

static void print_collectives(void) {
    const char *label = "on streams";
    if (strcmp(weft_env.algorithm, "auto") != 0)
        printf("  %-12s SHMEMX_ALGORITHM=%s where it can, otherwise\n", label, weft_env.algorithm);
    for (int operation = 0; operation < WEFT_STREAM_OPERATIONS; operation++, label = "") {
        char line[256];
        weft_stream_describe(line, sizeof line, (enum weft_stream_operation)operation,
                             npes > 1 ? (int)npes : 4);
        printf("  %-12s %s\n", label, line);
    }
}

static void print_gpus(void) {
    size_t without = 0;
    for (size_t pe = 0; pe < npes; pe++)
        without += !*cards[pe].name;
    printf("GPUs\n");
    if (without == npes) {
        printf("  %-12s %s\n", "none", cards[0].reason);
        return;
    }
    for (size_t pe = 0; pe < npes; pe++)
        print_card((int)pe);
    print_links();
    print_engines();
    print_collectives();
}

void weft_info_gpus(void) {
    npes = (size_t)shmem_n_pes();
    gather();
    if (shmem_my_pe() == 0 && cards && links)
        print_gpus();
}
