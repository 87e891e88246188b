/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers a question from a text: prints the sentences whose meaning is nearest to the question's,
 * found with all-MiniLM-L6-v2 distributed over the PEs. PE 0 first encodes alone, then all PEs
 * together, and then their GPUs, where there are any; the program prints all speeds, and fails if
 * the results differ. */
#include "error.h"
#include "report.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH_TOKENS = 2048 };
static const double DIFFERENCE_MAX = 1e-4, COSINE_MIN = 0.9999;

struct options {
    const char *model, *text, *question, *dump, *device;
    size_t top;
};

static const char usage[] =
    "usage: oshrun -n N minilm --model DIR [options]\n"
    "  --model DIR        model.safetensors, vocab.txt and config.json of a MiniLM\n"
    "  --text FILE        the text to ask (/usr/share/common-licenses/GPL-3)\n"
    "  --question WORDS   what to ask (\"May I charge money for copies?\")\n"
    "  --device cpu|gpu   where to encode (cpu, and gpu where there is one)\n"
    "  --top N            how many sentences to show (5)\n"
    "  --dump FILE        write a line for each sentence: its words, and its embedding\n"
    "  --help             this\n"
    "N PEs share the model's 12 heads: 1, 2, 3, 4, 6 or 12.\n";

/* Ends the whole job, for an error on one PE. */
static void die(const char *text) {
    fprintf(stderr, "minilm: PE %d: %s\n", shmem_my_pe(), text);
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

/* Ends the job after a step that all PEs do, and in which they probably fail in the same way: the
 * first PE that failed reports the error. */
static void check_together(int error) {
    double me = shmem_my_pe(), n = shmem_n_pes(), speaker = error ? me : n;
    check_operator(weft_all_reduce(SHMEM_TEAM_WORLD, &speaker, &speaker, 1, WEFT_F64, WEFT_MIN,
                                   WEFT_STREAM_HOST));
    if (speaker == n)
        return;
    say("\n");
    if (me == speaker)
        fprintf(stderr, "minilm: %s\n", fail_text());
    shmem_finalize();
    exit(1);
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

static bool wants_gpu(const struct options *options) {
    return options->device && !strcmp(options->device, "gpu");
}

static struct options parse_options(int argc, char **argv) {
    static const struct option known[] = {
        {"model", required_argument, NULL, 'm'},    {"text", required_argument, NULL, 't'},
        {"question", required_argument, NULL, 'q'}, {"top", required_argument, NULL, 'n'},
        {"dump", required_argument, NULL, 'd'},     {"device", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},           {0}};
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
        case 'p':
            options.device = optarg;
            break;
        case 'h':
            stop(0, "");
            break;
        default:
            stop(2, "");
        }
    bool known_device = !options.device || !strcmp(options.device, "cpu") || wants_gpu(&options);
    if (!options.model || optind < argc || !options.top || !known_device)
        stop(2, !options.model  ? "minilm: --model is missing\n"
                : optind < argc ? "minilm: an argument without an option\n"
                : !options.top  ? "minilm: --top takes a number from 1\n"
                                : "minilm: --device takes cpu or gpu\n");
    return options;
}

/* Encodes the corpus with the team. The first sentence is encoded once before, untimed, because
 * only the first call allocates the workspace and generates the matmul's code. */
static struct run encode(const struct corpus *corpus, const struct model *model, shmem_team_t team,
                         const struct place *place, void *symmetric, size_t tokens_max) {
    struct sentences first = {corpus->all.tokens, corpus->all.starts, 1};
    struct run run = {.embeddings = calloc(corpus->all.count * model->hidden, sizeof(float)),
                      .on_gpus = place->is_gpu,
                      .pes = shmem_team_n_pes(team)};
    struct encoder encoder;
    if (!run.embeddings)
        die("no memory for the embeddings");
    check(encoder_open(&encoder, model, team, place, symmetric, tokens_max));
    check(encoder_encode(&encoder, &first, run.embeddings));
    weft_wait_seconds();
    double start = seconds_now();
    check(encoder_encode(&encoder, &corpus->all, run.embeddings));
    run.seconds = seconds_now() - start;
    run.wait_share = weft_wait_seconds() / run.seconds;
    check_operator(weft_all_reduce(team, &run.wait_share, &run.wait_share, 1, WEFT_F64, WEFT_MAX,
                                   WEFT_STREAM_HOST));
    encoder_close(&encoder);
    say("%.2f s\n", run.seconds);
    return run;
}

/* Encodes on PE 0 alone, with the same code on a team of one PE. The others wait at the barrier. */
static struct run encode_alone(const struct corpus *corpus, const char *directory, void *symmetric,
                               size_t tokens_max) {
    struct run run = {0};
    shmem_team_t alone;
    if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &alone))
        die("no team of PE 0 alone");
    if (shmem_my_pe() == 0) {
        struct model model;
        check(model_open(&model, directory, 0, 1));
        run = encode(corpus, &model, alone, &processor, symmetric, tokens_max);
        model_close(&model);
        shmem_team_destroy(alone);
    }
    shmem_barrier_all();
    return run;
}

/* Encodes on the PEs' GPUs, unless the options say otherwise, or there is none and they do not
 * insist. Returns whether it has. */
static bool encode_on_gpus(struct run *run, const struct options *options,
                           const struct corpus *corpus, const struct model *model, void *symmetric,
                           size_t tokens_max) {
    if (options->device && !wants_gpu(options))
        return false;
    const struct place *gpu = gpu_place();
    double none = gpu == NULL; /* on some PE */
    check_operator(
        weft_all_reduce(SHMEM_TEAM_WORLD, &none, &none, 1, WEFT_F64, WEFT_MAX, WEFT_STREAM_HOST));
    if (none > 0 && wants_gpu(options))
        check_together(
            fail("--device gpu: a PE has no GPU, or nvcc was not there to compile for it"));
    if (none > 0)
        return false;
    say("encoding  on their GPUs ... ");
    *run = encode(corpus, model, SHMEM_TEAM_WORLD, gpu, symmetric, tokens_max);
    return true;
}

/* Prints the answers and the comparison; returns the program's status. */
static int report(const struct options *options, const struct corpus *corpus, struct run *runs,
                  int count, size_t hidden) {
    const float *last = runs[count - 1].embeddings;
    int status = 0;
    for (int i = 0; i < count; i++)
        runs[i].agreement =
            agreement_of(runs[0].embeddings, runs[i].embeddings, corpus->all.count, hidden);
    check(report_answers(corpus, last, hidden, options->top));
    report_table(corpus, runs, count);
    if (options->dump)
        check(report_dump(corpus, last, hidden, options->dump));
    for (int i = 1; i < count; i++)
        if (!(runs[i].agreement.difference_max <= DIFFERENCE_MAX &&
              runs[i].agreement.cosine_min >= COSINE_MIN)) {
            fprintf(stderr,
                    "minilm: %d %s and 1 PE disagree: by more than %g, or a cosine below %g\n",
                    runs[i].pes, runs[i].on_gpus ? "GPUs" : "PEs", DIFFERENCE_MAX, COSINE_MIN);
            status = 1;
        }
    return status;
}

int main(int argc, char **argv) {
    shmem_init();
    struct options options = parse_options(argc, argv);
    size_t me = (size_t)shmem_my_pe(), n = (size_t)shmem_n_pes();
    struct model model;
    struct corpus corpus;

    say("model     %s, cut for %zu PE%s ... ", options.model, n, n == 1 ? "" : "s");
    check_together(model_open(&model, options.model, me, n));
    say("%zu layers of %zu columns, %zu heads\n", model.layers_count, model.hidden, model.heads);
    say("text      %s ... ", options.text);
    check_together(corpus_open(&corpus, &model, options.model, options.text, options.question));
    say("%zu sentences, %zu tokens\n", corpus.text.count, corpus.tokens);

    size_t tokens_max = BATCH_TOKENS > model.max_tokens ? BATCH_TOKENS : model.max_tokens;
    void *symmetric = shmem_malloc(encoder_symmetric_bytes(model.hidden, tokens_max, 1));
    if (!symmetric)
        die("no symmetric memory for the activations");
    say("encoding  on PE 0 alone ... ");
    struct run runs[3] = {encode_alone(&corpus, options.model, symmetric, tokens_max)};
    say("encoding  on %zu PE%s ... ", n, n == 1 ? "" : "s together");
    runs[1] = encode(&corpus, &model, SHMEM_TEAM_WORLD, &processor, symmetric, tokens_max);
    bool gpus = encode_on_gpus(&runs[2], &options, &corpus, &model, symmetric, tokens_max);
    int count = gpus ? 3 : 2;

    int status = me == 0 ? report(&options, &corpus, runs, count, model.hidden) : 0;
    for (int i = 0; i < count; i++)
        free(runs[i].embeddings);
    corpus_close(&corpus);
    model_close(&model);
    shmem_free(symmetric);
    shmem_finalize();
    return status;
}
