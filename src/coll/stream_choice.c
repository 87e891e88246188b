/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/stream_choice.h"
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/env.h"
#include "base/size.h"
#include "transport/gpu_channel.h"
#include "transport/gpu_copy.h"

#define KIB (size_t)1024
#define MIB (1024 * KIB)
#define ALL SIZE_MAX

static const struct {
    const char *setting, *name;
    bool grows; /* a member sends its whole array to each: twice the members, half the bytes */
} ways[WEFT_WAYS] = {
    [WEFT_WAY_LL] = {"ll", "packets", true},
    [WEFT_WAY_MARKED] = {"marked", "marked words, one shot", true},
    [WEFT_WAY_MARKED_TWICE] = {"marked", "marked words, two shots", false},
    [WEFT_WAY_PUSH] = {"push", "pushes in one kernel", true},
    [WEFT_WAY_FOLD] = {"meet", "loads of chunks", false},
    [WEFT_WAY_MEET] = {"meet", "engines between two meetings", false},
};

/* The largest block, with four members, for each algorithm; 0: never. On four H200s an all-reduce
 * of 128 KiB took 4.9 us by marked words in one shot and 5.7 in two, of 256 KiB 6.1 and 6.0. On two
 * an all-gather of 256 KiB took 4.6 by packets and 5.2 by pushes, of 512 KiB 6.6 and 6.0; of 32 MiB
 * 103 by pushes and 113 by engines, of 64 MiB 203 and 200. An all-reduce of 128 KiB took 3.5 by
 * packets and 3.8 by marked words, of 256 KiB 4.7 and 4.3; of 512 KiB 5.6 by marked words and 8.1
 * by loads, of 1 MiB 7.1 and 9.7, of 8 MiB 29.0 and 31.9; a reduce-scatter of 4 MiB to each member
 * 17.2 and 19.7. */
static const struct {
    const char *name;
    size_t bytes_max[WEFT_WAY_MEET];
} table[WEFT_STREAM_OPERATIONS] = {
    /*                          ll         marked     twice    push      fold */
    [WEFT_STREAM_ALL_GATHER] = {"all-gather", {128 * KIB, 0, 0, 16 * MIB, 0}},
    [WEFT_STREAM_ALL_TO_ALL] = {"all-to-all", {128 * KIB, 0, 0, 16 * MIB, 0}},
    [WEFT_STREAM_BROADCAST] = {"broadcast", {128 * KIB, 0, 0, 16 * MIB, 0}},
    [WEFT_STREAM_REDUCE_SCATTER] = {"reduce-scatter", {64 * KIB, 2 * MIB, 0, 0, ALL}},
    [WEFT_STREAM_ALL_REDUCE] = {"all-reduce", {64 * KIB, 200 * KIB, 8 * MIB, 0, ALL}},
};

/* --- Settings --------------------------------------------------------------------------------- */

/* Logs once that an unknown SHMEMX_ALGORITHM counts as auto. */
static void check_setting(void) {
    static _Atomic bool checked;
    bool known = strcmp(weft_env.algorithm, "auto") == 0;
    if (atomic_load_explicit(&checked, memory_order_relaxed) || atomic_exchange(&checked, true))
        return;
    for (int way = 0; way < WEFT_WAYS; way++)
        known |= strcmp(weft_env.algorithm, ways[way].setting) == 0;
    if (!known)
        weft_log("SHMEMX_ALGORITHM is '%s': it should be auto, ll, marked, push or meet, and "
                 "auto is used",
                 weft_env.algorithm);
}

static bool is_named(int way) {
    return strcmp(ways[way].setting, weft_env.algorithm) == 0;
}

/* Copy engines execute only copies; reductions need multiprocessors in any case. */
static enum weft_copy_engine engine_for(enum weft_stream_operation operation) {
    return operation < WEFT_STREAM_REDUCE_SCATTER ? weft_engine_get() : WEFT_ENGINE_AUTO;
}

/* --- The choice ------------------------------------------------------------------------------- */

/* Returns the bytes for which marked words have room, in a block and in a block of chunks. */
static size_t room_of(enum weft_stream_way way, int n) {
    size_t block = (size_t)WEFT_GPU_CHANNELS * weft_gpu_slot_units(WEFT_FORM_MARKED, n) * 16;
    return way == WEFT_WAY_MARKED ? block : way == WEFT_WAY_MARKED_TWICE ? block * (size_t)n : ALL;
}

size_t weft_stream_bytes_max(enum weft_stream_operation operation, enum weft_stream_way way,
                             int n) {
    size_t most = table[operation].bytes_max[way], room = room_of(way, n);
    if (most != ALL && ways[way].grows)
        most = most * 4 / (size_t)n;
    return most < room ? most : room;
}

/* Adds the algorithms of the name that is set, as far as the operation has them; the last one of
 * the name also for sizes that are too large for the others. */
static int add_named(enum weft_stream_way *tries, const struct weft_stream_call *call) {
    int count = 0;
    for (int way = 0; way < WEFT_WAY_MEET; way++) {
        bool last = strcmp(ways[way].setting, ways[way + 1].setting) != 0;
        size_t most = weft_stream_bytes_max(call->operation, way, call->n);
        if (is_named(way) && most > 0 && (last || call->bytes <= most))
            tries[count++] = (enum weft_stream_way)way;
    }
    return count;
}

int weft_stream_ways(const struct weft_stream_call *call, enum weft_stream_way *tries) {
    enum weft_copy_engine engine = engine_for(call->operation);
    check_setting();
    if (engine == WEFT_ENGINE_COPY || is_named(WEFT_WAY_MEET))
        return 0;
    int count = add_named(tries, call);
    for (int way = 0; way < WEFT_WAY_MEET; way++) {
        if (call->bytes > weft_stream_bytes_max(call->operation, way, call->n))
            continue;
        if (way == WEFT_WAY_FOLD)
            return count;
        tries[count++] = (enum weft_stream_way)way;
    }
    if (engine == WEFT_ENGINE_SM)
        tries[count++] = WEFT_WAY_PUSH;
    return count;
}

const char *weft_stream_way_name(enum weft_stream_way way) {
    return ways[way].name;
}

int weft_stream_describe(char *text, size_t bytes, enum weft_stream_operation operation, int n) {
    int length = snprintf(text, bytes, "%-15s", table[operation].name);
    for (int way = 0; way < WEFT_WAY_MEET; way++) {
        size_t most = weft_stream_bytes_max(operation, way, n);
        if (most > 0 && most < ALL && length < (int)bytes)
            length += snprintf(text + length, bytes - (size_t)length, "up to %s: %s; ",
                               weft_size(most).text, ways[way].name);
    }
    bool folds = table[operation].bytes_max[WEFT_WAY_FOLD] > 0;
    if (length < (int)bytes)
        length += snprintf(text + length, bytes - (size_t)length, "else: %s",
                           ways[folds ? WEFT_WAY_FOLD : WEFT_WAY_MEET].name);
    return length;
}
