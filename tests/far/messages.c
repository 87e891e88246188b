/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the streams of messages alone, over an engine of this test that delivers them in a
 * chosen order. Any order within the limits is restored, also if numbers wrap around. No message is
 * acknowledged before it is applied. The limits hold, except for answers. Small messages travel in
 * bundles, which are sent when they must be. Malformed heads are refused. PE 0 alone. PEs: 2 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "far/coalesce.h"
#include "draw.h"

enum { PEER = 1, MESSAGES = 5000, SENT_MAX = 8192 };
enum { SORT_MESSAGE, SORT_ANSWER, SORT_CONTROL, SORT_BUNDLE };

/* The head of a message, as in far/bundle.h. */
struct head {
    uint32_t number, acknowledged, from;
    uint8_t sort, asks, reserved[2];
};

/* --- An engine that keeps the messages it is given ------------------------------------------- */

static struct head sent[SENT_MAX];
static size_t sent_bytes[SENT_MAX];
static uint32_t nsent, refused_from = UINT32_MAX;

static int engine_connect(struct weft_engine_end *end, const void *address, size_t bytes,
                          struct weft_engine_link **link) {
    (void)end, (void)address, (void)bytes;
    *link = (struct weft_engine_link *)(void *)sent;
    return 0;
}

static int engine_message(struct weft_engine_link *link, const struct iovec *parts, int nparts) {
    (void)link;
    if (nsent >= refused_from)
        return -EAGAIN;
    sent_bytes[nsent % SENT_MAX] = 0;
    for (int i = 0; i < nparts; i++)
        sent_bytes[nsent % SENT_MAX] += parts[i].iov_len;
    memcpy(&sent[nsent++ % SENT_MAX], parts[0].iov_base, sizeof *sent);
    return 0;
}

static uint32_t engine_abilities(struct weft_engine_link *link) {
    (void)link;
    return 0;
}

static const struct weft_engine engine = {
    .name = "of this test",
    .message_bytes = WEFT_ENGINE_MESSAGE_MIN,
    .connect = engine_connect,
    .message = engine_message,
    .abilities = engine_abilities,
};

/* --- The user of messages: a payload is an index, and whether to answer ---------------------- */

static uint32_t applied, completed, answered, out_of_order;
static bool answers;
static uint64_t slow; /* operations take a random time drawn from this; 0: they complete at once */

static bool apply(int from, const void *text, size_t bytes) {
    uint32_t index;
    EXPECT(bytes == sizeof index && from == PEER, "%zu bytes from PE %d", bytes, from);
    if (slow && draw(&slow) % 3 == 0)
        return false;
    memcpy(&index, text, sizeof index);
    out_of_order += index != applied++;
    if (answers)
        weft_message_answer(from, &(struct iovec){&index, sizeof index}, 1);
    return true;
}

static bool work_done(int from) {
    (void)from;
    if (!slow || draw(&slow) % 3 == 0)
        completed = applied;
    return completed == applied;
}

static void take_answer(int from, const struct weft_message_request *request, const void *text,
                        size_t bytes) {
    uint32_t index;
    (void)from, (void)request;
    EXPECT(bytes == sizeof index, "%zu bytes", bytes);
    memcpy(&index, text, sizeof index);
    out_of_order += index != answered++;
}

static const void *address(int pe, size_t *bytes) {
    (void)pe;
    *bytes = 1;
    return "";
}

static const struct weft_message_user user = {apply, work_done, take_answer, address, NULL};

static void begin(uint32_t first) {
    weft_channels_free();
    weft_message_first = first;
    weft_channels = (struct weft_channels){.engine = &engine,
                                           .end = (struct weft_engine_end *)(void *)sent,
                                           .user = &user,
                                           .of = calloc((size_t)shmem_n_pes(), sizeof(void *))};
    nsent = applied = completed = answered = out_of_order = 0;
    slow = 0;
    refused_from = UINT32_MAX;
    answers = false;
}

/* A message from the peer arrives, with an index as payload. */
static void arrive(struct head head, uint32_t index) {
    struct {
        struct head head;
        uint32_t index;
    } message = {head, index};
    weft_channel_arrived(NULL, &message,
                         sizeof head + (head.sort == SORT_CONTROL ? 0 : sizeof index));
}

static uint32_t heard_nothing(void) {
    return weft_message_first - 1;
}

static void arrive_numbered(uint32_t index, uint8_t sort, uint32_t acknowledged) {
    arrive((struct head){weft_message_first + index, acknowledged, PEER, sort, 0, {0}}, index);
}

/* --- Cases ----------------------------------------------------------------------------------- */

/* The messages sent acknowledge no more than was applied, and nearly that much. */
static void expect_told(uint32_t at_least) {
    weft_channels_send_due(false);
    if (nsent == 0) {
        EXPECT(at_least == 0, "nothing is acknowledged of %u", at_least);
        return;
    }
    uint32_t told = sent[(nsent - 1) % SENT_MAX].acknowledged - weft_message_first + 1;
    EXPECT(told <= completed && told >= at_least, "%u messages are acknowledged, %u applied", told,
           completed);
}

/* The peer keeps to the limit, and the engine delivers its messages in a random order. */
static void check_orders(uint32_t first, uint64_t seed) {
    static uint32_t under_way[WEFT_CHANNEL_MESSAGES];
    uint32_t window = 1 + (uint32_t)draw(&seed) % WEFT_CHANNEL_MESSAGES, next = 0, count = 0;
    begin(first);
    while (applied < MESSAGES && !weft_channels.failure[0]) {
        while (count < window && next < MESSAGES && next - applied < WEFT_CHANNEL_MESSAGES)
            under_way[count++] = next++;
        uint32_t one = (uint32_t)draw(&seed) % count;
        arrive_numbered(under_way[one], SORT_MESSAGE, heard_nothing());
        under_way[one] = under_way[--count];
        if (applied % 64 == 0)
            expect_told(applied > WEFT_CHANNEL_MESSAGES / 2 ? applied - WEFT_CHANNEL_MESSAGES / 2
                                                            : 0);
    }
    EXPECT(out_of_order == 0 && applied == MESSAGES && !weft_channels.failure[0],
           "first %#x: %u applied, %u of them out of order; %s", first, applied, out_of_order,
           weft_channels.failure);
}

/* A request for an acknowledgment is answered after the message that it names, however early it
 * arrives. */
static void check_questions(void) {
    begin(UINT32_MAX - 1);
    arrive((struct head){weft_message_first + 2, heard_nothing(), PEER, SORT_CONTROL, 1, {0}}, 0);
    expect_told(0);
    arrive_numbered(2, SORT_MESSAGE, heard_nothing());
    arrive_numbered(1, SORT_MESSAGE, heard_nothing());
    expect_told(0);
    EXPECT(nsent == 0, "%u messages were sent", nsent);
    arrive_numbered(0, SORT_MESSAGE, heard_nothing());
    expect_told(3);
    uint32_t before = nsent;
    arrive((struct head){weft_message_first + 2, heard_nothing(), PEER, SORT_CONTROL, 1, {0}}, 0);
    expect_told(3);
    EXPECT(nsent <= before + 1, "%u messages for one question", nsent - before);
}

static bool send_one(size_t bytes, const struct weft_message_request *request) {
    static char text[WEFT_ENGINE_MESSAGE_MIN];
    struct weft_message message = {.payload = {{text, bytes}}, .nparts = 1, .request = request};
    return weft_coalesce_try_send(weft_channel_of(PEER), &message);
}

static void acknowledge(uint32_t count) {
    arrive((struct head){0, weft_message_first + count - 1, PEER, SORT_CONTROL, 0, {0}}, 0);
}

static void check_limits(uint32_t first) {
    begin(first);
    uint32_t small = 0, large = 0;
    while (small < SENT_MAX && send_one(8, NULL))
        small++;
    EXPECT(small > 0 && small <= WEFT_CHANNEL_MESSAGES, "%u messages are under way", small);
    acknowledge(1);
    EXPECT(send_one(8, NULL), "one is applied, and there is no room for another");
    EXPECT(!send_one(8, NULL), "there is room for two");
    acknowledge(small + 1);
    while (large < SENT_MAX && send_one(weft_message_payload_max(), NULL))
        large++;
    size_t bytes = large * weft_message_payload_max();
    EXPECT(bytes <= WEFT_CHANNEL_BYTES && bytes > WEFT_CHANNEL_BYTES / 2, "%zu bytes are under way",
           bytes);
    acknowledge(small + 1 + large);
    EXPECT(send_one(weft_message_payload_max(), NULL), "all are applied, and there is no room");
    EXPECT(!weft_channels.failure[0], "%s", weft_channels.failure);
}

/* Calls have filled the channel, and the engine has no room: answers wait and are sent in order. */
static void check_answers(uint32_t first) {
    begin(first);
    uint32_t callers = 0;
    while (callers < SENT_MAX && send_one(8, NULL))
        callers++;
    answers = true;
    refused_from = nsent + 10;
    for (uint32_t i = 0; i < WEFT_CHANNEL_REQUESTS; i++) {
        if (i == WEFT_CHANNEL_REQUESTS / 2)
            refused_from = UINT32_MAX; /* there is room again, and some are waiting for it */
        arrive_numbered(i, SORT_MESSAGE, heard_nothing());
    }
    EXPECT(nsent == callers + 10, "%u answers have gone", nsent - callers);
    weft_channels_send_due(false);
    EXPECT(nsent == callers + WEFT_CHANNEL_REQUESTS, "%u answers have gone", nsent - callers);
    for (uint32_t i = 0; i < WEFT_CHANNEL_REQUESTS && callers + i < nsent; i++)
        EXPECT(sent[callers + i].sort == SORT_ANSWER &&
                   sent[callers + i].number == first + callers + i,
               "answer %u has number %u", i, sent[callers + i].number);
    EXPECT(!weft_channels.failure[0], "%s", weft_channels.failure);
}

/* --- Bundles --------------------------------------------------------------------------------- */

static bool send_small(size_t bytes) {
    static char text[WEFT_ENGINE_MESSAGE_MIN];
    struct weft_message message = {.payload = {{text, bytes}}, .nparts = 1, .may_wait = true};
    return weft_coalesce_try_send(weft_channel_of(PEER), &message);
}

/* A bundle with something in it is kept, and nothing else. */
static void open_bundle(void) {
    begin(UINT32_MAX - 1);
    while (atomic_load(&weft_channels_bundles) == 0)
        send_small(8);
}

static void expect_bundle_gone(const char *how) {
    EXPECT(nsent > 1 && sent[nsent - 1].sort >= SORT_CONTROL && weft_channels_bundles == 0,
           "a bundle does not go with %s", how);
}

/* Many small messages become few; their bytes count, and a quiet waits for them. */
static void check_gathering(void) {
    enum { MANY = 2000 };
    begin(UINT32_MAX - 1);
    EXPECT(send_small(8) && nsent == 1 && sent[0].sort == SORT_MESSAGE, "the first one waits");
    acknowledge(1);
    for (int i = 0; i < MANY; i++)
        EXPECT(send_small(8), "there is no room for message %d", i);
    EXPECT(nsent < MANY / 4, "%d messages go in %u", MANY, nsent);
    EXPECT(weft_channels_unfinished == 1, "a quiet would not wait for what is gathered");
    for (uint32_t i = 1; i < nsent; i++)
        EXPECT(sent[i].number == weft_message_first + i && sent_bytes[i] <= WEFT_ENGINE_MESSAGE_MIN,
               "message %u has number %u and %zu bytes", i, sent[i].number, sent_bytes[i]);
    begin(UINT32_MAX - 1);
    size_t bytes = 0;
    for (int i = 0; i < 8 * MANY && send_small(500); i++)
        bytes += 500;
    EXPECT(bytes <= WEFT_CHANNEL_BYTES && bytes > WEFT_CHANNEL_BYTES / 2, "%zu bytes are under way",
           bytes);
}

/* A bundle is never sent after a later message of its stream. */
static void check_departures(void) {
    open_bundle();
    EXPECT(send_one(8, NULL), "there is no room");
    expect_bundle_gone("a message that may not wait");
    open_bundle();
    EXPECT(send_one(4000, NULL) && send_one(4000, NULL) && send_one(4000, NULL), "no room");
    EXPECT(sent[nsent - 1].sort == SORT_MESSAGE && weft_channels_bundles == 0,
           "a bundle is overtaken");
    open_bundle();
    weft_channel_ask(weft_channel_of(PEER), false);
    weft_channels_send_due(true);
    EXPECT(sent[nsent - 2].sort == SORT_BUNDLE && sent[nsent - 1].asks &&
               sent[nsent - 1].number == sent[nsent - 2].number,
           "a quiet does not ask for a bundle behind it");
    open_bundle();
    weft_channels_send_due(false);
    expect_bundle_gone("a look");
    open_bundle();
    usleep(1000);
    weft_channels_send_due(true);
    expect_bundle_gone("a look, when it is old");
    open_bundle();
    answers = true;
    arrive_numbered(0, SORT_MESSAGE, heard_nothing());
    weft_channels_send_due(true);
    EXPECT(sent[nsent - 2].sort == SORT_BUNDLE && sent[nsent - 1].sort == SORT_ANSWER,
           "an answer does not come behind a bundle");
    EXPECT(!weft_channels.failure[0], "%s", weft_channels.failure);
}

/* After a put that was followed by a quiet, the next single put asks for its acknowledgment;
 * signals and other messages do not. */
static void check_expected_quiets(void) {
    begin(UINT32_MAX - 1);
    EXPECT(send_small(8) && !sent[0].asks, "the first put asks");
    weft_channel_ask(weft_channel_of(PEER), false);
    weft_channels_send_due(false);
    EXPECT(nsent == 2 && sent[1].sort == SORT_CONTROL && sent[1].asks, "a quiet does not ask");
    acknowledge(1);
    usleep(1000);
    EXPECT(send_small(8) && nsent == 3 && sent[2].asks, "the second put does not ask");
    weft_channel_ask(weft_channel_of(PEER), false);
    weft_channels_send_due(false);
    EXPECT(nsent == 3, "a quiet asks for what has asked");
    acknowledge(2);
    EXPECT(send_one(8, NULL) && !sent[3].asks, "a message that is no put asks");
    weft_channel_ask(weft_channel_of(PEER), false);
    weft_channels_send_due(false);
    EXPECT(nsent == 5 && sent[4].asks && sent[4].number == sent[3].number, "nobody asks for it");
    EXPECT(send_small(8) && !sent[5].asks, "a put that is not alone asks");
    begin(UINT32_MAX - 1);
    arrive((struct head){weft_message_first, heard_nothing(), PEER, SORT_MESSAGE, 1, {0}}, 0);
    weft_channels_send_due(false);
    EXPECT(nsent == 1 && sent[0].acknowledged == weft_message_first,
           "one that asks is not acknowledged");
}

/* A bundle of indices from 0 on arrives with one number; the last payload claims `excess` bytes too
 * many. */
static void arrive_bundle(uint32_t count, uint64_t excess) {
    enum { COUNT_MAX = 64 };
    struct {
        struct head head;
        struct {
            uint64_t bytes;
            uint32_t index, padding;
        } parts[COUNT_MAX];
    } bundle = {.head = {weft_message_first, heard_nothing(), PEER, SORT_BUNDLE, 0, {0}}};
    for (uint32_t i = 0; i < count; i++) {
        bundle.parts[i].bytes = sizeof(uint32_t) + (i + 1 == count ? excess : 0);
        bundle.parts[i].index = i;
    }
    weft_channel_arrived(NULL, &bundle, sizeof bundle.head + count * sizeof *bundle.parts);
}

/* As many requests as permitted; their answers arrive out of order. */
static void check_requests(void) {
    begin(UINT32_MAX - 3);
    char dest[8];
    struct weft_message_request request = {.dest = dest, .block_bytes = sizeof dest, .nblocks = 1};
    uint32_t asked = 0;
    while (asked < SENT_MAX && send_one(8, &request)) {
        asked++;
        if (asked % 100 == 0)
            acknowledge(asked);
    }
    EXPECT(asked > 0 && asked <= WEFT_CHANNEL_REQUESTS, "%u requests are open", asked);
    for (uint32_t i = 0; i < asked; i += 2) {
        if (i + 1 < asked)
            arrive_numbered(i + 1, SORT_ANSWER, weft_message_first + asked - 1);
        arrive_numbered(i, SORT_ANSWER, weft_message_first + asked - 1);
    }
    EXPECT(answered == asked && out_of_order == 0, "%u answers of %u, %u out of order", answered,
           asked, out_of_order);
    EXPECT(send_one(8, &request), "all are answered, and there is no room");
    EXPECT(!weft_channels.failure[0], "%s", weft_channels.failure);
}

static void expect_refusal(const char *what) {
    EXPECT(strstr(weft_channels.failure, what), "'%s', and nothing of %s", weft_channels.failure,
           what);
    EXPECT(applied <= 1 && answered == 0, "it was applied");
    begin(weft_message_first);
}

static void check_nonsense(void) {
    begin(7);
    weft_channel_arrived(NULL, "abc", 3);
    expect_refusal("3 bytes");
    arrive((struct head){7, 6, 2, SORT_MESSAGE, 0, {0}}, 0);
    expect_refusal("PE 2");
    arrive((struct head){7, 6, UINT32_MAX, SORT_MESSAGE, 0, {0}}, 0);
    expect_refusal("PE 4294967295");
    arrive((struct head){7, 6, PEER, 4, 0, {0}}, 0);
    expect_refusal("sort 4");
    arrive((struct head){6, 6, PEER, SORT_MESSAGE, 0, {0}}, 0);
    expect_refusal("number 6");
    arrive((struct head){7 + 2 * WEFT_CHANNEL_RING, 6, PEER, SORT_MESSAGE, 0, {0}}, 0);
    expect_refusal("PE 1");
    arrive((struct head){7 + UINT32_C(0x80000000), 6, PEER, SORT_MESSAGE, 0, {0}}, 0);
    expect_refusal("PE 1");
    arrive((struct head){9, 6, PEER, SORT_MESSAGE, 0, {0}}, 0);
    arrive((struct head){9, 6, PEER, SORT_MESSAGE, 0, {0}}, 0);
    expect_refusal("number 9");
    arrive((struct head){7, 7, PEER, SORT_MESSAGE, 0, {0}}, 0);
    expect_refusal("acknowledges message 7");
    arrive((struct head){7, 6, PEER, SORT_ANSWER, 0, {0}}, 0);
    expect_refusal("answers no request");
    arrive_bundle(2, 5);
    expect_refusal("bundle");
    arrive_bundle(2, UINT64_MAX - 11);
    expect_refusal("bundle");
}

static void check_bundles_apply(void) {
    begin(UINT32_MAX - 1);
    arrive_bundle(64, 0);
    EXPECT(applied == 64 && out_of_order == 0, "%u applied, %u out of order", applied,
           out_of_order);
    expect_told(0);
    arrive((struct head){weft_message_first, heard_nothing(), PEER, SORT_CONTROL, 1, {0}}, 0);
    weft_channels_send_due(false);
    EXPECT(nsent > 0 && sent[nsent - 1].acknowledged == weft_message_first,
           "it is not acknowledged");
    EXPECT(!weft_channels.failure[0], "%s", weft_channels.failure);
}

/* Operations do not complete at once: their message is applied again, and later ones wait. */
static void check_slow(uint64_t seed) {
    begin(UINT32_MAX - 100);
    slow = seed * 2 + 1;
    for (uint32_t i = 0; i < 400; i++) {
        uint32_t index = i ^ 1; /* every second one arrives early */
        arrive_numbered(index, SORT_MESSAGE, heard_nothing());
        expect_told(0);
        if (draw(&seed) % 2)
            weft_channels_go_on();
    }
    for (int looks = 0; looks < 100000 && atomic_load(&weft_channels_put_off) > 0; looks++)
        weft_channels_go_on();
    EXPECT(out_of_order == 0 && completed == 400, "%u applied, %u of them out of order", completed,
           out_of_order);
    arrive((struct head){weft_message_first + 399, heard_nothing(), PEER, SORT_CONTROL, 1, {0}}, 0);
    expect_told(400);
}

static void check_slow_bundles(uint64_t seed) {
    begin(UINT32_MAX - 1);
    slow = seed * 2 + 1;
    arrive_bundle(64, 0);
    for (int looks = 0; looks < 100000 && atomic_load(&weft_channels_put_off) > 0; looks++) {
        expect_told(0);
        weft_channels_go_on();
    }
    EXPECT(out_of_order == 0 && completed == 64, "%u applied, %u out of order", completed,
           out_of_order);
    EXPECT(!weft_channels.failure[0], "%s", weft_channels.failure);
}

static void check_all(void) {
    static const uint32_t firsts[] = {0, 1, UINT32_MAX - 511, UINT32_MAX, INT32_MAX - 5};
    enum { FIRSTS = sizeof firsts / sizeof *firsts };
    tap_case("messages that come in any order are applied in theirs, and acknowledged behind that");
    for (int i = 0; i < rounds(4) * FIRSTS; i++)
        check_orders(firsts[i % FIRSTS], (uint64_t)i);
    tap_case("a question is answered behind what it asks for");
    check_questions();
    tap_case("what is under way is limited");
    for (int i = 0; i < FIRSTS; i++)
        check_limits(firsts[i]);
    tap_case("answers pass the limit, and keep their order where there is no room");
    for (int i = 0; i < FIRSTS; i++)
        check_answers(firsts[i]);
    tap_case("requests are limited, and answered in order");
    check_requests();
    tap_case("many small messages go in few, which are counted");
    check_gathering();
    tap_case("bundles go when they have to");
    check_departures();
    tap_case("a single put asks where a quiet is expected");
    check_expected_quiets();
    tap_case("what is in a bundle is applied in order");
    check_bundles_apply();
    tap_case("what takes its time holds up what is behind it, and no acknowledgment comes before");
    for (int i = 0; i < rounds(20); i++) {
        check_slow((uint64_t)i);
        check_slow_bundles((uint64_t)i);
    }
    tap_case("heads that make no sense are refused");
    check_nonsense();
    weft_channels_free();
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    if (shmem_my_pe() == 0)
        check_all();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
