/* SPDX-License-Identifier: BSD-3-Clause */
/* What every engine has to keep of transport/transport.h, between ends of one process: messages of
 * all sizes arrive whole and once, nobody's are kept waiting by others', room is bounded, sleepers
 * are woken by messages and by room, a dead target is reported, and what is given back is gone. */
#ifndef TESTS_ENGINE_CONTRACT_H
#define TESTS_ENGINE_CONTRACT_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tap.h"
#include "transport/transport.h"

enum { MESSAGES = 3000, ROOM_MAX = 64 << 20 };

static const struct weft_engine *engine;
static unsigned char *source; /* any message is a part of it */

/* What has come to an end: message i begins with i, and goes on with the source. */
struct arrivals {
    unsigned char seen[MESSAGES];
    _Atomic uint32_t count; /* which another thread may look at */
    uint32_t repeated, spoilt;
    struct weft_engine_end *answers; /* an end that links back and answers, or NULL */
    struct weft_engine_link *back;
};

/* Small ones, and now and then the longest. */
static size_t message_bytes(uint32_t number) {
    size_t most = number % 16 == 0 ? engine->message_bytes : number % 4 == 0 ? 9000 : 100;
    return 4 + (number % 160 == 0 ? most - 4 : number * UINT32_C(2654435761) % (most - 4));
}

static int message_send(struct weft_engine_link *link, uint32_t number) {
    size_t rest = message_bytes(number) - sizeof number, half = rest / 3;
    struct iovec parts[] = {{&number, sizeof number},
                            {NULL, 0},
                            {source + number, half},
                            {source + number + half, rest - half}};
    return engine->message(link, parts, 4);
}

static void take(void *context, const void *message, size_t bytes) {
    struct arrivals *arrivals = context;
    uint32_t number;
    memcpy(&number, message, sizeof number);
    bool whole = number < MESSAGES && bytes == message_bytes(number) &&
                 (uintptr_t)message % WEFT_ENGINE_ALIGNMENT == 0 &&
                 memcmp((const char *)message + 4, source + number, bytes - 4) == 0;
    arrivals->spoilt += !whole;
    if (!whole)
        return;
    arrivals->repeated += arrivals->seen[number];
    arrivals->seen[number] = 1;
    arrivals->count++;
    if (arrivals->back && number % 100 == 0)
        EXPECT(message_send(arrivals->back, number) == 0, "message %u cannot be answered", number);
}

static struct weft_engine_end *end_open(struct arrivals *arrivals) {
    char reason[WEFT_ENGINE_TEXT_BYTES] = "";
    struct weft_engine_options options = {
        .npes = 2, .reason = reason, .deliver = take, .context = arrivals};
    struct weft_engine_end *end = NULL;
    int error = engine->open(&options, &end);
    EXPECT(error == 0, "%s: %s", strerror(-error), reason);
    return end;
}

static struct weft_engine_link *ends_link(struct weft_engine_end *from,
                                          struct weft_engine_end *to) {
    char address[WEFT_ENGINE_ADDRESS_BYTES];
    size_t bytes = 3;
    struct weft_engine_link *link = NULL;
    EXPECT(engine->address(to, address, &bytes) == -ENOSPC, "room of 3 bytes was enough");
    bytes = sizeof address;
    int error = engine->address(to, address, &bytes);
    EXPECT(error == 0 && bytes <= sizeof address, "%d, %zu bytes", error, bytes);
    error = engine->connect(from, address, bytes, &link);
    EXPECT(error == 0, "%s", strerror(-error));
    return link;
}

/* All messages from one end to another, whose answers come back, in one thread. */
static void check_way(void) {
    struct arrivals there = {0}, back = {0};
    struct weft_engine_end *from = end_open(&back), *to = end_open(&there);
    struct weft_engine_link *link = ends_link(from, to);
    there.back = ends_link(to, from);
    for (uint32_t sent = 0; there.count < MESSAGES || back.count < MESSAGES / 100;) {
        int error = sent < MESSAGES ? message_send(link, sent) : -EAGAIN;
        sent += error == 0;
        EXPECT(error == 0 || error == -EAGAIN, "message %u: %s", sent, strerror(-error));
        if (error && error != -EAGAIN)
            break;
        if (error)
            engine->progress(to);
        engine->progress(from);
    }
    EXPECT(there.repeated + back.repeated == 0, "%u, %u repeated", there.repeated, back.repeated);
    EXPECT(there.spoilt + back.spoilt == 0, "%u, %u spoilt", there.spoilt, back.spoilt);
    engine->abandon(from);
    engine->abandon(to);
}

/* One message, whatever it takes. */
static void message_bring(struct weft_engine_end *from, struct weft_engine_link *link,
                          struct weft_engine_end *to, struct arrivals *there, uint32_t number) {
    bool sent = false;
    for (int turn = 0; turn < 1000000 && !there->seen[number]; turn++) {
        sent = sent || message_send(link, number) == 0;
        engine->progress(from);
        engine->progress(to);
    }
    EXPECT(there->seen[number], "message %u has not come", number);
}

/* Two ends that find a message of the other's whenever one of theirs has gone, and a third one's
 * message, that is not kept waiting for long. */
static void check_third(void) {
    enum { TURNS = 500, FIRST = 1000 };
    struct arrivals at_first = {0}, at_second = {0}, at_third = {0};
    struct weft_engine_end *first = end_open(&at_first), *second = end_open(&at_second);
    struct weft_engine_end *third = end_open(&at_third);
    struct weft_engine_link *there = ends_link(first, second), *back = ends_link(second, first);
    struct weft_engine_link *from_third = ends_link(third, first);
    message_bring(first, there, second, &at_second, 1);
    message_bring(second, back, first, &at_first, 2);
    message_bring(third, from_third, first, &at_first, 3);
    EXPECT(message_send(from_third, 5) == 0, "a message is refused");
    engine->progress(third);
    uint32_t turn = 0;
    for (; turn < TURNS && !at_first.seen[5]; turn++) {
        message_send(back, FIRST + turn);
        engine->progress(second);
        message_send(there, FIRST + turn);
        engine->progress(first);
    }
    EXPECT(turn < TURNS, "a message waits while %d others are answered", TURNS);
    engine->abandon(first);
    engine->abandon(second);
    engine->abandon(third);
}

/* A target that does not look fills up, and no more than that; nothing of it is lost. */
static void check_room(void) {
    struct arrivals there = {0};
    struct weft_engine_end *from = end_open(NULL), *to = end_open(&there);
    struct weft_engine_link *link = ends_link(from, to);
    size_t taken = 0, bytes = 0, turns = 0;
    for (int refused = 0; refused < 1000 && bytes < ROOM_MAX && turns++ < 1000000;) {
        uint32_t number = taken % MESSAGES;
        int error = message_send(link, number);
        refused = error == -EAGAIN ? refused + 1 : 0;
        taken += error == 0;
        bytes += error == 0 ? message_bytes(number) : 0;
        engine->progress(from);
    }
    EXPECT(bytes < ROOM_MAX, "%zu bytes were taken, and nobody has read one", bytes);
    EXPECT(there.count == 0, "%u messages without progress", there.count);
    for (turns = 0; there.count < taken && turns < 1000000; turns++) {
        engine->progress(from);
        engine->progress(to);
    }
    EXPECT(there.count == taken, "%u of %zu messages have come", there.count, taken);
    engine->abandon(from);
    engine->abandon(to);
}

/* A reader that sleeps whenever there is nothing to do. */
struct sleeper {
    struct weft_engine_end *end;
    struct arrivals *arrivals;
    int sleeps, descriptor;
    _Atomic int overslept; /* which another thread may look at */
};

static int end_sleep(struct weft_engine_end *end, int *descriptor) {
    struct pollfd wait = {.events = POLLIN};
    if (engine->progress(end) || engine->arm(end, &wait.fd) != 0)
        return 0;
    EXPECT(*descriptor <= 0 || *descriptor == wait.fd, "another descriptor, %d", wait.fd);
    *descriptor = wait.fd;
    return poll(&wait, 1, 10000) == 1 ? 1 : -1;
}

static void *sleep_and_read(void *argument) {
    struct sleeper *sleeper = argument;
    while (sleeper->arrivals->count < MESSAGES) {
        int slept = end_sleep(sleeper->end, &sleeper->descriptor);
        sleeper->sleeps += slept != 0;
        sleeper->overslept += slept < 0;
    }
    return NULL;
}

/* The writer pauses now and then, and sleeps itself where there is no room. */
static void check_sleepers(void) {
    struct arrivals there = {0};
    struct weft_engine_end *from = end_open(NULL);
    struct sleeper sleeper = {.end = end_open(&there), .arrivals = &there};
    struct weft_engine_link *link = ends_link(from, sleeper.end);
    pthread_t thread;
    int overslept = 0, descriptor = 0;
    pthread_create(&thread, NULL, sleep_and_read, &sleeper);
    for (uint32_t sent = 0; sent < MESSAGES;) {
        int error = message_send(link, sent);
        sent += error == 0;
        if (sent % 300 == 0)
            usleep(500);
        if (error == -EAGAIN)
            overslept += end_sleep(from, &descriptor) < 0;
        else
            engine->progress(from);
    }
    while (there.count < MESSAGES && sleeper.overslept == 0) {
        engine->progress(from);
        usleep(100);
    }
    pthread_join(thread, NULL);
    EXPECT(sleeper.sleeps > 0 && sleeper.overslept == 0, "%d sleeps, %d for too long",
           sleeper.sleeps, sleeper.overslept);
    EXPECT(overslept == 0, "%d waits for room took too long", overslept);
    EXPECT(there.repeated == 0 && there.spoilt == 0, "%u repeated, %u spoilt", there.repeated,
           there.spoilt);
    engine->abandon(from);
    engine->abandon(sleeper.end);
}

/* The target has gone, with messages under way or not: what is sent is refused before long, and
 * abandoning waits for nothing. */
static void check_death(uint32_t under_way) {
    struct arrivals there = {0};
    struct weft_engine_end *from = end_open(NULL), *to = end_open(&there);
    struct weft_engine_link *link = ends_link(from, to);
    message_bring(from, link, to, &there, 0);
    for (uint32_t i = 1; i < under_way; i++)
        message_send(link, i);
    engine->abandon(to);
    int error = 0;
    for (int i = 0; i < 5000 && (error == 0 || error == -EAGAIN); i++) {
        usleep(200);
        engine->progress(from);
        error = message_send(link, 1);
    }
    EXPECT(error < 0 && error != -EAGAIN, "%s", strerror(-error));
    EXPECT(message_send(link, 1) == error, "it is another error the next time");
    engine->abandon(from);
}

static int descriptors_count(bool inherited) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        int fd = atoi(entry->d_name);
        int flags = entry->d_name[0] == '.' || fd == dirfd(folder) ? -1 : fcntl(fd, F_GETFD);
        count += flags >= 0 && (!inherited || !(flags & FD_CLOEXEC));
    }
    closedir(folder);
    return count;
}

static int tasks_count(void) {
    DIR *folder = opendir("/proc/self/task");
    int count = -2;
    while (folder && readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* A process that finalizes and starts again, over and over. */
static void check_repeats(void) {
    struct arrivals there = {0};
    check_death(10);
    int descriptors = descriptors_count(false), inherited = descriptors_count(true);
    int tasks = tasks_count();
    for (int i = 0; i < 5; i++) {
        struct weft_engine_end *from = end_open(NULL), *to = end_open(&there);
        struct weft_engine_link *link = ends_link(from, to);
        there.count = there.repeated = there.seen[0] = 0;
        message_bring(from, link, to, &there, 0);
        unsigned threads = engine->threads(from) + engine->threads(to);
        int descriptor;
        for (int turn = 0; engine->arm(to, &descriptor) != 0 && turn < 1000; turn++)
            engine->progress(to);
        EXPECT(descriptors_count(true) == inherited, "%d descriptors would be inherited, not %d",
               descriptors_count(true), inherited);
        EXPECT((int)threads == tasks_count() - tasks, "%u threads are told, and there are %d",
               threads, tasks_count() - tasks);
        engine->abandon(from);
        engine->abandon(to);
    }
    EXPECT(descriptors_count(false) == descriptors, "%d descriptors, and there were %d",
           descriptors_count(false), descriptors);
    EXPECT(tasks_count() == tasks, "%d threads, and there were %d", tasks_count(), tasks);
}

static void contract_check(const struct weft_engine *checked) {
    engine = checked;
    source = malloc(MESSAGES + engine->message_bytes);
    for (size_t i = 0; i < MESSAGES + engine->message_bytes; i++)
        source[i] = (unsigned char)(i * 40503u >> 8);
    tap_case("messages arrive whole and once, and can be answered");
    check_way();
    tap_case("who is answered at once hears others, too");
    check_third();
    tap_case("room is bounded, and nothing comes without progress");
    check_room();
    tap_case("sleepers are woken");
    check_sleepers();
    tap_case("a target that has gone is reported");
    check_death(1);
    check_death(200);
    tap_case("what is given back is gone");
    check_repeats();
    free(source);
}

#endif
