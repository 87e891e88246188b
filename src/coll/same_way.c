/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/same_way.h"
#include <stdatomic.h>
#include "device/device.h"

/* A call in a word: its number, from 1 on; whether a graph may have calls of the team, because then
 * members need not count in the same way; the way; the engine. */
enum { ENGINE_BITS = 2, WAY_BITS = 5, CAPTURED_BIT = ENGINE_BITS + WAY_BITS, NUMBER_SHIFT };
_Static_assert(WEFT_WAYS <= 1 << WAY_BITS, "a way fits");

static uint64_t call_of(uint64_t number, bool captured, enum weft_stream_way way,
                        enum weft_copy_engine engine) {
    return number << NUMBER_SHIFT | (uint64_t)captured << CAPTURED_BIT |
           (uint64_t)way << ENGINE_BITS | (uint64_t)engine;
}

static enum weft_stream_way way_of(uint64_t call) {
    return (enum weft_stream_way)(call >> ENGINE_BITS & ((1 << WAY_BITS) - 1));
}

static const char *engine_name(uint64_t call) {
    return weft_engine_name((enum weft_copy_engine)(call & ((1 << ENGINE_BITS) - 1)));
}

/* A call with another number is an earlier or a later one, and is not compared. */
static void compare(uint64_t mine, uint64_t theirs, int pe) {
    if (mine >> CAPTURED_BIT != theirs >> CAPTURED_BIT || way_of(mine) == way_of(theirs))
        return;
    weft_job_panic("this call uses %s here, where the engine is '%s', but %s on PE %d, where the "
                   "engine is '%s': set the same engine on all members of the team "
                   "(shmemx_set_engine, SHMEMX_ENGINE)",
                   weft_stream_way_name(way_of(mine)), engine_name(mine),
                   weft_stream_way_name(way_of(theirs)), pe, engine_name(theirs));
}

void weft_same_way_check(const struct weft_team *team, enum weft_stream_way way) {
    struct weft_team_words *words = team->words;
    enum weft_copy_engine engine = weft_engine_get();
    uint64_t number = ++words->stream_calls, place = number % WEFT_STREAM_CALLS;
    uint64_t mine = call_of(number, weft_device_turns_captured(team), way, engine);
    atomic_store_explicit(&words->stream_ways[place], mine, memory_order_release);
    if (!weft_job.checked && engine == WEFT_ENGINE_AUTO)
        return;
    atomic_thread_fence(
        memory_order_seq_cst); /* if two members arrive at once, one sees the other */
    for (int member = 0; member < team->npes; member++)
        compare(mine, atomic_load(&weft_team_words_of(team, member)->stream_ways[place]),
                weft_team_world_pe(team, member));
}
