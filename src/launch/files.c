/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher opens the files, so that what is wrong with them is known before a PE runs. */
#include "launch/files.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_MODE = 0777, FILE_MODE = 0666 }; /* less what umask takes away */

static int file_refuse(const char *action, const char *path) {
    int code = -errno;
    fprintf(stderr, "oshrun: cannot %s %s: %s\n", action, path, strerror(-code));
    return code;
}

/* Every folder on the way to the last slash of `path`, which is the same again afterwards. */
static int folders_make(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int code = mkdir(path, FOLDER_MODE) < 0 && errno != EEXIST
                       ? file_refuse("make the folder", path)
                       : 0;
        *slash = '/';
        if (code)
            return code;
    }
    return 0;
}

int weft_files_open(const char *folder, int pe, int fds[2]) {
    static const char *const names[] = {"stdout", "stderr"};
    char path[PATH_MAX];
    int code = 0;
    for (int i = 0; code == 0 && i < 2; i++) {
        snprintf(path, sizeof path, "%s/rank.%d/%s", folder, pe, names[i]);
        code = folders_make(path);
        fds[i] = code ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
        if (code == 0 && fds[i] < 0)
            code = file_refuse("write", path);
    }
    return code;
}

void weft_files_redirect(const int fds[2]) {
    dup2(fds[0], STDOUT_FILENO);
    dup2(fds[1], STDERR_FILENO);
}

void weft_files_close(int fds[2]) {
    close(fds[0]);
    close(fds[1]);
}
