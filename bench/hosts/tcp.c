/* SPDX-License-Identifier: BSD-3-Clause */
/* What the network itself takes for the rows of bench/far.c: messages over one TCP connection,
 * which both sides look at without sleeping. tcp HOST 0|1, HOST being that of side 0. */
#include "meet.h"

static unsigned char data[LARGEST];
static size_t bytes;

/* A loop of n turns, in which both sides take part. */
typedef void loop(long n);

static double measure(loop *body, long n) {
    double samples[SAMPLES];
    char mine = 0, theirs;
    body(n / 10 + 1);
    for (int i = 0; i < SAMPLES; i++) {
        exchange(&mine, &theirs, 1);
        double begin = bench_now();
        body(n);
        samples[i] = (bench_now() - begin) / (double)n;
    }
    return bench_median(samples, SAMPLES);
}

static void ping_pong(long n) {
    for (long i = 0; i < n; i++) {
        if (me == 0)
            send_all(data, bytes);
        receive_all(data, bytes);
        if (me != 0)
            send_all(data, bytes);
    }
}

static void both_ways(long n) {
    for (long i = 0; i < n; i++)
        exchange(data, data, bytes);
}

/* Side 0 sends, and waits for one byte at the end. */
static void stream(long n) {
    for (long i = 0; i < n; i++)
        if (me == 0)
            send_all(data, bytes);
        else
            receive_all(data, bytes);
    if (me == 0)
        receive_all(data, 1);
    else
        send_all(data, 1);
}

static void fetch(long n) {
    for (long i = 0; i < n; i++)
        if (me == 0) {
            send_all(data, 8);
            receive_all(data, bytes);
        } else {
            receive_all(data, 8);
            send_all(data, bytes);
        }
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    library = "bare TCP";
    meet(argv);
    bytes = 8;
    long n = 500;
    report("put 8 B + quiet", 1e6 * measure(ping_pong, n), "us");
    report("get 8 B", 1e6 * measure(ping_pong, n), "us");
    report("fetch_add", 1e6 * measure(ping_pong, n), "us");
    report("put 8 B with signal, one way", 0.5e6 * measure(ping_pong, n), "us");
    bytes = 4096;
    report("put 4 KiB with signal, one way", 0.5e6 * measure(ping_pong, n), "us");
    bytes = 8;
    report("barrier_all", 1e6 * measure(both_ways, n), "us");
    report("put 8 B, many, each", 1e6 * measure(stream, n), "us");
    bytes = LARGEST;
    report("put 1 MiB", 1e-9 * LARGEST / measure(stream, 20), "GB/s");
    report("get 1 MiB", 1e-9 * LARGEST / measure(fetch, 20), "GB/s");
    return 0;
}
