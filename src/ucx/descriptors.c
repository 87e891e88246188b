/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucx/descriptors.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* Returns the number that is an entry's name in a folder of /proc, or -1 if the name is not a
 * number. */
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

/* Returns true also for a closed descriptor. Files that another thread of the program opens at this
 * time are left alone. */
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

/* Epolls nest at most `depth` deep. The kernel lists the descriptors that each one waits for ("tfd:
 * 17 ..."). */
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
    enum { DEPTH = 2 }; /* the worker's, then an interface's */
    mark_below(epoll, DEPTH);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct ucx_witness ucx_descriptors_witness(int epoll) {
    fcntl(epoll, F_SETFL, O_APPEND | O_NONBLOCK);
    return (struct ucx_witness){.descriptor = epoll, .flags = fcntl(epoll, F_GETFL)};
}

/* A waiting thread asks before each of its polls. Another thread of the program may close
 * descriptors meanwhile, so the number is checked now and then all the same. */
bool ucx_descriptors_are_closed(struct ucx_witness *witness) {
    enum { TURN_NS = 5000, LOOK_NS = 1000 * 1000 };
    uint64_t now = now_ns(), before = witness->asked_ns;
    if (witness->flags == 0)
        return false; /* there is no epoll yet */
    witness->asked_ns = now;
    if (now - before < TURN_NS && now - witness->looked_ns < LOOK_NS)
        return false;
    if (fcntl(witness->descriptor, F_GETFL) != witness->flags) {
        witness->asked_ns = 0; /* makes the next call check, too */
        return true;
    }
    witness->looked_ns = now;
    return false;
}
