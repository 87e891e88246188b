/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a stranger who connects to the port of an end without knowing its secret is hung up
 * on, costs a bounded number of descriptors, and delays no message; a stranger who answers in a
 * PE's place receives no message. If no descriptors are left, a stranger's is closed, and without
 * strangers that is an error. PEs: 1 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tap.h"
#include "tcp/end.h"
#include "tcp/engine.h"

enum { STRANGERS = 300, HELD_MAX = 64 };

static const struct weft_engine *const engine = &weft_tcp_engine;
static unsigned delivered, wrong;

/* The end that is called, and the end that calls. */
static struct weft_engine_end *home, *peer;
static struct weft_engine_link *way; /* from peer to home */

static void take(void *context, const void *message, size_t bytes) {
    (void)context;
    delivered++;
    wrong += bytes != 6 || memcmp(message, "message", 6) != 0;
}

static struct weft_engine_end *end_open(void) {
    char reason[WEFT_ENGINE_TEXT_BYTES] = "";
    struct weft_engine_options options = {.npes = 2, .reason = reason, .deliver = take};
    struct weft_engine_end *end = NULL;
    int error = engine->open(&options, &end);
    EXPECT(error == 0, "%s: %s", strerror(-error), reason);
    return end;
}

static struct weft_tcp_address address_of(struct weft_engine_end *end) {
    struct weft_tcp_address address;
    size_t bytes = sizeof address;
    EXPECT(engine->address(end, &address, &bytes) == 0 && bytes == sizeof address, "%zu", bytes);
    return address;
}

static struct weft_engine_link *link_to(struct weft_engine_end *from,
                                        const struct weft_tcp_address *address) {
    struct weft_engine_link *link = NULL;
    int error = engine->connect(from, address, sizeof *address, &link);
    EXPECT(error == 0, "%s", strerror(-error));
    return link;
}

static void look(int turns) {
    for (int i = 0; i < turns; i++) {
        engine->progress(home);
        if (peer)
            engine->progress(peer);
    }
}

/* A message from peer to home arrives soon. */
static bool message_comes(void) {
    struct iovec part = {(void *)(uintptr_t) "message", 6};
    unsigned before = delivered;
    int error = -EAGAIN;
    for (int i = 0; i < 20000 && error == -EAGAIN; i++) {
        error = engine->message(way, &part, 1);
        look(1);
    }
    for (int i = 0; i < 20000 && delivered == before; i++)
        look(1);
    return error == 0 && delivered == before + 1;
}

static void ends_open(void) {
    delivered = wrong = 0;
    home = end_open();
    peer = end_open();
    struct weft_tcp_address address = address_of(home);
    way = link_to(peer, &address);
}

static void ends_abandon(void) {
    EXPECT(wrong == 0, "%u messages are none of ours", wrong);
    engine->abandon(home);
    engine->abandon(peer);
    home = peer = NULL;
}

/* --- Strangers ------------------------------------------------------------------------------- */

static int stranger_connect(void) {
    struct weft_tcp_address address = address_of(home);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(fd, (struct sockaddr *)&address.at, sizeof(struct sockaddr_in)) != 0 &&
        errno != EINPROGRESS)
        EXPECT(false, "%s", strerror(errno));
    return fd;
}

static void stranger_say(int fd, const void *message, size_t bytes) {
    EXPECT(send(fd, message, bytes, MSG_NOSIGNAL) == (ssize_t)bytes, "%s", strerror(errno));
    look(20);
}

static bool stranger_hears(int fd, void *message, size_t bytes) {
    for (int i = 0; i < 1000; i++) {
        look(1);
        if (recv(fd, message, bytes, 0) == (ssize_t)bytes)
            return true;
    }
    return false;
}

static bool is_hung_up_on(int fd) {
    char byte;
    ssize_t got = -1;
    for (int i = 0; i < 1000; i++) {
        look(1);
        got = recv(fd, &byte, 1, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            break;
    }
    close(fd);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

static struct weft_tcp_hello hello_make(char nonce) {
    struct weft_tcp_hello hello = {.magic = "weftTCP"};
    memset(hello.name, 'n', sizeof hello.name);
    memset(hello.nonce, nonce, sizeof hello.nonce);
    return hello;
}

/* Computes the proof that a caller has to send, with this secret. */
static void proof_make(unsigned char proof[WEFT_SIPHASH_BYTES], const unsigned char *secret,
                       const struct weft_tcp_hello *hello,
                       const struct weft_tcp_challenge *challenge) {
    unsigned char said[sizeof *hello + sizeof challenge->nonce + 1];
    memcpy(said, hello, sizeof *hello);
    memcpy(said + sizeof *hello, challenge->nonce, sizeof challenge->nonce);
    said[sizeof said - 1] = 'c';
    weft_siphash(proof, secret, said, sizeof said);
}

/* Sends a frame with a message that home would have to believe. */
static void message_say(int fd) {
    unsigned char frame[16] = {6};
    memcpy(frame + 8, "message", 6);
    send(fd, frame, sizeof frame, MSG_NOSIGNAL);
    look(50);
}

/* Calls with a proof made with this secret, or with a recorded one, and sends a message. */
static bool call_is_refused(const unsigned char *secret, const unsigned char *recorded,
                            unsigned char proof[WEFT_SIPHASH_BYTES]) {
    struct weft_tcp_hello hello = hello_make('x');
    struct weft_tcp_challenge challenge;
    int fd = stranger_connect();
    unsigned before = delivered;
    look(5);
    stranger_say(fd, &hello, sizeof hello);
    EXPECT(stranger_hears(fd, &challenge, sizeof challenge), "no challenge");
    if (recorded)
        memcpy(proof, recorded, WEFT_SIPHASH_BYTES);
    else
        proof_make(proof, secret, &hello, &challenge);
    stranger_say(fd, proof, WEFT_SIPHASH_BYTES);
    char welcome[8];
    bool welcomed = stranger_hears(fd, welcome, sizeof welcome);
    message_say(fd);
    EXPECT(welcomed == (delivered == before + 1), "%u messages", delivered - before);
    if (welcomed)
        close(fd);
    return !welcomed && is_hung_up_on(fd);
}

static void check_proofs(void) {
    unsigned char proof[WEFT_SIPHASH_BYTES], recorded[WEFT_SIPHASH_BYTES];
    ends_open();
    struct weft_tcp_address address = address_of(home);
    EXPECT(!call_is_refused(address.secret, NULL, recorded), "who knows the secret is refused");
    EXPECT(call_is_refused(NULL, recorded, proof), "a proof is good for two calls");
    for (unsigned bit = 0; bit < 8 * sizeof address.secret; bit += 9) {
        struct weft_tcp_address forged = address;
        forged.secret[bit / 8] ^= (unsigned char)(1 << bit % 8);
        EXPECT(call_is_refused(forged.secret, NULL, proof), "a secret with bit %u wrong", bit);
    }
    EXPECT(message_comes(), "a message of a PE's has not come");
    ends_abandon();
}

static void check_garbage(void) {
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
    unsigned char noise[200];
    ends_open();
    for (unsigned i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)(i * 89 + 7);
    int other = stranger_connect();
    look(5);
    stranger_say(other, noise, sizeof noise);
    EXPECT(is_hung_up_on(other), "noise is listened to");
    int web = stranger_connect();
    look(5);
    stranger_say(web, request, strlen(request));
    EXPECT(is_hung_up_on(web), "a browser is listened to");
    int gone = stranger_connect();
    look(5);
    close(gone);
    look(20);
    EXPECT(home->nstrangers == 0, "%u strangers are there", home->nstrangers);
    EXPECT(message_comes(), "a message of a PE's has not come");
    ends_abandon();
}

/* One half of the strangers sends one half of a hello. */
static void check_silence(void) {
    int fds[STRANGERS];
    struct weft_tcp_hello hello = hello_make('s');
    ends_open();
    for (int i = 0; i < STRANGERS; i++) {
        fds[i] = stranger_connect();
        look(1);
        if (i % 2)
            stranger_say(fds[i], &hello, sizeof hello / 2);
        EXPECT(home->nstrangers <= HELD_MAX, "%u strangers are there", home->nstrangers);
        if (i % 50 == 0)
            EXPECT(message_comes(), "no message comes beside %d strangers", i);
    }
    EXPECT(is_hung_up_on(fds[0]), "the oldest is there still");
    for (struct weft_tcp_connection *one = home->greeting; one; one = one->next)
        one->since_ns -= UINT64_C(6000000000);
    look(2);
    EXPECT(home->nstrangers == 0, "%u strangers have more than 5 s", home->nstrangers);
    for (int i = 1; i < STRANGERS; i++)
        close(fds[i]);
    ends_abandon();
}

/* At each of home's polls, more strangers have connected than it keeps. */
static void check_flood(void) {
    enum { AT_ONCE = 20, ROUNDS = 40 };
    int fds[AT_ONCE * ROUNDS];
    struct iovec part = {(void *)(uintptr_t) "message", 6};
    int round = 0;
    ends_open();
    EXPECT(engine->message(way, &part, 1) == 0, "the first message is not taken");
    for (; round < ROUNDS && delivered == 0; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            fds[round * AT_ONCE + i] = stranger_connect();
        look(1);
    }
    EXPECT(round > 2, "it was there behind %d rounds: there was no flood", round);
    look(20000);
    EXPECT(delivered == 1, "%u messages", delivered);
    for (int i = 0; i < round * AT_ONCE; i++)
        close(fds[i]);
    ends_abandon();
}

/* --- Others in a PE's place ------------------------------------------------------------------ */

static int imposter_listen(struct weft_tcp_address *address) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    EXPECT(bind(fd, (struct sockaddr *)&in, sizeof in) == 0 && listen(fd, 8) == 0 &&
               getsockname(fd, (struct sockaddr *)&in, &bytes) == 0,
           "%s", strerror(errno));
    memset(address, 7, sizeof *address);
    memcpy(&address->at, &in, sizeof in);
    return fd;
}

/* The imposter only receives hellos, and after some of them the link is dead. */
static void check_imposter(void) {
    struct weft_tcp_address address;
    struct iovec part = {(void *)(uintptr_t) "message", 6};
    unsigned char said[sizeof(struct weft_tcp_hello) + 1];
    const struct weft_tcp_challenge challenge = {{1}, {2}};
    int listener = imposter_listen(&address), error = -EAGAIN, calls = 0;
    home = end_open();
    struct weft_engine_link *link = link_to(home, &address);
    while ((error == -EAGAIN || error == 0) && calls < 5000) {
        look(1);
        int call = accept(listener, NULL, NULL);
        if (call >= 0) {
            calls++;
            look(3);
            EXPECT(recv(call, said, sizeof said, 0) == sizeof(struct weft_tcp_hello), "no hello");
            send(call, &challenge, sizeof challenge, MSG_NOSIGNAL);
            look(3);
            EXPECT(recv(call, said, sizeof said, MSG_DONTWAIT) == 0, "it was told more");
            close(call);
        }
        error = engine->message(link, &part, 1);
    }
    EXPECT(error == -ECONNABORTED && calls > 10, "%s after %d calls", strerror(-error), calls);
    engine->abandon(home);
    close(listener);
}

/* --- Descriptors ----------------------------------------------------------------------------- */

enum { NUMBERS = 64 };

static int taken[NUMBERS], ntaken;

/* Occupies all descriptor numbers except `more`. */
static void descriptors_leave(int more) {
    while (ntaken < NUMBERS && (taken[ntaken] = dup(0)) >= 0)
        ntaken++;
    while (more-- > 0)
        close(taken[--ntaken]);
}

static void descriptors_free(void) {
    while (ntaken > 0)
        close(taken[--ntaken]);
}

static void check_descriptors(void) {
    struct rlimit before;
    struct iovec part = {(void *)(uintptr_t) "message", 6};
    getrlimit(RLIMIT_NOFILE, &before);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){NUMBERS, before.rlim_max});
    ends_open();
    EXPECT(message_comes(), "a message of a PE's has not come");
    struct weft_engine_end *third = end_open();
    struct weft_tcp_address address = address_of(home);
    struct weft_engine_link *link = NULL, *back = home->connections->link;
    descriptors_leave(0);
    int error = engine->connect(third, &address, sizeof address, &link);
    EXPECT(error == -EMFILE, "without a descriptor to connect by: %s", strerror(-error));
    descriptors_free();

    int stranger = stranger_connect();
    look(5);
    descriptors_leave(1);
    link = link_to(third, &address);
    EXPECT(engine->message(link, &part, 1) == 0, "the first message is not taken");
    for (int i = 0; i < 20000 && delivered == 1; i++) {
        look(1);
        engine->progress(third);
    }
    EXPECT(delivered == 2, "a stranger has the last descriptor");
    descriptors_free();

    struct weft_tcp_address of_peer = address_of(peer);
    back = link_to(home, &of_peer);
    descriptors_leave(0);
    stranger = (close(stranger), stranger_connect());
    EXPECT(stranger >= 0, "%s", strerror(errno));
    look(1000);
    error = engine->message(back, &part, 1);
    EXPECT(error == -EMFILE, "no descriptor for who calls: %s", strerror(-error));
    descriptors_free();
    setrlimit(RLIMIT_NOFILE, &before);
    close(stranger);
    engine->abandon(third);
    ends_abandon();
}

int main(void) {
    tap_start(0);
    tap_case("who knows the secret is let in, and nobody else, recorded proofs or not");
    check_proofs();
    tap_case("what is no hello is hung up on");
    check_garbage();
    tap_case("the silent cost little, and not for long");
    check_silence();
    tap_case("a PE comes in though strangers come faster");
    check_flood();
    tap_case("who answers in a PE's place hears nothing");
    check_imposter();
    tap_case("no descriptors are left");
    check_descriptors();
    return tap_finish();
}
