/* SPDX-License-Identifier: BSD-3-Clause */
/* The main of a test that is a fuzzer: it runs the lines of a corpus, which are inputs in
 * hexadecimal digits, and then mutations of them.
 *
 *   fuzz [--seed S] [--seconds N]
 *
 * With WEFT_LIBFUZZER defined clang's libFuzzer looks for inputs instead (make fuzz). The test
 * says which corpus, and what is done with an input. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "tap.h"

enum {
    FUZZ_BYTES_MAX = 4096, /* of an input */
    FUZZ_CORPUS_MAX = 4096,
    FUZZ_CHANGES_MAX = 4,
};

static const struct fuzz {
    const char *corpus;
    int rounds; /* mutations; ten times as many in the long form */
    void (*open)(void);
    const char *(*run)(const uint8_t *input, size_t bytes); /* what went wrong, or NULL */
    void (*expect_corpus)(void);                            /* what the corpus has done, or NULL */
    void (*expect_all)(uint64_t inputs);                    /* and what all of them have */
} fuzz;

#ifdef WEFT_LIBFUZZER

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    fuzz.open();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes) {
    const char *wrong = fuzz.run(input, bytes);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    return 0;
}

#else

static struct fuzz_input {
    uint8_t *bytes;
    size_t length;
} fuzz_corpus[FUZZ_CORPUS_MAX];
static size_t fuzz_ninputs;

/* --- Mutations ------------------------------------------------------------------------------- */

static inline size_t fuzz_draw(uint64_t *state, size_t below) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return below ? (size_t)(*state >> 33) % below : 0;
}

/* A number of 1, 2, 4 or 8 bytes that is at some edge, or near what was there. */
static inline void fuzz_change_number(uint8_t *at, size_t room, uint64_t *state) {
    static const uint64_t edges[] = {0, 1, 7, 8, 9, 4096, 16384, INT32_MAX, INT64_MAX, UINT64_MAX};
    size_t bytes = (size_t)1 << fuzz_draw(state, 4);
    uint64_t number = 0;
    if (bytes > room)
        return;
    memcpy(&number, at, bytes);
    number = fuzz_draw(state, 2) ? edges[fuzz_draw(state, sizeof edges / sizeof *edges)]
                                 : number + fuzz_draw(state, 33) - 16;
    memcpy(at, &number, bytes);
}

/* A part of another input, or of this one, before some byte of this one. */
static inline void fuzz_insert(struct fuzz_input *input, const struct fuzz_input *other,
                               uint64_t *state) {
    uint8_t part[FUZZ_BYTES_MAX];
    size_t from = fuzz_draw(state, other->length), left = other->length - from;
    size_t bytes = left ? 1 + fuzz_draw(state, left) : 0;
    size_t at = fuzz_draw(state, input->length + 1);
    if (bytes > FUZZ_BYTES_MAX - input->length)
        return;
    memcpy(part, other->bytes + from, bytes);
    memmove(input->bytes + at + bytes, input->bytes + at, input->length - at);
    memcpy(input->bytes + at, part, bytes);
    input->length += bytes;
}

static inline void fuzz_remove(struct fuzz_input *input, uint64_t *state) {
    size_t at = fuzz_draw(state, input->length), bytes = 1 + fuzz_draw(state, 32);
    bytes = bytes < input->length - at ? bytes : input->length - at;
    memmove(input->bytes + at, input->bytes + at + bytes, input->length - at - bytes);
    input->length -= bytes;
}

static inline void fuzz_change(struct fuzz_input *input, const struct fuzz_input *other,
                               uint64_t *state) {
    size_t at = fuzz_draw(state, input->length);
    switch (fuzz_draw(state, 8)) {
    case 0:
        fuzz_insert(input, other, state);
        break;
    case 1:
        fuzz_insert(input, input, state);
        break;
    case 2:
        fuzz_remove(input, state);
        break;
    case 3:
        if (input->length)
            input->bytes[at] ^= (uint8_t)(1 << fuzz_draw(state, 8));
        break;
    default:
        fuzz_change_number(input->bytes + at, input->length - at, state);
    }
}

/* `bytes`, of FUZZ_BYTES_MAX, get an input of the corpus with some changes, which may come from
 * another one. */
static inline struct fuzz_input fuzz_mutate(uint8_t *bytes, uint64_t *state) {
    const struct fuzz_input *one = &fuzz_corpus[fuzz_draw(state, fuzz_ninputs)];
    const struct fuzz_input *other = &fuzz_corpus[fuzz_draw(state, fuzz_ninputs)];
    struct fuzz_input input = {bytes, one->length};
    memcpy(bytes, one->bytes, one->length);
    for (size_t changes = 1 + fuzz_draw(state, FUZZ_CHANGES_MAX); changes > 0; changes--)
        fuzz_change(&input, other, state);
    return input;
}

/* --- Running --------------------------------------------------------------------------------- */

static inline void fuzz_add(const char *line) {
    struct fuzz_input *input = &fuzz_corpus[fuzz_ninputs];
    unsigned byte;
    int used;
    input->bytes = malloc(strlen(line) / 2 + 1);
    for (; sscanf(line, "%2x%n", &byte, &used) == 1 && used == 2; line += used)
        input->bytes[input->length++] = (uint8_t)byte;
    bool fits = input->length <= FUZZ_BYTES_MAX;
    EXPECT(fits, "an input of %zu bytes", input->length);
    fuzz_ninputs += fits && input->length > 0;
}

static inline void fuzz_read(void) {
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(fuzz.corpus, "r");
    EXPECT(file, "%s cannot be read", fuzz.corpus);
    while (file && fuzz_ninputs < FUZZ_CORPUS_MAX - 1 && getline(&line, &room, file) > 0)
        if (line[0] != '#')
            fuzz_add(line);
    free(line);
    if (file)
        fclose(file);
}

/* In memory of its own size, so that sanitizers see what is read behind it. */
static inline void fuzz_expect(struct fuzz_input input) {
    uint8_t *exact = malloc(input.length ? input.length : 1);
    memcpy(exact, input.bytes, input.length);
    const char *wrong = fuzz.run(exact, input.length);
    free(exact);
    EXPECT(!wrong, "%s", wrong);
    if (!wrong)
        return;
    fprintf(stderr, "# input: ");
    for (size_t i = 0; i < input.length; i++)
        fprintf(stderr, "%02x", input.bytes[i]);
    fputc('\n', stderr);
}

static inline void fuzz_run_mutations(uint64_t seed, uint64_t seconds) {
    static uint8_t bytes[FUZZ_BYTES_MAX];
    uint64_t until_ns = weft_clock_ns() + seconds * UINT64_C(1000000000), done = 0;
    uint64_t rounds = (uint64_t)fuzz.rounds * (getenv("WEFT_TEST_LONG") ? 10 : 1);
    for (; (seconds || done < rounds) && tap_case_failures == 0; done++) {
        fuzz_expect(fuzz_mutate(bytes, &seed));
        if (seconds && done % 256 == 0 && weft_clock_ns() > until_ns)
            break;
    }
    fuzz.expect_all(done);
}

int main(int argc, char **argv) {
    const char *given = getenv("WEFT_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1, seconds = 0;
    for (int i = 1; i + 1 < argc; i += 2)
        *(strcmp(argv[i], "--seed") == 0 ? &seed : &seconds) = strtoull(argv[i + 1], NULL, 0);
    tap_start(0);
    fuzz.open();
    tap_case("the corpus");
    fuzz_read();
    EXPECT(fuzz_ninputs > 0, "no inputs");
    for (size_t i = 0; i < fuzz_ninputs; i++)
        fuzz_expect(fuzz_corpus[i]);
    fuzz.expect_corpus();
    tap_case("mutations of it");
    if (fuzz_ninputs > 0)
        fuzz_run_mutations(seed, seconds);
    for (size_t i = 0; i < fuzz_ninputs; i++)
        free(fuzz_corpus[i].bytes);
    return tap_finish();
}

#endif
#endif
