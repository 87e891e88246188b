/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a ring of letters carries all sizes whole and in order, over its end and around,
 * says when it is full and when its reader or its writer is to be woken, and is whole when its
 * writer is killed or its reader does not look. PEs: 1 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "far.h"
#include "transport/letter_ring.h"

enum { BYTES = 4096, LETTER_MAX = BYTES / 3, LETTERS = 4000, PATIENCE_MS = 10000 };

/* Both ends of a ring, as two processes have them, and the bells of either. */
static struct ends {
    struct weft_letter_ring writer, reader;
    int to_reader, to_writer;
} ends;

static void ends_open(void) {
    size_t bytes = weft_letter_ring_file_bytes(BYTES);
    int fd = memfd_create("letters", MFD_CLOEXEC);
    EXPECT(ftruncate(fd, (off_t)bytes) == 0, "there is no file");
    EXPECT(weft_letter_ring_map(&ends.writer, fd) == 0, "the writer has no ring");
    EXPECT(weft_letter_ring_map(&ends.reader, fd) == 0, "the reader has no ring");
    close(fd);
    ends.to_reader = eventfd(0, EFD_NONBLOCK);
    ends.to_writer = eventfd(0, EFD_NONBLOCK);
}

static void ends_close(void) {
    weft_letter_ring_unmap(&ends.writer);
    weft_letter_ring_unmap(&ends.reader);
    close(ends.to_reader);
    close(ends.to_writer);
}

static size_t bytes_of(uint64_t number) {
    return 1 + number * UINT32_C(2654435761) % LETTER_MAX;
}

/* In three parts, of which one is empty. */
static bool letter_write(uint64_t number, size_t bytes) {
    unsigned char letter[LETTER_MAX];
    fill(letter, bytes, number);
    struct iovec parts[] = {
        {letter, bytes / 3}, {NULL, 0}, {letter + bytes / 3, bytes - bytes / 3}};
    return weft_letter_ring_write(&ends.writer, parts, 3, bytes);
}

/* Whether there is one, which must be this one. */
static bool letter_read(uint64_t number, size_t bytes) {
    size_t came;
    const void *letter = weft_letter_ring_read(&ends.reader, &came);
    if (!letter)
        return false;
    EXPECT(came == bytes && (uintptr_t)letter % 8 == 0, "letter %lu has %zu bytes, not %zu",
           (unsigned long)number, came, bytes);
    EXPECT(differs(letter, bytes, number) == bytes, "letter %lu is another one",
           (unsigned long)number);
    weft_letter_ring_take(&ends.reader, came);
    return true;
}

/* One writes as much as there is room for, the other reads some: positions come by every place. */
static void check_sizes(void) {
    uint64_t written = 0, got = 0, state = 7;
    ends_open();
    while (got < LETTERS) {
        for (uint64_t n = draw(&state) % 8; n > 0 && letter_write(written, bytes_of(written)); n--)
            written++;
        for (uint64_t n = draw(&state) % 8; n > 0 && letter_read(got, bytes_of(got)); n--)
            got++;
        weft_letter_ring_give_back(&ends.reader);
        EXPECT(weft_letter_ring_under_way(&ends.writer) <= BYTES, "more is under way than fits");
    }
    ends_close();
}

static void check_full(void) {
    uint64_t written = 0, got = 0;
    ends_open();
    while (letter_write(written, LETTER_MAX))
        written++;
    EXPECT(written >= 2, "only %lu letters fit", (unsigned long)written);
    EXPECT(!letter_write(written, LETTER_MAX), "a full ring takes a letter");
    while (letter_read(got, LETTER_MAX))
        got++;
    EXPECT(got == written, "%lu of %lu came", (unsigned long)got, (unsigned long)written);
    EXPECT(!letter_write(written, LETTER_MAX), "there is room before it is given back");
    EXPECT(weft_letter_ring_give_back(&ends.reader), "the writer is not to be woken");
    EXPECT(letter_write(written, LETTER_MAX), "there is no room behind that");
    EXPECT(letter_read(got, LETTER_MAX), "the last one has not come");
    EXPECT(!weft_letter_ring_give_back(&ends.reader), "a writer that has not waited is woken");
    ends_close();
}

static void bell_ring(int bell) {
    uint64_t one = 1;
    EXPECT(write(bell, &one, sizeof one) == sizeof one, "a bell does not ring");
}

static void bell_await(int bell) {
    struct pollfd wait = {.fd = bell, .events = POLLIN};
    uint64_t rung;
    EXPECT(poll(&wait, 1, PATIENCE_MS) == 1, "nobody has rung");
    EXPECT(read(bell, &rung, sizeof rung) == sizeof rung, "there was no bell");
}

static void *sleep_and_read(void *unused) {
    for (uint64_t got = 0; got < LETTERS;) {
        size_t bytes;
        uint64_t before = got;
        while (got < LETTERS && letter_read(got, bytes_of(got)))
            got++;
        if (got != before && weft_letter_ring_give_back(&ends.reader))
            bell_ring(ends.to_writer);
        if (got != before)
            continue;
        weft_letter_ring_sleep(&ends.reader, true);
        if (!weft_letter_ring_read(&ends.reader, &bytes))
            bell_await(ends.to_reader);
        weft_letter_ring_sleep(&ends.reader, false);
    }
    return unused;
}

/* Each sleeps whenever it can do nothing: a bell that does not ring is a wait of seconds. A bell
 * that rings for one who is awake already only makes the next sleep short. */
static void check_sleepers(void) {
    pthread_t reader;
    ends_open();
    pthread_create(&reader, NULL, sleep_and_read, NULL);
    for (uint64_t written = 0; written < LETTERS;) {
        if (!letter_write(written, bytes_of(written))) {
            bell_await(ends.to_writer);
            continue;
        }
        if (weft_letter_ring_wakes_reader(&ends.writer))
            bell_ring(ends.to_reader);
        if (++written % 1000 == 0)
            usleep(500);
    }
    pthread_join(reader, NULL);
    ends_close();
}

static void write_for_ever(void) {
    for (uint64_t written = 0;;)
        written += letter_write(written, bytes_of(written));
}

/* A writer that is killed anywhere leaves whole letters. */
static void check_death(void) {
    for (int i = 0; i < rounds(20); i++) {
        uint64_t got = 0;
        ends_open();
        pid_t writer = fork();
        if (writer == 0)
            write_for_ever();
        while (got < 200 + (uint64_t)i) {
            got += letter_read(got, bytes_of(got));
            weft_letter_ring_give_back(&ends.reader);
        }
        kill(writer, SIGKILL);
        waitpid(writer, NULL, 0);
        while (letter_read(got, bytes_of(got)))
            got++;
        ends_close();
    }
}

int main(void) {
    tap_start(0);
    tap_case("letters of all sizes come whole and in order");
    check_sizes();
    tap_case("a full ring takes nothing, and says so");
    check_full();
    tap_case("sleepers are woken");
    check_sleepers();
    tap_case("who dies leaves whole letters");
    check_death();
    return tap_finish();
}
