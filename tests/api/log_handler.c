/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a line about an error is passed to the handler, by the thread of the call, and does
 * not appear on stderr if the handler consumes it; a line that reports no error is not passed. The
 * end handler receives the line about a misuse. PEs: 1 2 */
#include <shmem.h>
#include <shmemx.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tap.h"

static char kept[1024];
static int lines, keeps;

static int take(const char *line) {
    snprintf(kept, sizeof kept, "%s", line);
    lines++;
    return keeps;
}

/* Returns the text written to stderr meanwhile; 0 bytes if there was none. */
static size_t caught(int pipes[2], char *text, size_t bytes) {
    ssize_t got;
    fflush(stderr);
    if (write(pipes[1], ".", 1) != 1 || (got = read(pipes[0], text, bytes - 1)) < 1)
        return 0;
    text[got] = '\0';
    return (size_t)got - 1;
}

int main(void) {
    char text[4096];
    int pipes[2], provided, err = dup(STDERR_FILENO);
    shmem_init();
    int me = shmem_my_pe();
    tap_start(me);
    if (pipe(pipes) < 0 || dup2(pipes[1], STDERR_FILENO) < 0)
        return 1;
    shmemx_set_log_handler(take);
    keeps = 1;
    bool nothing = !shmem_malloc((size_t)1 << 55);
    size_t written = caught(pipes, text, sizeof text);
    keeps = 0;
    char first[sizeof kept];
    memcpy(first, kept, sizeof first);
    bool wrong = shmem_init_thread(77, &provided) != 0;
    size_t passed = caught(pipes, text, sizeof text);
    shmemx_set_log_handler(NULL);
    dup2(err, STDERR_FILENO);

    tap_case("a line that is kept is not written");
    EXPECT(nothing && written == 0, "written: %s", text);
    EXPECT(me != 0 || strstr(first, "shmem_malloc of ") == first, "kept: %s", first);
    tap_case("one that is not kept is");
    EXPECT(wrong && passed > 0 && strstr(text, "requested is 77"), "written: %s", text);
    EXPECT(strstr(kept, "requested is 77") == kept + strlen("shmem_init_thread: argument "),
           "handed over: %s", kept);
    shmem_finalize();
    return tap_finish();
}
