/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects programs that never became PEs although the user may have expected it. An executable that
 * calls shmem_init contains this name as a symbol. If it is linked with Weft, statically or
 * dynamically, it contains one of Weft's names, too. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "boot/wire.h"
#include "launch/end.h"

/* Finds the file to which execvp resolves a word of the command line. */
static bool program_find(const char *folder, const char *word, char path[PATH_MAX]) {
    const char *places = getenv("PATH");
    if (strchr(word, '/')) {
        bool below = folder && *word != '/';
        snprintf(path, PATH_MAX, "%s%s%s", below ? folder : "", below ? "/" : "", word);
        return access(path, R_OK) == 0;
    }
    for (const char *at = places; at && *at; at += strcspn(at, ":"), at += *at == ':') {
        snprintf(path, PATH_MAX, "%.*s/%s", (int)strcspn(at, ":"), at, word);
        if (access(path, R_OK | X_OK) == 0)
            return true;
    }
    return false;
}

static bool binary_is_foreign(const char *image, size_t bytes) {
    static const char called[] = "\0shmem_init"; /* the symbol with both terminating zeros */
    return bytes > 4 && memcmp(image, "\177ELF", 4) == 0 &&
           memmem(image, bytes, called, sizeof called) && !memmem(image, bytes, "libweft.so", 10) &&
           !memmem(image, bytes, WEFT_BOOT_ENV_HUB, strlen(WEFT_BOOT_ENV_HUB));
}

static bool file_is_foreign(const char *path) {
    struct stat stat;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool usable = file >= 0 && fstat(file, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size;
    void *image =
        usable ? mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    if (file >= 0)
        close(file);
    if (image == MAP_FAILED)
        return false;
    bool foreign = binary_is_foreign(image, (size_t)stat.st_size);
    munmap(image, (size_t)stat.st_size);
    return foreign;
}

/* Returns the word that names a program linked with another library: the first word, or a later one
 * if the first is a tool that runs it. Returns NULL if there is none. */
static const char *foreign_word(const struct weft_program *program) {
    char path[PATH_MAX];
    for (char **word = program->argv; *word; word++) {
        bool named = word == program->argv || strchr(*word, '/');
        if (named && program_find(program->folder, *word, path) && file_is_foreign(path))
            return *word;
    }
    return NULL;
}

/* Returns whether a process still runs below this one. Orphans are children of the launcher, and
 * its own children have ended by now. */
static bool orphan_runs(void) {
    pid_t ended;
    do {
        ended = waitpid(-1, NULL, WNOHANG);
    } while (ended > 0);
    return ended == 0;
}

/* Detects a command, such as a shell script, that has ended without waiting for its background
 * program. */
static void orphans_tell(const struct weft_run *run) {
    int pe = 0;
    while (pe < run->npes && (!weft_run_has(run, pe) || run->pe[pe].self))
        pe++;
    if (pe < run->npes && orphan_runs())
        fprintf(stderr,
                "oshrun: the process of PE %d (pid %d) has ended before shmem_init, and a process "
                "that it has started continues alone and is not a PE: have the command wait for "
                "its program, as in './prog & wait'\n",
                pe, (int)run->pe[pe].child);
}

void weft_end_tell_other_library(const struct weft_run *run) {
    if (run->cause.kind == WEFT_ABORT_NONE)
        orphans_tell(run);
    int pe = run->cause.kind != WEFT_ABORT_NONE && run->cause.pe >= 0 ? run->cause.pe : 0;
    if (!weft_run_has(run, pe) || run->pe[pe].self ||
        (run->cause.kind == WEFT_ABORT_NONE && weft_run_anyone_joined(run)))
        return;
    const char *word = foreign_word(run->pe[pe].program);
    if (word)
        fprintf(stderr,
                "oshrun: '%s' calls the shmem_init of another OpenSHMEM library, not Weft's: "
                "compile it with Weft's oshcc ('ldd %s' shows which library it has now)\n",
                word, word);
}
