/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes append to the file at any time, each a whole line by one call. */
#include "fused/memo.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/hash.h"

enum { PATH_BYTES = 4096, LINE_BYTES = 512 };

/* A key, its value, and a hash of both, which a line that is cut off or damaged does not match. */
struct memo_line {
    uint64_t key, value[WEFT_MEMO_WORDS], check;
};

static uint64_t check_of(const struct memo_line *entry) {
    return weft_hash(WEFT_HASH_BASIS, entry, offsetof(struct memo_line, check));
}

/* --- The file --------------------------------------------------------------------------------- */

/* A program with privileges that its user has not leaves the user's files alone. */
static bool find_folder(char *folder, bool makes) {
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int n = 0;
    if (cache && cache[0] == '/')
        n = snprintf(folder, PATH_BYTES, "%s", cache);
    else if (home && home[0] == '/')
        n = snprintf(folder, PATH_BYTES, "%s/.cache", home);
    if (n <= 0 || n + 16 > PATH_BYTES)
        return false;
    if (makes)
        mkdir(folder, 0700);
    snprintf(folder + n, PATH_BYTES - (size_t)n, "/weft");
    return !makes || mkdir(folder, 0700) == 0 || errno == EEXIST;
}

static int open_file(int flags) {
    char folder[PATH_BYTES], path[PATH_BYTES + 16];
    if (!find_folder(folder, flags & O_CREAT))
        return -1;
    snprintf(path, sizeof path, "%s/products", folder);
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* --- Lines ------------------------------------------------------------------------------------ */

static bool read_entry(const char *line, struct memo_line *entry) {
    uint64_t *words = &entry->key;
    for (size_t i = 0; i < sizeof *entry / sizeof *words; i++) {
        char *end;
        errno = 0;
        words[i] = strtoull(line, &end, 16);
        if (end == line || errno)
            return false;
        line = end;
    }
    return entry->check == check_of(entry);
}

void weft_memo_visit(weft_memo_visitor *visit, void *context) {
    char line[LINE_BYTES];
    struct memo_line entry;
    int fd = open_file(O_RDONLY);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *remark = strstr(line, "# ");
        line[strcspn(line, "\n")] = '\0';
        if (read_entry(line, &entry))
            visit(context, entry.key, entry.value, remark ? remark + 2 : "");
    }
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
}

struct wanted {
    uint64_t key, *value;
    bool found;
};

static void take_wanted(void *context, uint64_t key, const uint64_t *value, const char *remark) {
    struct wanted *wanted = context;
    (void)remark;
    if (key != wanted->key)
        return;
    wanted->found = true;
    memcpy(wanted->value, value, WEFT_MEMO_WORDS * sizeof *value);
}

bool weft_memo_find(uint64_t key, uint64_t value[WEFT_MEMO_WORDS]) {
    struct wanted wanted = {key, value, false};
    weft_memo_visit(take_wanted, &wanted);
    return wanted.found;
}

/* Returns whether the file's last line is cut off. */
static bool is_cut_off(int fd) {
    char last = '\n';
    off_t size = lseek(fd, 0, SEEK_END);
    return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

void weft_memo_keep(uint64_t key, const uint64_t value[WEFT_MEMO_WORDS], const char *remark) {
    struct memo_line entry = {.key = key};
    char line[LINE_BYTES] = "\n";
    size_t n = 1;
    for (int i = 0; i < WEFT_MEMO_WORDS; i++)
        entry.value[i] = value[i];
    entry.check = check_of(&entry);
    const uint64_t *words = &entry.key;
    for (size_t i = 0; i < sizeof entry / sizeof *words; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, "%" PRIx64 " ", words[i]);
    n += (size_t)snprintf(line + n, sizeof line - n, "# %.200s\n", remark);
    int fd = open_file(O_RDWR | O_APPEND | O_CREAT);
    if (fd < 0)
        return;
    size_t skipped = is_cut_off(fd) ? 0 : 1;
    ssize_t written =
        write(fd, line + skipped, n - skipped); /* if not all: a line that is cut off */
    (void)written;
    close(fd);
}
