/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a program closes all descriptors from 3 on after shmem_init, as daemons and
 * closefrom(3) do, and reuses these numbers for files of its own. The file keeps what the program
 * has written, the numbers stay open, and the job continues, for as many further milliseconds as
 * the first argument says. The file remains in the folder that a second argument names.
 *
 * PEs: 1 2 3 */
#include <dirent.h>
#include <fcntl.h>
#include <shmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tap.h"

#define MIB ((size_t)1 << 20)

enum { NUMBERS_MAX = 512 };

static int number[NUMBERS_MAX], nnumbers;
static long initialised[3] = {1, 2, 3};
static long zeros[1024];

/* Notes and closes all descriptors from 3 on. */
static void close_all(void) {
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        if (atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(folder) &&
            nnumbers < NUMBERS_MAX)
            number[nnumbers++] = atoi(entry->d_name);
    if (folder)
        closedir(folder);
    for (int i = 0; i < nnumbers; i++)
        close(number[i]);
}

/* Reuses the numbers for a file of 1 MiB of 'x'. `folder`: where the file remains, or NULL. */
static int file_make(const char *folder) {
    char name[256], block[4096];
    snprintf(name, sizeof name, "%s/closed-XXXXXX", folder ? folder : P_tmpdir);
    int fd = mkstemp(name);
    if (!folder)
        unlink(name);
    memset(block, 'x', sizeof block);
    for (size_t done = 0; done < MIB; done += sizeof block)
        EXPECT(write(fd, block, sizeof block) == sizeof block, "write to its own file");
    for (int i = 0; i < nnumbers; i++)
        if (number[i] != fd)
            EXPECT(dup2(fd, number[i]) == number[i], "dup2 to %d", number[i]);
    return fd;
}

static void file_check(int fd, const char *when) {
    struct stat file;
    char block[4096];
    size_t wrong = 0;
    EXPECT(fstat(fd, &file) == 0 && (size_t)file.st_size == MIB, "%s the file has %ld bytes", when,
           (long)file.st_size);
    EXPECT(file.st_blocks * 512 >= (long)MIB, "%s the file has holes", when);
    EXPECT(lseek(fd, 0, SEEK_CUR) == (off_t)MIB, "%s the file's position is another", when);
    for (size_t at = 0; at < MIB; at += sizeof block) {
        ssize_t got = pread(fd, block, sizeof block, (off_t)at);
        for (ssize_t i = 0; i < got; i++)
            wrong += block[i] != 'x';
    }
    EXPECT(wrong == 0, "%s %zu bytes of the file are others", when, wrong);
    for (int i = 0; i < nnumbers; i++)
        EXPECT(fcntl(number[i], F_GETFD) >= 0, "%s descriptor %d is closed", when, number[i]);
}

static void heap_works(int me, int npes) {
    tap_case("the heap grows, shrinks, clears and copies");
    for (int turn = 0; turn < 2; turn++) {
        char *large = shmem_malloc(40 * MIB);
        EXPECT(large != NULL, "no memory");
        if (large)
            memset(large, 1, 40 * MIB);
        shmem_free(large);
        shmem_free(shmem_malloc(64));
    }
    long *values = shmem_calloc(MIB, sizeof *values);
    long sum = 0;
    EXPECT(values != NULL, "no memory");
    if (!values)
        return;
    for (size_t i = 0; i < MIB; i++)
        sum += values[i];
    EXPECT(sum == 0, "memory of shmem_calloc is not zero");
    shmem_barrier_all();
    shmem_long_p(&values[1], 7 + me, (me + 1) % npes);
    shmem_barrier_all();
    values = shmem_realloc(values, 16 * MIB);
    EXPECT(values && values[1] == 7 + (me + npes - 1) % npes, "shmem_realloc loses a value");
    shmem_free(values);
}

static void statics_work(int me, int npes) {
    tap_case("globals are symmetric, and a forked child has its own");
    shmem_long_p(&zeros[5], 100 + me, (me + 1) % npes);
    shmem_barrier_all();
    pid_t child = fork();
    if (child == 0) {
        bool right = initialised[2] == 3 && zeros[5] == 100 + (me + npes - 1) % npes;
        initialised[0] = zeros[5] = 77;
        _exit(right ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(status == 0, "the child ended with %d", status);
    EXPECT(initialised[0] == 1 && zeros[5] != 77, "the child has written to this process");
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    shmem_init();
    int me = shmem_my_pe(), npes = shmem_n_pes();
    tap_start(me);
    close_all();
    int fd = file_make(argc > 2 ? argv[2] : NULL);
    heap_works(me, npes);
    statics_work(me, npes);
    tap_case("the file is as the program has written it");
    file_check(fd, "before shmem_finalize");
    if (argc > 1)
        usleep((useconds_t)atoi(argv[1]) * 1000);
    shmem_finalize();
    file_check(fd, "after shmem_finalize");
    return tap_finish();
}
