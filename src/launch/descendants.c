/* SPDX-License-Identifier: BSD-3-Clause */
/* Descendants are found through the parents in /proc. Process groups would not do: in a job on one
 * host PEs are in the launcher's group, which it shares with the process that started it. Reading
 * /proc takes a moment, so only the end of a failed job does it. */
#include "launch/descendants.h"
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct process {
    pid_t pid, parent;
    bool ours;
};

void weft_descendants_adopt(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* Reads the parent and the flags from /proc/PID/stat, or from /proc/PID/task/TID/stat if `thread`
 * is not 0. The second field, in parentheses, may contain any characters. */
static bool stat_read(pid_t pid, pid_t thread, pid_t *parent, unsigned *flags) {
    char path[64], text[512];
    if (thread)
        snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, thread);
    else
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && sscanf(name_end + 1, " %*c %d %*d %*d %*d %*d %u", parent, flags) == 2;
}

static bool thread_runs(pid_t pid, pid_t thread) {
    enum { PF_EXITING = 4 }; /* from the kernel's include/linux/sched.h; unchanged since 1.0 */
    pid_t parent;
    unsigned flags;
    return stat_read(pid, thread, &parent, &flags) && !(flags & PF_EXITING);
}

/* Looks at all threads: the first may have ended before the others. */
bool weft_descendants_runs(pid_t pid) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    struct dirent *entry;
    bool runs = false;
    while (threads && !runs && (entry = readdir(threads))) {
        pid_t thread = atoi(entry->d_name); /* 0: not a number */
        runs = thread > 0 && thread_runs(pid, thread);
    }
    if (threads)
        closedir(threads);
    return runs;
}

static size_t processes_list(struct process **list) {
    DIR *directory = opendir("/proc");
    struct dirent *entry;
    size_t count = 0;
    *list = NULL;
    while (directory && (entry = readdir(directory))) {
        pid_t parent, pid = atoi(entry->d_name); /* 0: not a number */
        unsigned flags;
        if (pid <= 0 || !stat_read(pid, 0, &parent, &flags))
            continue;
        struct process *longer = realloc(*list, (count + 1) * sizeof **list);
        if (!longer)
            break;
        *list = longer;
        longer[count++] = (struct process){pid, parent, false};
    }
    if (directory)
        closedir(directory);
    return count;
}

static bool process_is_ours(const struct process *list, size_t count, pid_t pid) {
    if (pid == getpid())
        return true;
    for (size_t i = 0; i < count; i++)
        if (list[i].pid == pid)
            return list[i].ours;
    return false;
}

void weft_descendants_signal(int signal) {
    struct process *list;
    size_t count = processes_list(&list);
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < count; i++)
            if (!list[i].ours && process_is_ours(list, count, list[i].parent))
                found = list[i].ours = true;
    }
    for (size_t i = 0; i < count; i++)
        if (list[i].ours)
            kill(list[i].pid, signal);
    free(list);
}
