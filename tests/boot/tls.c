/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: TLS connections with both ends in this process, and an attacker between them: a key
 * proves its identity, refusals have the right reasons, and every altered or repeated byte is
 * detected. PEs: 1 */
#include "boot/tls.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "boot/random.h"
#include "entries.h"
#include "tap.h"

enum { CAPACITY = 1 << 16, ROUNDS = 30 };

static unsigned char right[WEFT_TLS_KEY_BYTES], wrong[WEFT_TLS_KEY_BYTES];

/* The job knows "h1" and "h2", with keys that differ in their first byte. */
static bool key_of(void *owner, const char *identity, unsigned char key[WEFT_TLS_KEY_BYTES]) {
    const unsigned char *job = owner;
    if (strcmp(identity, "h1") != 0 && strcmp(identity, "h2") != 0)
        return false;
    memcpy(key, job, WEFT_TLS_KEY_BYTES);
    key[0] ^= (unsigned char)identity[1];
    return true;
}

/* One direction of the connection and the bytes that were transferred. `flip`: index of the byte to
 * alter; `until`: number of bytes after which nothing is transferred. -1: none. */
struct way {
    long bytes, flip, until;
    unsigned char seen[CAPACITY];
};

static struct weft_tls *client, *server;
static int client_end, server_end; /* the attacker's sockets */
static struct way up, down;
static int client_error, server_error;

static void ends_open(const char *identity, const unsigned char *job) {
    int a[2], b[2];
    unsigned char key[WEFT_TLS_KEY_BYTES];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a) == 0 &&
               socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b) == 0,
           "%d", errno);
    memcpy(key, job, sizeof key);
    key[0] ^= (unsigned char)identity[1];
    EXPECT(weft_tls_connect(&client, a[0], identity, key) == 0, "client");
    EXPECT(weft_tls_accept(&server, b[0], key_of, right) == 0, "server");
    client_end = a[1], server_end = b[1];
    up.bytes = down.bytes = 0;
    up.flip = up.until = down.flip = down.until = -1;
    client_error = server_error = -EAGAIN;
}

static void ends_close(void) {
    weft_tls_close(client);
    weft_tls_close(server);
    close(client_end);
    close(server_end);
}

static void way_pump(struct way *way, int from, int to) {
    unsigned char bytes[4096];
    ssize_t got;
    while ((got = recv(from, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        for (ssize_t i = 0; i < got; i++, way->bytes++) {
            if (way->bytes == way->flip)
                bytes[i] ^= 1;
            if (way->bytes < CAPACITY)
                way->seen[way->bytes] = bytes[i];
            if (way->until >= 0 && way->bytes >= way->until)
                shutdown(to, SHUT_WR);
            else
                send(to, &bytes[i], 1, MSG_NOSIGNAL);
        }
    }
}

static void pump(void) {
    way_pump(&up, client_end, server_end);
    way_pump(&down, server_end, client_end);
}

static void shake(void) {
    for (int i = 0; i < ROUNDS; i++) {
        if (client_error == -EAGAIN)
            client_error = weft_tls_shake(client);
        pump();
        if (server_error == -EAGAIN)
            server_error = weft_tls_shake(server);
        pump();
    }
}

/* Writes to `from` and reads from `to`. Returns the number of bytes read, or -errno. */
static ssize_t tell(struct weft_tls *from, struct weft_tls *to, const char *text, char *heard) {
    ssize_t got = weft_tls_write(from, text, strlen(text) + 1);
    if (got < 0)
        return got;
    for (int i = 0; i < ROUNDS; i++) {
        pump();
        got = weft_tls_read(to, heard, 100);
        if (got != -EAGAIN)
            break;
    }
    return got;
}

static void expect_words(const struct weft_tls *tls, const char *words) {
    EXPECT(strstr(weft_tls_why(tls), words), "%s", weft_tls_why(tls));
}

static void good_key(void) {
    char heard[100];
    ends_open("h1", right);
    EXPECT(!weft_tls_peer(server) && weft_tls_claim(server)[0] == '\0', "known before");
    EXPECT(weft_tls_events(client) == POLLOUT && weft_tls_events(server) == POLLIN, "events");
    EXPECT(weft_tls_shake(client) == -EAGAIN && weft_tls_events(client) == POLLIN, "client");
    pump();
    EXPECT(weft_tls_shake(server) == -EAGAIN, "server");
    EXPECT(!weft_tls_peer(server) && strcmp(weft_tls_claim(server), "h1") == 0, "claim");
    shake();
    EXPECT(client_error == 0 && server_error == 0, "%d, %d", client_error, server_error);
    EXPECT(strcmp(weft_tls_peer(server), "h1") == 0 && !weft_tls_peer(client), "peer");
    EXPECT(tell(client, server, "up", heard) == 3 && strcmp(heard, "up") == 0, "up");
    EXPECT(tell(server, client, "down", heard) == 5 && strcmp(heard, "down") == 0, "down");
    EXPECT(weft_tls_read(client, heard, 1) == -EAGAIN, "nothing");
    EXPECT(!memmem(up.seen, (size_t)up.bytes, "up", 3), "in the clear");
    printf("# a handshake: %ld bytes up and %ld down, with a word each\n", up.bytes, down.bytes);
    ends_close();
}

static void refused(const char *identity, const unsigned char *job, const char *words) {
    ends_open(identity, job);
    shake();
    EXPECT(server_error == -EACCES && client_error == -EACCES, "%s: %d, %d", identity, server_error,
           client_error);
    EXPECT(!weft_tls_peer(server), "%s", identity);
    expect_words(server, words);
    expect_words(client, "does not accept the key");
    ends_close();
}

static void bad_keys(void) {
    refused("h1", wrong, "it does not have the key of \"h1\"");
    refused("q9", right, "no process of this job is called \"q9\"");
    unsigned char other[WEFT_TLS_KEY_BYTES];
    memcpy(other, right, sizeof other);
    other[0] ^= '1' ^ '2'; /* the key of h1 for the name h2 */
    refused("h2", other, "it does not have the key of \"h2\"");
    refused("h\n\x1b[", right, "\"h??[\"");
}

/* A replayed recording of a client is rejected, because none of its bytes are fresh. */
static void repeated(void) {
    char heard[100];
    int pair[2];
    ends_open("h1", right);
    shake();
    tell(client, server, "a word", heard);
    ends_close();
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "%d", errno);
    EXPECT(weft_tls_accept(&server, pair[0], key_of, right) == 0, "server");
    send(pair[1], up.seen, (size_t)up.bytes, MSG_NOSIGNAL);
    int error = -EAGAIN;
    for (int i = 0; i < ROUNDS && error == -EAGAIN; i++)
        error = weft_tls_shake(server);
    EXPECT(error == -EACCES && !weft_tls_peer(server), "%d", error);
    expect_words(server, "it repeats what \"h1\" has sent");
    weft_tls_close(server);
    close(pair[1]);
}

/* Sends junk to either side, at the beginning or after `good` bytes of a handshake. */
static int hear_junk(bool to_client, const void *junk, size_t bytes) {
    struct weft_tls *tls;
    int pair[2], error = -EAGAIN;
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "%d", errno);
    if (to_client)
        EXPECT(weft_tls_connect(&tls, pair[0], "h1", right) == 0, "client");
    else
        EXPECT(weft_tls_accept(&tls, pair[0], key_of, right) == 0, "server");
    send(pair[1], junk, bytes, MSG_NOSIGNAL);
    shutdown(pair[1], SHUT_WR);
    for (int i = 0; i < ROUNDS && error == -EAGAIN; i++)
        error = weft_tls_shake(tls);
    EXPECT(error != 0 && !weft_tls_peer(tls), "%d", error);
    EXPECT(weft_tls_shake(tls) == error, "it goes on after %d", error);
    weft_tls_close(tls);
    close(pair[1]);
    return error;
}

static void junk(int count) {
    static const char get[] = "GET / HTTP/1.1\r\n\r\n";
    unsigned char bytes[2000];
    memset(bytes, 0, sizeof bytes);
    EXPECT(hear_junk(false, get, sizeof get) == -EPROTO, "HTTP");
    EXPECT(hear_junk(false, bytes, sizeof bytes) == -EPROTO, "zeroes");
    EXPECT(hear_junk(false, "\x16", 1) == -EPIPE, "one byte and an end");
    EXPECT(hear_junk(true, get, sizeof get) == -EPROTO, "HTTP as a server");
    for (int i = 0; i < count; i++) {
        size_t length = 1 + random_number(sizeof bytes);
        for (size_t k = 0; k < length; k++)
            bytes[k] = (unsigned char)random_number(256);
        if (random_number(2)) /* the beginning of a handshake record */
            memcpy(bytes,
                   (unsigned char[]){22, 3, 1, 0, (unsigned char)random_number(256), 1, 0, 0},
                   length < 8 ? length : 8);
        hear_junk(random_number(2), bytes, length);
        memcpy(bytes, up.seen, sizeof bytes); /* a correct handshake except for a few bytes */
        for (int k = 0; k < 3; k++)
            bytes[random_number((uint32_t)up.bytes)] = (unsigned char)random_number(256);
        hear_junk(false, bytes, (size_t)up.bytes);
    }
}

/* Alters every byte of both directions once. A few bytes of a record's first header have no meaning
 * (RFC 8446, 5.1): then nothing changes. No altered data arrives. */
static void altered(void) {
    char heard[100];
    int tolerated = 0, noticed = 0;
    ends_open("h1", right);
    shake();
    tell(client, server, "secret", heard);
    tell(server, client, "secret", heard);
    long bytes[2] = {up.bytes, down.bytes};
    ends_close();
    for (int way = 0; way < 2; way++) {
        for (long flip = 0; flip < bytes[way]; flip++) {
            ends_open("h1", right);
            *(way ? &down.flip : &up.flip) = flip;
            shake();
            ssize_t there = -1, back = -1;
            if (client_error == 0 && server_error == 0) {
                there = tell(client, server, "secret", heard);
                EXPECT(there < 0 || strcmp(heard, "secret") == 0, "%.7s arrives", heard);
                back = there == 7 ? tell(server, client, "secret", heard) : there;
                EXPECT(back < 0 || strcmp(heard, "secret") == 0, "%.7s arrives", heard);
            }
            if (there == 7 && back == 7)
                tolerated++;
            else
                noticed++;
            ends_close();
        }
    }
    printf("# %d bytes changed one by one: %d noticed\n", tolerated + noticed, noticed);
    EXPECT(noticed > 0 && tolerated <= 8, "%d of %d are not noticed", tolerated,
           tolerated + noticed);
}

static void altered_word(void) {
    char heard[100];
    ends_open("h1", right);
    shake();
    up.flip = up.bytes + 10;
    EXPECT(tell(client, server, "secret", heard) == -EBADMSG, "altered");
    EXPECT(weft_tls_read(server, heard, 1) == -EBADMSG, "goes on");
    EXPECT(weft_tls_write(server, heard, 1) == -EBADMSG, "goes on");
    expect_words(server, "altered in transit");
    ends_close();
}

/* The transfer stops after each number of bytes, in the handshake and the first data. */
static void cut(void) {
    char heard[100];
    int before = entries_of("/proc/self/fd");
    ends_open("h1", right);
    shake();
    tell(client, server, "secret", heard);
    long bytes[2] = {up.bytes, down.bytes};
    ends_close();
    for (int way = 0; way < 2; way++)
        for (long until = 0; until < bytes[way]; until += 3) {
            ends_open("h1", right);
            *(way ? &down.until : &up.until) = until;
            shake();
            int error = way ? client_error : server_error;
            if (error == 0 && client_error == 0)
                error = way ? -EPIPE : (int)tell(client, server, "secret", heard);
            EXPECT(error == -EPIPE, "way %d, after %ld bytes: %d", way, until, error);
            ends_close();
        }
    int after = entries_of("/proc/self/fd");
    EXPECT(before == after, "%d descriptors before, %d after", before, after);
}

/* Connects both ends without an attacker, and completes the handshake. */
static void pair_open(void) {
    int pair[2];
    unsigned char key[WEFT_TLS_KEY_BYTES];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "%d", errno);
    key_of(right, "h1", key);
    EXPECT(weft_tls_connect(&client, pair[0], "h1", key) == 0, "client");
    EXPECT(weft_tls_accept(&server, pair[1], key_of, right) == 0, "server");
    for (int i = 0; i < ROUNDS; i++)
        weft_tls_shake(client), weft_tls_shake(server);
}

/* A write to a closed connection raises no signal, and data sent before can still be read. */
static void gone(void) {
    char heard[100];
    pair_open();
    EXPECT(weft_tls_write(client, "last", 5) == 5, "last word");
    weft_tls_close(client);
    ssize_t sent = 0;
    for (int i = 0; i < ROUNDS && sent >= 0; i++)
        sent = weft_tls_write(server, "more", 5);
    EXPECT(sent == -EPIPE, "%zd", sent);
    EXPECT(weft_tls_read(server, heard, 100) == 5 && strcmp(heard, "last") == 0, "the last word");
    EXPECT(weft_tls_read(server, heard, 100) == -EPIPE, "an end");
    weft_tls_close(server);
}

/* With a full socket, writes continue where they stopped, for all sizes of pieces. */
static void full(size_t total) {
    static unsigned char block[3 << 16], got[3 << 16];
    size_t sent = 0, heard = 0;
    int eagain = 0;
    pair_open();
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (unsigned char)(i % 251);
    while (heard < total) {
        size_t from = sent % 251, bytes = sizeof block - 251;
        while (sent < total) {
            ssize_t now = weft_tls_write(client, block + from, bytes);
            eagain += now == -EAGAIN;
            if (now < 0)
                break;
            sent += (size_t)now;
            from = sent % 251;
        }
        ssize_t now = weft_tls_read(server, got, 1 + random_number(sizeof got - 1));
        for (ssize_t i = 0; i < now; i++)
            if (got[i] != (heard + (size_t)i) % 251) {
                EXPECT(false, "byte %zu differs", heard + (size_t)i);
                heard = total;
                break;
            }
        EXPECT(now > 0 || now == -EAGAIN, "%zd", now);
        heard += now > 0 ? (size_t)now : 0;
    }
    EXPECT(eagain > 0, "it was never full");
    weft_tls_close(client);
    weft_tls_close(server);
}

static void keys_change(void) {
    char heard[100];
    pair_open();
    for (long i = 0; i < (1 << 23) + 100; i++)
        if (weft_tls_write(client, &i, sizeof i) != sizeof i ||
            weft_tls_read(server, heard, 100) != sizeof i || memcmp(heard, &i, sizeof i) != 0) {
            EXPECT(false, "record %ld", i);
            break;
        }
    weft_tls_close(client);
    weft_tls_close(server);
}

/* Compares with RFC 5869, computed by Python's HMAC. */
static void derived(void) {
    static const unsigned char expected[WEFT_TLS_KEY_BYTES] = {
        0xa5, 0xef, 0xad, 0xf0, 0x54, 0xb9, 0x97, 0x82, 0xb0, 0xde, 0x34,
        0xd2, 0x79, 0x97, 0x29, 0x42, 0x7f, 0x39, 0x13, 0x32, 0x76, 0xa6,
        0x57, 0x47, 0x41, 0x2f, 0x97, 0x21, 0x3e, 0xbc, 0x1f, 0x64};
    unsigned char secret[WEFT_TLS_KEY_BYTES], key[WEFT_TLS_KEY_BYTES], other[WEFT_TLS_KEY_BYTES];
    for (int i = 0; i < WEFT_TLS_KEY_BYTES; i++)
        secret[i] = (unsigned char)i;
    EXPECT(weft_tls_derive(key, secret, "weft-psk-v1", 0x01020304) == 0, "derive");
    EXPECT(memcmp(key, expected, sizeof key) == 0, "%02x%02x...", key[0], key[1]);
    weft_tls_derive(other, secret, "weft-psk-v1", 0x01020305);
    EXPECT(memcmp(key, other, sizeof key) != 0, "one key of two indices");
    weft_tls_derive(other, secret, "weft-psk-v2", 0x01020304);
    EXPECT(memcmp(key, other, sizeof key) != 0, "one key of two labels");
}

/* Runs in a process of its own, whose libssl.so.3 is this text. */
static void without_library(const char *self) {
    char folder[] = "/tmp/weft-tls-XXXXXX", path[64], said[1024] = "";
    int out[2], status = 0;
    EXPECT(mkdtemp(folder) && pipe(out) == 0, "%d", errno);
    snprintf(path, sizeof path, "%s/libssl.so.3", folder);
    FILE *file = fopen(path, "w");
    fputs("This is no library.\n", file);
    fclose(file);
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], STDERR_FILENO);
        setenv("LD_LIBRARY_PATH", folder, 1);
        execl(self, self, "load", (char *)NULL);
        _exit(98);
    }
    close(out[1]);
    ssize_t got = read(out[0], said, sizeof said - 1);
    close(out[0]);
    waitpid(child, &status, 0);
    EXPECT(got > 0 && WIFEXITED(status) && WEXITSTATUS(status) == ENOSYS, "%zd, %d", got, status);
    EXPECT(strstr(said, "there is no OpenSSL 3 here") && strstr(said, "install libssl3") &&
               strchr(said, '\n') == said + got - 1,
           "%s", said);
    unlink(path);
    rmdir(folder);
}

int main(int argc, char **argv) {
    bool thorough = getenv("WEFT_TEST_LONG") != NULL;
    if (argc > 1)
        return -weft_tls_load();
    tap_start(0);
    for (int i = 0; i < WEFT_TLS_KEY_BYTES; i++) {
        right[i] = (unsigned char)(3 * i);
        wrong[i] = (unsigned char)(5 * i + 1);
    }
    tap_case("without OpenSSL one line says what to install");
    without_library(argv[0]);
    tap_case("keys are derived as RFC 5869 says");
    derived();
    tap_case("who has the key comes in, and both sides hear each other");
    good_key();
    tap_case("a wrong key, an unknown name, another's name and a mad name are refused");
    bad_keys();
    tap_case("a recorded handshake is refused");
    repeated();
    tap_case("what is no handshake is refused");
    junk(thorough ? 200000 : 1000);
    tap_case("every byte that is altered in transit is noticed");
    altered();
    tap_case("a word that is altered in transit ends the connection");
    altered_word();
    tap_case("an end at each moment of a handshake is an end");
    cut();
    tap_case("a peer that is gone can be heard, and raises no signal");
    gone();
    tap_case("a full socket loses nothing");
    full(thorough ? 400 << 20 : 10 << 20);
    if (thorough) {
        tap_case("the key changes after 2^23 records");
        keys_change();
    }
    return tap_finish();
}
