/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of /proc/PID/cgroup have the form "number:controllers:/path". The line of version 2 has no
 * controllers. */
#include "base/cgroup.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNT "/sys/fs/cgroup"

/* Returns whether a comma-separated list contains `word`. */
static bool controllers_have(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* Stores the group's folder in `cgroup` and returns true if the line belongs to the version and the
 * controller asked for. Modifies the line. */
static bool line_match(struct weft_cgroup *cgroup, char *line, const char *controller) {
    char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
    if (!path)
        return false;
    *names++ = *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    bool of_version_2 = *names == '\0';
    if (of_version_2 != cgroup->version_2 ||
        (!of_version_2 && !controllers_have(names, controller)))
        return false;
    int mount = snprintf(cgroup->folder, sizeof cgroup->folder, "%s%s%s", MOUNT,
                         of_version_2 ? "" : "/", of_version_2 ? "" : controller);
    cgroup->mount_length = (size_t)mount;
    size_t room = sizeof cgroup->folder - cgroup->mount_length;
    const char *below = strcmp(path, "/") == 0 ? "" : path;
    return snprintf(cgroup->folder + mount, room, "%s", below) < (int)room;
}

bool weft_cgroup_find(struct weft_cgroup *cgroup, pid_t pid, const char *controller,
                      bool version_2) {
    char path[64], line[WEFT_CGROUP_FILE_MAX];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)(pid ? pid : getpid()));
    FILE *file = fopen(path, "re");
    bool found = false;
    cgroup->version_2 = version_2;
    while (file && !found && fgets(line, sizeof line, file))
        found = line_match(cgroup, line, controller);
    if (file)
        fclose(file);
    return found;
}

bool weft_cgroup_ascend(struct weft_cgroup *cgroup) {
    char *end = strrchr(cgroup->folder + cgroup->mount_length, '/');
    if (end)
        *end = '\0';
    return end != NULL;
}

uint64_t weft_cgroup_number(const char *folder, const char *file, const char *key) {
    char path[WEFT_CGROUP_FILE_MAX], line[256], *end;
    uint64_t number = UINT64_MAX;
    size_t length = strlen(key);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *opened = fopen(path, "re");
    while (opened && fgets(line, sizeof line, opened)) {
        if (strncmp(line, key, length) != 0)
            continue;
        unsigned long long parsed = strtoull(line + length, &end, 10);
        if (end != line + length)
            number = parsed;
        break;
    }
    if (opened)
        fclose(opened);
    return number;
}
