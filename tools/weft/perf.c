/* SPDX-License-Identifier: BSD-3-Clause */
/* `weft perf`: measures puts, gets, signals, barriers and other calls, by the host and on streams,
 * over sizes; prints a table and draws it as a chart. */
#include <math.h>
#include <shmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "chart.h"
#include "command.h"
#include "measure.h"

enum { SIZES_MAX = CHART_POINTS_MAX, FIRST_SIZE = 8, SIZE_STEP = 8 };

/* Calls in the order in which they are measured. */
static const struct {
    const char *name, *title;
    size_t
        largest; /* payload by default: bandwidths need large ones, latencies small ones; 0: none */
    bool on_request; /* measured only if it is named */
} calls[MEASURE_CALLS] = {
    [MEASURE_PUT] = {"put", "put and quiet", 16 << 20, false},
    [MEASURE_GET] = {"get", "get", 16 << 20, false},
    [MEASURE_SIGNAL] = {"signal", "put with signal, one way", 32 << 10, false},
    [MEASURE_BARRIER] = {"barrier", "barrier of all PEs", 0, false},
    [MEASURE_PUT_NBI] = {"put_nbi", "put, 8 before a quiet", 16 << 20, true},
    [MEASURE_GET_NBI] = {"get_nbi", "get, 8 before a quiet", 16 << 20, true},
    [MEASURE_BI_PUT] = {"bi_put", "put and quiet in both directions", 16 << 20, true},
    [MEASURE_BI_GET] = {"bi_get", "get in both directions", 16 << 20, true},
    [MEASURE_ATOMIC] = {"atomic", "atomic fetch-add", 0, true},
    [MEASURE_ALL_GATHER] = {"all_gather", "all-gather of all PEs", 1 << 20, true},
    [MEASURE_ALL_REDUCE] = {"all_reduce", "all-reduce of all PEs", 1 << 20, true},
};
static const char *const way_names[MEASURE_WAYS] = {
    "host memory", "GPU memory, host calls", "GPU memory, on a stream", "GPU memory, in a graph"};

static struct {
    bool calls[MEASURE_CALLS];
    size_t largest; /* 0: the default of the call */
    const char *svg;
} options = {.svg = "weft-perf.svg"};

static struct {
    bool ways[MEASURE_WAYS];
    int done, all; /* measurements */
    struct chart chart;
} state;

const char weft_perf_usage[] =
    "usage: oshrun -n 2 weft perf [NAME]... [-m BYTES] [-o FILE.svg]\n"
    "\n"
    "Measures how long calls take between two PEs or more, prints a table and draws it. Without a\n"
    "name it measures put, get, signal and barrier.\n"
    "  put, get      one call from PE 0 to PE 1, until it is complete\n"
    "  signal        a put with a signal, one way: half the time of a message and its answer\n"
    "  barrier       a barrier of all PEs\n"
    "  put_nbi, get_nbi        8 calls of the host, then one wait until all are complete\n"
    "  bi_put, bi_get          PE 0 and PE 1 at once; GB/s are those of both together\n"
    "  atomic        a fetching add to a word of PE 1\n"
    "  all_gather, all_reduce  collectives of all PEs; GB/s are bytes of the result over the time\n"
    "  all           all of these\n"
    "  -m BYTES      the largest message: a number, and k, m or g for powers of 1024 (16m for "
    "puts\n"
    "                and gets, 32k for signal, 1m for collectives; sizes begin with 8 bytes)\n"
    "  -o FILE.svg   the drawing (weft-perf.svg)\n"
    "\n"
    "Example: oshrun -n 2 weft perf put get -m 64m\n";

/* --- Options ---------------------------------------------------------------------------------- */

static bool read_size(const char *text, size_t *size) {
    char *end = NULL;
    double number = text ? strtod(text, &end) : 0;
    int shift = 0;
    switch (end ? *end : 0) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    }
    *size = (size_t)ldexp(number, shift);
    return end && end != text && end[shift > 0] == '\0' && number >= 0 && *size >= FIRST_SIZE &&
           *size <= (size_t)1 << 40;
}

static bool read_call(const char *word) {
    bool every = strcmp(word, "all") == 0, known = every;
    for (int call = 0; call < MEASURE_CALLS; call++)
        if (every || strcmp(word, calls[call].name) == 0)
            known = options.calls[call] = true;
    return known;
}

/* Returns the wrong argument, or NULL. */
static const char *read_arguments(char **arguments) {
    bool any = false;
    for (; *arguments; arguments++) {
        if (strcmp(*arguments, "-m") == 0) {
            if (!read_size(*++arguments, &options.largest))
                return *arguments ? *arguments : "-m";
        } else if (strcmp(*arguments, "-o") == 0) {
            if (!(options.svg = *++arguments))
                return "-o";
        } else if (read_call(*arguments)) {
            any = true;
        } else {
            return *arguments;
        }
    }
    for (int call = 0; !any && call < MEASURE_CALLS; call++)
        options.calls[call] = !calls[call].on_request;
    return NULL;
}

/* --- Sizes ------------------------------------------------------------------------------------ */

static size_t largest_of(enum measure_call call) {
    if (calls[call].largest == 0)
        return 0;
    return options.largest ? options.largest : calls[call].largest;
}

/* A barrier and an atomic have one size, 0. */
static int sizes_of(enum measure_call call, size_t *sizes) {
    int n = 0;
    for (size_t size = FIRST_SIZE; size <= largest_of(call) && n < SIZES_MAX; size *= SIZE_STEP)
        sizes[n++] = size;
    if (n == 0)
        sizes[n++] = 0;
    return n;
}

static bool has_way(enum measure_call call, int way) {
    return state.ways[way] && measure_offers(call, (enum measure_way)way);
}

static void count_measurements(void) {
    size_t sizes[SIZES_MAX];
    for (int call = 0; call < MEASURE_CALLS; call++)
        for (int way = 0; way < MEASURE_WAYS; way++)
            if (options.calls[call] && has_way((enum measure_call)call, way))
                state.all += sizes_of((enum measure_call)call, sizes);
}

/* --- Output ----------------------------------------------------------------------------------- */

static void progress(const char *call, const char *way, const char *size) {
    state.done++;
    if (shmem_my_pe() == 0 && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K  %d of %d: %s %s, %s", state.done, state.all, call, size, way);
}

static void progress_end(void) {
    if (shmem_my_pe() == 0 && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

static void print_head(enum measure_call call) {
    printf("%-10s", calls[call].name);
    for (int way = 0; way < MEASURE_WAYS; way++)
        if (has_way(call, way))
            printf("  %25s", way_names[way]);
    printf("\n");
}

/* `moved`: how many bytes the call moves; 0 prints no rate. */
static void print_value(double us, size_t moved) {
    char time[32], rate[32] = "";
    if (us < 1)
        snprintf(time, sizeof time, "%.3g ns", 1e3 * us);
    else
        snprintf(time, sizeof time, us < 1000 ? "%.3g us" : "%.0f us", us);
    double gigabytes = 1e-3 * (double)moved / us;
    if (moved)
        snprintf(rate, sizeof rate, "%.3g %s", gigabytes < 1 ? 1e3 * gigabytes : gigabytes,
                 gigabytes < 1 ? "MB/s" : "GB/s");
    printf("  %12s %12s", time, rate);
}

static struct chart_panel *panel(const char *title, const char *unit, bool bars) {
    struct chart_panel *made = &state.chart.panels[state.chart.npanels++];
    made->title = title;
    made->unit = unit;
    made->bars = bars;
    return made;
}

static void add(struct chart_panel *to, enum measure_way way, size_t bytes, double value) {
    if (!to)
        return;
    struct chart_curve *curve = &to->curves[way];
    curve->x[curve->n] = (double)bytes;
    curve->y[curve->n++] = value;
}

/* --- All measurements of a call --------------------------------------------------------------- */

static void measure_size(enum measure_call call, size_t bytes, struct chart_panel *times,
                         struct chart_panel *rates) {
    char size[32] = "";
    double us[MEASURE_WAYS];
    size_t moved = measure_moves(call, bytes);
    if (bytes)
        chart_size_name(size, sizeof size, (double)bytes);
    for (int way = 0; way < MEASURE_WAYS; way++) {
        if (!has_way(call, way))
            continue;
        progress(calls[call].name, way_names[way], size);
        us[way] = measure_us(call, (enum measure_way)way, bytes);
        add(times, (enum measure_way)way, bytes, us[way]);
        add(rates, (enum measure_way)way, bytes, 1e-3 * (double)moved / us[way]);
    }
    progress_end();
    if (shmem_my_pe() != 0)
        return;
    printf("%10s", size);
    for (int way = 0; way < MEASURE_WAYS; way++)
        if (has_way(call, way))
            print_value(us[way], moved);
    printf("\n");
    fflush(stdout);
}

static void measure_call(enum measure_call call) {
    const char *title = calls[call].title;
    size_t sizes[SIZES_MAX];
    int n = sizes_of(call, sizes);
    struct chart_panel *times = panel(title, "microseconds", sizes[0] == 0);
    struct chart_panel *rates = measure_moves(call, sizes[0]) ? panel(title, "GB/s", false) : NULL;
    if (shmem_my_pe() == 0)
        print_head(call);
    for (int i = 0; i < n; i++)
        measure_size(call, sizes[i], times, rates);
}

static void measure_all(void) {
    for (int call = 0; call < MEASURE_CALLS; call++)
        if (options.calls[call])
            measure_call((enum measure_call)call);
}

/* --- The command ------------------------------------------------------------------------------ */

static void open_ways(void) {
    size_t largest = FIRST_SIZE, result = FIRST_SIZE;
    const char *reason;
    for (int call = 0; call < MEASURE_CALLS; call++) {
        size_t bytes = options.calls[call] ? largest_of((enum measure_call)call) : 0;
        size_t results = call == MEASURE_ALL_GATHER ? bytes * (size_t)shmem_n_pes() : bytes;
        largest = bytes > largest ? bytes : largest;
        result = results > result ? results : result;
    }
    bool gpus = measure_open(largest, result, &reason);
    for (int way = 0; way < MEASURE_WAYS; way++) {
        state.ways[way] = way == MEASURE_HOST || gpus;
        state.chart.names[way] = state.ways[way] ? way_names[way] : NULL;
    }
    if (shmem_my_pe() == 0 && !gpus)
        printf("GPUs are left out: %s\n", reason);
}

static int write_chart(void) {
    snprintf(state.chart.title, sizeof state.chart.title, "Weft %s, %d PEs: weft perf",
             WEFT_VERSION_STRING, shmem_n_pes());
    int error = chart_write(&state.chart, options.svg);
    if (error < 0)
        fprintf(stderr, "weft: %s: %s\n", options.svg, strerror(-error));
    else
        printf("chart: %s\n", options.svg);
    return error < 0;
}

/* PE 0 prints it for all. */
static int refuse(const char *what, const char *remedy) {
    if (shmem_my_pe() == 0)
        fprintf(stderr, "weft perf: %s: %s\n", what, remedy);
    shmem_finalize();
    return 2;
}

int weft_perf(char **arguments) {
    const char *wrong = read_arguments(arguments);
    shmem_init();
    if (wrong)
        return refuse(wrong, "no such argument or size; see weft perf -h");
    if (shmem_n_pes() < 2)
        return refuse("there is one PE only", "oshrun -n 2 weft perf");
    open_ways();
    count_measurements();
    measure_all();
    measure_close();
    int status = shmem_my_pe() == 0 ? write_chart() : 0;
    shmem_finalize();
    return status;
}
