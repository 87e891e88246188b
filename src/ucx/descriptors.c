/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucx/descriptors.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct ucx_descriptors {
    size_t count, room;
    int of[];
};

static void close_on_exec(int descriptor) {
    int flags = fcntl(descriptor, F_GETFD);
    if (flags >= 0 && !(flags & FD_CLOEXEC))
        fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC);
}

/* The number of a name in a folder of /proc; -1: it is none. */
static int number_of(const char *name) {
    return *name >= '0' && *name <= '9' ? atoi(name) : -1;
}

static struct ucx_descriptors *note_add(struct ucx_descriptors *note, int descriptor) {
    if (note->count == note->room) {
        size_t room = 2 * note->room;
        struct ucx_descriptors *longer = realloc(note, sizeof *note + room * sizeof *note->of);
        if (!longer) {
            free(note);
            return NULL;
        }
        note = longer;
        note->room = room;
    }
    note->of[note->count++] = descriptor;
    return note;
}

struct ucx_descriptors *ucx_descriptors_note(void) {
    enum { ROOM = 64 };
    struct ucx_descriptors *note = malloc(sizeof *note + ROOM * sizeof *note->of);
    DIR *folder = opendir("/proc/self/fd");
    if (note)
        *note = (struct ucx_descriptors){.room = ROOM};
    for (struct dirent *entry; note && folder && (entry = readdir(folder)) != NULL;)
        note = note_add(note, number_of(entry->d_name));
    if (folder)
        closedir(folder);
    return note;
}

static bool note_has(const struct ucx_descriptors *note, int descriptor) {
    for (size_t i = 0; i < note->count; i++)
        if (note->of[i] == descriptor)
            return true;
    return false;
}

/* Files that another thread opens meanwhile are left alone. */
static bool is_file(int descriptor) {
    char path[64], target[16] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return readlink(path, target, sizeof target - 1) < 1 || *target == '/';
}

void ucx_descriptors_mark_new(struct ucx_descriptors *note) {
    DIR *folder = note ? opendir("/proc/self/fd") : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        int descriptor = number_of(entry->d_name);
        if (descriptor >= 0 && !note_has(note, descriptor) && !is_file(descriptor))
            close_on_exec(descriptor);
    }
    if (folder)
        closedir(folder);
    free(note);
}

/* Epolls in epolls are as deep as `depth`; the kernel lists what each waits for ("tfd: 17 ..."). */
static void mark_below(int epoll, int depth) {
    char path[64], line[256];
    close_on_exec(epoll);
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll);
    FILE *file = depth > 0 ? fopen(path, "re") : NULL;
    int descriptor;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "tfd: %d", &descriptor) == 1)
            mark_below(descriptor, depth - 1);
    if (file)
        fclose(file);
}

void ucx_descriptors_mark(int epoll) {
    enum { DEPTH = 2 }; /* of the worker, then of an interface */
    mark_below(epoll, DEPTH);
}

struct ucx_witness ucx_descriptors_witness(int descriptor) {
    struct stat file;
    if (fstat(descriptor, &file) != 0)
        return (struct ucx_witness){.descriptor = descriptor};
    return (struct ucx_witness){
        .descriptor = descriptor, .device = file.st_dev, .inode = file.st_ino};
}

bool ucx_descriptors_are_closed(const struct ucx_witness *witness) {
    struct stat file;
    if (witness->inode == 0)
        return false;
    return fstat(witness->descriptor, &file) != 0 || file.st_ino != witness->inode ||
           file.st_dev != witness->device;
}
