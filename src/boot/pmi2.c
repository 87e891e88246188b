/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI version 2, as Slurm (srun --mpi=pmi2) and hydra speak it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "boot/pmi.h"
#include "boot/source.h"

static char job_id[256];

static int number_ask(const char *answer, const char *key, int *number) {
    char value[16] = "";
    weft_pmi_value(answer, key, value, sizeof value);
    *number = weft_source_number(value, WEFT_WIRE_PES_MAX);
    if (*number >= 0)
        return 0;
    weft_log("PMI: the process manager does not say its '%s': '%.100s'", key, answer);
    return -EPROTO;
}

static int job_enter_pmi2(int *pe, int *npes) {
    char question[WEFT_PMI_MESSAGE_MAX], answer[WEFT_PMI_MESSAGE_MAX];
    const char *job = getenv("PMI_JOBID");
    snprintf(question, sizeof question, "cmd=fullinit;%s%.200s%spmirank=%d;threaded=FALSE;",
             job ? "pmijobid=" : "", job ? job : "", job ? ";" : "", *pe);
    int error = weft_pmi_ask(question, "fullinit-response", answer);
    error = error ? error : number_ask(answer, "rank", pe);
    return error ? error : number_ask(answer, "size", npes);
}

static int job_ask_id(void) {
    char answer[WEFT_PMI_MESSAGE_MAX];
    int error = weft_pmi_ask("cmd=job-getid;", "job-getid-response", answer);
    if (error == 0 && !weft_pmi_value(answer, "jobid", job_id, sizeof job_id)) {
        weft_log("PMI: the process manager has no name for the job: '%.100s'", answer);
        error = -EPROTO;
    }
    return error;
}

static int pmi2_open(int *pe, int *npes) {
    int error = weft_pmi_connect(2, pe, npes);
    error = error ? error : job_enter_pmi2(pe, npes);
    return error ? error : job_ask_id();
}

static int pmi2_put(const char *key, const char *value) {
    char question[WEFT_PMI_MESSAGE_MAX], answer[WEFT_PMI_MESSAGE_MAX];
    snprintf(question, sizeof question, "cmd=kvs-put;key=%s;value=%s;", key, value);
    return weft_pmi_ask(question, "kvs-put-response", answer);
}

static int pmi2_fence(void) {
    char answer[WEFT_PMI_MESSAGE_MAX];
    return weft_pmi_ask("cmd=kvs-fence;", "kvs-fence-response", answer);
}

/* The source id is a hint where to look first; -1 is none. */
static int pmi2_get(int pe, const char *key, char *value, size_t bytes) {
    char question[WEFT_PMI_MESSAGE_MAX], answer[WEFT_PMI_MESSAGE_MAX];
    (void)pe;
    snprintf(question, sizeof question, "cmd=kvs-get;jobid=%s;srcid=-1;key=%s;", job_id, key);
    int error = weft_pmi_ask(question, "kvs-get-response", answer);
    if (error == 0 && !weft_pmi_value(answer, "value", value, bytes)) {
        weft_log("PMI: the process manager's store has no '%s'", key);
        error = -ENOENT;
    }
    return error;
}

static void pmi2_close(void) {
    weft_pmi_close("cmd=finalize;");
}

const struct weft_source weft_source_pmi2 = {.name = "pmi2",
                                             .promises = weft_pmi_promises,
                                             .open = pmi2_open,
                                             .put = pmi2_put,
                                             .fence = pmi2_fence,
                                             .get = pmi2_get,
                                             .close = pmi2_close};
