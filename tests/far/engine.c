/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the engine of this room's tests keeps the contract of transport/transport.h:
 * messages arrive whole and once, in order or, if set so, in all orders; sleepers are woken by
 * messages and by room; a dead target is reported; and callers that break the contract are ended.
 * PEs: 1 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "transport/transport.h"
#include "tap.h"

enum { MESSAGES = 20000, WORDS_MAX = 512 };

extern const struct weft_engine weft_engine;

/* The messages that have arrived at an end: message i has the words i, i + 1, ... */
struct arrivals {
    unsigned char seen[MESSAGES];
    uint32_t count, repeated, spoilt, early;
};

static size_t message_words(uint32_t number) {
    return 1 + number * UINT32_C(2654435761) % WORDS_MAX;
}

static void take(void *context, const void *message, size_t bytes) {
    struct arrivals *arrivals = context;
    const uint64_t *words = message;
    uint32_t number = (uint32_t)words[0];
    bool whole = number < MESSAGES && bytes == message_words(number) * sizeof *words;
    for (size_t i = 0; whole && i < bytes / sizeof *words; i++)
        whole = words[i] == number + i;
    arrivals->spoilt += !whole;
    if (!whole)
        return;
    arrivals->early += number != arrivals->count;
    arrivals->repeated += arrivals->seen[number];
    arrivals->seen[number] = 1;
    arrivals->count++;
}

static struct weft_engine_end *open_end(int pe, const char *settings, void *arrivals) {
    setenv("FAKE_ENGINE", settings, 1);
    struct weft_engine_options options = {
        .pe = pe, .npes = 2, .deliver = take, .context = arrivals};
    struct weft_engine_end *end = NULL;
    int error = weft_engine.open(&options, &end);
    EXPECT(error == 0, "%s", strerror(-error));
    return end;
}

static struct weft_engine_link *link_ends(struct weft_engine_end *from,
                                          struct weft_engine_end *to) {
    char address[WEFT_ENGINE_ADDRESS_BYTES];
    size_t bytes = 3;
    struct weft_engine_link *link = NULL;
    EXPECT(weft_engine.address(to, address, &bytes) == -ENOSPC, "room of 3 bytes was enough");
    bytes = sizeof address;
    int error = weft_engine.address(to, address, &bytes);
    EXPECT(error == 0 && bytes <= sizeof address, "%d, %zu bytes", error, bytes);
    error = weft_engine.connect(from, address, bytes, &link);
    EXPECT(error == 0, "%s", strerror(-error));
    return link;
}

static int send_message(struct weft_engine_link *link, uint32_t number) {
    uint64_t words[WORDS_MAX];
    size_t count = message_words(number), half = count / 2;
    for (size_t i = 0; i < count; i++)
        words[i] = number + i;
    struct iovec parts[] = {
        {words, half * sizeof *words}, {NULL, 0}, {words + half, (count - half) * sizeof *words}};
    return weft_engine.message(link, parts, 3);
}

/* Sends all messages from one end to another, in one thread. */
static void check_way(const char *settings, bool ordered) {
    struct arrivals *arrivals = calloc(1, sizeof *arrivals);
    struct weft_engine_end *from = open_end(0, settings, NULL),
                           *to = open_end(1, settings, arrivals);
    struct weft_engine_link *link = link_ends(from, to);
    EXPECT(weft_engine.abilities(link) == (ordered ? WEFT_ENGINE_ORDERED : 0), "wrong abilities");
    uint32_t sent = 0, refused = 0;
    while (arrivals->count < MESSAGES) {
        int error = sent < MESSAGES ? send_message(link, sent) : -EAGAIN;
        sent += error == 0;
        refused += error == -EAGAIN && sent < MESSAGES;
        EXPECT(error == 0 || error == -EAGAIN, "message %u: %s", sent, strerror(-error));
        if (error == -EAGAIN)
            weft_engine.progress(to);
        weft_engine.progress(from);
    }
    EXPECT(weft_engine.progress(to) == 0, "there is more than was sent");
    EXPECT(refused > 0, "there always was room");
    EXPECT(arrivals->repeated == 0 && arrivals->spoilt == 0, "%u repeated, %u spoilt",
           arrivals->repeated, arrivals->spoilt);
    EXPECT(ordered ? arrivals->early == 0 : arrivals->early > MESSAGES / 2, "%u out of order",
           arrivals->early);
    weft_engine.abandon(from);
    weft_engine.abandon(to);
    free(arrivals);
}

/* A reader that sleeps whenever there is nothing to do. */
struct sleeper {
    struct weft_engine_end *end;
    struct arrivals *arrivals;
    int sleeps, overslept;
};

static void *sleep_and_read(void *argument) {
    struct sleeper *sleeper = argument;
    int descriptor;
    while (sleeper->arrivals->count < MESSAGES) {
        if (weft_engine.progress(sleeper->end) || weft_engine.arm(sleeper->end, &descriptor) != 0)
            continue;
        sleeper->sleeps++;
        struct pollfd wait = {.fd = descriptor, .events = POLLIN};
        sleeper->overslept += poll(&wait, 1, 10000) != 1;
    }
    return NULL;
}

/* The writer pauses now and then, and sleeps itself if there is no room. */
static void check_sleepers(const char *settings) {
    struct arrivals *arrivals = calloc(1, sizeof *arrivals);
    struct weft_engine_end *from = open_end(0, settings, NULL);
    struct sleeper sleeper = {.end = open_end(1, settings, arrivals), .arrivals = arrivals};
    struct weft_engine_link *link = link_ends(from, sleeper.end);
    pthread_t thread;
    int waits = 0, overslept = 0, descriptor;
    pthread_create(&thread, NULL, sleep_and_read, &sleeper);
    for (uint32_t sent = 0; sent < MESSAGES;) {
        int error = send_message(link, sent);
        sent += error == 0;
        if (sent % 1000 == 0)
            usleep(500);
        if (error == -EAGAIN && weft_engine.progress(from) == 0 &&
            weft_engine.arm(from, &descriptor) == 0) {
            struct pollfd wait = {.fd = descriptor, .events = POLLIN};
            overslept += poll(&wait, 1, 10000) != 1;
            waits++;
        }
    }
    pthread_join(thread, NULL);
    EXPECT(sleeper.sleeps > 0 && sleeper.overslept == 0, "%d sleeps, %d for too long",
           sleeper.sleeps, sleeper.overslept);
    EXPECT(waits > 0 && overslept == 0, "%d waits for room, %d for too long", waits, overslept);
    EXPECT(arrivals->repeated == 0 && arrivals->spoilt == 0, "%u repeated, %u spoilt",
           arrivals->repeated, arrivals->spoilt);
    weft_engine.abandon(from);
    weft_engine.abandon(sleeper.end);
    free(arrivals);
}

/* The target has died: messages are refused once this end has noticed. */
static void check_death(void) {
    struct weft_engine_end *from = open_end(0, "", NULL), *to = open_end(1, "", NULL);
    struct weft_engine_link *link = link_ends(from, to);
    EXPECT(send_message(link, 0) == 0, "there was no room for one message");
    weft_engine.abandon(to);
    int error = 0;
    for (int i = 0; i < 1000 && error == 0; i++) {
        weft_engine.progress(from);
        error = send_message(link, 0);
    }
    EXPECT(error == -ECONNRESET, "%d", error);
    weft_engine.abandon(from);
}

/* A child that runs `wrong` must abort, or be killed by the given signal. */
static void check_end(void (*wrong)(void), int signal) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int quiet = dup(2);
        if (!freopen("/dev/null", "w", stderr))
            dprintf(quiet, "cannot silence\n");
        wrong();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == signal, "status %#x", (unsigned)status);
}

static void send_too_much(void) {
    static char message[1 << 20];
    struct weft_engine_end *end = open_end(0, "", NULL);
    struct iovec part = {message, weft_engine.message_bytes + 1};
    weft_engine.message(link_ends(end, end), &part, 1);
}

static struct weft_engine_end *end_of_nested;
static void progress_again(void *context, const void *message, size_t bytes) {
    (void)context, (void)message, (void)bytes;
    weft_engine.progress(end_of_nested);
}

static void progress_within_deliver(void) {
    struct weft_engine_options options = {.npes = 1, .deliver = progress_again};
    weft_engine.open(&options, &end_of_nested);
    send_message(link_ends(end_of_nested, end_of_nested), 0);
    for (int i = 0; i < 100; i++)
        weft_engine.progress(end_of_nested);
}

static void *make_progress(void *end) {
    for (;;)
        weft_engine.progress(end);
    return NULL;
}

static void call_without_lock(void) {
    struct weft_engine_end *end = open_end(0, "", NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, make_progress, end);
    make_progress(end);
}

static void connect_twice(void) {
    struct weft_engine_end *end = open_end(0, "", NULL);
    link_ends(end, end);
    link_ends(end, end);
}

static void set_nonsense(void) {
    open_end(0, "seed=7,reoder=16", NULL);
}

static void die_at_tenth(void) {
    struct weft_engine_end *end = open_end(3, "pe=2,die_after=2;pe=3,die_after=10", NULL);
    struct weft_engine_link *link = link_ends(end, end);
    for (int i = 0; i < 9; i++)
        send_message(link, 0);
    if (send_message(link, 0) != -EAGAIN)
        _exit(1);
}

static void break_limit(void) {
    struct weft_engine_end *end = open_end(0, "limit=10000", NULL);
    struct weft_engine_link *link = link_ends(end, end);
    for (uint32_t i = 0; i < 100; i++)
        send_message(link, i);
}

int main(void) {
    tap_start(0);
    tap_case("messages arrive whole, once and in order");
    check_way("ring=65536", true);
    check_way("refuse=20", true);
    check_way("delay_us=20,ring=65536", true);
    tap_case("messages arrive whole and once in all orders");
    check_way("reorder=16,ring=65536,seed=5", false);
    check_way("reorder=16,delay_us=50,ring=65536", false);
    tap_case("sleepers are woken");
    check_sleepers("ring=65536");
    check_sleepers("ring=65536,reorder=16,delay_us=50,refuse=5");
    tap_case("a target that has gone is reported");
    check_death();
    tap_case("callers are judged");
    check_end(send_too_much, SIGABRT);
    check_end(progress_within_deliver, SIGABRT);
    check_end(call_without_lock, SIGABRT);
    check_end(connect_twice, SIGABRT);
    check_end(break_limit, SIGABRT);
    tap_case("settings are read");
    check_end(set_nonsense, SIGABRT);
    check_end(die_at_tenth, SIGKILL);
    return tap_finish();
}
