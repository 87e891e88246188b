/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the GPU benchmarks of all libraries, in C and in C++: graphs of dependent calls,
 * medians, random data and its check, and a rendezvous for libraries without one; the rows are in
 * rows.h. Every PE prints a JSON line of its own; table.py takes the slowest.
 *
 * All programs run under oshrun, which sets their PE numbers in the environment. */
#ifndef BENCH_GPU_GPU_H
#define BENCH_GPU_GPU_H

#include <cuda_runtime.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 21 };
static const size_t KIB = 1 << 10, MIB = 1 << 20;

static int me, npes, ngpus;
static cudaStream_t stream;

static inline void give_up(const char *what, const char *why) {
    fprintf(stderr, "PE %d: %s: %s\n", me, what, why);
    exit(1);
}

#define CUDA(call)                                      \
    do {                                                \
        cudaError_t error_ = (call);                    \
        if (error_ != cudaSuccess)                      \
            give_up(#call, cudaGetErrorString(error_)); \
    } while (0)

static inline int environment_number(const char *name) {
    const char *text = getenv(name);
    if (!text)
        give_up(name, "is not set: run this under oshrun");
    return atoi(text);
}

/* Sets this PE's number and selects its GPU. */
static inline void begin(void) {
    me = environment_number("WEFT_PE");
    npes = environment_number("WEFT_NPES");
    CUDA(cudaGetDeviceCount(&ngpus));
    CUDA(cudaSetDevice(me % ngpus));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(double *samples, int n) {
    qsort(samples, (size_t)n, sizeof *samples, compare_doubles);
    return samples[n / 2];
}

/* Returns whether a row is to be measured: BENCH_ROWS is a part of its name. */
static inline bool is_asked(const char *row) {
    const char *asked = getenv("BENCH_ROWS");
    return !asked || strstr(row, asked);
}

/* NAN means a wrong result. */
static inline void report(const char *row, double value, const char *unit, const char *library) {
    char number[32];
    snprintf(number, sizeof number, "%.5g", value);
    printf("{\"row\": \"%s\", \"value\": %s, \"unit\": \"%s\", \"pes\": %d, \"gpus\": %d, "
           "\"pe\": %d, \"library\": \"%s\"}\n",
           row, isnan(value) ? "null" : number, unit, npes, npes < ngpus ? npes : ngpus, me,
           library);
    fflush(stdout);
}

static inline const char *size_name(size_t bytes) {
    static char text[32];
    if (bytes < KIB)
        snprintf(text, sizeof text, "%zu B", bytes);
    else
        snprintf(text, sizeof text, "%zu %s", bytes < MIB ? bytes / KIB : bytes / MIB,
                 bytes < MIB ? "KiB" : "MiB");
    return text;
}

/* --- Timing ---------------------------------------------------------------------------------- */

/* Enqueues call number i, 0 to n, on `stream`. */
typedef void enqueue(int i);

/* PEs that share a GPU take turns on it, so that their calls take milliseconds. */
static inline bool is_crowded(void) {
    return npes > ngpus;
}

/* Returns the number of calls in one measurement. */
static inline int calls_for(size_t bytes) {
    return bytes <= 64 * MIB && !is_crowded() ? 50 : 5;
}

static inline int eager_calls_for(size_t bytes) {
    return bytes <= MIB && !is_crowded() ? 200 : 10;
}

static inline double elapsed_us(cudaEvent_t first, cudaEvent_t last) {
    float milliseconds = 0;
    CUDA(cudaEventSynchronize(last));
    CUDA(cudaEventElapsedTime(&milliseconds, first, last));
    return 1e3 * milliseconds;
}

/* Median microseconds of the enqueued work on this PE. */
struct timed {
    cudaGraphExec_t graph; /* or, if it is NULL, */
    enqueue *body;         /* this, n times */
    int n;
};

static inline void enqueue_all(const struct timed *work) {
    if (work->graph)
        CUDA(cudaGraphLaunch(work->graph, stream));
    else
        for (int i = 0; i < work->n; i++)
            work->body(i);
}

static inline double time_us(const struct timed *work) {
    double samples[SAMPLES];
    cudaEvent_t first, last;
    CUDA(cudaEventCreate(&first));
    CUDA(cudaEventCreate(&last));
    for (int i = -3; i < SAMPLES; i++) {
        CUDA(cudaEventRecord(first, stream));
        enqueue_all(work);
        CUDA(cudaEventRecord(last, stream));
        double us = elapsed_us(first, last);
        if (i >= 0)
            samples[i] = us / work->n;
    }
    CUDA(cudaEventDestroy(first));
    CUDA(cudaEventDestroy(last));
    return median(samples, SAMPLES);
}

/* Measures consecutive calls on a stream. */
static inline double eager_us(enqueue *body, int n) {
    struct timed work = {NULL, body, n};
    return time_us(&work);
}

/* Measures a graph of n dependent calls. */
static inline double graph_us(enqueue *body, int n) {
    cudaGraph_t graph;
    struct timed work = {NULL, body, n};
    body(n); /* the setup of a library's first call cannot be captured */
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < n; i++)
        body(i);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&work.graph, graph, 0));
    double us = time_us(&work);
    CUDA(cudaGraphExecDestroy(work.graph));
    CUDA(cudaGraphDestroy(graph));
    return us;
}

/* Returns the microseconds of a host call that returns after its work is complete. */
static inline double host_us(enqueue *body, int n) {
    double samples[SAMPLES];
    for (int k = -1; k < SAMPLES; k++) {
        double start = now();
        for (int i = 0; i < n; i++)
            body(i);
        if (k >= 0)
            samples[k] = 1e6 * (now() - start) / n;
    }
    return median(samples, SAMPLES);
}

static inline double gigabytes_per_second(size_t bytes, double us) {
    return 1e-3 * (double)bytes / us;
}

/* --- Data ------------------------------------------------------------------------------------ */

#ifdef __CUDACC__
#define ANYWHERE __host__ __device__
#else
#define ANYWHERE
#endif

/* Returns word i of the data of `seed`. */
ANYWHERE static inline uint64_t word_at(uint64_t seed, size_t i) {
    uint64_t x = (seed << 40) + i;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

static inline void fill(void *device, size_t bytes, uint64_t seed) {
    uint64_t *words = (uint64_t *)malloc(bytes);
    for (size_t i = 0; i < bytes / 8; i++)
        words[i] = word_at(seed, i);
    CUDA(cudaMemcpy(device, words, bytes, cudaMemcpyHostToDevice));
    free(words);
}

static inline void check(const char *what, const void *device, size_t bytes, uint64_t seed) {
    uint64_t *words = (uint64_t *)malloc(bytes);
    CUDA(cudaMemcpy(words, device, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes / 8; i++)
        if (words[i] != word_at(seed, i))
            give_up(what, "wrong data");
    free(words);
}

/* --- Meeting --------------------------------------------------------------------------------- */

/* Sends PE 0's bytes to all others, by a file in the folder BENCH_MEET. Each name can be used
 * once. */
static inline void hand_out(const char *name, void *bytes, size_t n) {
    char path[512], made[520];
    snprintf(path, sizeof path, "%s/%s", getenv("BENCH_MEET") ? getenv("BENCH_MEET") : ".", name);
    snprintf(made, sizeof made, "%s.new", path);
    if (me == 0) {
        FILE *file = fopen(made, "wb");
        if (!file || fwrite(bytes, 1, n, file) != n || fclose(file) != 0 || rename(made, path) != 0)
            give_up(path, "cannot be written");
        return;
    }
    for (double limit = now() + 60; access(path, R_OK) != 0; usleep(1000))
        if (now() > limit)
            give_up(path, "PE 0 does not write it");
    FILE *file = fopen(path, "rb");
    if (!file || fread(bytes, 1, n, file) != n)
        give_up(path, "cannot be read");
    fclose(file);
}

#endif
