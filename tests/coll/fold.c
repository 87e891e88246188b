/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: folds of one to six arrays, without a job: dest is any source or a separate array,
 * lengths are close to a block's, results do not depend on how arrays are split, a NaN in any
 * source makes max and min a NaN, and every type has exactly the operations of the standard.
 * PEs: 1 */
#include "coll/fold.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "api/model.h"
#include "tap.h"

enum { SOURCES = 6, NELEMS = 1500 };

static double sources[SOURCES][NELEMS], kept[SOURCES][NELEMS], expected[NELEMS], outside[NELEMS];
static const void *pointers[SOURCES];

static void make(struct random *random) {
    for (int s = 0; s < SOURCES; s++) {
        pointers[s] = sources[s];
        for (int i = 0; i < NELEMS; i++)
            sources[s][i] = ldexp((double)random_next(random), -(int)random_below(random, 128));
    }
    memcpy(kept, sources, sizeof kept);
}

/* Folds every length close to a block of 512, into each source and into a separate array. */
static void sums(void) {
    tap_case("dest may be any source, and lengths any");
    const struct weft_fold *sum = &weft_folds[WEFT_FOLD_SUM][WEFT_NUMBER_DOUBLE];
    static const size_t lengths[] = {1, 2, 3, 7, 8, 63, 511, 512, 513, 1023, 1025, NELEMS - 5};
    struct random random = random_of(5, 0);
    for (int nsources = 1; nsources <= SOURCES; nsources++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            for (int into = -1; into < nsources; into++) {
                size_t first = random_below(&random, 5), nelems = lengths[l];
                make(&random);
                for (size_t i = 0; i < nelems; i++) {
                    expected[i] = sources[0][first + i];
                    for (int s = 1; s < nsources; s++)
                        expected[i] += sources[s][first + i];
                }
                double *to = into < 0 ? outside : sources[into] + first;
                struct weft_chunk chunk = {pointers, NULL, nsources, first, nelems};
                weft_fold_all(sum, to, &chunk);
                EXPECT(memcmp(to, expected, nelems * sizeof *to) == 0, "%d sources of %zu into %d",
                       nsources, nelems, into);
                if (into >= 0)
                    memcpy(to, kept[into] + first, nelems * sizeof *to);
                EXPECT(memcmp(sources, kept, sizeof kept) == 0,
                       "%d sources of %zu into %d: a source has changed", nsources, nelems, into);
            }
}

#define NAN_CASE(T, NUMBER)                                                                   \
    for (int op = WEFT_FOLD_MAX; op <= WEFT_FOLD_MIN; op++)                                   \
        for (int where = 0; where < 3; where++)                                               \
            for (int i = 0; i < 40; i++) {                                                    \
                static T arrays[3][40], result[40];                                           \
                const void *from[] = {arrays[0], arrays[1], arrays[2]};                       \
                for (int j = 0; j < 40; j++)                                                  \
                    for (int s = 0; s < 3; s++)                                               \
                        arrays[s][j] = (T)((s + j) % 3);                                      \
                arrays[where][i] = (T)NAN;                                                    \
                struct weft_chunk chunk = {from, NULL, 3, 0, 40};                             \
                weft_fold_all(&weft_folds[op][NUMBER], result, &chunk);                       \
                for (int j = 0; j < 40; j++)                                                  \
                    EXPECT(j == i ? result[j] != result[j]                                    \
                                  : result[j] == (T)(op == WEFT_FOLD_MAX ? 2 : 0),            \
                           #T " op %d, NaN of source %d at %d: element %d", op, where, i, j); \
            }

static void not_a_number(void) {
    tap_case("a NaN of any source is the maximum and the minimum");
    NAN_CASE(float, WEFT_NUMBER_FLOAT)
    NAN_CASE(double, WEFT_NUMBER_DOUBLE)
    NAN_CASE(long double, WEFT_NUMBER_LONGDOUBLE)
}

static void table(void) {
    tap_case("integers have all operations, reals those that order, complex numbers sum and prod");
    for (int op = 0; op < WEFT_FOLD_OPS; op++)
        for (int number = 0; number <= WEFT_NUMBER_COMPLEXD; number++) {
            int wanted = number >= WEFT_NUMBER_COMPLEXF ? op >= WEFT_FOLD_SUM
                         : number >= WEFT_NUMBER_FLOAT  ? op >= WEFT_FOLD_MAX
                                                        : 1;
            EXPECT((weft_folds[op][number].pair != NULL) == wanted, "op %d of number %d", op,
                   number);
        }
}

int main(void) {
    tap_start(0);
    sums();
    not_a_number();
    table();
    return tap_finish();
}
