/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: what letters say is checked before anything is touched: windows, slots, places,
 * sizes, blocks, operations and widths that are not this PE's or make no sense are refused with a
 * line; of random ones nothing but the heap that they may name changes. PE 0 alone, without an
 * engine. PEs: 2 */
#include <stdlib.h>
#include <string.h>
#include "base/amo.h"
#include "core/far_apply.h"
#include "core/far_text.h"
#include "core/link.h"
#include "far.h"

enum { PEER = 1, BYTES = 4096, DATA_MAX = 256 };

static const struct weft_engine engine = {.name = "of this test",
                                          .letter_bytes = WEFT_ENGINE_LETTER_MIN};
static unsigned char *object; /* in the heap */

/* A letter's text; what comes behind `text` is of one kind. */
struct letter {
    struct weft_far_text text;
    union {
        struct weft_far_word word;
        struct weft_far_blocks blocks;
        struct weft_far_amo_text amo;
        unsigned char data[DATA_MAX];
    };
    unsigned char more[DATA_MAX];
};

static struct weft_far_place place_of(const void *p) {
    const struct weft_segment *heap = &weft_windows.heap;
    return (struct weft_far_place){WEFT_FAR_HEAP, heap->mine, (uintptr_t)p - heap->window.local};
}

static struct letter letter_of(uint32_t kind) {
    return (struct letter){.text = {.kind = kind, .place = place_of(object)}};
}

static size_t heap_bytes(void) {
    return weft_window_bytes(&weft_windows.heap.window);
}

/* Applies so many bytes of it, and says how that was refused; "" if it was not. */
static const char *apply(const struct letter *letter, size_t bytes) {
    static char failure[sizeof weft_links.failure];
    weft_links.failure[0] = '\0';
    weft_far_apply(PEER, letter, bytes);
    memcpy(failure, weft_links.failure, sizeof failure);
    weft_links.failure[0] = '\0';
    return failure;
}

static void expect_refusal(const struct letter *letter, size_t bytes, const char *what) {
    memset(object, 0x5a, BYTES);
    const char *failure = apply(letter, bytes);
    EXPECT(strstr(failure, what) && strstr(failure, "PE 1"), "'%s', and nothing of %s", failure,
           what);
    for (int i = 0; i < BYTES; i++)
        if (object[i] != 0x5a) {
            EXPECT(false, "byte %d has changed by '%s'", i, failure);
            break;
        }
}

enum { HEAD = sizeof(struct weft_far_text) };

static void refuse_kinds(void) {
    struct letter letter = letter_of(99);
    expect_refusal(&letter, HEAD + 8, "kind 99");
    letter = letter_of(WEFT_FAR_PUT);
    expect_refusal(&letter, HEAD - 1, "too early");
    expect_refusal(&letter, 0, "too early");
    for (uint32_t kind = WEFT_FAR_PUT_WORD; kind <= WEFT_FAR_AMO; kind++) {
        letter = letter_of(kind);
        expect_refusal(&letter, HEAD + 8, "too early");
    }
}

static void refuse_places(void) {
    struct letter letter = letter_of(WEFT_FAR_PUT);
    letter.text.place.window = WEFT_FAR_WINDOWS;
    expect_refusal(&letter, HEAD + 8, "window 4");
    letter = letter_of(WEFT_FAR_PUT);
    letter.text.place.slot++;
    expect_refusal(&letter, HEAD + 8, "slot 1");
    static const uint64_t wrong[] = {UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63, 0, 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        letter = letter_of(WEFT_FAR_PUT);
        letter.text.place.offset = wrong[i] < BYTES ? heap_bytes() - 8 + wrong[i] : wrong[i];
        expect_refusal(&letter, HEAD + 9, "9 bytes at offset");
    }
    for (uint32_t window = WEFT_FAR_STATICS; window <= WEFT_FAR_SCRATCH; window++) {
        letter = letter_of(WEFT_FAR_PUT);
        letter.text.place = (struct weft_far_place){window, weft_windows.scratch.mine,
                                                    weft_far_window_bytes(window) - 7};
        expect_refusal(&letter, HEAD + 8, "8 bytes at offset");
    }
}

/* The other PE's slot is this one's affair only where it carries. */
static void apply_for_another(void) {
    struct letter letter = letter_of(WEFT_FAR_PUT);
    uint64_t *theirs = shmem_ptr(object, PEER);
    memset(letter.data, 0x77, 8);
    letter.text.place.slot = PEER;
    weft_far_serve(true);
    EXPECT(apply(&letter, HEAD + 8)[0] == '\0', "it is refused");
    EXPECT(*theirs == UINT64_C(0x7777777777777777), "PE 1 has %lx", (unsigned long)*theirs);
    letter.text.place.slot = PEER + 1;
    expect_refusal(&letter, HEAD + 8, "slot 2");
    letter.text.place.slot = UINT32_MAX;
    expect_refusal(&letter, HEAD + 8, "slot 4294967295");
    letter.text.place.slot = PEER;
    letter.text.place.offset = heap_bytes() - 7;
    expect_refusal(&letter, HEAD + 8, "8 bytes at offset");
    weft_far_serve(false);
}

static void refuse_words(void) {
    struct letter letter = letter_of(WEFT_FAR_PUT_WORD);
    size_t bytes = HEAD + sizeof letter.word + 8;
    letter.text.detail = WEFT_FAR_SIGNAL_SET;
    letter.word.place = place_of(object + 4);
    expect_refusal(&letter, bytes, "not aligned");
    letter.word.place = place_of(object);
    letter.word.place.offset = heap_bytes();
    expect_refusal(&letter, bytes, "8 bytes at offset");
    letter.word.place = place_of(object);
    letter.text.detail = 77;
    expect_refusal(&letter, bytes, "77");
    letter.text.detail = WEFT_FAR_SIGNAL_ADD;
    letter.text.place.offset = heap_bytes() - 7;
    expect_refusal(&letter, bytes, "8 bytes at offset"); /* the word has not changed either */
}

static void refuse_blocks(void) {
    struct letter letter = letter_of(WEFT_FAR_PUT_BLOCKS);
    size_t bytes = HEAD + sizeof letter.blocks;
    letter.blocks = (struct weft_far_blocks){.step = 16, .bytes = 8, .count = 4};
    expect_refusal(&letter, bytes + 31, "blocks");
    expect_refusal(&letter, bytes + 33, "blocks");
    letter.blocks.count = UINT64_C(1) << 61; /* times 8 is 0 */
    expect_refusal(&letter, bytes, "blocks");
    letter.blocks = (struct weft_far_blocks){
        .step = -(int64_t)letter.text.place.offset - 16, .bytes = 8, .count = 2};
    expect_refusal(&letter, bytes + 16, "at offset");
    letter.blocks.step = INT64_MAX / 2;
    expect_refusal(&letter, bytes + 16, "at offset");
    letter.blocks = (struct weft_far_blocks){.step = INT64_MIN, .bytes = 1, .count = 3};
    expect_refusal(&letter, bytes + 3, "apart");
}

static void refuse_gets(void) {
    struct letter letter = letter_of(WEFT_FAR_GET);
    size_t bytes = HEAD + sizeof letter.blocks;
    letter.blocks =
        (struct weft_far_blocks){.step = 8, .bytes = WEFT_ENGINE_LETTER_MIN + 1, .count = 1};
    letter.text.place.offset = 0;
    expect_refusal(&letter, bytes, "at once");
    letter.blocks =
        (struct weft_far_blocks){.step = 0, .bytes = 1, .count = WEFT_ENGINE_LETTER_MIN + 1};
    expect_refusal(&letter, bytes, "at once");
    letter.blocks = (struct weft_far_blocks){.step = 0, .bytes = 8, .count = UINT64_C(1) << 61};
    expect_refusal(&letter, bytes, "it ");
    letter.blocks = (struct weft_far_blocks){.step = -8, .bytes = 8, .count = 2};
    expect_refusal(&letter, bytes, "at offset");
}

static void refuse_atomics(void) {
    struct letter letter = letter_of(WEFT_FAR_AMO);
    size_t bytes = HEAD + sizeof letter.amo;
    letter.text.detail = 99 | 8 << WEFT_FAR_AMO_BYTES_SHIFT;
    expect_refusal(&letter, bytes, "atomic 99");
    letter.text.detail = WEFT_AMO_ADD | 2 << WEFT_FAR_AMO_BYTES_SHIFT;
    expect_refusal(&letter, bytes, "2 bytes");
    letter.text.detail = WEFT_AMO_ADD | 8 << WEFT_FAR_AMO_BYTES_SHIFT;
    letter.text.place = place_of(object + 4);
    expect_refusal(&letter, bytes, "not aligned");
    letter.text.place.offset = heap_bytes();
    expect_refusal(&letter, bytes, "8 bytes at offset");
}

static uint64_t odd_number(uint64_t *state) {
    static const uint64_t odd[] = {0, 1, 7, 8, BYTES, INT64_MAX, UINT64_MAX, (uint64_t)INT64_MIN};
    uint64_t which = draw(state) % 12;
    return which < 8 ? odd[which] : draw(state) % BYTES;
}

/* Letters of odd numbers, that name the heap or nothing. Those that ask for something are not among
 * them, for there is nobody to answer. What lies around the object stays as it is. */
static void apply_random(int count) {
    uint64_t state = 1;
    int applied = 0;
    for (int i = 0; i < count; i++) {
        struct letter letter = letter_of((uint32_t)draw(&state) % (WEFT_FAR_PUT_BLOCKS + 2));
        if (letter.text.kind > WEFT_FAR_PUT_BLOCKS)
            letter.text.kind = WEFT_FAR_AMO;
        letter.text.detail = (uint32_t)draw(&state) % 10 | 8 << WEFT_FAR_AMO_BYTES_SHIFT;
        if (letter.text.kind == WEFT_FAR_PUT_WORD)
            letter.text.detail = WEFT_FAR_SIGNAL_SET + (uint32_t)draw(&state) % 4;
        letter.text.place.offset += odd_number(&state) % (2 * BYTES);
        if (draw(&state) % 4 == 0)
            letter.text.place.offset = odd_number(&state);
        if (draw(&state) % 8 == 0)
            letter.text.place.window = WEFT_FAR_WINDOWS + (uint32_t)draw(&state) % 100;
        letter.word = (struct weft_far_word){place_of(object + draw(&state) % 64 * 4), i};
        if (letter.text.kind == WEFT_FAR_PUT_BLOCKS)
            letter.blocks = (struct weft_far_blocks){(int64_t)odd_number(&state),
                                                     odd_number(&state), odd_number(&state)};
        applied += apply(&letter, draw(&state) % (sizeof letter + 1))[0] == '\0';
    }
    EXPECT(applied > count / 50 && applied < count - count / 50, "%d of %d make sense", applied,
           count);
}

static void check_all(void) {
    weft_links.engine = &engine;
    tap_case("kinds, and letters that are too short");
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
    tap_case("letters of odd numbers are applied or refused");
    apply_random(rounds(20000));
    weft_links.engine = NULL;
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
