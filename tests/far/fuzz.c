/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: letters drawn by lot, from heads and numbers to bundles and texts: what a far PE may
 * send in any order, or should not send at all. Each is applied or refused; a refused one changes
 * nothing, nothing outside the windows is touched, and counts and limits of links hold. PEs: 1
 *
 *   fuzz [--seed S] [--seconds N]
 *
 * An input is a list of steps (fuzz/input.h). The corpus, fuzz/corpus.txt, has inputs as lines of
 * hexadecimal digits; the test runs each, and then mutations of them. `make fuzz` has libFuzzer
 * look for more. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fuzz/input.h"

#ifdef WEFT_LIBFUZZER

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    input_open();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes) {
    const char *wrong = input_run(input, bytes);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    return 0;
}

#else

#include "base/clock.h"
#include "far.h"
#include "fuzz/mutate.h"

enum { INPUTS_MAX = 4096, ROUNDS = 60000 };

static struct input {
    unsigned char *bytes;
    size_t length;
} corpus[INPUTS_MAX];
static int ninputs;

static void corpus_add(const char *line) {
    struct input *input = &corpus[ninputs];
    unsigned byte;
    int used;
    input->bytes = malloc(strlen(line) / 2 + 1);
    for (; sscanf(line, "%2x%n", &byte, &used) == 1 && used == 2; line += used)
        input->bytes[input->length++] = (unsigned char)byte;
    ninputs += input->length > 0;
}

static void corpus_read(const char *path) {
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    EXPECT(file, "%s cannot be read", path);
    while (file && ninputs < INPUTS_MAX && getline(&line, &room, file) > 0)
        if (line[0] != '#')
            corpus_add(line);
    free(line);
    if (file)
        fclose(file);
}

static void input_print(const unsigned char *bytes, size_t length) {
    fprintf(stderr, "# input: ");
    for (size_t i = 0; i < length; i++)
        fprintf(stderr, "%02x", bytes[i]);
    fputc('\n', stderr);
}

/* In memory of its own size, so that sanitizers see what is read behind it. */
static void expect_right(const unsigned char *bytes, size_t length) {
    unsigned char *exact = malloc(length ? length : 1);
    memcpy(exact, bytes, length);
    const char *wrong = input_run(exact, length);
    EXPECT(!wrong, "%s", wrong);
    if (wrong)
        input_print(bytes, length);
    free(exact);
}

static void run_mutations(uint64_t seed, uint64_t seconds) {
    static unsigned char bytes[INPUT_BYTES_MAX];
    uint64_t until_ns = weft_clock_ns() + seconds * UINT64_C(1000000000), done = 0;
    uint64_t goal = seconds ? UINT64_MAX : (uint64_t)rounds(ROUNDS);
    for (; done < goal && tap_case_failures == 0; done++) {
        const struct input *one = &corpus[draw(&seed) % (uint64_t)ninputs];
        const struct input *other = &corpus[draw(&seed) % (uint64_t)ninputs];
        size_t length =
            input_mutate(bytes, one->bytes, one->length, other->bytes, other->length, &seed);
        expect_right(bytes, length);
        if (seconds && done % 256 == 0 && weft_clock_ns() > until_ns)
            break;
    }
    printf("# %llu inputs: %llu letters applied, %llu refused\n", (unsigned long long)done,
           (unsigned long long)input_counts.applied, (unsigned long long)input_counts.refused);
    EXPECT(input_counts.applied > done / 4 && input_counts.refused > done / 20,
           "too few of a kind");
}

int main(int argc, char **argv) {
    const char *given = getenv("WEFT_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1, seconds = 0;
    for (int i = 1; i + 1 < argc; i += 2)
        *(strcmp(argv[i], "--seed") == 0 ? &seed : &seconds) = strtoull(argv[i + 1], NULL, 0);
    tap_start(0);
    input_open();
    tap_case("the corpus");
    corpus_read("tests/far/fuzz/corpus.txt");
    EXPECT(ninputs > 0, "no inputs");
    for (int i = 0; i < ninputs; i++)
        expect_right(corpus[i].bytes, corpus[i].length);
    for (int i = 0; i < WEFT_FAR_WINDOWS; i++)
        EXPECT(i == WEFT_FAR_SPACE || input_counts.changed[i] > 0, "nothing came to window %d", i);
    tap_case("mutations of it");
    if (ninputs > 0)
        run_mutations(seed, seconds);
    return tap_finish();
}

#endif
