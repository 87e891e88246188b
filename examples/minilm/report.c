/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers, table and dump. */
#include "report.h"
#include "error.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_WIDTH = 78 };

void say(const char *format, ...) {
    va_list arguments;
    if (shmem_my_pe() != 0)
        return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
}

struct score {
    float cosine;
    size_t sentence;
};

static int by_cosine(const void *a, const void *b) {
    const struct score *x = a, *y = b;
    return x->cosine != y->cosine ? (x->cosine < y->cosine) - (x->cosine > y->cosine)
                                  : (x->sentence > y->sentence) - (x->sentence < y->sentence);
}

/* Prints words in lines of LINE_WIDTH, each after `indent` spaces. */
static void say_wrapped(const char *words, int indent) {
    for (int column = LINE_WIDTH; *words;) {
        int n = (int)strcspn(words, " ");
        if (column + 1 + n > LINE_WIDTH) {
            say("\n%*s", indent - 1, "");
            column = indent - 1;
        }
        say(" %.*s", n, words);
        column += 1 + n;
        words += n;
        words += strspn(words, " ");
    }
    say("\n");
}

int report_answers(const struct corpus *corpus, const float *embeddings, size_t hidden,
                   size_t top) {
    struct score *scores = malloc(corpus->text.count * sizeof *scores);
    if (!scores)
        return fail("no memory for %zu scores", corpus->text.count);
    for (size_t s = 0; s < corpus->text.count; s++)
        scores[s] = (struct score){dot(embeddings, embeddings + (s + 1) * hidden, hidden), s};
    qsort(scores, corpus->text.count, sizeof *scores, by_cosine);
    say("\n  \"%s\"\n", corpus->question);
    for (size_t i = 0; i < top && i < corpus->text.count; i++) {
        const struct sentence *sentence = &corpus->text.sentences[scores[i].sentence];
        say("\n  %5.3f  line %zu%s%s", (double)scores[i].cosine, sentence->line,
            *sentence->section ? ", " : "", sentence->section);
        say_wrapped(sentence->words, 9);
    }
    free(scores);
    return 0;
}

void report_table(const struct corpus *corpus, const struct run *runs, int count) {
    double tokens = (double)corpus->tokens;
    say("\n  %-34s", "");
    for (int i = 0; i < count; i++) {
        char title[24];
        snprintf(title, sizeof title, "%d %s%s", runs[i].pes, runs[i].on_gpus ? "GPU" : "PE",
                 runs[i].pes == 1 ? "" : "s");
        say("%12s", title);
    }
    say("\n  %-34s", "tokens per second");
    for (int i = 0; i < count; i++)
        say("%12.0f", tokens / runs[i].seconds);
    say("\n  %-34s%12s", "waiting for peers, worst PE", "");
    for (int i = 1; i < count && !runs[i].on_gpus; i++)
        say("%11.1f%%", 100 * runs[i].wait_share);
    say("\n  %-34s%12s", "largest difference to 1 PE", "");
    for (int i = 1; i < count; i++)
        say("%12.1e", runs[i].agreement.difference_max);
    say("\n  %-34s%12s", "smallest cosine to 1 PE", "");
    for (int i = 1; i < count; i++)
        say("%12.7f", runs[i].agreement.cosine_min);
    say("\n");
}

int report_dump(const struct corpus *corpus, const float *embeddings, size_t hidden,
                const char *path) {
    FILE *stream = fopen(path, "we");
    embeddings += hidden; /* the question's */
    for (size_t s = 0; stream && s < corpus->text.count; s++) {
        fprintf(stream, "%s", corpus->text.sentences[s].words);
        for (size_t j = 0; j < hidden; j++)
            fprintf(stream, "\t%.9g", (double)*embeddings++);
        fputc('\n', stream);
    }
    if (!stream || ferror(stream) | fclose(stream))
        return fail("%s: cannot be written: %s", path, strerror(errno));
    return 0;
}

struct agreement agreement_of(const float *a, const float *b, size_t count, size_t hidden) {
    struct agreement agreement = {.cosine_min = 1};
    for (size_t s = 0; s < count; s++, a += hidden, b += hidden) {
        double product = 0, aa = 0, bb = 0;
        for (size_t j = 0; j < hidden; j++) {
            double difference = fabs((double)a[j] - b[j]);
            difference = isnan(difference) ? INFINITY : difference;
            agreement.difference_max = fmax(agreement.difference_max, difference);
            product += (double)a[j] * b[j];
            aa += (double)a[j] * a[j];
            bb += (double)b[j] * b[j];
        }
        double cosine = product / sqrt(aa * bb);
        agreement.cosine_min = fmin(agreement.cosine_min, isnan(cosine) ? -1 : cosine);
    }
    return agreement;
}
