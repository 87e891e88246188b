/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/refuse.h"
#include <errno.h>
#include "job/job.h"

int weft_refuse_phase(void) {
    if (weft_job.npes == 0)
        return weft_fail(-EPERM, "called before shmem_init or after shmem_finalize");
    if (weft_job_aborted())
        weft_job_die_aborted();
    return 0;
}

int weft_refuse_null(const char *argument, const void *p) {
    return p ? 0 : weft_fail(-EINVAL, "argument %s is NULL", argument);
}

/* Returns an error unless pes[i] is a PE of the job that has not been named before. */
static int check_entry(const int *pes, int i) {
    if (pes[i] < 0 || pes[i] >= weft_job.npes)
        return weft_fail(-EINVAL, "argument pes[%d] is %d: the job has PEs 0 to %d", i, pes[i],
                         weft_job.npes - 1);
    for (int before = 0; before < i; before++)
        if (pes[before] == pes[i])
            return weft_fail(-EINVAL,
                             "arguments pes[%d] and pes[%d] are both %d: name each PE once", before,
                             i, pes[i]);
    return 0;
}

int weft_refuse_list(const int *pes, int npes, uint64_t tag, struct weft_boot_subset *subset) {
    bool member = false;
    int result = weft_refuse_null("pes", pes);
    if (result == 0 && (npes < 1 || npes > weft_job.npes))
        result = weft_fail(-EINVAL, "argument npes is %d: the job has %d PEs", npes, weft_job.npes);
    for (int i = 0; i < npes && result == 0; i++) {
        result = check_entry(pes, i);
        member = member || (result == 0 && pes[i] == weft_job.pe);
    }
    if (result == 0 && !member)
        result = weft_fail(-EINVAL, "argument pes does not name this PE, %d", weft_job.pe);
    *subset = (struct weft_boot_subset){
        .pes = pes, .count = npes, .tag = tag, .over = weft_job_die_aborted};
    return result;
}
