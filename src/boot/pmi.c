/* SPDX-License-Identifier: BSD-3-Clause */
/* Process managers that speak PMI: MPICH's mpiexec (hydra) and Slurm (srun --mpi=pmi2) speak
 * versions 1 and 2, Flux and others version 1. Version 1 is used unless WEFT_LAUNCHER names pmi2.
 * This process has inherited a socket (PMI_FD), or connects to a port (PMI_PORT, PMI_ID). It sends
 * one request at a time, and waits for the answer.
 *
 * Version 1 consists of lines of "key=value", separated by blanks. Version 2 begins with such
 * lines, then uses messages of "key=value;", each after its length in six digits. The first key is
 * always cmd. Sources: MPICH's documents "PMI-2 Wire Protocol" and "PMI v2 Design Thoughts".
 *
 * The socket is duplicated: an MPI library in this process may use and close the same one. For the
 * same reason never more than one answer is read. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/descriptor.h"
#include "base/machine.h"
#include "boot/source.h"

enum { MESSAGE_MAX = 2048, LENGTH_DIGITS = 6 };

static struct {
    int fd, version; /* 2 once both have agreed on it */
    char name[256];  /* of the store (version 1) or of the job (version 2) */
} server = {.fd = -1, .version = 1};

static int pmi_promises(void) {
    int npes = weft_source_number(getenv("PMI_SIZE"), WEFT_WIRE_PES_MAX);
    if (getenv("PMI_FD") && npes > 0)
        return npes;
    return getenv("PMI_PORT") && getenv("PMI_ID") ? WEFT_NPES_UNKNOWN : 0;
}

/* --- Bytes ----------------------------------------------------------------------------------- */

static int bytes_send(const char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t sent = send(server.fd, text, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == ENOTSOCK)
            sent = write(server.fd, text, bytes);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -errno;
        text += sent;
        bytes -= (size_t)sent;
    }
    return 0;
}

static int bytes_receive(char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t received = read(server.fd, text, bytes);
        if (received < 0 && errno == EINTR)
            continue;
        if (received <= 0)
            return received < 0 ? -errno : -EPIPE;
        text += received;
        bytes -= (size_t)received;
    }
    return 0;
}

static int message_send(const char *text) {
    char message[MESSAGE_MAX];
    size_t length = strlen(text);
    int bytes = server.version == 2
                    ? snprintf(message, sizeof message, "%*zu%s", LENGTH_DIGITS, length, text)
                    : snprintf(message, sizeof message, "%s\n", text);
    return bytes < (int)sizeof message ? bytes_send(message, (size_t)bytes) : -EMSGSIZE;
}

static int line_receive(char *line) {
    for (size_t at = 0; at < MESSAGE_MAX; at++) {
        int error = bytes_receive(line + at, 1);
        if (error)
            return error;
        if (line[at] == '\n') {
            line[at] = '\0';
            return 0;
        }
    }
    return -EMSGSIZE;
}

static int prefixed_receive(char *message) {
    char digits[LENGTH_DIGITS + 1] = "";
    int error = bytes_receive(digits, LENGTH_DIGITS);
    int length = weft_source_number(digits + strspn(digits, " "), MESSAGE_MAX - 1);
    if (error || length < 0)
        return error ? error : -EPROTO;
    message[length] = '\0';
    return bytes_receive(message, (size_t)length);
}

static int message_receive(char *message) {
    return server.version == 2 ? prefixed_receive(message) : line_receive(message);
}

/* --- Questions and answers ------------------------------------------------------------------- */

/* Copies the value of a key in an answer. Returns false if there is none, or it does not fit. */
static bool value_find(const char *answer, const char *key, char *value, size_t bytes) {
    char separator[2] = {server.version == 2 ? ';' : ' ', '\0'};
    size_t length = strlen(key);
    for (const char *at = answer; *at; at += strcspn(at, separator), at += *at != '\0') {
        if (strncmp(at, key, length) != 0 || at[length] != '=')
            continue;
        size_t span = strcspn(at + length + 1, separator);
        if (span >= bytes)
            return false;
        memcpy(value, at + length + 1, span);
        value[span] = '\0';
        return true;
    }
    return false;
}

static bool message_is_answer(const char *answer, const char *expected) {
    char command[64], code[16];
    return value_find(answer, "cmd", command, sizeof command) && strcmp(command, expected) == 0 &&
           (!value_find(answer, "rc", code, sizeof code) || strcmp(code, "0") == 0);
}

/* Sends `question`, which has neither line end nor length, and receives the answer, whose cmd must
 * be `expected`, and whose rc, if any, 0. Returns 0 or -errno, logged. */
static int message_ask(const char *question, const char *expected, char answer[MESSAGE_MAX]) {
    int error = message_send(question);
    error = error ? error : message_receive(answer);
    if (error)
        weft_log("PMI: no answer to '%.60s': %s", question,
                 error == -EPIPE ? "the process manager has closed the connection"
                                 : strerror(-error));
    else if (!message_is_answer(answer, expected)) {
        weft_log("PMI: the process manager answers '%.100s' to '%.60s'", answer, question);
        error = -EPROTO;
    }
    return error;
}

/* Sends a question and copies one value of the answer. Returns 0 or -errno, logged. */
static int value_ask(const char *question, const char *expected, const char *key, char *value,
                     size_t bytes) {
    char answer[MESSAGE_MAX];
    int error = message_ask(question, expected, answer);
    if (error || value_find(answer, key, value, bytes))
        return error;
    weft_log("PMI: the process manager answers '%.100s' to '%.60s', with no '%s'", answer, question,
             key);
    return -EPROTO;
}

/* --- Connecting ------------------------------------------------------------------------------ */

static int descriptor_take(const char *text) {
    int fd = weft_source_number(text, INT_MAX);
    server.fd = fd < 0 ? -1 : weft_descriptor_keep(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (server.fd >= 0)
        return 0;
    weft_log(
        "PMI_FD=%s is not an open descriptor: a wrapper has closed it, or this program was not "
        "started by the process manager; WEFT_LAUNCHER=none runs it alone",
        text);
    return -EBADF;
}

static int address_connect(const char *host, const char *port) {
    struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM};
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed) {
        weft_log("PMI_PORT: cannot find host '%s': %s", host, gai_strerror(failed));
        return -EHOSTUNREACH;
    }
    int code = -EHOSTUNREACH;
    for (struct addrinfo *at = found; at && server.fd < 0; at = at->ai_next) {
        int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0)
            server.fd = weft_descriptor_keep(fd);
        else {
            code = -errno;
            if (fd >= 0)
                close(fd);
        }
    }
    freeaddrinfo(found);
    if (server.fd >= 0)
        return 0;
    weft_log("PMI_PORT: cannot connect to %s:%s: %s%s", host, port, strerror(-code),
             weft_remedy(code).text);
    return code;
}

static int port_connect(const char *text) {
    char host[256];
    const char *colon = strrchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof host) {
        weft_log("PMI_PORT=%s is not a host:port", text);
        return -EINVAL;
    }
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    return address_connect(host, colon + 1);
}

/* Receives a line "cmd=set KEY=number". Returns 0 or -errno; logs if it is missing. */
static int setting_receive(const char *key, int *number) {
    char line[MESSAGE_MAX], value[16] = "";
    int error = line_receive(line);
    if (error == 0 && message_is_answer(line, "set") && value_find(line, key, value, sizeof value))
        *number = weft_source_number(value, WEFT_WIRE_PES_MAX);
    if (error == 0 && *number >= 0)
        return 0;
    weft_log("PMI_PORT: the process manager has not sent '%s'", key);
    return error ? error : -EPROTO;
}

/* A process that connects to the port sends its id, and receives what otherwise is in variables. */
static int process_introduce(const char *id, struct weft_identity *self) {
    char question[64], answer[MESSAGE_MAX];
    int debug = -1;
    snprintf(question, sizeof question, "cmd=initack pmiid=%.20s", id);
    int error = message_ask(question, "initack", answer);
    error = error ? error : setting_receive("size", &self->npes);
    error = error ? error : setting_receive("rank", &self->pe);
    return error ? error : setting_receive("debug", &debug);
}

static int version_agree(int version) {
    char question[64], answer[MESSAGE_MAX], theirs[16] = "", code[16] = "0";
    snprintf(question, sizeof question, "cmd=init pmi_version=%d pmi_subversion=%d", version,
             version == 1);
    int error = message_send(question);
    error = error ? error : message_receive(answer);
    if (error) {
        weft_log("PMI: the process manager does not answer: %s", strerror(-error));
        return error;
    }
    value_find(answer, "rc", code, sizeof code);
    if (!value_find(answer, "pmi_version", theirs, sizeof theirs) ||
        weft_source_number(theirs, 9) != version || strcmp(code, "0") != 0) {
        weft_log("PMI: the process manager does not speak version %d ('%.100s'): set "
                 "WEFT_LAUNCHER=%s",
                 version, answer, version == 1 ? "pmi2" : "pmi");
        return -EPROTONOSUPPORT;
    }
    server.version = version;
    return 0;
}

/* Sets the PE and the number of PEs to -1 if they are not known yet. */
static int server_connect(int version, struct weft_identity *self) {
    const char *fd = getenv("PMI_FD"), *port = getenv("PMI_PORT"), *id = getenv("PMI_ID");
    self->pe = weft_source_number(getenv("PMI_RANK"), WEFT_WIRE_PES_MAX);
    self->npes = weft_source_number(getenv("PMI_SIZE"), WEFT_WIRE_PES_MAX);
    int here = weft_source_number(getenv("MPI_LOCALNRANKS"), WEFT_WIRE_PES_MAX); /* hydra's */
    self->here = here > 0 ? here : 0;
    if (!fd && !(port && id)) {
        weft_log("PMI: neither PMI_FD nor PMI_PORT and PMI_ID are in the environment");
        return -EINVAL;
    }
    int error = fd ? descriptor_take(fd) : port_connect(port);
    if (error == 0 && !fd)
        error = process_introduce(id, self);
    return error ? error : version_agree(version);
}

/* --- As a source ------------------------------------------------------------------------------ */

static int pmi1_open(struct weft_identity *self) {
    int error = server_connect(1, self);
    return error ? error
                 : value_ask("cmd=get_my_kvsname", "my_kvsname", "kvsname", server.name,
                             sizeof server.name);
}

static int number_find(const char *answer, const char *key, int *number) {
    char value[16] = "";
    value_find(answer, key, value, sizeof value);
    *number = weft_source_number(value, WEFT_WIRE_PES_MAX);
    if (*number >= 0)
        return 0;
    weft_log("PMI: the process manager has not sent a valid '%s': '%.100s'", key, answer);
    return -EPROTO;
}

static int pmi2_open(struct weft_identity *self) {
    char question[MESSAGE_MAX], answer[MESSAGE_MAX];
    const char *job = getenv("PMI_JOBID");
    int error = server_connect(2, self);
    if (error)
        return error;
    snprintf(question, sizeof question, "cmd=fullinit;%s%.200s%spmirank=%d;threaded=FALSE;",
             job ? "pmijobid=" : "", job ? job : "", job ? ";" : "", self->pe);
    error = message_ask(question, "fullinit-response", answer);
    error = error ? error : number_find(answer, "rank", &self->pe);
    error = error ? error : number_find(answer, "size", &self->npes);
    return error ? error
                 : value_ask("cmd=job-getid;", "job-getid-response", "jobid", server.name,
                             sizeof server.name);
}

static int pmi_put(const char *key, const char *value) {
    char question[MESSAGE_MAX], answer[MESSAGE_MAX];
    if (server.version == 1)
        snprintf(question, sizeof question, "cmd=put kvsname=%s key=%s value=%s", server.name, key,
                 value);
    else
        snprintf(question, sizeof question, "cmd=kvs-put;key=%s;value=%s;", key, value);
    return message_ask(question, server.version == 1 ? "put_result" : "kvs-put-response", answer);
}

static int pmi_fence(void) {
    char answer[MESSAGE_MAX];
    return server.version == 1 ? message_ask("cmd=barrier_in", "barrier_out", answer)
                               : message_ask("cmd=kvs-fence;", "kvs-fence-response", answer);
}

/* All PEs have one store. The field srcid says which PE's values to search first; -1 means none. */
static int pmi_get(const char *key, char *value, size_t bytes) {
    char question[MESSAGE_MAX];
    snprintf(question, sizeof question,
             server.version == 1 ? "cmd=get kvsname=%s key=%s"
                                 : "cmd=kvs-get;jobid=%s;srcid=-1;key=%s;",
             server.name, key);
    return value_ask(question, server.version == 1 ? "get_result" : "kvs-get-response", "value",
                     value, bytes);
}

/* Tells the process manager that this process ends normally. */
static void pmi_close(void) {
    char ignored[MESSAGE_MAX];
    if (server.fd < 0)
        return;
    if (weft_descriptor_is_ours(server.fd) &&
        message_send(server.version == 1 ? "cmd=finalize" : "cmd=finalize;") == 0)
        message_receive(ignored); /* it must know before this process exits */
    weft_descriptor_close(server.fd);
    server.fd = -1;
}

const struct weft_source weft_source_pmi1 = {.name = "pmi",
                                             .promises = pmi_promises,
                                             .open = pmi1_open,
                                             .put = pmi_put,
                                             .fence = pmi_fence,
                                             .get = pmi_get,
                                             .close = pmi_close};

const struct weft_source weft_source_pmi2 = {.name = "pmi2",
                                             .promises = pmi_promises,
                                             .open = pmi2_open,
                                             .put = pmi_put,
                                             .fence = pmi_fence,
                                             .get = pmi_get,
                                             .close = pmi_close};
