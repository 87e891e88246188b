/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks a text a question: the sentences whose meaning is nearest to the question's, found with
 * all-MiniLM-L6-v2 spread over the PEs. PE 0 first encodes alone, then all PEs do together; the
 * program shows both speeds, and fails when both do not say the same. */
#include "encoder.h"
#include "error.h"
#include "text.h"
#include "tokenizer.h"
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH_TOKENS = 2048, LINE_WIDTH = 78 };
static const double DIFFERENCE_MAX = 1e-4, COSINE_MIN = 0.9999;

struct options {
    const char *model, *text, *question, *dump;
    size_t top;
};

/* The question and the text's sentences, as words and as tokens; the question is number 0. */
struct corpus {
    struct text text;
    int32_t *tokens;
    size_t *starts;
    size_t count;
};

/* One encoding of the corpus. */
struct run {
    float *embeddings;
    double seconds;
    double wait_share; /* of the seconds, on the PE that waited most */
};

static const char usage[] =
    "usage: oshrun -n N minilm --model DIR [options]\n"
    "  --model DIR        model.safetensors, vocab.txt and config.json of a MiniLM\n"
    "  --text FILE        the text to ask (/usr/share/common-licenses/GPL-3)\n"
    "  --question WORDS   what to ask (\"May I charge money for copies?\")\n"
    "  --top N            how many sentences to show (5)\n"
    "  --dump FILE        write a line for each sentence: its words, and its embedding\n"
    "  --help             this\n"
    "N PEs share the model's 12 heads: 1, 2, 3, 4, 6 or 12.\n";

/* Prints for a person: PE 0 only, at once. */
static void say(const char *format, ...) {
    va_list arguments;
    if (shmem_my_pe() != 0)
        return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
}

/* Ends the whole job. */
static void die(const char *text) {
    fprintf(stderr, "\nminilm: PE %d: %s\n", shmem_my_pe(), text); /* after what say() left open */
    shmem_global_exit(1);
}

static void check(int error) {
    if (error)
        die(fail_text());
}

static void check_operator(int error) {
    if (error)
        die(weft_last_error());
}

static void *allocate(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (!memory)
        die("out of memory");
    return memory;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void stop(int status, const char *complaint) {
    if (shmem_my_pe() == 0)
        fprintf(status ? stderr : stdout, "%s%s", complaint, usage);
    shmem_finalize();
    exit(status);
}

static struct options parse_options(int argc, char **argv) {
    static const struct option known[] = {{"model", required_argument, NULL, 'm'},
                                          {"text", required_argument, NULL, 't'},
                                          {"question", required_argument, NULL, 'q'},
                                          {"top", required_argument, NULL, 'n'},
                                          {"dump", required_argument, NULL, 'd'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct options options = {.text = "/usr/share/common-licenses/GPL-3",
                              .question = "May I charge money for copies?",
                              .top = 5};
    opterr = shmem_my_pe() == 0;
    for (int c; (c = getopt_long(argc, argv, "h", known, NULL)) != -1;)
        switch (c) {
        case 'm':
            options.model = optarg;
            break;
        case 't':
            options.text = optarg;
            break;
        case 'q':
            options.question = optarg;
            break;
        case 'n':
            options.top = strtoul(optarg, NULL, 10);
            break;
        case 'd':
            options.dump = optarg;
            break;
        case 'h':
            stop(0, "");
            break;
        default:
            stop(2, "");
        }
    if (!options.model || optind < argc || !options.top)
        stop(2, !options.model  ? "minilm: --model is missing\n"
                : optind < argc ? "minilm: an argument without an option\n"
                                : "minilm: --top takes a number from 1\n");
    return options;
}

/* Reads and tokenises the text; every PE does the same. */
static void read_corpus(struct corpus *corpus, const struct options *options,
                        const struct model *model) {
    struct tokenizer tokenizer;
    char path[4096];
    snprintf(path, sizeof path, "%s/vocab.txt", options->model);
    check(tokenizer_open(&tokenizer, path));
    if (tokenizer.pieces_count > model->vocabulary)
        check(fail("%s: %zu pieces, but the model knows %zu", path, tokenizer.pieces_count,
                   model->vocabulary));
    if (text_open(&corpus->text, options->text))
        check(fail("%s (--text FILE asks another text)", fail_text()));
    corpus->count = 1 + corpus->text.count;
    corpus->starts = allocate((corpus->count + 1) * sizeof *corpus->starts);
    corpus->tokens = allocate(corpus->count * model->max_tokens * sizeof *corpus->tokens);
    for (size_t s = 0; s < corpus->count; s++) {
        const char *words = s ? corpus->text.sentences[s - 1].words : options->question;
        size_t start = corpus->starts[s];
        corpus->starts[s + 1] =
            start + tokenizer_encode(&tokenizer, words, corpus->tokens + start, model->max_tokens);
    }
    tokenizer_close(&tokenizer);
}

/* Encodes the corpus with the team. The first sentence goes ahead once, untimed: it pays what
 * only a first call costs (workspace, code generation of the matmul). */
static struct run encode(const struct corpus *corpus, const struct model *model, shmem_team_t team,
                         void *symmetric, size_t tokens_max) {
    struct sentences all = {corpus->tokens, corpus->starts, corpus->count}, first = all;
    struct run run = {.embeddings = allocate(corpus->count * model->hidden * sizeof(float))};
    struct encoder encoder;
    first.count = 1;
    check(encoder_open(&encoder, model, team, symmetric, tokens_max));
    check(encoder_encode(&encoder, &first, run.embeddings));
    weft_wait_seconds();
    double start = seconds_now();
    check(encoder_encode(&encoder, &all, run.embeddings));
    run.seconds = seconds_now() - start;
    run.wait_share = weft_wait_seconds() / run.seconds;
    check_operator(weft_all_reduce(team, &run.wait_share, &run.wait_share, 1, WEFT_F64, WEFT_MAX,
                                   WEFT_STREAM_HOST));
    encoder_close(&encoder);
    say("%.2f s\n", run.seconds);
    return run;
}

/* PE 0 alone: the same code on a team of one. The others wait at the barrier. */
static struct run encode_alone(const struct corpus *corpus, const char *directory, void *symmetric,
                               size_t tokens_max) {
    struct run run = {0};
    shmem_team_t alone;
    if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &alone))
        die("no team of PE 0 alone");
    if (shmem_my_pe() == 0) {
        struct model model;
        check(model_open(&model, directory, 0, 1));
        run = encode(corpus, &model, alone, symmetric, tokens_max);
        model_close(&model);
        shmem_team_destroy(alone);
    }
    shmem_barrier_all();
    return run;
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

static void show_answers(const struct corpus *corpus, const struct options *options,
                         const float *embeddings, size_t hidden) {
    struct score *scores = allocate(corpus->text.count * sizeof *scores);
    for (size_t s = 0; s < corpus->text.count; s++)
        scores[s] = (struct score){dot(embeddings, embeddings + (s + 1) * hidden, hidden), s};
    qsort(scores, corpus->text.count, sizeof *scores, by_cosine);
    say("\n  \"%s\"\n", options->question);
    for (size_t i = 0; i < options->top && i < corpus->text.count; i++) {
        const struct sentence *sentence = &corpus->text.sentences[scores[i].sentence];
        say("\n  %5.3f  line %zu%s%s", (double)scores[i].cosine, sentence->line,
            *sentence->section ? ", " : "", sentence->section);
        say_wrapped(sentence->words, 9);
    }
    free(scores);
}

/* How far two encodings are apart. */
struct agreement {
    double difference_max, cosine_min;
};

static struct agreement compare(const float *a, const float *b, size_t count, size_t hidden) {
    struct agreement agreement = {.cosine_min = 1};
    for (size_t s = 0; s < count; s++, a += hidden, b += hidden) {
        double product = 0, aa = 0, bb = 0;
        for (size_t j = 0; j < hidden; j++) {
            agreement.difference_max = fmax(agreement.difference_max, fabs((double)a[j] - b[j]));
            product += (double)a[j] * b[j];
            aa += (double)a[j] * a[j];
            bb += (double)b[j] * b[j];
        }
        agreement.cosine_min = fmin(agreement.cosine_min, product / sqrt(aa * bb));
    }
    return agreement;
}

/* False also for what is not a number. */
static bool agrees(const struct agreement *agreement) {
    return agreement->difference_max <= DIFFERENCE_MAX && agreement->cosine_min >= COSINE_MIN;
}

static void show_table(const struct corpus *corpus, const struct run *alone,
                       const struct run *together, const struct agreement *agreement) {
    double tokens = (double)corpus->starts[corpus->count];
    int n = shmem_n_pes();
    say("\n  %-34s%12s%9d PE%s\n", "", "1 PE", n, n == 1 ? "" : "s");
    say("  %-34s%12.0f%12.0f\n", "tokens per second", tokens / alone->seconds,
        tokens / together->seconds);
    say("  %-34s%12s%11.1f%%\n", "waiting for peers, worst PE", "", 100 * together->wait_share);
    say("  %-34s%12s%12.1e\n", "largest difference to 1 PE", "", agreement->difference_max);
    say("  %-34s%12s%12.7f\n", "smallest cosine to 1 PE", "", agreement->cosine_min);
}

/* A line for each sentence: its words, and after tabs its embedding. */
static void dump(const char *path, const struct text *text, const float *embeddings,
                 size_t hidden) {
    FILE *stream = fopen(path, "we");
    for (size_t s = 0; stream && s < text->count; s++) {
        fprintf(stream, "%s", text->sentences[s].words);
        for (size_t j = 0; j < hidden; j++)
            fprintf(stream, "\t%.9g", (double)*embeddings++);
        fputc('\n', stream);
    }
    if (!stream || ferror(stream) | fclose(stream))
        check(fail("%s: cannot be written: %s", path, strerror(errno)));
}

int main(int argc, char **argv) {
    shmem_init();
    struct options options = parse_options(argc, argv);
    size_t me = (size_t)shmem_my_pe(), n = (size_t)shmem_n_pes();
    struct model model;
    struct corpus corpus = {.count = 0};

    say("model     %s, cut for %zu PE%s ... ", options.model, n, n == 1 ? "" : "s");
    check(model_open(&model, options.model, me, n));
    say("%zu layers of %zu columns, %zu heads\n", model.layers_count, model.hidden, model.heads);
    say("text      %s ... ", options.text);
    read_corpus(&corpus, &options, &model);
    say("%zu sentences, %zu tokens\n", corpus.text.count, corpus.starts[corpus.count]);

    size_t hidden = model.hidden;
    size_t tokens_max = BATCH_TOKENS > model.max_tokens ? BATCH_TOKENS : model.max_tokens;
    void *symmetric = shmem_malloc(encoder_symmetric_bytes(hidden, tokens_max, 1));
    if (!symmetric)
        die("no symmetric memory for the activations");
    say("encoding  on PE 0 alone ... ");
    struct run alone = encode_alone(&corpus, options.model, symmetric, tokens_max);
    say("encoding  on %zu PE%s ... ", n, n == 1 ? "" : "s together");
    struct run together = encode(&corpus, &model, SHMEM_TEAM_WORLD, symmetric, tokens_max);

    int status = 0;
    if (me == 0) {
        struct agreement agreement =
            compare(alone.embeddings, together.embeddings, corpus.count, hidden);
        show_answers(&corpus, &options, together.embeddings, hidden);
        show_table(&corpus, &alone, &together, &agreement);
        if (options.dump)
            dump(options.dump, &corpus.text, together.embeddings + hidden, hidden);
        status = !agrees(&agreement);
        if (status)
            fprintf(stderr,
                    "minilm: %zu PEs and 1 PE disagree: more than %g, or a cosine below %g\n", n,
                    DIFFERENCE_MAX, COSINE_MIN);
    }
    free(alone.embeddings);
    free(together.embeddings);
    free(corpus.tokens);
    free(corpus.starts);
    text_close(&corpus.text);
    model_close(&model);
    shmem_free(symmetric);
    shmem_finalize();
    return status;
}
