/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: frames over TLS with both ends in this process: all sizes arrive whole and aligned;
 * a side that does not read fills only a bounded queue of the other; an invalid length and an end
 * at any byte are reported; random bytes after a correct handshake do no harm. PEs: 1 */
#include "boot/frames.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "boot/random.h"
#include "boot/tls.h"
#include "entries.h"
#include "tap.h"

enum { SHAKES = 10 };

static unsigned char payload[WEFT_FRAME_BYTES_MAX];

static bool key_of(void *owner, const char *identity, unsigned char key[WEFT_TLS_KEY_BYTES]) {
    (void)owner, (void)identity;
    memset(key, 7, WEFT_TLS_KEY_BYTES);
    return true;
}

static void pair_open(struct weft_tls **a, struct weft_tls **b) {
    unsigned char key[WEFT_TLS_KEY_BYTES];
    int pair[2];
    key_of(NULL, "", key);
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "%d", errno);
    EXPECT(weft_tls_connect(a, pair[0], "h1", key) == 0, "connect");
    EXPECT(weft_tls_accept(b, pair[1], key_of, NULL) == 0, "accept");
    for (int i = 0; i < SHAKES; i++)
        weft_tls_shake(*a), weft_tls_shake(*b);
}

static void frames_pair(struct weft_frames **a, struct weft_frames **b) {
    struct weft_tls *one, *other;
    pair_open(&one, &other);
    EXPECT(weft_frames_open(a, one) == 0 && weft_frames_open(b, other) == 0, "open");
}

/* Takes the next frame, while the other side sends its queue. */
static int take(struct weft_frames *to, struct weft_frames *from, struct weft_frame *frame,
                const void **got) {
    int result;
    while ((result = weft_frames_next(to, frame, got)) == 0 && weft_frames_queued(from))
        EXPECT(weft_frames_serve(from, POLLOUT) == 0, "serve");
    return result;
}

static void all_sizes(void) {
    static const uint32_t sizes[] = {0,
                                     1,
                                     7,
                                     8,
                                     9,
                                     4096,
                                     16383,
                                     16384,
                                     16385,
                                     65535,
                                     1 << 20,
                                     WEFT_FRAME_BYTES_MAX - 1,
                                     5,
                                     0,
                                     (1 << 18) + 3,
                                     WEFT_FRAME_BYTES_MAX};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    struct weft_frames *a, *b;
    struct weft_frame frame;
    const void *got;
    frames_pair(&a, &b);
    for (int i = 0; i < SIZES; i++) { /* all at once: some have to wait in the queue */
        struct weft_frame sent = {(uint32_t)i + 1, sizes[i], -i, i * i, i, 0};
        EXPECT(weft_frames_send(a, &sent, payload) == 0, "%d", i);
    }
    EXPECT(weft_frames_queued(a) > WEFT_FRAME_BYTES_MAX, "%zu", weft_frames_queued(a));
    EXPECT(weft_frames_events(a) == (POLLIN | POLLOUT), "events");
    for (int i = 0; i < SIZES; i++) {
        int result = take(b, a, &frame, &got);
        EXPECT(result == 1 && frame.kind == (uint32_t)i + 1 && frame.bytes == sizes[i] &&
                   frame.pe == -i && frame.value == i * i,
               "frame %d: %d, kind %u, %u bytes", i, result, frame.kind, frame.bytes);
        EXPECT((uintptr_t)got % 8 == 0, "payload %d at %p", i, got);
        EXPECT(memcmp(got, payload, frame.bytes) == 0, "payload %d", i);
    }
    EXPECT(weft_frames_next(b, &frame, &got) == 0, "none is left");
    EXPECT(weft_frames_queued(a) == 0 && weft_frames_events(a) == POLLIN, "queue");
    frame = (struct weft_frame){.bytes = WEFT_FRAME_BYTES_MAX + 1};
    EXPECT(weft_frames_send(a, &frame, payload) == -EMSGSIZE, "too large");
    weft_frames_close(a);
    EXPECT(weft_frames_next(b, &frame, &got) == -EPIPE, "end");
    weft_frames_close(b);
}

/* The other side does not read at first, then reads everything. */
static void slow_reader(void) {
    struct weft_frames *a, *b;
    struct weft_frame frame = {.kind = 1, .bytes = 100003};
    const void *got;
    int sent = 0, error, result, taken = 0;
    frames_pair(&a, &b);
    while ((error = weft_frames_send(a, &frame, payload)) == 0)
        frame.value = ++sent;
    EXPECT(error == -ENOBUFS, "%d", error);
    EXPECT(strstr(weft_frames_why(a), "does not read"), "%s", weft_frames_why(a));
    EXPECT(weft_frames_queued(a) <= WEFT_FRAMES_QUEUED_MAX &&
               weft_frames_queued(a) + 2 * frame.bytes > WEFT_FRAMES_QUEUED_MAX,
           "%zu", weft_frames_queued(a));
    while ((result = take(b, a, &frame, &got)) == 1) {
        EXPECT(frame.value == taken && memcmp(got, payload, frame.bytes) == 0, "%d", frame.value);
        taken++;
    }
    EXPECT(result == 0 && taken == sent, "%d: %d of %d", result, taken, sent);
    frame.kind = 2;
    EXPECT(weft_frames_send(a, &frame, payload) == 0 && take(b, a, &frame, &got) == 1, "goes on");
    weft_frames_close(a);
    weft_frames_close(b);
}

static void heard(void) {
    struct weft_frames *a, *b;
    struct weft_frame frame = {.kind = 9};
    const void *got;
    frames_pair(&a, &b);
    uint64_t first = weft_frames_heard_ns(b);
    weft_clock_sleep_ms(2);
    weft_frames_next(b, &frame, &got);
    EXPECT(weft_frames_heard_ns(b) == first, "heard nothing");
    weft_frames_send(a, &frame, NULL);
    weft_frames_next(b, &frame, &got);
    EXPECT(weft_frames_heard_ns(b) > first + 1000000, "heard");
    weft_frames_close(a);
    weft_frames_close(b);
}

/* Frames sent before an end are received, also if a write has detected the end first. */
static void last_words(void) {
    struct weft_frames *a, *b;
    struct weft_frame frame = {.kind = 3, .bytes = 1000};
    const void *got;
    int error = 0;
    frames_pair(&a, &b);
    for (int i = 0; i < 5; i++)
        weft_frames_send(a, &frame, payload);
    weft_frames_close(a);
    for (int i = 0; i < 5 && error == 0; i++)
        error = weft_frames_send(b, &frame, payload);
    EXPECT(error == -EPIPE, "%d", error);
    for (int i = 0; i < 5; i++)
        EXPECT(weft_frames_next(b, &frame, &got) == 1 && frame.kind == 3, "frame %d", i);
    EXPECT(weft_frames_next(b, &frame, &got) == -EPIPE, "end");
    EXPECT(weft_frames_next(b, &frame, &got) == -EPIPE, "it stays");
    EXPECT(strstr(weft_frames_why(b), "closed the connection"), "%s", weft_frames_why(b));
    weft_frames_close(b);
}

/* The connection ends, or is silent, after each byte of two frames. */
static void cut(void) {
    struct weft_frame sent[2][2] = {{{.kind = 1, .bytes = 11}}, {{.kind = 2, .bytes = 3}}};
    unsigned char bytes[40 + 32];
    struct weft_frame frame;
    const void *got;
    memcpy(bytes, sent[0], 40);
    memcpy(bytes + 40, sent[1], 32);
    int before = entries_of("/proc/self/fd");
    for (size_t until = 0; until <= sizeof bytes; until++) {
        struct weft_tls *one, *other;
        struct weft_frames *frames;
        int count = 0, result;
        pair_open(&one, &other);
        EXPECT(weft_frames_open(&frames, other) == 0, "open");
        for (size_t i = 0; i < until; i++) {
            EXPECT(weft_tls_write(one, bytes + i, 1) == 1, "write");
            while ((result = weft_frames_next(frames, &frame, &got)) == 1)
                count++;
            EXPECT(result == 0, "%d after %zu bytes", result, i);
        }
        weft_tls_close(one);
        EXPECT(count == (until >= 40) + (until >= 72), "%d frames in %zu bytes", count, until);
        EXPECT(weft_frames_next(frames, &frame, &got) == -EPIPE, "end after %zu", until);
        weft_frames_close(frames);
    }
    int after = entries_of("/proc/self/fd");
    EXPECT(before == after, "%d descriptors before, %d after", before, after);
}

/* Returns the memory allocated by this process, touched or not. */
static long memory_kib(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(fscanf(file, "%ld", &pages) == 1, "statm");
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE) / 1024;
}

/* An invalid length is rejected at once; for a valid length memory is allocated only as bytes
 * arrive. */
static void lies(void) {
    static const uint32_t lengths[] = {WEFT_FRAME_BYTES_MAX + 1, 1u << 31, UINT32_MAX};
    enum { LIARS = 50 };
    struct weft_tls *one[LIARS], *other;
    struct weft_frames *frames[LIARS];
    struct weft_frame frame = {.kind = 1};
    const void *got;
    for (int i = 0; i < 3; i++) {
        pair_open(&one[0], &other);
        EXPECT(weft_frames_open(&frames[0], other) == 0, "open");
        frame.bytes = lengths[i];
        weft_tls_write(one[0], &frame, sizeof frame);
        EXPECT(weft_frames_next(frames[0], &frame, &got) == -EPROTO, "%u bytes", lengths[i]);
        EXPECT(weft_frames_next(frames[0], &frame, &got) == -EPROTO, "it stays");
        EXPECT(strstr(weft_frames_why(frames[0]), "a frame that is too large"), "%s",
               weft_frames_why(frames[0]));
        weft_frames_close(frames[0]);
        weft_tls_close(one[0]);
    }
    long before = memory_kib();
    for (int i = 0; i < LIARS; i++) {
        pair_open(&one[i], &other);
        EXPECT(weft_frames_open(&frames[i], other) == 0, "open");
        frame.bytes = WEFT_FRAME_BYTES_MAX;
        weft_tls_write(one[i], &frame, sizeof frame);
        EXPECT(weft_frames_next(frames[i], &frame, &got) == 0, "nothing yet");
    }
    long each = (memory_kib() - before) / LIARS;
    EXPECT(each < 300, "a liar costs %ld KiB", each);
    for (int i = 0; i < LIARS; i++) {
        weft_frames_close(frames[i]);
        weft_tls_close(one[i]);
    }
}

/* Valid headers and some invalid ones, in pieces of random sizes. */
static void random_bytes(int count) {
    static const uint32_t lengths[] = {0, 1, 16, 4096, 70000, WEFT_FRAME_BYTES_MAX, UINT32_MAX};
    static unsigned char piece[70000];
    struct weft_tls *one = NULL, *other;
    struct weft_frames *frames = NULL;
    struct weft_frame frame;
    const void *got;
    int taken = 0, refused = 0;
    for (int i = 0; i < count; i++) {
        if (!frames) {
            pair_open(&one, &other);
            EXPECT(weft_frames_open(&frames, other) == 0, "open");
        }
        frame = (struct weft_frame){random_number(20), lengths[random_number(7)], 0, 0, 0, 0};
        size_t bytes = 1 + random_number(random_number(4) ? 64 : sizeof piece - 1);
        if (random_number(2))
            memcpy(piece, &frame, bytes < sizeof frame ? bytes : sizeof frame);
        for (size_t at = 0; at < bytes;) {
            ssize_t sent = weft_tls_write(one, piece + at, bytes - at);
            int result;
            while ((result = weft_frames_next(frames, &frame, &got)) == 1)
                taken += frame.bytes == 0 || ((const unsigned char *)got)[frame.bytes - 1] < 255;
            at = result < 0 ? bytes : at + (sent > 0 ? (size_t)sent : 0);
            if (result == 0)
                continue;
            EXPECT(result == -EPROTO, "%d", result);
            refused++;
            weft_frames_close(frames);
            weft_tls_close(one);
            frames = NULL;
            break;
        }
    }
    if (frames) {
        weft_frames_close(frames);
        weft_tls_close(one);
    }
    EXPECT(taken > 0 && refused > 0, "%d taken, %d refused", taken, refused);
}

int main(void) {
    bool thorough = getenv("WEFT_TEST_LONG") != NULL;
    tap_start(0);
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (unsigned char)(i * 7 % 253);
    tap_case("frames of all sizes arrive whole, aligned and in order");
    all_sizes();
    tap_case("a side that takes nothing costs a bounded queue, and gets all in the end");
    slow_reader();
    tap_case("the moment of the last word is known");
    heard();
    tap_case("what was said before an end is heard");
    last_words();
    tap_case("an end after each byte is told");
    cut();
    tap_case("a length that is no frame's is refused, and one that is costs no memory in advance");
    lies();
    tap_case("random bytes do no harm");
    random_bytes(thorough ? 3000000 : 3000);
    return tap_finish();
}
