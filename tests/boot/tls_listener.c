/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the listener on the loopback interface, with the peers in this process: peers are
 * accepted while many strangers send nothing, a byte, junk, or a recording of a peer; each stranger
 * is refused with a reason, but only a few of them are logged. PEs: 1 */
#include "boot/tls_listener.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/machine.h"
#include "entries.h"
#include "tap.h"

enum { PLACES = 18, LINES_BYTES = 1 << 20, CROWD_MAX = 20000, PEER_MS_MAX = 1500 };

static struct weft_tls_listener *listener;
static struct weft_tls *let_in[8];
static int nlet_in;
static unsigned char job_key[WEFT_TLS_KEY_BYTES];
static char lines[LINES_BYTES]; /* what was written to stderr */
static int lines_fd, stderr_fd;

static bool key_of(void *owner, const char *identity, unsigned char key[WEFT_TLS_KEY_BYTES]) {
    (void)owner;
    memcpy(key, job_key, WEFT_TLS_KEY_BYTES);
    key[0] ^= (unsigned char)identity[1];
    return identity[0] == 'h' && identity[1] >= '0' && identity[1] <= '9' && !identity[2];
}

static void take(void *owner, struct weft_tls *tls) {
    EXPECT(owner == job_key, "owner");
    let_in[nlet_in++] = tls;
}

/* Redirects stderr to a file. */
static void listener_open(void) {
    struct weft_tls_listener_options options = {
        .places = PLACES, .key_of = key_of, .take = take, .owner = job_key};
    EXPECT(ftruncate(lines_fd, 0) == 0 && lseek(lines_fd, 0, SEEK_SET) == 0, "%d", errno);
    dup2(lines_fd, STDERR_FILENO);
    int error = weft_tls_listener_open(&listener, &options);
    dup2(stderr_fd, STDERR_FILENO);
    EXPECT(error == 0 && weft_tls_listener_port(listener) != 0, "%d", error);
}

static void listener_turn(void) {
    dup2(lines_fd, STDERR_FILENO);
    weft_tls_listener_turn(listener);
    dup2(stderr_fd, STDERR_FILENO);
}

static int lines_count(void) {
    ssize_t bytes = pread(lines_fd, lines, sizeof lines - 1, 0);
    int count = 0;
    lines[bytes > 0 ? bytes : 0] = '\0';
    for (const char *at = lines; (at = strchr(at, '\n')); at++)
        count++;
    return count;
}

static void listener_close(void) {
    for (int i = 0; i < nlet_in; i++)
        weft_tls_close(let_in[i]);
    nlet_in = 0;
    dup2(lines_fd, STDERR_FILENO);
    weft_tls_listener_close(listener);
    dup2(stderr_fd, STDERR_FILENO);
    lines_count();
}

static int descriptors(void) {
    return entries_of("/proc/self/fd");
}

/* Returns whether the listener wants a turn. */
static bool listener_called(int wait_ms) {
    struct pollfd poll_of = {.fd = weft_tls_listener_descriptor(listener), .events = POLLIN};
    return poll(&poll_of, 1, wait_ms) > 0;
}

static void listener_settle(void) {
    for (int i = 0; i < 10000 && listener_called(20); i++)
        listener_turn();
}

static int stranger_connect(int which) {
    char address[32];
    snprintf(address, sizeof address, "127.0.0.%d", 1 + which % 200);
    int fd = weft_tls_listener_connect(address, weft_tls_listener_port(listener), 1000);
    EXPECT(fd >= 0, "stranger %d: %s", which, strerror(-fd));
    return fd;
}

/* A peer connects as a daemon does. Returns the result of its handshake. */
static int peer_come(const char *address, const char *identity, unsigned char flaw,
                     struct weft_tls **tls) {
    unsigned char key[WEFT_TLS_KEY_BYTES];
    uint64_t begin_ns = weft_clock_ns();
    int fd = weft_tls_listener_connect(address, weft_tls_listener_port(listener), 1000),
        error = -EAGAIN;
    EXPECT(fd >= 0, "%s", strerror(-fd));
    key_of(NULL, identity, key);
    key[9] ^= flaw;
    EXPECT(weft_tls_connect(tls, fd, identity, key) == 0, "connect");
    while (error == -EAGAIN && weft_clock_ns() - begin_ns < PEER_MS_MAX * UINT64_C(1000000)) {
        error = weft_tls_shake(*tls);
        if (listener_called(0))
            listener_turn();
    }
    return error;
}

/* A peer is accepted and receives data. */
static void peer_expect(const char *address, const char *identity) {
    struct weft_tls *tls = NULL;
    char heard[8] = "";
    int before = nlet_in, error = peer_come(address, identity, 0, &tls);
    listener_settle();
    EXPECT(error == 0 && nlet_in == before + 1, "%s: %d, %d are in", identity, error, nlet_in);
    if (nlet_in == before + 1) {
        EXPECT(strcmp(weft_tls_peer(let_in[before]), identity) == 0, "%s", identity);
        EXPECT(weft_tls_write(let_in[before], "word", 5) == 5, "write");
        ssize_t got = weft_tls_read(tls, heard, sizeof heard);
        EXPECT(got == 5 && strcmp(heard, "word") == 0, "%zd", got);
    }
    weft_tls_close(tls);
}

static void peers(void) {
    int before = descriptors();
    listener_open();
    peer_expect("127.0.0.1", "h1");
    if (access("/proc/net/if_inet6", R_OK) == 0)
        peer_expect("::1", "h2");
    EXPECT(!listener_called(0), "the listener is called by nobody");
    EXPECT(lines_count() == 0, "%s", lines);
    uint16_t port = weft_tls_listener_port(listener);
    listener_close();
    EXPECT(weft_tls_listener_connect("127.0.0.1", port, 100) == -ECONNREFUSED, "it is open still");
    EXPECT(weft_tls_listener_connect("elsewhere.example", port, 100) == -EINVAL, "a name");
    EXPECT(descriptors() == before, "%d descriptors before, %d after", before, descriptors());
}

static void refusals(void) {
    struct weft_tls *tls;
    char heard[8];
    int before = descriptors();
    listener_open();
    EXPECT(peer_come("127.0.0.1", "h1", 1, &tls) == -EACCES, "wrong key");
    weft_tls_close(tls);
    EXPECT(peer_come("127.0.0.1", "x1", 0, &tls) == -EACCES, "unknown name");
    weft_tls_close(tls);
    EXPECT(lines_count() == 1 && strstr(lines, "weft: a connection from 127.0.0.1:") &&
               strstr(lines, " was refused: it does not have the key of \"h1\"\n"),
           "%s", lines);
    peer_expect("127.0.0.1", "h1");
    EXPECT(peer_come("127.0.0.1", "h1", 0, &tls) == 0, "its key is good");
    listener_settle();
    EXPECT(weft_tls_read(tls, heard, sizeof heard) == -EPIPE, "twice");
    weft_tls_close(tls);
    EXPECT(nlet_in == 1, "%d are in", nlet_in);
    EXPECT(lines_count() == 2 && strstr(lines, "\"h1\" is here already\n"), "%s", lines);
    peer_expect("127.0.0.1", "h2");
    listener_close();
    EXPECT(strstr(lines, "1 more connections were refused"), "%s", lines);
    EXPECT(descriptors() == before, "%d descriptors before, %d after", before, descriptors());
}

/* `count` strangers stay connected after sending these bytes, then two peers connect. The cost for
 * the job is bounded. */
static void crowd(int count, const void *says, size_t bytes) {
    static int fds[CROWD_MAX];
    int before = descriptors();
    listener_open();
    peer_expect("127.0.0.1", "h1");
    int quiet = descriptors();
    uint64_t begin_ns = weft_clock_ns();
    for (int i = 0; i < count; i++) {
        fds[i] = stranger_connect(i);
        if (bytes)
            send(fds[i], says, bytes, MSG_NOSIGNAL);
        if (i % 50 == 0 && listener_called(0))
            listener_turn();
    }
    uint64_t middle_ns = weft_clock_ns();
    peer_expect("127.0.0.1", "h2");
    uint64_t end_ns = weft_clock_ns();
    listener_settle();
    EXPECT(!listener_called(50), "the listener never sleeps");
    EXPECT(descriptors() - quiet - count <= PLACES + 256 + 2, "%d descriptors held",
           descriptors() - quiet - count);
    EXPECT(lines_count() <= 3, "%s", lines);
    printf("# %d strangers of %zu bytes in %.0f ms, then a peer in %.1f ms, %d lines\n", count,
           bytes, 1e-6 * (double)(middle_ns - begin_ns), 1e-6 * (double)(end_ns - middle_ns),
           lines_count());
    peer_expect("127.0.0.1", "h3");
    for (int i = 0; i < count; i++)
        close(fds[i]);
    listener_settle();
    listener_close();
    EXPECT(lines_count() <= 5, "%s", lines);
    EXPECT(descriptors() == before, "%d descriptors before, %d after", before, descriptors());
}

/* Records the first message of a peer, which a stranger can replay. */
static size_t hello_record(unsigned char *hello, size_t room) {
    struct weft_tls *tls;
    int pair[2];
    unsigned char key[WEFT_TLS_KEY_BYTES];
    key_of(NULL, "h7", key);
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "%d", errno);
    EXPECT(weft_tls_connect(&tls, pair[0], "h7", key) == 0, "connect");
    EXPECT(weft_tls_shake(tls) == -EAGAIN, "hello");
    ssize_t got = recv(pair[1], hello, room, MSG_DONTWAIT);
    weft_tls_close(tls);
    close(pair[1]);
    return got > 0 ? (size_t)got : 0;
}

/* A peer has a slow network: strangers connect between its first message and its second. */
static void overtaken(int count, const void *says, size_t bytes) {
    static int fds[CROWD_MAX];
    unsigned char key[WEFT_TLS_KEY_BYTES];
    struct weft_tls *tls;
    int error = -EAGAIN;
    listener_open();
    key_of(NULL, "h1", key);
    int fd = weft_tls_listener_connect("127.0.0.1", weft_tls_listener_port(listener), 1000);
    EXPECT(fd >= 0 && weft_tls_connect(&tls, fd, "h1", key) == 0, "connect");
    EXPECT(weft_tls_shake(tls) == -EAGAIN, "hello");
    listener_settle();
    for (int i = 0; i < count; i++) {
        fds[i] = stranger_connect(i);
        if (bytes)
            send(fds[i], says, bytes, MSG_NOSIGNAL);
        listener_turn();
    }
    for (int i = 0; i < 100 && error == -EAGAIN; i++) {
        error = weft_tls_shake(tls);
        listener_settle();
    }
    EXPECT(error == 0 && nlet_in == 1, "%d: %s", error, weft_tls_why(tls));
    weft_tls_close(tls);
    for (int i = 0; i < count; i++)
        close(fds[i]);
    listener_close();
}

/* Strangers connect and close at once. Only a few have lines of their own; one line gives the
 * number of the others. */
static void many_attempts(int count) {
    static const char get[] = "GET / HTTP/1.0\r\n\r\n";
    int before = descriptors(), said = 0;
    unsigned long long unsaid = 0, more;
    listener_open();
    for (int i = 0; i < count; i++) {
        int fd = stranger_connect(i);
        send(fd, get, sizeof get, MSG_NOSIGNAL);
        close(fd);
        listener_turn();
    }
    listener_settle();
    said = lines_count();
    EXPECT(said >= 1 && said <= 3, "%d lines: %s", said, lines);
    listener_close();
    for (const char *at = lines; (at = strstr(at, "weft: ")); at++)
        if (sscanf(at, "weft: %llu more connections", &more) == 1)
            unsaid += more;
    EXPECT(unsaid + (unsigned)said == (unsigned)count, "%llu and %d of %d", unsaid, said, count);
    EXPECT(descriptors() == before, "%d descriptors before, %d after", before, descriptors());
}

/* Runs in a process of its own whose limit of descriptors is reached. */
static int starve(int fd) {
    struct rlimit few = {(rlim_t)fd + 40, (rlim_t)fd + 40};
    int filler[64], fillers = 0, turns = 0;
    struct weft_tls *tls;
    unsigned char key[WEFT_TLS_KEY_BYTES];
    setrlimit(RLIMIT_NOFILE, &few);
    while (fillers < 64 && (filler[fillers] = dup(fd)) >= 0)
        fillers++;
    key_of(NULL, "h1", key);
    EXPECT(weft_tls_connect(&tls, fd, "h1", key) == 0, "connect");
    EXPECT(weft_tls_shake(tls) == -EAGAIN, "hello");
    for (uint64_t begin_ns = weft_clock_ns(); weft_clock_ns() - begin_ns < 300000000; turns++)
        if (listener_called(300))
            listener_turn();
    EXPECT(turns < 20, "%d turns in 0.3 s", turns);
    while (fillers > 0)
        close(filler[--fillers]);
    int error = -EAGAIN;
    for (int i = 0; i < 100 && error == -EAGAIN; i++) {
        error = weft_tls_shake(tls);
        if (listener_called(10))
            listener_turn();
    }
    EXPECT(error == 0, "%d", error);
    EXPECT(lines_count() == 1 &&
               strstr(lines,
                      "weft: cannot let another host in (accept4): Too many open files; ulimit") &&
               strstr(lines, "raise it; trying again"),
           "%s", lines);
    return tap_case_failures;
}

static void starved(void) {
    int status = 0;
    listener_open();
    int fd = stranger_connect(1); /* not accepted yet */
    pid_t child = fork();
    if (child == 0)
        _exit(starve(fd));
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    close(fd);
    listener_close();
}

static struct weft_tls_listener *patient;
static int patients[3];

/* Begins pending connections at another listener, whose time limit passes while the other cases
 * run. */
static void patience_begin(void) {
    listener_open();
    patients[0] = stranger_connect(0);
    patients[1] = stranger_connect(1);
    send(patients[1], "\x16\x03\x01", 3, MSG_NOSIGNAL);
    unsigned char hello[1024];
    size_t bytes = hello_record(hello, sizeof hello);
    patients[2] = stranger_connect(2);
    send(patients[2], hello, bytes, MSG_NOSIGNAL);
    listener_settle();
    patient = listener;
}

static bool is_closed(int fd) {
    char bytes[1024];
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        ;
    return got == 0 || errno != EAGAIN;
}

static void patience_end(uint64_t begin_ns) {
    listener = patient;
    EXPECT(ftruncate(lines_fd, 0) == 0 && lseek(lines_fd, 0, SEEK_SET) == 0, "%d", errno);
    for (int i = 0; i < 3; i++)
        EXPECT(weft_clock_ns() - begin_ns > 4900000000u || !is_closed(patients[i]), "%d", i);
    while (weft_clock_ns() - begin_ns < 5300000000u)
        if (listener_called(100))
            listener_turn();
    listener_settle();
    for (int i = 0; i < 3; i++) {
        EXPECT(is_closed(patients[i]), "stranger %d is in still", i);
        close(patients[i]);
    }
    EXPECT(lines_count() == 2 && strstr(lines, "it has sent nothing for 5 s") &&
               strstr(lines, "its handshake has taken more than 5 s"),
           "%s", lines);
    listener_close();
}

int main(void) {
    bool thorough = getenv("WEFT_TEST_LONG") != NULL;
    unsigned char hello[1024];
    char path[] = "/tmp/weft-listener-XXXXXX";
    tap_start(0);
    weft_machine_raise_descriptors();
    lines_fd = mkostemp(path, O_CLOEXEC | O_APPEND);
    unlink(path);
    stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    uint64_t begin_ns = weft_clock_ns();
    patience_begin();
    tap_case("peers come in, by both families, and nothing listens when the listener is closed");
    peers();
    tap_case("a wrong key, an unknown name and a second one of a name are refused");
    refusals();
    tap_case("thousands who say nothing keep nobody out");
    crowd(thorough ? 10000 : 2000, NULL, 0);
    tap_case("thousands who say one byte keep nobody out");
    crowd(thorough ? 10000 : 1000, "\x16", 1);
    tap_case("hundreds who repeat a peer's first word keep nobody out");
    size_t bytes = hello_record(hello, sizeof hello);
    crowd(thorough ? 10000 : 300, hello, bytes);
    tap_case("who has shown a key keeps its place while others come who have not");
    overtaken(400, NULL, 0);
    overtaken(100, "\x16", 1);
    tap_case("thousands of attempts are a few lines");
    many_attempts(thorough ? 10000 : 1000);
    tap_case("a host without descriptors says so once, and goes on when it has some");
    starved();
    tap_case("a silent connection, a slow one and one that repeats have 5 s");
    patience_end(begin_ns);
    return tap_finish();
}
