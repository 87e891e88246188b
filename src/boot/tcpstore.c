/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol of c10d's TCPStore since PyTorch 2.1, in the sender's byte order. A client first
 * sends a magic number. A request begins with a byte that identifies it; strings and lists follow
 * their lengths of eight bytes. SET has no answer. */
#include "boot/tcpstore.h"
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/machine.h"
#include "boot/source.h"

enum question { VALIDATE = 0, SET = 1, GET = 3, WAIT = 6 };
enum { STOP_WAITING = 0, QUESTION_BYTES = 1024, AGAIN_MS = 50 };

static const uint32_t client_number = 0x3C85F7CE;

/* Returns what to do about an error of the network or of this process. */
static struct weft_remedy store_remedy(int error) {
    static const struct weft_remedy start = {"; torchrun's first agent has the store: see whether "
                                             "it runs, and whether this host reaches it"};
    bool unreachable = error == -ECONNREFUSED || error == -EHOSTUNREACH || error == -ETIMEDOUT ||
                       error == -ENETUNREACH || error == -EPIPE || error == -ECONNRESET;
    return unreachable ? start : weft_remedy(error);
}

static int store_fail(const struct weft_tcpstore *store, int error, const char *what) {
    weft_log("torchrun: the store at MASTER_ADDR=%s, MASTER_PORT=%s %s: %s%s", store->host,
             store->port, what, strerror(-error), store_remedy(error).text);
    return error;
}

/* --- Connecting ------------------------------------------------------------------------------- */

static int address_connect(const struct addrinfo *found) {
    int code = -EADDRNOTAVAIL;
    for (const struct addrinfo *at = found; at; at = at->ai_next) {
        int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0)
            return fd;
        code = -errno;
        if (fd >= 0)
            close(fd);
    }
    return code;
}

static int store_connect(const struct weft_tcpstore *store) {
    struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM};
    if (getaddrinfo(store->host, store->port, &hints, &found) != 0)
        return -EHOSTUNREACH;
    int fd = address_connect(found);
    freeaddrinfo(found);
    return fd;
}

static int store_reach(struct weft_tcpstore *store) {
    uint64_t begin_ns = weft_clock_ns();
    for (bool hinted = false;;) {
        store->socket = store_connect(store);
        uint64_t waited_ms = (weft_clock_ns() - begin_ns) / WEFT_NS_PER_MS;
        if (store->socket >= 0)
            return 0;
        if (waited_ms > WEFT_MEET_LIMIT_MS)
            return store_fail(store, store->socket, "cannot be reached");
        if (waited_ms > WEFT_MEET_HINT_MS && !hinted) {
            weft_note("waiting for the store of torchrun at MASTER_ADDR=%s, MASTER_PORT=%s: %s",
                      store->host, store->port, strerror(-store->socket));
            hinted = true;
        }
        weft_clock_sleep_ms(AGAIN_MS);
    }
}

/* --- Requests --------------------------------------------------------------------------------- */

struct text {
    size_t bytes;
    unsigned char at[QUESTION_BYTES];
};

static void text_add(struct text *text, const void *from, size_t bytes) {
    if (text->bytes + bytes <= sizeof text->at)
        memcpy(text->at + text->bytes, from, bytes);
    text->bytes += bytes;
}

static void text_add_string(struct text *text, const char *string) {
    uint64_t bytes = strlen(string);
    text_add(text, &bytes, sizeof bytes);
    text_add(text, string, bytes);
}

static struct text text_begin(enum question question) {
    struct text text = {.bytes = 0};
    unsigned char byte = (unsigned char)question;
    text_add(&text, &byte, 1);
    return text;
}

static int text_send(const struct weft_tcpstore *store, const struct text *text) {
    if (text->bytes > sizeof text->at)
        return -EMSGSIZE;
    for (size_t sent = 0; sent < text->bytes;) {
        ssize_t more = send(store->socket, text->at + sent, text->bytes - sent, MSG_NOSIGNAL);
        if (more < 0 && errno != EINTR)
            return -errno;
        sent += more > 0 ? (size_t)more : 0;
    }
    return 0;
}

static int bytes_receive(const struct weft_tcpstore *store, void *to, size_t bytes) {
    for (size_t got = 0; got < bytes;) {
        ssize_t more = recv(store->socket, (char *)to + got, bytes - got, 0);
        if (more == 0)
            return -EPIPE;
        if (more < 0 && errno != EINTR)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
        got += more > 0 ? (size_t)more : 0;
    }
    return 0;
}

static int key_await(const struct weft_tcpstore *store, const char *key) {
    struct text wait = text_begin(WAIT);
    uint64_t nkeys = 1;
    unsigned char answer = STOP_WAITING;
    text_add(&wait, &nkeys, sizeof nkeys);
    text_add_string(&wait, key);
    int error = text_send(store, &wait);
    error = error ? error : bytes_receive(store, &answer, 1);
    return error == 0 && answer != STOP_WAITING ? -EPROTO : error;
}

/* --- Calls ------------------------------------------------------------------------------------ */

int weft_tcpstore_open(struct weft_tcpstore *store, const char *host, const char *port) {
    struct timeval patience = {.tv_sec = WEFT_MEET_LIMIT_MS / 1000};
    *store = (struct weft_tcpstore){.socket = -1, .host = host, .port = port};
    int error = store_reach(store);
    if (error)
        return error;
    setsockopt(store->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    struct text validate = text_begin(VALIDATE);
    text_add(&validate, &client_number, sizeof client_number);
    error = text_send(store, &validate);
    return error ? store_fail(store, error, "does not accept a request") : 0;
}

void weft_tcpstore_close(struct weft_tcpstore *store) {
    if (store->socket >= 0)
        close(store->socket);
    store->socket = -1;
}

/* Waits for the key, because SET has no answer. */
int weft_tcpstore_put(struct weft_tcpstore *store, const char *key, const char *value) {
    struct text set = text_begin(SET);
    text_add_string(&set, key);
    text_add_string(&set, value);
    int error = text_send(store, &set);
    error = error ? error : key_await(store, key);
    return error ? store_fail(store, error, "cannot store a value") : 0;
}

int weft_tcpstore_get(struct weft_tcpstore *store, const char *key, char *value, size_t bytes) {
    struct text get = text_begin(GET);
    uint64_t length = 0;
    text_add_string(&get, key);
    int error = key_await(store, key);
    error = error ? error : text_send(store, &get);
    error = error ? error : bytes_receive(store, &length, sizeof length);
    if (error == 0 && length >= bytes)
        error = -EMSGSIZE;
    error = error ? error : bytes_receive(store, value, length);
    if (error)
        return store_fail(store, error, "cannot return a value");
    value[length] = '\0';
    return 0;
}
