/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: allocates all available symmetric memory, piece by piece, and touches all of it:
 * each piece at once, or all of them at the end ("later" as an argument). With "return" it then
 * frees all, and allocates and touches it once more. Prints how many MiB each PE got. For limits.t;
 * not a test by itself. PEs: none */
#include <shmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PIECE_MIB = 2, PIECES_MAX = 4096 };

static char *pieces[PIECES_MAX];

static void touch(char *piece) {
    memset(piece, shmem_my_pe() + 1, (size_t)PIECE_MIB << 20);
}

static int take_all(bool at_once) {
    int npieces = 0;
    while (npieces < PIECES_MAX) {
        pieces[npieces] = shmem_malloc((size_t)PIECE_MIB << 20);
        if (!pieces[npieces])
            break;
        if (at_once)
            touch(pieces[npieces]);
        npieces++;
    }
    for (int i = 0; i < npieces; i++)
        touch(pieces[i]);
    shmem_barrier_all();
    return npieces;
}

/* Checks that the peer's memory has the bytes that the peer wrote. */
static bool is_whole(int npieces) {
    int next = (shmem_my_pe() + 1) % shmem_n_pes();
    bool whole = true;
    for (int i = 0; i < npieces; i++)
        whole &= shmem_char_g(pieces[i] + 12345, next) == next + 1;
    return whole;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "at once";
    shmem_init();
    int npieces = take_all(strcmp(how, "later") != 0);
    bool whole = is_whole(npieces);
    if (strcmp(how, "return") == 0) {
        for (int i = 0; i < npieces; i++)
            shmem_free(pieces[i]);
        npieces = take_all(true);
        whole &= is_whole(npieces);
    }
    printf("%d %s\n", npieces * PIECE_MIB, whole ? "whole" : "damaged");
    shmem_finalize();
    return 0;
}
