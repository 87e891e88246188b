/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: many calls that allocate, split and make contexts do not leak memory, descriptors or
 * mappings: 20 thousand operations, a million in the long form. The number of live objects is
 * bounded.
 *
 * PEs: 1 2 3 */
#include <shmem.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "entries.h"
#include "tap.h"

enum { LIVE = 64, BYTES_MAX = 20000, CTXS = 16, WARM_UP_SHARE = 5, RSS_SLACK_KB = 64 };

static void *live[LIVE];
static shmem_ctx_t ctxs[CTXS];
static uint64_t seed = 1; /* the same on every PE: calls are collective */

static uint64_t draw(uint64_t below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

/* Makes or frees one allocation, in a random place. */
static void allocate(void) {
    void **place = &live[draw(LIVE)];
    size_t bytes = 1 + draw(BYTES_MAX);
    if (*place && draw(4) == 0) {
        *place = shmem_realloc(*place, bytes);
    } else if (*place) {
        shmem_free(*place);
        *place = NULL;
    } else {
        *place = draw(2) ? shmem_malloc(bytes) : shmem_align(64 << draw(6), bytes);
        EXPECT(*place, "%zu bytes", bytes);
    }
}

static void split(void) {
    int size = 1 + (int)draw((uint64_t)shmem_n_pes());
    shmem_team_t part;
    int result = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, size, NULL, 0, &part);
    EXPECT(result == 0, "%d", result);
    if (part == SHMEM_TEAM_INVALID)
        return;
    shmem_ctx_t ctx; /* destroyed with its team */
    if (draw(2))
        EXPECT(shmem_team_create_ctx(part, 0, &ctx) == 0, "on a team of %d", size);
    shmem_team_destroy(part);
}

static void make_ctx(void) {
    shmem_ctx_t *place = &ctxs[draw(CTXS)];
    if (*place != SHMEM_CTX_INVALID) {
        shmem_ctx_destroy(*place);
        *place = SHMEM_CTX_INVALID;
    } else {
        EXPECT(shmem_ctx_create(0, place) == 0, "no context");
    }
}

static void operate(long times) {
    for (long i = 0; i < times; i++) {
        uint64_t before = draw(UINT64_MAX);
        switch (before % 4) {
        case 0:
            split();
            break;
        case 1:
            make_ctx();
            break;
        default:
            allocate();
        }
        seed = before + (uint64_t)i; /* discards what only members have drawn */
    }
}

struct cost {
    long anonymous_kb;
    int descriptors, mappings;
};

static struct cost measure(void) {
    struct cost cost = {.descriptors = entries_of("/proc/self/fd")};
    char line[512];
    FILE *status = fopen("/proc/self/status", "re"), *maps = fopen("/proc/self/maps", "re");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "RssAnon: %ld", &cost.anonymous_kb);
    while (maps && fgets(line, sizeof line, maps))
        cost.mappings++;
    fclose(status);
    fclose(maps);
    return cost;
}

int main(void) {
    long operations = getenv("WEFT_TEST_LONG") ? 1000000 : 20000;
    for (int i = 0; i < CTXS; i++)
        ctxs[i] = SHMEM_CTX_INVALID;
    shmem_init();
    tap_start(shmem_my_pe());
    tap_case("many operations cost no memory, descriptor or mapping");
    measure();
    operate(operations / WARM_UP_SHARE);
    struct cost before = measure();
    operate(operations);
    struct cost after = measure();
    EXPECT(after.anonymous_kb <= before.anonymous_kb + RSS_SLACK_KB, "%ld KiB have become %ld",
           before.anonymous_kb, after.anonymous_kb);
    EXPECT(after.descriptors == before.descriptors, "%d descriptors have become %d",
           before.descriptors, after.descriptors);
    EXPECT(after.mappings <= before.mappings, "%d mappings have become %d", before.mappings,
           after.mappings);
    shmem_finalize();
    return tap_finish();
}
