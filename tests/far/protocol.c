/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: messages are checked before any memory is touched: windows, slots, places, sizes,
 * blocks, operations and widths that this PE does not have, or that make no sense, are refused with
 * a line. Random messages change only the heap memory that they may access. PE 0 alone, without an
 * engine. PEs: 2 */
#include <stdlib.h>
#include <string.h>
#include "base/amo.h"
#include "far/apply.h"
#include "far/channel.h"
#include "far/protocol.h"
#include "draw.h"

enum { PEER = 1, BYTES = 4096, DATA_MAX = 256 };

static const struct weft_engine engine = {.name = "of this test",
                                          .message_bytes = WEFT_ENGINE_MESSAGE_MIN};
static unsigned char *object; /* in the heap */

/* A message: its header, then the part that its kind has. */
struct message {
    struct weft_far_header header;
    union {
        struct weft_far_word word;
        struct weft_far_blocks blocks;
        struct weft_far_amo_operands amo;
        unsigned char data[DATA_MAX];
    };
    unsigned char more[DATA_MAX];
};

static struct weft_far_place place_of(const void *p) {
    const struct weft_segment *heap = &weft_windows.heap;
    return (struct weft_far_place){WEFT_FAR_HEAP, heap->mine, (uintptr_t)p - heap->window.local};
}

static struct message message_of(uint32_t kind) {
    return (struct message){.header = {.kind = kind, .place = place_of(object)}};
}

static size_t heap_bytes(void) {
    return weft_window_bytes(&weft_windows.heap.window);
}

/* Applies the first `bytes` of a message and returns the refusal, or "". */
static const char *apply(const struct message *message, size_t bytes) {
    static char failure[sizeof weft_channels.failure];
    weft_channels.failure[0] = '\0';
    weft_far_apply(PEER, message, bytes);
    memcpy(failure, weft_channels.failure, sizeof failure);
    weft_channels.failure[0] = '\0';
    return failure;
}

static void expect_refusal(const struct message *message, size_t bytes, const char *what) {
    memset(object, 0x5a, BYTES);
    const char *failure = apply(message, bytes);
    EXPECT(strstr(failure, what) && strstr(failure, "PE 1"), "'%s', and nothing of %s", failure,
           what);
    for (int i = 0; i < BYTES; i++)
        if (object[i] != 0x5a) {
            EXPECT(false, "byte %d has changed by '%s'", i, failure);
            break;
        }
}

enum { HEAD = sizeof(struct weft_far_header) };

static void refuse_kinds(void) {
    struct message message = message_of(99);
    expect_refusal(&message, HEAD + 8, "kind 99");
    message = message_of(WEFT_FAR_PUT);
    expect_refusal(&message, HEAD - 1, "too early");
    expect_refusal(&message, 0, "too early");
    for (uint32_t kind = WEFT_FAR_PUT_WORD; kind <= WEFT_FAR_AMO; kind++) {
        message = message_of(kind);
        expect_refusal(&message, HEAD + 8, "too early");
    }
}

static void refuse_places(void) {
    struct message message = message_of(WEFT_FAR_PUT);
    message.header.place.window = WEFT_FAR_WINDOWS;
    expect_refusal(&message, HEAD + 8, "window 4");
    message = message_of(WEFT_FAR_PUT);
    message.header.place.slot++;
    expect_refusal(&message, HEAD + 8, "slot 1");
    static const uint64_t wrong[] = {UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63, 0, 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        message = message_of(WEFT_FAR_PUT);
        message.header.place.offset = wrong[i] < BYTES ? heap_bytes() - 8 + wrong[i] : wrong[i];
        expect_refusal(&message, HEAD + 9, "9 bytes at offset");
    }
    for (uint32_t window = WEFT_FAR_STATICS; window <= WEFT_FAR_SCRATCH; window++) {
        message = message_of(WEFT_FAR_PUT);
        message.header.place = (struct weft_far_place){window, weft_windows.scratch.mine,
                                                       weft_far_window_bytes(window) - 7};
        expect_refusal(&message, HEAD + 8, "8 bytes at offset");
    }
}

/* Another PE's slot is served only by a host proxy. */
static void apply_for_another(void) {
    struct message message = message_of(WEFT_FAR_PUT);
    uint64_t *theirs = shmem_ptr(object, PEER);
    memset(message.data, 0x77, 8);
    message.header.place.slot = PEER;
    weft_far_serve(true);
    EXPECT(apply(&message, HEAD + 8)[0] == '\0', "it is refused");
    EXPECT(*theirs == UINT64_C(0x7777777777777777), "PE 1 has %lx", (unsigned long)*theirs);
    message.header.place.slot = PEER + 1;
    expect_refusal(&message, HEAD + 8, "slot 2");
    message.header.place.slot = UINT32_MAX;
    expect_refusal(&message, HEAD + 8, "slot 4294967295");
    message.header.place.slot = PEER;
    message.header.place.offset = heap_bytes() - 7;
    expect_refusal(&message, HEAD + 8, "8 bytes at offset");
    weft_far_serve(false);
}

static void refuse_words(void) {
    struct message message = message_of(WEFT_FAR_PUT_WORD);
    size_t bytes = HEAD + sizeof message.word + 8;
    message.header.detail = WEFT_FAR_SIGNAL_SET;
    message.word.place = place_of(object + 4);
    expect_refusal(&message, bytes, "not aligned");
    message.word.place = place_of(object);
    message.word.place.offset = heap_bytes();
    expect_refusal(&message, bytes, "8 bytes at offset");
    message.word.place = place_of(object);
    message.header.detail = 77;
    expect_refusal(&message, bytes, "77");
    message.header.detail = WEFT_FAR_SIGNAL_ADD;
    message.header.place.offset = heap_bytes() - 7;
    expect_refusal(&message, bytes, "8 bytes at offset"); /* the word has not changed either */
}

static void refuse_blocks(void) {
    struct message message = message_of(WEFT_FAR_PUT_BLOCKS);
    size_t bytes = HEAD + sizeof message.blocks;
    message.blocks = (struct weft_far_blocks){.step = 16, .bytes = 8, .count = 4};
    expect_refusal(&message, bytes + 31, "blocks");
    expect_refusal(&message, bytes + 33, "blocks");
    message.blocks.count = UINT64_C(1) << 61; /* times 8 is 0 */
    expect_refusal(&message, bytes, "blocks");
    message.blocks = (struct weft_far_blocks){
        .step = -(int64_t)message.header.place.offset - 16, .bytes = 8, .count = 2};
    expect_refusal(&message, bytes + 16, "at offset");
    message.blocks.step = INT64_MAX / 2;
    expect_refusal(&message, bytes + 16, "at offset");
    message.blocks = (struct weft_far_blocks){.step = INT64_MIN, .bytes = 1, .count = 3};
    expect_refusal(&message, bytes + 3, "apart");
}

static void refuse_gets(void) {
    struct message message = message_of(WEFT_FAR_GET);
    size_t bytes = HEAD + sizeof message.blocks;
    message.blocks =
        (struct weft_far_blocks){.step = 8, .bytes = WEFT_ENGINE_MESSAGE_MIN + 1, .count = 1};
    message.header.place.offset = 0;
    expect_refusal(&message, bytes, "at once");
    message.blocks =
        (struct weft_far_blocks){.step = 0, .bytes = 1, .count = WEFT_ENGINE_MESSAGE_MIN + 1};
    expect_refusal(&message, bytes, "at once");
    message.blocks = (struct weft_far_blocks){.step = 0, .bytes = 8, .count = UINT64_C(1) << 61};
    expect_refusal(&message, bytes, "it ");
    message.blocks = (struct weft_far_blocks){.step = -8, .bytes = 8, .count = 2};
    expect_refusal(&message, bytes, "at offset");
}

static void refuse_atomics(void) {
    struct message message = message_of(WEFT_FAR_AMO);
    size_t bytes = HEAD + sizeof message.amo;
    message.header.detail = 99 | 8 << WEFT_FAR_AMO_BYTES_SHIFT;
    expect_refusal(&message, bytes, "atomic 99");
    message.header.detail = WEFT_AMO_ADD | 2 << WEFT_FAR_AMO_BYTES_SHIFT;
    expect_refusal(&message, bytes, "2 bytes");
    message.header.detail = WEFT_AMO_ADD | 8 << WEFT_FAR_AMO_BYTES_SHIFT;
    message.header.place = place_of(object + 4);
    expect_refusal(&message, bytes, "not aligned");
    message.header.place.offset = heap_bytes();
    expect_refusal(&message, bytes, "8 bytes at offset");
}

static uint64_t odd_number(uint64_t *state) {
    static const uint64_t odd[] = {0, 1, 7, 8, BYTES, INT64_MAX, UINT64_MAX, (uint64_t)INT64_MIN};
    uint64_t which = draw(state) % 12;
    return which < 8 ? odd[which] : draw(state) % BYTES;
}

/* Random messages that name the heap or nothing. Requests are not among them, since there is no
 * peer to answer. The memory around the object must not change. */
static void apply_random(int count) {
    uint64_t state = 1;
    int applied = 0;
    for (int i = 0; i < count; i++) {
        struct message message = message_of((uint32_t)draw(&state) % (WEFT_FAR_PUT_BLOCKS + 2));
        if (message.header.kind > WEFT_FAR_PUT_BLOCKS)
            message.header.kind = WEFT_FAR_AMO;
        message.header.detail = (uint32_t)draw(&state) % 10 | 8 << WEFT_FAR_AMO_BYTES_SHIFT;
        if (message.header.kind == WEFT_FAR_PUT_WORD)
            message.header.detail = WEFT_FAR_SIGNAL_SET + (uint32_t)draw(&state) % 4;
        message.header.place.offset += odd_number(&state) % (2 * BYTES);
        if (draw(&state) % 4 == 0)
            message.header.place.offset = odd_number(&state);
        if (draw(&state) % 8 == 0)
            message.header.place.window = WEFT_FAR_WINDOWS + (uint32_t)draw(&state) % 100;
        message.word = (struct weft_far_word){place_of(object + draw(&state) % 64 * 4), i};
        if (message.header.kind == WEFT_FAR_PUT_BLOCKS)
            message.blocks = (struct weft_far_blocks){(int64_t)odd_number(&state),
                                                      odd_number(&state), odd_number(&state)};
        applied += apply(&message, draw(&state) % (sizeof message + 1))[0] == '\0';
    }
    EXPECT(applied > count / 50 && applied < count - count / 50, "%d of %d make sense", applied,
           count);
}

static void check_all(void) {
    weft_channels.engine = &engine;
    tap_case("kinds, and messages that are too short");
    refuse_kinds();
    tap_case("windows, slots and places");
    refuse_places();
    tap_case("what another PE has");
    apply_for_another();
    tap_case("words");
    refuse_words();
    tap_case("blocks");
    refuse_blocks();
    tap_case("gets");
    refuse_gets();
    tap_case("atomics");
    refuse_atomics();
    tap_case("messages of odd numbers are applied or refused");
    apply_random(rounds(20000));
    weft_channels.engine = NULL;
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    object = shmem_malloc(4 * BYTES);
    if (shmem_my_pe() == 0)
        check_all();
    shmem_free(object);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
