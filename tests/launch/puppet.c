/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the daemon of the front's tests (front.t), not a test itself. WEFT_SSH names it, so
 * it gets the name of a host and the start text. It does what the arguments of the program say, one
 * after the other: "verb", "verb=text", and "b@verb" on host b only. A "~" in a text is a newline.
 * PEs: none */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/version.h>
#include "base/clock.h"
#include "boot/frames.h"
#include "boot/tls_listener.h"
#include "launch/start.h"

static struct weft_start start;
static struct weft_frames *frames;
static int first_pe, npes_here;

static void fail(const char *what) {
    fprintf(stderr, "puppet %d: %s\n", start.host, what);
    exit(99);
}

static void send_frame(uint32_t kind, int pe, int value, const void *payload, size_t bytes) {
    struct weft_frame frame = {
        .kind = kind, .bytes = (uint32_t)bytes, .pe = pe, .value = value, .host = start.host};
    if (weft_frames_send(frames, &frame, payload))
        fail("cannot send");
}

static void connect_front(void) {
    char identity[16];
    struct weft_tls *tls;
    int socket = -1, error;
    for (int i = 0; i < start.naddresses && socket < 0; i++)
        socket = weft_tls_listener_connect(start.address[i], (uint16_t)start.port, 1000);
    snprintf(identity, sizeof identity, "%d", start.host);
    if (socket < 0 || weft_tls_connect(&tls, socket, identity, start.key))
        fail("cannot connect");
    while ((error = weft_tls_shake(tls)) == -EAGAIN)
        poll(&(struct pollfd){.fd = weft_tls_socket(tls), .events = weft_tls_events(tls)}, 1, 5000);
    if (error || weft_frames_open(&frames, tls))
        fail("no handshake");
}

/* Sends an OUTPUT of this host's first PE. */
static void out(int stream, const char *text) {
    send_frame(WEFT_TREE_OUTPUT, first_pe, stream, text, strlen(text));
}

/* Returns the next frame, or false at the end of the connection. Sends heartbeats meanwhile. */
static bool next_frame(struct weft_frame *frame, const void **payload) {
    static uint64_t beat_ns;
    int one;
    while ((one = weft_frames_next(frames, frame, payload)) == 0) {
        struct pollfd wait = {.fd = weft_frames_socket(frames),
                              .events = weft_frames_events(frames)};
        poll(&wait, 1, WEFT_TREE_BEAT_MS);
        if (weft_clock_ns() > beat_ns + WEFT_TREE_BEAT_MS * 1000000u) {
            send_frame(WEFT_TREE_BEAT, 0, 0, NULL, 0);
            beat_ns = weft_clock_ns();
        }
        weft_frames_serve(frames, wait.revents);
    }
    return one == 1;
}

/* Waits for a frame of this kind, and drops others. */
static bool await(uint32_t kind, struct weft_frame *frame, const void **payload) {
    while (next_frame(frame, payload))
        if (frame->kind == kind)
            return true;
    return false;
}

static void hello(const char *version) {
    struct weft_tree_hello hello = {.layout = WEFT_TREE_LAYOUT, .cores = 2, .pid = getpid()};
    snprintf(hello.version, sizeof hello.version, "%s", *version ? version : WEFT_VERSION_STRING);
    send_frame(WEFT_TREE_HELLO, 0, 0, &hello, sizeof hello);
}

/* Contributes the text, followed by the PE's number, for each PE of this host. */
static void give(const char *text) {
    size_t bytes = strlen(text) + 1, head = sizeof(struct weft_tree_exchange);
    unsigned char *all = malloc(head + (size_t)npes_here * bytes), *at = all + head;
    struct weft_tree_exchange exchange = {.bytes = (uint32_t)bytes};
    memcpy(all, &exchange, head);
    for (int pe = 0; pe < start.options.npes; pe++)
        if (start.host_of[pe] == start.host) {
            memcpy(at, text, bytes - 1);
            at[bytes - 1] = (unsigned char)('0' + pe);
            at += bytes;
        }
    send_frame(WEFT_TREE_GAVE, 0, 0, all, head + (size_t)npes_here * bytes);
    free(all);
}

static void share(void) {
    struct weft_frame frame;
    const void *payload;
    char text[1024];
    if (!await(WEFT_TREE_SHARED, &frame, &payload))
        fail("nothing was shared");
    int head = sizeof(struct weft_tree_exchange);
    snprintf(text, sizeof text, "%.*s\n", (int)frame.bytes - head, (const char *)payload + head);
    out(1, text);
}

static void take_input(void) {
    struct weft_frame frame;
    const void *payload;
    char text[64];
    size_t bytes = 0;
    do {
        if (!await(WEFT_TREE_INPUT, &frame, &payload))
            fail("no input");
        bytes += frame.bytes;
        send_frame(WEFT_TREE_TAKEN, 0, (int)frame.bytes, NULL, 0);
    } while (frame.bytes > 0);
    snprintf(text, sizeof text, "input %zu\n", bytes);
    out(1, text);
}

/* Sends as much output as is allowed, and continues as it is acknowledged. */
static void flood(long bytes) {
    static char lines[WEFT_TREE_PIECE_MAX];
    struct weft_frame frame;
    const void *payload;
    long under_way = 0;
    memset(lines, 'x', sizeof lines);
    for (size_t i = 63; i < sizeof lines; i += 64)
        lines[i] = '\n';
    while (bytes > 0) {
        send_frame(WEFT_TREE_OUTPUT, first_pe, 1, lines, sizeof lines);
        bytes -= (long)sizeof lines;
        under_way += (long)sizeof lines;
        while (under_way + (long)sizeof lines > WEFT_TREE_OUTPUT_MAX) {
            if (!next_frame(&frame, &payload))
                fail("the output ended");
            if (frame.kind == WEFT_TREE_CLOSED)
                return;
            under_way -= frame.kind == WEFT_TREE_TAKEN ? frame.value : 0;
        }
    }
}

static void await_number(uint32_t kind, const char *name) {
    struct weft_frame frame;
    const void *payload;
    char text[64];
    if (!await(kind, &frame, &payload))
        fail("the front has gone");
    snprintf(text, sizeof text, "%s %d %d\n", name, frame.value, frame.pe);
    out(1, text);
}

static void await_cause(void) {
    struct weft_frame frame;
    const void *payload;
    struct weft_tree_cause cause;
    char text[64];
    if (!await(WEFT_TREE_CAUSE, &frame, &payload))
        fail("no cause came");
    memcpy(&cause, payload, sizeof cause);
    snprintf(text, sizeof text, "cause %u of PE %d: %d\n", cause.kind, cause.pe, cause.detail);
    out(1, text);
}

/* Sends the cause in the text "kind,pe,detail". */
static void tell_cause(const char *text) {
    struct weft_tree_cause cause = {.pid = 4711, .state = 1};
    if (sscanf(text, "%u,%d,%d", &cause.kind, &cause.pe, &cause.detail) != 3)
        fail("what cause?");
    send_frame(WEFT_TREE_CAUSE, 0, 0, &cause, sizeof cause);
}

/* Sends DONE and waits for BYE. Returns whether the front is still connected. */
static void done(int status) {
    struct weft_frame frame;
    const void *payload;
    struct weft_tree_done done = {status, status, first_pe, 4700 + first_pe, status != 0};
    send_frame(WEFT_TREE_DONE, 0, 0, &done, sizeof done);
    exit(await(WEFT_TREE_BYE, &frame, &payload) ? 0 : 98);
}

static void junk(const char *text) {
    unsigned kind = 0, bytes = 0;
    int pe = 0, value = 0;
    sscanf(text, "%u,%u,%d,%d", &kind, &bytes, &pe, &value);
    unsigned char *payload = calloc(1, bytes + 1);
    send_frame(kind, pe, value, payload, bytes);
    free(payload);
}

/* Sends frames of random kinds and contents, drawn from this seed; a front rejects most of them. */
static void rave(const char *seed) {
    struct weft_frame frame;
    const void *payload;
    uint32_t words[512];
    srand((unsigned)atoi(seed));
    for (int frames_left = 1 + rand() % 20; frames_left > 0; frames_left--) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            words[i] = rand() % 3 ? (uint32_t)(rand() % 4) : (uint32_t)rand() * 3u;
        static const size_t likely[] = {0,
                                        sizeof(struct weft_tree_exchange),
                                        sizeof(struct weft_tree_pe_status),
                                        sizeof(struct weft_tree_cause),
                                        sizeof(struct weft_tree_done),
                                        sizeof(struct weft_tree_hello)};
        size_t bytes =
            rand() % 4 ? likely[rand() % 6] + (size_t)(rand() % 3) : (size_t)rand() % sizeof words;
        send_frame((uint32_t)(rand() % 18), rand() % 4 - 1, rand() % 4 - 1, words, bytes);
    }
    send_frame(99, 0, 0, NULL, 0);
    await(0, &frame, &payload); /* until the front has closed */
}

static void act_once(const char *verb, char *text) {
    struct weft_frame frame;
    const void *payload;
    if (!strcmp(verb, "hello"))
        hello(text);
    else if (!strcmp(verb, "go") && !await(WEFT_TREE_GO, &frame, &payload))
        exit(0); /* another host could not be started */
    else if (!strcmp(verb, "out") || !strcmp(verb, "err"))
        out(*verb == 'o' ? 1 : 2, text);
    else if (!strcmp(verb, "flood"))
        flood(atol(text));
    else if (!strcmp(verb, "give"))
        give(text);
    else if (!strcmp(verb, "shared"))
        share();
    else if (!strcmp(verb, "input"))
        take_input();
    else if (!strcmp(verb, "signal"))
        await_number(WEFT_TREE_SIGNAL, "signal");
    else if (!strcmp(verb, "closed"))
        await_number(WEFT_TREE_CLOSED, "closed");
    else if (!strcmp(verb, "caused"))
        await_cause();
    else if (!strcmp(verb, "cause"))
        tell_cause(text);
    else if (!strcmp(verb, "line") || !strcmp(verb, "remark"))
        send_frame(WEFT_TREE_LINE, 0, *verb == 'l', text, strlen(text));
    else if (!strcmp(verb, "done"))
        done(atoi(text));
    else if (!strcmp(verb, "junk"))
        junk(text);
    else if (!strcmp(verb, "rave"))
        rave(text);
}

static void act(const char *verb, char *text) {
    struct weft_frame frame;
    const void *payload;
    for (char *at = text; *at; at++)
        *at = *at == '~' ? '\n' : *at;
    act_once(verb, text);
    if (!strcmp(verb, "sleep")) /* without heartbeats */
        weft_clock_sleep_ms(atol(text));
    else if (!strcmp(verb, "wait")) /* until the front has closed */
        await(0, &frame, &payload);
    else if (!strcmp(verb, "exit"))
        exit(atoi(text));
    else if (!strcmp(verb, "say"))
        fprintf(stderr, "%s\n", text);
    else if (!strcmp(verb, "started")) {
        puts(WEFT_TREE_STARTED);
        fflush(stdout);
    } else if (!strcmp(verb, "die"))
        raise(SIGKILL);
    else if (!strcmp(verb, "connect"))
        connect_front();
}

int main(int argc, char **argv) {
    if (argc < 3 || weft_start_read(STDIN_FILENO, &start))
        return 97;
    for (int pe = start.options.npes - 1; pe >= 0; pe--)
        if (start.host_of[pe] == start.host) {
            npes_here++;
            first_pe = pe;
        }
    for (char **word = start.options.program[0].argv + 1; *word; word++) {
        char *verb = *word, *at = strchr(verb, '@'), *equals = strchr(verb, '=');
        bool mine = !at || (equals && equals < at) ||
                    ((size_t)(at - verb) == strlen(argv[1]) &&
                     !strncmp(verb, argv[1], (size_t)(at - verb)));
        if (equals)
            *equals++ = '\0';
        if (mine)
            act(at && (!equals || at < equals) ? at + 1 : verb,
                equals ? equals : verb + strlen(verb));
    }
    return 0;
}
