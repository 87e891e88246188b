/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the engine over UCX opens only on a private network, unless the user vouches for
 * another one, and leaves environment, signal handlers and libc unchanged. Each case is a child
 * with a network of its own. PEs: 1 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ucx/open.h"
#include "tap.h"

extern char **environ;
static const struct weft_engine *engine;

static void take(void *context, const void *message, size_t bytes) {
    (void)context, (void)message, (void)bytes;
}

/* Brings lo up in a network namespace of this process, with this address. */
static bool network_make(const char *address) {
    struct ifreq request = {.ifr_name = "lo"};
    struct sockaddr_in in = {.sin_family = AF_INET};
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return false;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, address, &in.sin_addr);
    memcpy(&request.ifr_addr, &in, sizeof in);
    bool made = ioctl(fd, SIOCSIFADDR, &request) == 0;
    request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
    made = made && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    close(fd);
    return made;
}

static int engine_try(const char *network, bool trusted, char *reason) {
    struct weft_engine_options options = {
        .npes = 2, .network = network, .trusted = trusted, .reason = reason, .deliver = take};
    struct weft_engine_end *end = NULL;
    int error = engine->open(&options, &end);
    if (error == 0)
        engine->abandon(end);
    return error;
}

/* Expects the engine to open, or to refuse, on lo with this address; `words`, if any, must be in
 * the reason. */
static bool opens(const char *address, bool trusted, int wanted, const char *words) {
    char reason[WEFT_ENGINE_TEXT_BYTES] = "";
    if (!network_make(address))
        return false;
    int error = engine_try("lo", trusted, reason);
    EXPECT(error == wanted, "%s: %s, %s", address, strerror(-error), reason);
    EXPECT(!words || (strstr(reason, words) && strstr(reason, address)), "%s", reason);
    return true;
}

static bool private_addresses(void) {
    return opens("10.1.2.3", false, 0, NULL) && opens("172.31.0.9", false, 0, NULL) &&
           opens("192.168.7.7", false, 0, NULL) && opens("169.254.3.1", false, 0, NULL);
}

static bool public_addresses(void) {
    return opens("203.0.113.7", false, -EPERM, "WEFT_FAR_NETWORK=trusted") &&
           opens("172.32.0.1", false, -EPERM, "public") &&
           opens("192.169.0.1", false, -EPERM, "public") &&
           opens("11.0.0.1", false, -EPERM, "WireGuard");
}

static bool trusted_address(void) {
    return opens("203.0.113.7", true, 0, NULL);
}

static bool other_interface(void) {
    char reason[WEFT_ENGINE_TEXT_BYTES] = "";
    int error = engine_try("nowhere0", false, reason);
    EXPECT(error == -ENODEV && strstr(reason, "nowhere0"), "%s, %s", strerror(-error), reason);
    setenv("UCX_NET_DEVICES", "lo", 1);
    error = engine_try("nowhere0", false, reason);
    EXPECT(error == 0, "UCX_NET_DEVICES=lo: %s, %s", strerror(-error), reason);
    setenv("UCX_TLS", "nonsense", 1);
    error = engine_try("lo", false, reason);
    EXPECT(error != 0 && strstr(reason, "nonsense"), "UCX_TLS=nonsense: %s, %s", strerror(-error),
           reason);
    return true;
}

static size_t environment_count(const char *prefix) {
    size_t count = 0;
    for (char **at = environ; *at; at++)
        count += strncmp(*at, prefix, strlen(prefix)) == 0;
    return count;
}

static int handlers_count(void) {
    int count = 0;
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        count += sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
                 action.sa_handler != SIG_IGN;
    }
    return count;
}

static bool side_effects(void) {
    char reason[WEFT_ENGINE_TEXT_BYTES] = "";
    unsigned char before[16];
    int handlers = handlers_count();
    memcpy(before, dlsym(RTLD_DEFAULT, "munmap"), sizeof before);
    setenv("UCX_TLS", "tcp", 1);
    EXPECT(engine_try(NULL, false, reason) == 0, "%s", reason);
    EXPECT(handlers_count() == handlers, "%d signal handlers", handlers_count());
    EXPECT(memcmp(before, dlsym(RTLD_DEFAULT, "munmap"), sizeof before) == 0, "munmap is another");
    EXPECT(environment_count("UCX_") == 1, "%zu variables of UCX", environment_count("UCX_"));
    EXPECT(strcmp(getenv("UCX_TLS"), "tcp") == 0, "UCX_TLS is %s", getenv("UCX_TLS"));
    return true;
}

/* Runs a case in a child, which reports by its exit status. */
static void check(const char *name, bool (*body)(void)) {
    enum { GOOD, BAD, CANNOT };
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        tap_case_failures = 0;
        bool ran = body();
        _exit(!ran ? CANNOT : tap_case_failures ? BAD : GOOD);
    }
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) {
        printf("ok %d - %s # SKIP no network of its own can be made here\n", ++tap_cases, name);
        return;
    }
    tap_case(name);
    EXPECT(status == 0, "status %#x", (unsigned)status);
    tap_close_case();
}

int main(void) {
    tap_start(0);
    engine = engine_open();
    if (!engine)
        return 0;
    for (char **at = environ; *at;)
        if (strncmp(*at, "UCX_", 4) == 0 && strchr(*at, '='))
            unsetenv(strndup(*at, (size_t)(strchr(*at, '=') - *at)));
        else
            at++;
    check("a private address", private_addresses);
    check("a public address is refused with a line", public_addresses);
    check("a public address that the user vouches for", trusted_address);
    check("interfaces and transports that the user names", other_interface);
    check("the process is left as it was", side_effects);
    return tap_finish();
}
