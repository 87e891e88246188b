/* SPDX-License-Identifier: BSD-3-Clause */
/* Each line is one write(2), cut at LINE_BYTES. The text of weft_fail is kept per thread. */
#include "base/log.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 2048, TEXT_BYTES = 512 };

__thread const char *weft_current_call = WEFT_NO_CALL;

static int log_pe = -1;
static pid_t log_pid; /* 0: of this process */
static const char *log_host = "";
static _Atomic(weft_log_handler *) handler;
static _Thread_local char fail_text[TEXT_BYTES];

void weft_log_set_pe(int pe) {
    log_pe = pe;
}

void weft_log_set_pid(pid_t pid) {
    log_pid = pid;
}

void weft_log_set_host(const char *name) {
    log_host = name ? name : "";
}

void weft_log_set_handler(weft_log_handler *to) {
    atomic_store(&handler, to);
}

static void line_write(const char *text) {
    char line[LINE_BYTES];
    int used = log_pe < 0 ? snprintf(line, sizeof line, "weft: ")
                          : snprintf(line, sizeof line, "weft: PE %d (pid %d%s%s): ", log_pe,
                                     (int)(log_pid ? log_pid : getpid()), *log_host ? " on " : "",
                                     log_host);
    snprintf(line + used, sizeof line - (size_t)used - 1, "%s", text);
    size_t length = strlen(line);
    line[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written; /* there is nowhere else to report this error */
}

void weft_log(const char *format, ...) {
    char text[LINE_BYTES];
    weft_log_handler *taker = atomic_load(&handler);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!taker || !taker(text))
        line_write(text);
}

void weft_note(const char *format, ...) {
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    line_write(text);
}

/* Returns the length in bytes of the well-formed UTF-8 character that begins here, or 0 if there is
 * none that a line may contain (Unicode, table 3-7). U+0080 to U+009F are controls. */
static size_t character_length(const unsigned char *at) {
    if (at[0] < 0x80)
        return at[0] >= ' ' && at[0] != 0x7f;
    if (at[0] < 0xc2 || at[0] > 0xf4)
        return 0;
    unsigned char least = at[0] == 0xc2 || at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char most = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;
    size_t length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (at[1] < least || at[1] > most)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

void weft_log_make_printable(char *text, size_t bytes) {
    text[bytes - 1] = '\0';
    while (*text) {
        size_t length = character_length((const unsigned char *)text);
        if (length == 0)
            *text = '?';
        text += length ? length : 1;
    }
}

int weft_fail(int code, const char *format, ...) {
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return weft_fail_bare(code, "%s: %s", weft_current_call, text);
}

int weft_fail_bare(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fail_text, sizeof fail_text, format, arguments);
    va_end(arguments);
    return code;
}

const char *weft_fail_text(void) {
    return fail_text;
}
