/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: oshrun --daemon with this test as its front: contributions of PEs are sent up, and
 * the result comes back; if the front ends, is silent or sends invalid frames, the daemon and its
 * PEs end, and the daemon never crashes. PEs: 1 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/version.h>
#include "base/clock.h"
#include "boot/control.h"
#include "boot/frames.h"
#include "boot/random.h"
#include "boot/tls_listener.h"
#include "launch/start.h"
#include "tap.h"

enum {
    MAD_FRONTS = 16,
    MAD_FRONTS_LONG = 1000,
    MAD_FRAMES = 30,
    SILENCE_MS = 1500, /* 400 were too few on a loaded machine */
    PATIENCE_MS = 20000
};

static const unsigned char key[WEFT_TLS_KEY_BYTES] = "a key of this test alone";
static char oshrun[4096], program[4096];

static struct daemon {
    pid_t pid;
    int input;
    struct weft_frames *frames;
    bool beats;
    uint64_t beat_ns;
} front;

static bool key_of(void *owner, const char *identity, unsigned char its[WEFT_TLS_KEY_BYTES]) {
    (void)owner;
    memcpy(its, key, sizeof key);
    return strcmp(identity, "1") == 0;
}

static void take(void *owner, struct weft_tls *tls) {
    (void)owner;
    EXPECT(weft_frames_open(&front.frames, tls) == 0, "frames");
}

/* Of 2 PEs the daemon's host has PE 1. */
static void start_send(int port, int to, char **argv) {
    static const char *names[] = {"here", "there"};
    int32_t host_of[] = {0, 1};
    struct weft_program programs[] = {{.npes = 2, .argv = argv, .folder = "/"}};
    struct weft_start start = {.host = 1,
                               .nhosts = 2,
                               .name = names,
                               .host_of = host_of,
                               .naddresses = 1,
                               .address = {"127.0.0.1"},
                               .port = port,
                               .silence_ms = SILENCE_MS,
                               .below = 1,
                               .fan_out = 32};
    char *text = NULL;
    size_t bytes = 0;
    memcpy(start.key, key, sizeof key);
    start.options = (struct weft_options){.program = programs, .nprograms = 1, .npes = 2};
    EXPECT(weft_start_write(&start, &text, &bytes) == 0, "start text");
    EXPECT(write(to, text, bytes) == (ssize_t)bytes, "%d", errno);
    free(text);
}

static void say(uint32_t kind, int pe, int value, const void *payload, size_t bytes) {
    struct weft_frame frame = {
        .kind = kind, .bytes = (uint32_t)bytes, .pe = pe, .value = value, .host = WEFT_TREE_ALL};
    if (front.frames)
        weft_frames_send(front.frames, &frame, payload); /* the daemon may have ended */
}

/* Returns the kind of the next frame except heartbeats and output; 0 at the end of the connection
 * or after the time limit. */
static uint32_t hear(const void **payload) {
    uint64_t until_ns = weft_clock_ns() + PATIENCE_MS * UINT64_C(1000000);
    struct weft_frame frame;
    int one;
    while ((one = weft_frames_next(front.frames, &frame, payload)) >= 0) {
        if (one && frame.kind != WEFT_TREE_BEAT && frame.kind != WEFT_TREE_OUTPUT &&
            frame.kind != WEFT_TREE_PE_STATUS)
            return frame.kind;
        if (front.beats && weft_clock_ns() > front.beat_ns + 100000000u) {
            say(WEFT_TREE_BEAT, 0, 0, NULL, 0);
            front.beat_ns = weft_clock_ns();
        }
        if (weft_clock_ns() > until_ns)
            break;
        struct pollfd line = {.fd = weft_frames_socket(front.frames),
                              .events = weft_frames_events(front.frames)};
        if (one == 0)
            poll(&line, 1, 50);
        weft_frames_serve(front.frames, line.revents);
    }
    return 0;
}

/* Starts a daemon, and waits for its HELLO. */
static void begin(char **argv) {
    int ends[2];
    struct weft_tls_listener *listener = NULL;
    struct weft_tls_listener_options options = {.places = 4, .key_of = key_of, .take = take};
    const void *payload;
    EXPECT(weft_tls_listener_open(&listener, &options) == 0 && pipe2(ends, O_CLOEXEC) == 0,
           "listener");
    front = (struct daemon){.input = ends[1], .beats = true};
    front.pid = fork();
    if (front.pid == 0) {
        dup2(ends[0], STDIN_FILENO);
        execl(oshrun, oshrun, "--daemon", (char *)NULL);
        _exit(99);
    }
    close(ends[0]);
    start_send(weft_tls_listener_port(listener), front.input, argv);
    while (!front.frames) {
        struct pollfd line = {.fd = weft_tls_listener_descriptor(listener), .events = POLLIN};
        poll(&line, 1, 1000);
        weft_tls_listener_turn(listener);
    }
    weft_tls_listener_close(listener);
    EXPECT(hear(&payload) == WEFT_TREE_HELLO, "no HELLO");
}

/* Expects the daemon to end soon with this status, and its PEs with it, which as orphans would be
 * children of this process. */
static void expect_gone(int status) {
    uint64_t until_ns = weft_clock_ns() + PATIENCE_MS * UINT64_C(1000000);
    int wait = -1;
    pid_t gone = 0, left;
    while (gone == 0 && weft_clock_ns() < until_ns) {
        gone = waitpid(front.pid, &wait, WNOHANG);
        weft_clock_sleep_ms(2);
    }
    EXPECT(gone == front.pid && WIFEXITED(wait) && (status < 0 || WEXITSTATUS(wait) == status),
           "wait status %#x", wait);
    until_ns = weft_clock_ns() + PATIENCE_MS * UINT64_C(1000000);
    while ((left = waitpid(-1, &wait, WNOHANG)) >= 0 && weft_clock_ns() < until_ns)
        weft_clock_sleep_ms(2);
    EXPECT(left < 0 && errno == ECHILD, "processes are left");
    weft_frames_close(front.frames);
    front.frames = NULL;
    close(front.input);
}

static void share(uint32_t bytes, size_t payload) {
    unsigned char all[64] = {0};
    struct weft_tree_exchange head = {.bytes = bytes};
    memcpy(all, &head, sizeof head);
    say(WEFT_TREE_SHARED, -1, 0, all, sizeof head + payload);
}

static void in_order(void) {
    char *argv[] = {program, "join", "exchange:2", "leave", NULL};
    const uint32_t bytes = sizeof(int);
    const void *payload;
    begin(argv);
    say(WEFT_TREE_GO, -1, 0, NULL, 0);
    for (uint32_t round = 0; round < 2; round++) {
        EXPECT(hear(&payload) == WEFT_TREE_GAVE, "round %u", round);
        const struct weft_tree_exchange *gave = payload;
        EXPECT(gave->key == 0 && gave->bytes == bytes, "%u of them", gave->bytes);
        share(bytes, 2 * bytes);
    }
    EXPECT(hear(&payload) == WEFT_TREE_DONE, "no DONE");
    EXPECT(((const struct weft_tree_done *)payload)->status == 0, "status");
    say(WEFT_TREE_BYE, -1, 0, NULL, 0);
    weft_clock_sleep_ms(50);
    weft_frames_close(front.frames);
    front.frames = NULL;
    expect_gone(0);
}

static void gone(void) {
    char *argv[] = {"/bin/sleep", "100", NULL};
    begin(argv);
    say(WEFT_TREE_GO, -1, 0, NULL, 0);
    weft_frames_close(front.frames);
    front.frames = NULL;
    expect_gone(-1);
}

static void input_ends(void) {
    char *argv[] = {"/bin/sleep", "100", NULL};
    begin(argv);
    say(WEFT_TREE_GO, -1, 0, NULL, 0);
    close(front.input);
    expect_gone(-1);
    front.input = -1;
}

static void silent(void) {
    char *argv[] = {"/bin/sleep", "100", NULL};
    begin(argv);
    say(WEFT_TREE_GO, -1, 0, NULL, 0);
    front.beats = false;
    uint64_t begin_ns = weft_clock_ns();
    expect_gone(-1);
    EXPECT(weft_clock_ns() - begin_ns > SILENCE_MS * UINT64_C(900000), "too early");
}

static void mad_frame(void) {
    enum { FACTS = sizeof(struct weft_long_wait_facts), WORDS = FACTS / sizeof(uint32_t) };
    uint32_t words[WORDS];
    static const size_t sizes[] = {0, 1, 8, 13, 20, 24, 40, 300, FACTS};
    _Static_assert(sizeof words == FACTS && FACTS > 300, "each size is within the words");
    static const uint32_t kinds[] = {WEFT_TREE_SHARED,    WEFT_TREE_PE_STATUS, WEFT_TREE_INPUT,
                                     WEFT_TREE_TAKEN,     WEFT_TREE_SIGNAL,    WEFT_TREE_CAUSE,
                                     WEFT_TREE_LONG_WAIT, WEFT_TREE_CLOSED};
    for (size_t i = 0; i < WORDS; i++)
        words[i] = random_number(3) ? random_number(4) : (uint32_t)random_number(UINT32_MAX);
    int value = random_number(2) ? (int)random_number(6) - 1 : (int)random_number(INT32_MAX);
    int pe = random_number(4) ? (int)random_number(4) - 1 : (int)random_number(INT32_MAX);
    uint32_t kind =
        random_number(16) ? kinds[random_number(8)] : random_number(WEFT_TREE_CLOSED + 2);
    say(kind, pe, value, words, sizes[random_number(9)]);
}

static void mad(void) {
    char *argv[] = {program, "join", "exchange:5", "leave", NULL};
    int fronts = getenv("WEFT_TEST_LONG") ? MAD_FRONTS_LONG : MAD_FRONTS;
    for (int i = 0; i < fronts && tap_case_failures == 0; i++) {
        begin(argv);
        if (i % 4)
            say(WEFT_TREE_GO, -1, 0, NULL, 0);
        for (int j = 0; j < MAD_FRAMES; j++)
            mad_frame();
        weft_clock_sleep_ms((long)random_number(20));
        weft_frames_close(front.frames);
        front.frames = NULL;
        expect_gone(-1);
    }
}

static void environment_clean(void) {
    for (char **variable = environ; *variable;) {
        char *name = strndup(*variable, strcspn(*variable, "="));
        if (strncmp(name, "WEFT_", 5) == 0)
            unsetenv(name); /* the next variable has moved to its place */
        else
            variable++;
        free(name);
    }
}

int main(int argc, char **argv) {
    char *slash = argc && realpath(argv[0], oshrun) ? strstr(oshrun, "/tests/launch/") : NULL;
    tap_start(0);
    EXPECT(slash, "%s", argv[0]);
    snprintf(program, sizeof program, "%.*s/tests/boot/pe", (int)(slash - oshrun), oshrun);
    strcpy(slash, "/bin/oshrun");
    environment_clean();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN);
    tap_case("rounds go up and come back, and the daemon goes in order");
    in_order();
    tap_case("the front is gone");
    gone();
    tap_case("its input ends");
    input_ends();
    tap_case("the front is silent");
    silent();
    tap_case("the front is mad");
    mad();
    return tap_finish();
}
