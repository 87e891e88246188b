/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI version 1, as MPICH's mpiexec (hydra), Slurm's pmi2 plugin, Flux and others speak it. */
#include <errno.h>
#include <stdio.h>
#include "boot/pmi.h"
#include "boot/source.h"

static char store_name[256];

static int store_ask_name(void) {
    char answer[WEFT_PMI_MESSAGE_MAX];
    int error = weft_pmi_ask("cmd=get_my_kvsname", "my_kvsname", answer);
    if (error == 0 && !weft_pmi_value(answer, "kvsname", store_name, sizeof store_name)) {
        weft_log("PMI: the process manager's store has no name: '%.100s'", answer);
        error = -EPROTO;
    }
    return error;
}

static int pmi1_open(int *pe, int *npes) {
    int error = weft_pmi_connect(1, pe, npes);
    return error ? error : store_ask_name();
}

static int pmi1_put(const char *key, const char *value) {
    char question[WEFT_PMI_MESSAGE_MAX], answer[WEFT_PMI_MESSAGE_MAX];
    snprintf(question, sizeof question, "cmd=put kvsname=%s key=%s value=%s", store_name, key,
             value);
    return weft_pmi_ask(question, "put_result", answer);
}

static int pmi1_fence(void) {
    char answer[WEFT_PMI_MESSAGE_MAX];
    return weft_pmi_ask("cmd=barrier_in", "barrier_out", answer);
}

/* The store is one for all PEs. */
static int pmi1_get(int pe, const char *key, char *value, size_t bytes) {
    char question[WEFT_PMI_MESSAGE_MAX], answer[WEFT_PMI_MESSAGE_MAX];
    (void)pe;
    snprintf(question, sizeof question, "cmd=get kvsname=%s key=%s", store_name, key);
    int error = weft_pmi_ask(question, "get_result", answer);
    if (error == 0 && !weft_pmi_value(answer, "value", value, bytes)) {
        weft_log("PMI: the process manager's store has no '%s'", key);
        error = -ENOENT;
    }
    return error;
}

static void pmi1_close(void) {
    weft_pmi_close("cmd=finalize");
}

const struct weft_source weft_source_pmi1 = {.name = "pmi",
                                             .promises = weft_pmi_promises,
                                             .open = pmi1_open,
                                             .put = pmi1_put,
                                             .fence = pmi1_fence,
                                             .get = pmi1_get,
                                             .close = pmi1_close};
