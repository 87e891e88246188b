/* SPDX-License-Identifier: BSD-3-Clause */
/* The windows are made by this file: a few pages each, between pages that must not be touched.
 * There is no job and no engine. */
#include "input.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "job/job.h"
#include "far/apply.h"
#include "far/bundle.h"
#include "far/coalesce.h"
#include "far/protocol.h"

enum {
    WINDOW_BYTES = 1 << 14,
    DEST_BYTES = 1 << 14,
    MESSAGE_BYTES = WEFT_ENGINE_MESSAGE_MIN,
    EARLY_SHIFT = 3,
    HEARD_SHIFT = 5,
    HEARD_PARTS = 7,
    FROM_SHIFT = 1,
};

/* The unread part of an input. */
struct reader {
    const unsigned char *at;
    size_t left;
};

struct input_counts input_counts;
static char *windows[WEFT_FAR_WINDOWS], *dest; /* NULL for GPU memory */
static char before[WEFT_FAR_WINDOWS][WINDOW_BYTES];
static const char *wrong;
static unsigned room;

/* --- Memory ---------------------------------------------------------------------------------- */

/* Allocates `bytes` that end where an inaccessible page begins, with another one before them. */
static char *memory_between_guards(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *all = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + page, bytes, PROT_READ | PROT_WRITE) != 0)
        abort();
    return all + page;
}

/* Returns NULL for GPU memory, since there is none. */
static struct weft_segment *segment_of(int window) {
    struct weft_segment *segments[WEFT_FAR_WINDOWS] = {[WEFT_FAR_HEAP] = &weft_windows.heap,
                                                       [WEFT_FAR_STATICS] = &weft_windows.statics,
                                                       [WEFT_FAR_SCRATCH] = &weft_windows.scratch};
    return segments[window];
}

void input_open(void) {
    weft_job.pe = 0;
    weft_job.npes = FUZZ_PES;
    weft_job.far = true;
    for (int i = 0; i < WEFT_FAR_WINDOWS; i++) {
        if (!segment_of(i))
            continue;
        windows[i] = memory_between_guards(WINDOW_BYTES);
        *segment_of(i) = (struct weft_segment){.window = {.local = (uintptr_t)windows[i],
                                                          .bytes = WINDOW_BYTES,
                                                          .step = 1,
                                                          .count = 1},
                                               .slot_bytes = WINDOW_BYTES};
    }
    dest = memory_between_guards(DEST_BYTES);
}

/* --- An engine that takes the messages it has room for --------------------------------------- */

static int engine_connect(struct weft_engine_end *end, const void *address, size_t bytes,
                          struct weft_engine_link **link) {
    (void)end, (void)address, (void)bytes;
    *link = (struct weft_engine_link *)(void *)dest;
    return 0;
}

static int engine_message(struct weft_engine_link *link, const struct iovec *parts, int nparts) {
    static unsigned char message[MESSAGE_BYTES];
    size_t bytes = 0;
    (void)link;
    if (room == 0)
        return -EAGAIN;
    room--;
    for (int i = 0; i < nparts; bytes += parts[i++].iov_len)
        if (parts[i].iov_len > sizeof message - bytes)
            wrong = "a message is longer than the engine takes";
        else if (parts[i].iov_len)
            memcpy(message + bytes, parts[i].iov_base, parts[i].iov_len);
    return 0;
}

static uint32_t engine_abilities(struct weft_engine_link *link) {
    (void)link;
    return 0;
}

static const struct weft_engine engine = {.name = "of this test",
                                          .message_bytes = MESSAGE_BYTES,
                                          .connect = engine_connect,
                                          .message = engine_message,
                                          .abilities = engine_abilities};

static const void *address(int pe, size_t *bytes) {
    (void)pe;
    *bytes = 1;
    return "";
}

static const struct weft_message_user user = {.apply = weft_far_apply,
                                              .work_done = weft_far_work_done,
                                              .answered = weft_far_answered,
                                              .address = address};

/* --- Steps ----------------------------------------------------------------------------------- */

static unsigned take(struct reader *reader) {
    if (reader->left == 0)
        return 0;
    reader->left--;
    return *reader->at++;
}

static int take_pe(struct reader *reader) {
    return 1 + (int)(take(reader) % (FUZZ_PES - 1));
}

/* Returns a head that the peer could send now. */
static struct head head_of(const struct head *drawn, unsigned flags) {
    struct head head = *drawn;
    int pe = 1 + (int)((flags & FLAG_FROM) >> FROM_SHIFT) % (FUZZ_PES - 1);
    const struct weft_channel *channel = weft_channels.of[pe];
    uint32_t first = weft_message_first - 1, sent = channel ? channel->sent : first;
    uint32_t before = channel ? channel->acknowledged : first;
    head.from = (uint32_t)pe;
    head.sort %= BUNDLE + 1;
    if (head.sort != CONTROL)
        head.number =
            (channel ? channel->applied : first) + 1 + ((flags & FLAG_EARLY) >> EARLY_SHIFT);
    head.acknowledged =
        before + (sent - before) * ((flags & FLAG_HEARD) >> HEARD_SHIFT) / HEARD_PARTS;
    return head;
}

static bool has_changed(int window) {
    return windows[window] && memcmp(windows[window], before[window], WINDOW_BYTES) != 0;
}

/* Checks that a message has changed only the memory that it may change. */
static void look_at_refused(const struct head *head) {
    for (int i = 0; i < WEFT_FAR_WINDOWS; i++)
        if (head->sort != BUNDLE && has_changed(i))
            wrong = "a message that is refused has changed memory";
}

static void step_message(struct reader *reader) {
    unsigned flags = take(reader);
    size_t bytes = take(reader);
    struct head head = {0};
    bytes |= (size_t)take(reader) << 8;
    bytes = bytes < reader->left ? bytes : reader->left;
    unsigned char *message = malloc(bytes ? bytes : 1);
    memcpy(message, reader->at, bytes);
    reader->at += bytes;
    reader->left -= bytes;
    memcpy(&head, message, bytes < sizeof head ? bytes : sizeof head);
    if (!(flags & FLAG_AS_IS) && bytes >= sizeof head) {
        head = head_of(&head, flags);
        memcpy(message, &head, sizeof head);
    }
    for (int i = 0; i < WEFT_FAR_WINDOWS; i++)
        if (windows[i])
            memcpy(before[i], windows[i], WINDOW_BYTES);
    bool alone = !(head.from < FUZZ_PES && weft_channels.of[head.from] &&
                   weft_channels.of[head.from]->early[(head.number + 1) % WEFT_CHANNEL_RING]);
    weft_channel_arrived(NULL, message, bytes);
    bool refused = weft_channels.failure[0] != '\0';
    if (refused && alone)
        look_at_refused(&head);
    input_counts.refused += refused;
    input_counts.applied += !refused;
    for (int i = 0; i < WEFT_FAR_WINDOWS; i++)
        input_counts.changed[i] += has_changed(i);
    free(message);
}

static void step_request(struct reader *reader) {
    static _Atomic uint32_t missing;
    int pe = take_pe(reader);
    size_t count = 1 + take(reader) % 16, block_bytes = 1 + take(reader);
    struct weft_message_request request = {.dest = dest,
                                           .step = (ptrdiff_t)(DEST_BYTES / count) & ~7,
                                           .block_bytes = block_bytes,
                                           .nblocks = count,
                                           .missing = count % 2 ? &missing : NULL};
    struct weft_message message = {.payload = {{"get", 3}}, .nparts = 1, .request = &request};
    weft_coalesce_try_send(weft_channel_of(pe), &message);
}

static void step_send(struct reader *reader) {
    static const char text[256];
    struct weft_channel *channel = weft_channel_of(take_pe(reader));
    struct weft_message message = {
        .payload = {{(void *)text, take(reader)}}, .nparts = 1, .may_wait = true};
    weft_coalesce_try_send(channel, &message);
}

/* --- Invariants between any two steps -------------------------------------------------------- */

static void look_at_channel(const struct weft_channel *channel) {
    uint32_t under_way = channel->sent - channel->acknowledged,
             asked = channel->requested - channel->answered;
    if (under_way >= WEFT_CHANNEL_RING)
        wrong = "more messages are under way than there are places";
    else if (channel->quiet_until - channel->acknowledged > under_way)
        wrong = "a quiet waits for a message that has not been sent";
    else if (channel->asked - channel->acknowledged > under_way)
        wrong = "an acknowledgment is asked for of a message that has not been sent";
    else if (asked > WEFT_CHANNEL_REQUESTS)
        wrong = "more answers are to come than there are places";
    else if (asked == 0 && channel->answer_bytes != 0)
        wrong = "bytes of answers are to come, and no answers";
    else if (channel->ack_sent - channel->applied != 0 &&
             channel->applied - channel->ack_sent > WEFT_CHANNEL_RING)
        wrong = "more is acknowledged than is applied";
}

static void look_at_channels(void) {
    uint32_t unfinished = 0, bundles = 0;
    for (int pe = 1; pe < FUZZ_PES && !wrong; pe++) {
        const struct weft_channel *channel = weft_channels.of[pe];
        if (!channel)
            continue;
        look_at_channel(channel);
        unfinished += channel->unfinished;
        bundles += channel->bundle != NULL;
    }
    if (!wrong && unfinished != atomic_load(&weft_channels_unfinished))
        wrong = "the count of unfinished channels is wrong";
    if (!wrong && bundles != atomic_load(&weft_channels_bundles))
        wrong = "the count of bundles is wrong";
}

static void step_run(struct reader *reader) {
    switch ((enum step)(take(reader) % STEPS)) {
    case STEP_MESSAGE:
        step_message(reader);
        break;
    case STEP_REQUEST:
        step_request(reader);
        break;
    case STEP_SEND:
        step_send(reader);
        break;
    case STEP_ROOM:
        room = take(reader);
        break;
    case STEP_DUE:
        weft_channels_send_due(take(reader) % 2);
        break;
    case STEPS:
        break;
    }
}

/* The input ends with the first refused message, as the job would. */
const char *input_run(const unsigned char *input, size_t bytes) {
    struct reader reader = {input, bytes};
    wrong = NULL;
    room = UINT8_MAX;
    weft_channels = (struct weft_channels){.engine = &engine,
                                           .end = (struct weft_engine_end *)(void *)dest,
                                           .user = &user,
                                           .of = calloc(FUZZ_PES, sizeof(void *))};
    while (reader.left > 0 && !weft_channels.failure[0] && !wrong) {
        step_run(&reader);
        look_at_channels();
    }
    weft_channels_free();
    return wrong;
}
