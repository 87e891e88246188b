/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx, which Open MPI's mpirun, PRRTE's prterun and Slurm (srun --mpi=pmix) speak. Only libpmix
 * knows the protocol, so it is opened at run time, if the environment has variables of PMIx. The
 * declarations here are the interface that libpmix.so.2 has kept since version 2 (PMIx Standard
 * 2.0: chapters "Data Structures", "Initialization and Finalization", "Key-Value Management"). */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/library.h"
#include "boot/source.h"

enum {
    PMIX_NAMESPACE_BYTES = 256,
    PMIX_RANK_OF_JOB = -2, /* PMIX_RANK_WILDCARD: for values of the whole job */
    PMIX_STRING = 3,
    PMIX_UINT32 = 14,
    PMIX_GLOBAL = 3, /* visible to the PEs of all hosts */
};

struct pmix_process {
    char job[PMIX_NAMESPACE_BYTES];
    uint32_t rank;
};

struct pmix_value {
    uint16_t type;
    union {
        char *string;
        uint32_t uint32;
        uint64_t room[8]; /* at least as large as the library's union, which has grown */
    } data;
};

static struct {
    void *handle; /* of libpmix */
    struct pmix_process self;
    int (*init)(struct pmix_process *self, void *info, size_t ninfo);
    int (*put)(uint8_t scope, const char *key, struct pmix_value *value);
    int (*commit)(void);
    int (*fence)(const struct pmix_process *who, size_t nwho, const void *info, size_t ninfo);
    int (*get)(const struct pmix_process *of, const char *key, const void *info, size_t ninfo,
               struct pmix_value **value);
    int (*finalize)(const void *info, size_t ninfo);
    const char *(*error_string)(int status);
} pmix;

/* Only Open MPI has the number of PEs in the environment. */
static int pmix_promises(void) {
    if (!getenv("PMIX_RANK") || !getenv("PMIX_NAMESPACE"))
        return 0;
    int npes = weft_source_number(getenv("OMPI_COMM_WORLD_SIZE"), WEFT_WIRE_PES_MAX);
    return npes > 0 ? npes : WEFT_NPES_UNKNOWN;
}

static int pmix_fail(const char *call, int status) {
    const char *text = pmix.error_string(status);
    weft_log("PMIx: %s: %s (status %d)", call, text ? text : "unknown status", status);
    return -EPROTO;
}

/* Calls PMIx_Get. Returns the value, which the caller frees, or NULL after logging `what` has
 * failed. */
static struct pmix_value *pmix_ask(const struct pmix_process *of, const char *key,
                                   const char *what) {
    struct pmix_value *value = NULL;
    int status = pmix.get(of, key, NULL, 0, &value);
    if (status)
        pmix_fail(what, status);
    else if (!value)
        weft_log("PMIx: %s: it has succeeded without a value", what);
    return status ? NULL : value;
}

static int pmix_load_calls(void) {
    const struct weft_library_call calls[] = {{"PMIx_Init", &pmix.init},
                                              {"PMIx_Put", &pmix.put},
                                              {"PMIx_Commit", &pmix.commit},
                                              {"PMIx_Fence", &pmix.fence},
                                              {"PMIx_Get", &pmix.get},
                                              {"PMIx_Finalize", &pmix.finalize},
                                              {"PMIx_Error_string", &pmix.error_string}};
    const char *missing = weft_library_find(pmix.handle, calls, sizeof calls / sizeof *calls);
    if (missing)
        weft_log("PMIx: libpmix lacks %s", missing);
    return missing ? -ENOSYS : 0;
}

static int pmix_load(void) {
    static const char *const names[] = {"libpmix.so.2", "libpmix.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names && !pmix.handle; i++)
        pmix.handle =
            dlopen(names[i], RTLD_NOW | RTLD_GLOBAL); /* global: its plugins use its symbols */
    if (pmix.handle)
        return pmix_load_calls();
    weft_log("PMIx: this process was started through PMIx, but libpmix.so.2 cannot be opened (%s): "
             "install it (Debian: libpmix2), or name another launcher in WEFT_LAUNCHER",
             dlerror());
    return -ENOENT;
}

static void pmix_release(struct pmix_value *value) {
    if (value->type == PMIX_STRING)
        free(value->data.string);
    free(value);
}

static int pmix_ask_size(int *npes) {
    struct pmix_process job = pmix.self;
    job.rank = (uint32_t)PMIX_RANK_OF_JOB;
    struct pmix_value *value = pmix_ask(&job, "pmix.job.size", "PMIx_Get of the job's size");
    if (!value)
        return -EPROTO;
    *npes = value->type == PMIX_UINT32 ? (int)value->data.uint32 : -1;
    pmix_release(value);
    return 0;
}

/* Asks for the number of PEs on this host, which not all servers know. */
static int pmix_ask_here(void) {
    struct pmix_process job = pmix.self;
    struct pmix_value *value = NULL;
    job.rank = (uint32_t)PMIX_RANK_OF_JOB;
    if (pmix.get(&job, "pmix.local.size", NULL, 0, &value) || !value)
        return 0;
    int here = value->type == PMIX_UINT32 ? (int)value->data.uint32 : 0;
    pmix_release(value);
    return here;
}

static int pmix_open(struct weft_identity *self) {
    int error = pmix_load();
    if (error)
        return error;
    int status = pmix.init(&pmix.self, NULL, 0);
    if (status)
        return pmix_fail("PMIx_Init", status);
    self->pe = (int)pmix.self.rank;
    self->here = pmix_ask_here();
    return pmix_ask_size(&self->npes);
}

static int pmix_put(const char *key, const char *text) {
    struct pmix_value value = {.type = PMIX_STRING, .data.string = (char *)text};
    int status = pmix.put(PMIX_GLOBAL, key, &value);
    status = status ? status : pmix.commit();
    return status ? pmix_fail("PMIx_Put", status) : 0;
}

static int pmix_fence(void) {
    int status = pmix.fence(NULL, 0, NULL, 0);
    return status ? pmix_fail("PMIx_Fence", status) : 0;
}

static int pmix_get(const char *key, char *text, size_t bytes) {
    struct pmix_process owner = pmix.self;
    owner.rank = 0;
    struct pmix_value *value = pmix_ask(&owner, key, "PMIx_Get");
    if (!value)
        return -EPROTO;
    bool is_text = value->type == PMIX_STRING && value->data.string;
    int error = is_text && strlen(value->data.string) < bytes ? 0 : -EPROTO;
    if (error == 0)
        strcpy(text, value->data.string);
    else
        weft_log("PMIx: the value '%s' of PE 0 is not a text that Weft has put", key);
    pmix_release(value);
    return error;
}

static void pmix_close(void) {
    if (pmix.finalize)
        pmix.finalize(NULL, 0);
}

const struct weft_source weft_source_pmix = {.name = "pmix",
                                             .promises = pmix_promises,
                                             .open = pmix_open,
                                             .put = pmix_put,
                                             .fence = pmix_fence,
                                             .get = pmix_get,
                                             .close = pmix_close};
