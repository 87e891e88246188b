/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: which PEs are near, for every form of WEFT_PRETEND_HOSTS, and the values that are
 * refused. PEs: 1 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "job/placement.h"
#include "tap.h"

enum { PES_MAX = 12 };

/* The progressions of `npes` PEs, as "first step count mine" for each PE. */
static void expect_runs(const char *hosts, int npes, const struct weft_slots *wanted) {
    weft_env.pretend_hosts = hosts;
    for (int pe = 0; pe < npes; pe++) {
        struct weft_slots run;
        EXPECT(weft_placement_read(pe, npes, &run) == 0, "%s", hosts);
        EXPECT(memcmp(&run, &wanted[pe], sizeof run) == 0, "%s, PE %d: %u %u %u %u", hosts, pe,
               run.first, run.step, run.count, run.mine);
    }
}

static void forms(void) {
    tap_case("blocks, cyclic, each, a list, and none");
    expect_runs("none", 2, (struct weft_slots[]){{0, 1, 2, 0}, {0, 1, 2, 1}});
    expect_runs("3", 3, (struct weft_slots[]){{0, 1, 3, 0}, {0, 1, 3, 1}, {0, 1, 3, 2}});
    expect_runs("2+1", 3, (struct weft_slots[]){{0, 1, 2, 0}, {0, 1, 2, 1}, {2, 1, 1, 0}});
    expect_runs("1+2", 3, (struct weft_slots[]){{0, 1, 1, 0}, {1, 1, 2, 0}, {1, 1, 2, 1}});
    expect_runs("cyclic:2", 4,
                (struct weft_slots[]){{0, 2, 2, 0}, {1, 2, 2, 0}, {0, 2, 2, 1}, {1, 2, 2, 1}});
    expect_runs("cyclic:2", 1, (struct weft_slots[]){{0, 1, 1, 0}});
    expect_runs("cyclic:3", 2, (struct weft_slots[]){{0, 1, 1, 0}, {1, 1, 1, 0}});
    expect_runs("each", 2, (struct weft_slots[]){{0, 1, 1, 0}, {1, 1, 1, 0}});
    expect_runs("list:0,0,1,0", 4,
                (struct weft_slots[]){{0, 1, 2, 0}, {0, 1, 2, 1}, {2, 1, 1, 0}, {3, 1, 1, 0}});
    expect_runs("list:7,5,7,7,7", 5,
                (struct weft_slots[]){
                    {0, 2, 3, 0}, {1, 1, 1, 0}, {0, 2, 3, 1}, {3, 1, 1, 0}, {0, 2, 3, 2}});
}

/* The placement of one run in a list of two hosts, by bits. */
static void read_bits(unsigned bits, int npes, struct weft_slots *runs) {
    static char list[8 + 2 * PES_MAX] = "list:"; /* weft_env keeps its address */
    for (int pe = 0; pe < npes; pe++) {
        list[5 + 2 * pe] = (char)('0' + (bits >> pe & 1));
        list[6 + 2 * pe] = pe + 1 < npes ? ',' : '\0';
    }
    weft_env.pretend_hosts = list;
    for (int pe = 0; pe < npes; pe++)
        weft_placement_read(pe, npes, &runs[pe]);
}

static bool is_same(const struct weft_slots *a, const struct weft_slots *b) {
    return a->first == b->first && a->step == b->step && a->count == b->count;
}

static void equivalence(void) {
    tap_case("near is mutual and transitive, and within a host, for all lists of two hosts");
    struct weft_slots runs[PES_MAX];
    for (int npes = 1; npes <= PES_MAX; npes += npes < 6 ? 1 : 3)
        for (unsigned bits = 0; bits < 1u << npes; bits++) {
            read_bits(bits, npes, runs);
            for (int pe = 0; pe < npes; pe++) {
                const struct weft_slots *run = &runs[pe];
                EXPECT(run->first + run->mine * run->step == (unsigned)pe, "%x: %d", bits, pe);
                for (int other = 0; other < npes; other++) {
                    bool near = weft_slots_have(run, other);
                    EXPECT(near == is_same(run, &runs[other]), "%x: %d, %d", bits, pe, other);
                    EXPECT(!near || (bits >> pe & 1) == (bits >> other & 1), "%x", bits);
                }
            }
        }
}

/* The line of the last refusal. */
static char line[1024];

static int keep_line(const char *text) {
    snprintf(line, sizeof line, "%s", text);
    return 1;
}

static void bad_values(void) {
    tap_case("what is no placement, or one of another number of PEs, is refused by name");
    static const char *const texts[][2] = {
        {"", "is '', which is not a placement: set it to"},
        {"some", "is 'some', which is not a placement"},
        {"2+", "is '2+', which is not a placement"},
        {"+2", "is '+2', which is not a placement"},
        {"3+0", "is '3+0', which is not a placement"},
        {"2-1", "is '2-1', which is not a placement"},
        {"2+2", "is '2+2', whose hosts have 4 PEs, but the job has 3"},
        {"1+1", "is '1+1', whose hosts have 2 PEs, but the job has 3"},
        {"99999999999999999999", "which is not a placement"},
        {"1048575+1048575", "whose hosts have 1048576 PEs, but the job has 3"},
        {"each2", "is 'each2', which is not a placement"},
        {"cyclic", "is 'cyclic', which is not a placement"},
        {"cyclic:", "is 'cyclic:', which gives no number of hosts"},
        {"cyclic:0", "is 'cyclic:0', which gives no number of hosts"},
        {"cyclic:2x", "is 'cyclic:2x', which gives no number of hosts"},
        {"list:", "is 'list:', which is not a list of hosts"},
        {"list:0,1", "is 'list:0,1', which lists 2 PEs, but the job has 3"},
        {"list:0,1,2,3", "is 'list:0,1,2,3', which lists 4 PEs, but the job has 3"},
        {"list:0,,1", "is 'list:0,,1', which is not a list of hosts"},
        {"list:0,1,", "is 'list:0,1,', which is not a list of hosts"},
        {"list:0,-1,1", "is 'list:0,-1,1', which is not a list of hosts"}};
    weft_log_set_handler(keep_line);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct weft_slots run;
        weft_env.pretend_hosts = texts[i][0];
        line[0] = '\0';
        EXPECT(weft_placement_read(1, 3, &run) == -EINVAL, "%s", texts[i][0]);
        EXPECT(strstr(line, texts[i][1]) && strstr(line, "WEFT_PRETEND_HOSTS is '"), "%s: %s",
               texts[i][0], line);
    }
    weft_log_set_handler(NULL);
}

int main(void) {
    tap_start(0);
    forms();
    equivalence();
    bad_values();
    return tap_finish();
}
