/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of large matrices are limited by power, so what is fastest in a short burst may not be
 * fastest in a long run. So a GPU works for some milliseconds before anything is measured, and the
 * ways take turns. Each is measured for so long that the host's calls take no part of the time. The
 * work of one GPU is measured in graphs, because small products take the GPU less time than the
 * host needs to enqueue them. */
#include "fused/trial.h"
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include "base/clock.h"

enum { ROUNDS = 5, TIMES_MAX = 1 << 12, GRAPH_TIMES_MAX = 16, SLOW = 8 };
static const double HEAT_S = 0.02, ROUND_S = 0.003, GAIN_MIN = 0.01;

static double seconds_now(void) {
    return 1e-9 * (double)weft_clock_ns();
}

static int enqueue_times(const struct weft_contest *contest, int way, int times) {
    int error = 0;
    for (int i = 0; i < times && error == 0; i++)
        error = contest->enqueue(contest->context, way, contest->stream);
    return error;
}

/* Returns the seconds of `times` times; infinite if the way cannot do the work. */
static double seconds_of(const struct weft_contest *contest, int way, int times) {
    double begin = seconds_now();
    int error = enqueue_times(contest, way, times);
    int failed = weft_cuda.cuStreamSynchronize(contest->stream);
    return error || failed ? (double)INFINITY : seconds_now() - begin;
}

/* Lets the driver load each way's code, which it does at the first use; returns whether way 0 can
 * do the work. */
static bool all_begin(const struct weft_contest *contest, int ways) {
    bool works = isfinite(seconds_of(contest, 0, 1));
    for (int way = 1; way < ways; way++)
        seconds_of(contest, way, 1);
    return works;
}

static void heat(const struct weft_contest *contest, int times) {
    double end = seconds_now() + HEAT_S;
    while (seconds_now() < end && isfinite(seconds_of(contest, 0, times)))
        ;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Stores the median of the seconds of each way. */
static void measure(const struct weft_contest *contest, int ways, int times, double *medians) {
    double samples[ways][ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        for (int way = 0; way < ways; way++)
            samples[way][round] = seconds_of(contest, way, times);
    for (int way = 0; way < ways; way++) {
        qsort(samples[way], ROUNDS, sizeof **samples, compare);
        medians[way] = samples[way][ROUNDS / 2];
    }
}

bool weft_trial_better(double seconds, double of_way_0) {
    return seconds < (1 - GAIN_MIN) * of_way_0;
}

/* Returns the seconds of one time, the least of several: anything may delay the host. */
static double seconds_of_one(const struct weft_contest *contest, int way) {
    enum { TRIES = 3 };
    double least = seconds_of(contest, way, 1);
    for (int i = 1; i < TRIES; i++)
        least = fmin(least, seconds_of(contest, way, 1));
    return least;
}

/* Returns how often the work fits into `wanted` seconds if once takes `once`: 1 to `most` times. */
static int times_in(double wanted, double once, int most) {
    double times = once > 0 ? wanted / once : 1;
    return times < 1 ? 1 : times > most ? most : (int)times;
}

/* --- Work of one GPU, in graphs --------------------------------------------------------------- */

/* Returns a graph that does the work several times, or NULL. */
static weft_cu_graph_exec capture(const struct weft_contest *contest, int way, int times) {
    weft_cu_graph graph = NULL;
    weft_cu_graph_exec exec = NULL;
    if (weft_cuda.cuStreamBeginCapture(contest->stream, WEFT_CU_CAPTURE_RELAXED) != 0)
        return NULL;
    int error = enqueue_times(contest, way, times);
    int failed = weft_cuda.cuStreamEndCapture(contest->stream, &graph);
    if (!error && !failed && weft_cuda.cuGraphInstantiateWithFlags(&exec, graph, 0) != 0)
        exec = NULL;
    if (graph)
        weft_cuda.cuGraphDestroy(graph);
    return exec;
}

/* Launches the graph of a way; the context is an array with the ways' graphs. */
static int launch(const void *context, int way, weft_cu_stream stream) {
    weft_cu_graph_exec graph = ((const weft_cu_graph_exec *)context)[way];
    return graph ? weft_cuda.cuGraphLaunch(graph, stream) : -ENOTSUP;
}

/* Returns the fastest way. */
static int fastest_graph(const struct weft_contest *contest, int ways) {
    double medians[ways];
    int times = times_in(ROUND_S, seconds_of_one(contest, 0), TIMES_MAX), fastest = 0;
    heat(contest, times);
    measure(contest, ways, times, medians);
    for (int way = 1; way < ways; way++)
        if (fastest == 0 ? weft_trial_better(medians[way], medians[0])
                         : medians[way] < medians[fastest])
            fastest = way;
    return fastest;
}

/* Returns the fastest way, or -1 if way 0 cannot be captured. A way that is many times slower than
 * way 0 is not measured, because its rounds take too long. */
static int fastest_of(const struct weft_contest *contest, int ways) {
    weft_cu_graph_exec graphs[ways];
    double once = seconds_of_one(contest, 0);
    int times = times_in(ROUND_S / 2, once, GRAPH_TIMES_MAX);
    for (int way = 0; way < ways; way++)
        graphs[way] = way == 0 || seconds_of_one(contest, way) < SLOW * once
                          ? capture(contest, way, times)
                          : NULL;
    struct weft_contest captured = {launch, graphs, contest->stream};
    int fastest = graphs[0] ? fastest_graph(&captured, ways) : -1;
    for (int way = 0; way < ways; way++)
        if (graphs[way])
            weft_cuda.cuGraphExecDestroy(graphs[way]);
    return fastest;
}

int weft_trial_fastest(weft_trial_work *enqueue, const void *context, int ways) {
    struct weft_contest contest = {enqueue, context, NULL};
    int fastest = -1;
    if (weft_cuda.cuStreamCreateWithPriority(&contest.stream, WEFT_CU_STREAM_NON_BLOCKING, 0) != 0)
        return -1;
    if (all_begin(&contest, ways))
        fastest = fastest_of(&contest, ways);
    weft_cuda.cuStreamDestroy(contest.stream);
    return fastest;
}

/* --- Members together ------------------------------------------------------------------------- */

double weft_trial_once(const struct weft_contest *contest, int ways) {
    for (int way = ways; way-- > 0;)
        if (!isfinite(seconds_of(contest, way, 1)))
            return (double)INFINITY;
    return seconds_of_one(contest, 0);
}

void weft_trial_measure(const struct weft_contest *contest, int ways, double once,
                        double *seconds) {
    int times = times_in(ROUND_S, once, TIMES_MAX);
    for (int way = 0; way < ways; way++)
        seconds[way] = (double)INFINITY;
    if (!isfinite(once))
        return;
    for (int i = 0; i < (int)(HEAT_S / ROUND_S); i++)
        seconds_of(contest, 0, times);
    measure(contest, ways, times, seconds);
    for (int way = 0; way < ways; way++)
        seconds[way] /= times;
}
