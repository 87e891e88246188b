/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: inside kernels a message has arrived completely when its signal has been seen, for
 * each way to send, signal and wait; atomics of 32 and 64 bits work, alone and when all threads of
 * all members use one word; comparisons are unsigned, and a wait with a limit ends neither early
 * nor never. PEs: 1 2 3 4 */
#include "gpu/handles.h"
#include "gpu/own_memory.h"
#include "gpu/device_signals/task.h"

enum { BLOCKS = 2, THREADS = 80, MEMBERS = 64, CALLS = 3, ATOMICS = 8 };

static struct signals_messages messages;
static uint64_t *words, *other; /* symmetric, of WORDS each */
enum { WORDS = 8192 };

/* --- Messages --------------------------------------------------------------------------------- */

static void exchange(const weft_device_team *t) {
    size_t places = (size_t)BLOCKS * (size_t)t->n;
    handles_zero(messages.sig, places * sizeof *messages.sig);
    handles_zero(messages.acks, places * sizeof *messages.acks);
    handles_zero(messages.sig32, places * sizeof *messages.sig32);
    messages.seed = (uint32_t)gpu_draw((uint64_t)t->n, UINT32_MAX);
    messages.atomics = (t->flags & WEFT_DEVICE_ATOMICS) != 0;
    messages.count = (uint32_t)gpu_rounds_together(2000, SEND_KINDS);
    messages.found = handles_found;
    handles_sync();
    for (uint32_t call = 0; call < CALLS; call++) {
        messages.first = call * messages.count;
        handles_launch("signals_exchange", BLOCKS, THREADS, t, &messages);
    }
    handles_expect(t, "messages");
}

static void test_messages(void) {
    size_t places = (size_t)BLOCKS * (size_t)shmem_n_pes();
    messages.landing = handles_malloc(places * SIGNALS_ROOM);
    messages.source = handles_malloc(places * SIGNALS_ROOM);
    messages.sig = handles_malloc(places * sizeof *messages.sig);
    messages.acks = handles_malloc(places * sizeof *messages.acks);
    messages.sig32 = handles_malloc(places * sizeof *messages.sig32);
    tap_case("a message is there when its signal is, by each way to send, tell and wait");
    handles_for_each(exchange);
}

/* --- Words by themselves ---------------------------------------------------------------------- */

static void put_and_get(const weft_device_team *t) {
    uint32_t seed = (uint32_t)gpu_draw(77, UINT32_MAX);
    uint64_t *words64 = words;
    uint32_t *words32 = (uint32_t *)other;
    handles_launch("signals_p", BLOCKS, THREADS, t, &words32, &words64, &seed);
    handles_sync();
    handles_launch("signals_g", BLOCKS, THREADS, t, &words32, &words64, &seed, &handles_found);
    handles_expect(t, "words");
    handles_sync();
}

/* --- Atomics ---------------------------------------------------------------------------------- */

static uint64_t values[ATOMICS];

/* Computes a word's value before each step, and at the end, with 64 bits; 32 of them are compared
 * if the words have no more. */
static uint64_t sequence(uint64_t before[ATOMICS]) {
    const uint64_t *v = values;
    uint64_t word = before[0] = v[0];
    before[1] = word, word = v[1];
    before[2] = word, word = v[2];
    before[3] = word; /* differs from the expected value */
    before[4] = word, word += v[4];
    word += v[5];
    before[5] = word, word &= v[6] | v[5];
    word &= v[7] | v[5];
    before[6] = word, word |= v[0];
    word |= v[1];
    before[7] = word, word ^= v[2];
    return word ^ v[3];
}

static uint64_t word_at(const void *array, size_t i, size_t bytes) {
    return bytes == 8 ? ((const uint64_t *)array)[i] : ((const uint32_t *)array)[i];
}

/* Each thread's words. */
static void sequences(const weft_device_team *t, const char *kernel, size_t bytes) {
    static uint64_t found[MEMBERS * BLOCKS * THREADS * ATOMICS];
    uint64_t expected[ATOMICS], mask = bytes == 8 ? UINT64_MAX : UINT32_MAX;
    uint32_t small[ATOMICS];
    size_t count = (size_t)t->n * BLOCKS * THREADS;
    uint64_t last = sequence(expected) & mask;
    void *before = own_memory(count * ATOMICS * bytes), *at = other;
    for (int i = 0; i < ATOMICS; i++)
        small[i] = (uint32_t)values[i];
    gpu_write(at, bytes == 8 ? (void *)values : (void *)small, ATOMICS * bytes);
    handles_sync();
    handles_launch(kernel, BLOCKS, THREADS, t, &words, &at, &before);
    handles_sync();
    gpu_copy(found, words, count * bytes);
    for (size_t i = 0; i < count; i++)
        EXPECT(word_at(found, i, bytes) == last, "word %zu of %zu bytes: %#lx, not %#lx", i, bytes,
               word_at(found, i, bytes), last);
    gpu_copy(found, before, count * ATOMICS * bytes);
    for (size_t i = 0; i < count * ATOMICS; i++)
        EXPECT(word_at(found, i, bytes) == (expected[i % ATOMICS] & mask),
               "%zu bytes, word %zu, step %zu: %#lx before, not %#lx", bytes, i / ATOMICS,
               i % ATOMICS, word_at(found, i, bytes), expected[i % ATOMICS] & mask);
}

static void atomics_alone(const weft_device_team *t) {
    if (!(t->flags & WEFT_DEVICE_ATOMICS))
        return;
    for (int i = 0; i < ATOMICS; i++)
        values[i] = gpu_mix(gpu_seed + (uint64_t)i);
    sequences(t, "signals_atomics32", 4);
    sequences(t, "signals_atomics64", 8);
}

/* All at the words of one member. */
static void contend(const weft_device_team *t, const char *kernel, size_t bytes, int at) {
    static uint64_t found[WORDS];
    int turns = 5;
    uint64_t all = (uint64_t)(t->n * BLOCKS * THREADS * turns);
    uint64_t mask = bytes == 8 ? UINT64_MAX : UINT32_MAX;
    handles_zero(words, WORDS * sizeof *words);
    handles_zero(other, WORDS * sizeof *other);
    handles_sync();
    handles_launch(kernel, BLOCKS, THREADS, t, &words, &other, &at, &turns);
    handles_sync();
    if (t->me != at)
        return;
    gpu_copy(found, words, 5 * bytes);
    EXPECT(word_at(found, 0, bytes) == all, "%lu of %lu tickets", word_at(found, 0, bytes), all);
    EXPECT(word_at(found, 1, bytes) == 3 * all, "compare_swap: %lu of %lu",
           word_at(found, 1, bytes), 3 * all);
    uint64_t tokens = (word_at(found, 2, bytes) + word_at(found, 3, bytes)) & mask;
    EXPECT(tokens == (all * (all - 1) / 2 & mask), "tokens: %lu", tokens);
    gpu_copy(found, other, all * bytes);
    for (uint64_t i = 0; i < all; i++)
        EXPECT(word_at(found, i, bytes) == 1, "ticket %lu: %lu times", i, word_at(found, i, bytes));
}

static void atomics_together(const weft_device_team *t) {
    if (!(t->flags & WEFT_DEVICE_ATOMICS))
        return;
    contend(t, "signals_contend32", 4, t->n - 1);
    contend(t, "signals_contend64", 8, 0);
}

/* --- Comparisons ------------------------------------------------------------------------------ */

static bool compares(int cmp, uint64_t word, uint64_t value) {
    const bool holds[] = {word == value, word != value, word > value,
                          word >= value, word < value,  word <= value};
    return holds[cmp - WEFT_CMP_EQ];
}

static void comparisons(const weft_device_team *t) {
    enum { NUMBERS = 8, CASES = 6 * NUMBERS * NUMBERS };
    const uint64_t numbers[NUMBERS] = {
        0,         1,          INT32_MAX,         UINT32_MAX,
        INT64_MAX, UINT64_MAX, UINT64_C(1) << 63, gpu_draw(5, UINT64_MAX)};
    static struct signals_compare cases[CASES];
    uint32_t count = CASES, ns = 20000;
    for (int i = 0; i < CASES; i++)
        cases[i] = (struct signals_compare){numbers[i / 6 % NUMBERS], numbers[i / 6 / NUMBERS],
                                            i % 6 + WEFT_CMP_EQ, ~0u};
    void *at = own_memory(sizeof cases);
    gpu_write(at, cases, sizeof cases);
    handles_launch("signals_compares", BLOCKS, THREADS, t, &at, &count, &ns);
    gpu_drain(gpu_stream);
    gpu_copy(cases, at, sizeof cases);
    for (int i = 0; i < CASES; i++) {
        const struct signals_compare *of = &cases[i];
        uint32_t expected =
            compares(of->cmp, of->word, of->value) ? COMPARED | COMPARED_NS : TIMED_OUT;
        if (compares(of->cmp, (uint32_t)of->word, (uint32_t)of->value))
            expected |= COMPARED_32;
        EXPECT(of->came == expected, "%#lx against %#lx by %d: %#x, not %#x", of->word, of->value,
               of->cmp, of->came, expected);
    }
}

int main(void) {
    shmem_init();
    handles_start();
    words = handles_malloc(WORDS * sizeof *words);
    other = handles_malloc(WORDS * sizeof *other);
    test_messages();
    tap_case("words that are put are got");
    handles_for_each(put_and_get);
    tap_case("each atomic does what it says, and tells what was there before");
    handles_for_each(atomics_alone);
    tap_case("no atomic is lost when all want one word");
    handles_for_each(atomics_together);
    tap_case("comparisons are those of unsigned numbers, and a limit is kept");
    handles_for_each(comparisons);
    return handles_finish();
}
