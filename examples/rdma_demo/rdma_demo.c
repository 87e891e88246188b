/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts, gets and puts with a signal between all PEs, on one host or several, in host memory or in
 * GPU memory. For every size each PE moves a message to (or from) every PE; the receiver computes
 * each byte again and compares it, and looks at the bytes after the message. Then PE 0 measures the
 * calls to the last PE, which is on the last host.
 *
 *   examples/rdma_demo/run.sh -ranks 2 [-hosts a,b] [-max 2097152] [-gpu]
 */
#include "../transfer.h"

enum {
    FIRST_SIZE = 8,
    LARGEST_MAX = 1 << 30,
    SIZE_STEP = 8,
    GUARD = 64, /* bytes after each message, which must stay as they are */
    GUARD_BYTE = 0xa5,
    RUNS = 5,    /* a figure is their median */
    WINDOW = 16, /* calls between two waits, to measure bandwidth */
};

static long largest = 2 << 20;

static int peer;             /* PE 0 measures calls to this one */
static shmemx_stream_t cuda; /* CUDA's default stream */

/* Symmetric, with a slot for every PE. */
static unsigned char *outbox, *inbox;
static uint64_t *arrived;

static unsigned char *image; /* a slot in this process's own memory */
static size_t slot_bytes;
static uint64_t answer, ignored; /* symmetric words */

/* --- The calls: by this thread, or on a stream if the memory is on GPUs ----------------------- */

static void put(void *dest, const void *source, size_t bytes, int pe) {
    if (on_gpu)
        require(shmemx_putmem_on_stream(dest, source, bytes, pe, cuda));
    else
        shmem_putmem_nbi(dest, source, bytes, pe);
}

static void get(void *dest, const void *source, size_t bytes, int pe) {
    if (on_gpu)
        require(shmemx_getmem_on_stream(dest, source, bytes, pe, cuda));
    else
        shmem_getmem_nbi(dest, source, bytes, pe);
}

static void put_signal(void *dest, const void *source, size_t bytes, uint64_t *word, uint64_t value,
                       int pe) {
    if (on_gpu)
        require(shmemx_putmem_signal_on_stream(dest, source, bytes, word, value, SHMEM_SIGNAL_SET,
                                               pe, cuda));
    else
        shmem_putmem_signal_nbi(dest, source, bytes, word, value, SHMEM_SIGNAL_SET, pe);
}

static void wait_for(uint64_t *word, uint64_t value) {
    if (on_gpu)
        require(shmemx_signal_wait_until_on_stream(word, SHMEM_CMP_GE, value, cuda));
    else
        shmem_signal_wait_until(word, SHMEM_CMP_GE, value);
}

/* Waits until everything that this PE has started is complete. */
static void complete(void) {
    if (on_gpu)
        require(shmemx_quiet_on_stream(cuda));
    else
        shmem_quiet();
    finish();
}

/* --- Messages whose bytes both ends can compute ----------------------------------------------- */

static unsigned char *slot(unsigned char *box, int pe) {
    return box + (size_t)pe * slot_bytes;
}

/* Stores the message number `round` from PE `from` to PE `to`. */
static void message(unsigned char *bytes, size_t n, int from, int to, int round) {
    uint64_t x = (uint64_t)from << 40 ^ (uint64_t)to << 20 ^ (uint64_t)round;
    for (size_t i = 0; i < n; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (unsigned char)(x >> 56);
    }
}

/* Writes this PE's messages to all PEs. A put to this PE itself also writes to GPU memory. */
static void outbox_fill(size_t bytes, int round) {
    for (int pe = 0; pe < npes; pe++) {
        message(image, bytes, me, pe, round);
        shmem_putmem(slot(outbox, pe), image, bytes, me);
    }
}

static void inbox_clear(void) {
    memset(image, GUARD_BYTE, slot_bytes);
    for (int pe = 0; pe < npes; pe++)
        shmem_putmem(slot(inbox, pe), image, slot_bytes, me);
}

/* Ends the job at the first wrong byte of the messages from all PEs. */
static void inbox_check(const char *call, size_t bytes, int round) {
    unsigned char *expected = malloc(slot_bytes);
    if (!expected)
        give_up("no memory");
    for (int from = 0; from < npes; from++) {
        memset(expected, GUARD_BYTE, slot_bytes);
        message(expected, bytes, from, me, round);
        shmem_getmem(image, slot(inbox, from), slot_bytes, me);
        for (size_t i = 0; i < slot_bytes; i++)
            if (image[i] != expected[i])
                give_up("%s of %zu bytes from PE %d: byte %zu is %d, not %d", call, bytes, from, i,
                        image[i], expected[i]);
    }
    free(expected);
}

/* --- The three ways to move messages between all PEs ------------------------------------------ */

static void put_all(size_t bytes, int round) {
    (void)round;
    for (int pe = 0; pe < npes; pe++)
        put(slot(inbox, me), slot(outbox, pe), bytes, pe);
    complete();
    shmem_barrier_all(); /* all PEs have put */
}

static void get_all(size_t bytes, int round) {
    (void)round;
    for (int pe = 0; pe < npes; pe++)
        get(slot(inbox, pe), slot(outbox, me), bytes, pe);
    complete();
}

/* A signal arrives after its message, so that the receiver needs no barrier. */
static void put_signal_all(size_t bytes, int round) {
    for (int pe = 0; pe < npes; pe++)
        put_signal(slot(inbox, me), slot(outbox, pe), bytes, &arrived[me], (uint64_t)round, pe);
    for (int pe = 0; pe < npes; pe++)
        wait_for(&arrived[pe], (uint64_t)round);
    complete();
}

/* --- Times ------------------------------------------------------------------------------------ */

/* Starts one call of PE 0 to the peer. */
static void put_to_peer(size_t bytes) {
    put(slot(inbox, me), slot(outbox, peer), bytes, peer);
}

static void get_from_peer(size_t bytes) {
    get(slot(inbox, peer), slot(outbox, me), bytes, peer);
}

static void put_signal_to_peer(size_t bytes) {
    put_signal(slot(inbox, me), slot(outbox, peer), bytes, &ignored, 1, peer);
}

/* A message to the peer and its answer. PE 0 and the peer take part. */
static void ping_pong(size_t bytes) {
    static uint64_t round;
    round++;
    if (me == 0)
        put_signal(slot(inbox, me), slot(outbox, peer), bytes, &answer, round, peer);
    wait_for(&answer, round);
    if (me != 0)
        put_signal(slot(inbox, me), slot(outbox, 0), bytes, &answer, round, 0);
    complete();
}

struct kind {
    const char *name;
    void (*move_all)(size_t bytes, int round);
    void (*start)(size_t bytes);
    bool pings; /* its latency is half the time of a ping-pong */
};

static const struct kind kinds[] = {
    {"put", put_all, put_to_peer, false},
    {"get", get_all, get_from_peer, false},
    {"put_signal", put_signal_all, put_signal_to_peer, true},
};

/* Returns the microseconds from the first call to the end of the last. */
static double run_us(const struct kind *kind, size_t bytes, int calls) {
    double begin = now_us();
    for (int i = 0; i < calls; i++)
        kind->start(bytes);
    complete();
    return now_us() - begin;
}

static double ping_pong_us(size_t bytes) {
    double begin = now_us();
    ping_pong(bytes);
    return (now_us() - begin) / (peer == 0 ? 1 : 2);
}

/* Stores microseconds of one call, and of a call among WINDOW, on PE 0. The first run is not
 * counted. */
static void measure(const struct kind *kind, size_t bytes, double *latency, double *each) {
    double one[RUNS + 1], many[RUNS + 1];
    for (int run = 0; run <= RUNS; run++) {
        shmem_barrier_all();
        if (kind->pings && (me == 0 || me == peer))
            one[run] = ping_pong_us(bytes);
        else if (me == 0)
            one[run] = run_us(kind, bytes, 1);
        if (me == 0)
            many[run] = run_us(kind, bytes, WINDOW) / WINDOW;
    }
    shmem_barrier_all(); /* PE 0 has stopped putting */
    if (me != 0)
        return;
    *latency = median(one + 1, RUNS);
    *each = median(many + 1, RUNS);
}

/* --- One size, all sizes ---------------------------------------------------------------------- */

static void run_size(const struct kind *kind, size_t bytes) {
    static int round;
    double latency = 0, each = 0;
    round++;
    outbox_fill(bytes, round);
    inbox_clear();
    shmem_barrier_all(); /* all PEs have filled and cleared */
    kind->move_all(bytes, round);
    inbox_check(kind->name, bytes, round);
    shmem_barrier_all(); /* all PEs have checked */
    measure(kind, bytes, &latency, &each);
    if (me == 0)
        printf("%12zu  %12.2f us  %12.3f GB/s  right\n", bytes, latency,
               1e-3 * (double)bytes / each);
}

static void run_kind(const struct kind *kind) {
    if (me == 0)
        printf("%s, PE 0 to PE %d\n%12s  %15s  %17s\n", kind->name, peer, "bytes", "latency",
               "bandwidth");
    for (size_t bytes = FIRST_SIZE; bytes <= (size_t)largest; bytes *= SIZE_STEP)
        run_size(kind, bytes);
}

/* --- The program ------------------------------------------------------------------------------ */

static bool take_value(const char *name, const char *value) {
    return strcmp(name, "-max") == 0 && read_number(value, FIRST_SIZE, LARGEST_MAX, &largest);
}

static void open_boxes(void) {
    size_t n = (size_t)npes;
    slot_bytes = (size_t)largest + GUARD;
    outbox = symmetric(n * slot_bytes);
    inbox = symmetric(n * slot_bytes);
    arrived = shmem_calloc(n, sizeof *arrived);
    image = malloc(slot_bytes);
    if (!arrived || !image)
        give_up("no memory");
}

int main(int argc, char **argv) {
    job_begin("rdma_demo");
    peer = npes - 1;
    const char *wrong = take_options(argv + (argc > 0), take_value);
    if (wrong) {
        if (me == 0)
            fprintf(stderr,
                    "rdma_demo: %s: options are -max with the bytes of the largest message, from "
                    "%d to 2^30, and -gpu\n",
                    wrong, FIRST_SIZE);
        shmem_global_exit(2);
    }
    open_boxes();
    if (me == 0)
        printf("%d PEs, %s memory; every byte is checked between all PEs\n", npes,
               on_gpu ? "GPU" : "host");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        run_kind(&kinds[i]);
    if (me == 0)
        printf("rdma_demo: all messages are right\n");
    shmem_finalize();
    return 0;
}
