/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: parts of any sizes between members: no parts, empty parts, more than a band of
 * private memory, at offsets and contiguous. All members find a wrong expected count, with the same
 * text. A list never takes more than half of a workspace. PEs: 1 2 3 4 */
#include "coll/alltoallv.h"
#include <errno.h>
#include <shmem.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "tap.h"

enum { PARTS_MAX = 3, PES_MAX = 4, LIST_MAX = PARTS_MAX * PES_MAX };

static int me, npes;
static size_t sent[LIST_MAX], expected[LIST_MAX], from[LIST_MAX], to[LIST_MAX];

static int32_t value(int sender, int receiver, size_t part, size_t i) {
    return (int32_t)(sender * 100000007 + receiver * 1000003 + (int)part * 10007 + (int)(i % 9973));
}

/* Returns the elements that a sender sends in a part; about one part in four is empty. */
static size_t nelems_of(int sender, int receiver, size_t part, size_t scale) {
    size_t mixed = (size_t)(sender * 7 + receiver * 3) + part * 5;
    return mixed % 4 == 1 ? 0 : (mixed % 5 + 1) * scale;
}

/* Fills in the lists of this PE, and the sizes of source and dest; `gap` elements precede each
 * part. */
static void plan(size_t nparts, size_t scale, size_t gap, size_t *source, size_t *dest) {
    *source = *dest = 0;
    for (int pe = 0; pe < npes; pe++)
        for (size_t part = 0; part < nparts; part++) {
            size_t k = (size_t)pe * nparts + part;
            sent[k] = nelems_of(me, pe, part, scale);
            expected[k] = nelems_of(pe, me, part, scale);
            from[k] = *source + gap;
            to[k] = *dest + gap;
            *source = from[k] + sent[k];
            *dest = to[k] + expected[k];
        }
}

static int exchange(struct weft_alltoallv *p) {
    struct weft_meeting meeting;
    int error =
        weft_meeting_open(&meeting, SHMEM_TEAM_WORLD, WEFT_CALL_ALL_TO_ALLV, WEFT_STREAM_HOST);
    error = error ? error : weft_alltoallv_offer(&meeting, p);
    weft_meeting_post(&meeting, error);
    error = weft_meeting_agree(&meeting);
    error = error ? error : weft_alltoallv_compare(&meeting, p);
    if (!error)
        weft_alltoallv_move(&meeting, p);
    return weft_meeting_close(&meeting, error);
}

static void move(const char *what, size_t nparts, size_t scale, size_t gap, int32_t *source,
                 bool offsets) {
    size_t source_nelems, dest_nelems, wrong = 0;
    plan(nparts, scale, gap, &source_nelems, &dest_nelems);
    int32_t *private = source ? NULL : malloc((source_nelems + 1) * sizeof *source);
    int32_t *dest = malloc((dest_nelems + 1) * sizeof *dest), *shown = source ? source : private;
    memset(dest, 0xff, (dest_nelems + 1) * sizeof *dest);
    for (int pe = 0; pe < npes; pe++)
        for (size_t k = (size_t)pe * nparts; k < (size_t)(pe + 1) * nparts; k++)
            for (size_t i = 0; i < sent[k]; i++)
                shown[from[k] + i] = value(me, pe, k % nparts, i);
    struct weft_alltoallv p = {.dest = dest,
                               .source = shown,
                               .dest_nelems = expected,
                               .source_nelems = sent,
                               .nparts = nparts,
                               .dtype = WEFT_I32,
                               .source_bytes = source_nelems * sizeof *source};
    p.dest_offsets = offsets ? to : NULL;
    p.source_offsets = offsets ? from : NULL;
    EXPECT(exchange(&p) == 0, "%s: %s", what, weft_fail_text());
    for (int pe = 0; pe < npes; pe++)
        for (size_t k = (size_t)pe * nparts; k < (size_t)(pe + 1) * nparts; k++) {
            for (size_t i = 0; i < expected[k]; i++)
                wrong += dest[to[k] + i] != value(pe, me, k % nparts, i);
            for (size_t i = 1; i <= gap; i++)
                wrong += dest[to[k] - i] != -1;
        }
    EXPECT(wrong == 0 && dest[dest_nelems] == -1, "%s: %zu elements are wrong", what, wrong);
    free(private);
    free(dest);
}

static void mismatch(void) {
    tap_case("all members find a wrong expected count, with one text");
    size_t source, dest;
    plan(1, 4, 0, &source, &dest);
    if (me == npes - 1)
        expected[0]++;
    int32_t *memory = calloc(source + dest + 2, sizeof *memory);
    struct weft_alltoallv p = {.dest = memory + source,
                               .source = memory,
                               .dest_nelems = expected,
                               .source_nelems = sent,
                               .nparts = 1,
                               .dtype = WEFT_I32,
                               .source_bytes = source * sizeof *memory};
    size_t number = nelems_of(0, npes - 1, 0, 4);
    char text[160];
    snprintf(text, sizeof text,
             "source_nelems[%d] is %zu on PE 0, but dest_nelems[0] is %zu on PE %d", npes - 1,
             number, number + 1, npes - 1);
    int error = exchange(&p);
    EXPECT(error == -EINVAL && strstr(weft_fail_text(), text), "%d: %s", error, weft_fail_text());
    free(memory);
    move("the call behind it", 1, 4, 0, NULL, false);
}

static void list_limit(void) {
    tap_case("the longest list takes half of a workspace; with far members all lists do together");
    struct weft_meeting meeting;
    if (weft_meeting_open(&meeting, SHMEM_TEAM_WORLD, WEFT_CALL_ALL_TO_ALLV, WEFT_STREAM_HOST) != 0)
        return;
    size_t most = weft_alltoallv_parts_max(&meeting), half = weft_team_workspace_capacity() / 2;
    size_t lists = meeting.team->far ? (size_t)npes : 1;
    size_t part = 5 * sizeof(uint64_t) * (size_t)npes * lists, list = most * part;
    EXPECT(list <= half && half - list < 4096 + part, "%zu parts of %zu bytes", most, half);
    weft_meeting_post(&meeting, 0);
    EXPECT(weft_meeting_close(&meeting, weft_meeting_agree(&meeting)) == 0, "%s", weft_fail_text());
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    int32_t *symmetric = shmem_malloc((size_t)LIST_MAX * 5 * 1024 * sizeof *symmetric);
    tap_case("parts of any sizes, of which some are empty");
    move("private", 3, 11, 0, NULL, false);
    move("private, offsets with gaps", 2, 7, 5, NULL, true);
    move("symmetric", 3, 1000, 0, symmetric, false);
    move("symmetric, offsets with gaps", 2, 100, 3, symmetric, true);
    move("nothing at all", 1, 0, 0, NULL, false);
    tap_case("a private source of more than a band");
    move("private, two bands and more", 2, 300000, 1, NULL, true);
    mismatch();
    list_limit();
    shmem_free(symmetric);
    shmem_finalize();
    return tap_finish();
}
