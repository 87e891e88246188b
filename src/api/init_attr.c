/* SPDX-License-Identifier: BSD-3-Clause */
/* Extension: initialisation in which the program itself states which PE it is, and how the PEs find
 * each other. */
#include <errno.h>
#include <string.h>
#include <shmemx.h>
#include "base/machine.h"
#include "boot/boot.h"
#include "job/job.h"
#include "api/body.h"

/* The beginning of a unique id, whose other bytes are zero. */
struct id {
    unsigned char magic[8];
    unsigned char job_key[WEFT_BOOT_KEY_BYTES];
};

static const unsigned char id_magic[8] = {'w', 'e', 'f', 't', 'i', 'd', '0', '1'};

int shmemx_get_uniqueid(shmemx_uniqueid_t *id) {
    WEFT_IN_CALL(__func__);
    struct id made;
    _Static_assert(sizeof made <= sizeof id->bytes, "an id holds it");
    if (!id)
        return weft_fail(-EINVAL, "argument id is NULL: pass the address of an id");
    memcpy(made.magic, id_magic, sizeof id_magic);
    int result = weft_boot_key(made.job_key);
    if (result)
        return weft_fail(result, "no random numbers (getrandom): %s%s", strerror(-result),
                         weft_remedy(result).text);
    memset(id, 0, sizeof *id);
    memcpy(id, &made, sizeof made);
    return 0;
}

static int read_id(const shmemx_uniqueid_t *uniqueid, struct weft_boot_given *given) {
    struct id id;
    if (!uniqueid)
        return weft_fail(-EINVAL,
                         "argument attr: uniqueid is NULL: pass an id of shmemx_get_uniqueid");
    memcpy(&id, uniqueid, sizeof id);
    if (memcmp(id.magic, id_magic, sizeof id_magic) != 0)
        return weft_fail(
            -EINVAL,
            "argument attr: uniqueid was not made by shmemx_get_uniqueid, or not all of "
            "its %zu bytes have arrived",
            sizeof *uniqueid);
    memcpy(given->job_key, id.job_key, sizeof given->job_key);
    return 0;
}

static int read_way(unsigned flags, const shmemx_init_attr_t *attr, struct weft_boot_given *given) {
    switch (flags) {
    case SHMEMX_INIT_WITH_UNIQUEID:
        return read_id(attr->uniqueid, given);
    case SHMEMX_INIT_WITH_ALLGATHER:
        given->allgather = attr->allgather;
        given->context = attr->context;
        return attr->allgather ? 0 : weft_fail(-EINVAL, "argument attr: allgather is NULL");
    default:
        return weft_fail(
            -EINVAL,
            "argument flags is %#x: pass SHMEMX_INIT_WITH_UNIQUEID or SHMEMX_INIT_WITH_ALLGATHER",
            flags);
    }
}

static int read_attr(unsigned flags, const shmemx_init_attr_t *attr,
                     struct weft_boot_given *given) {
    if (!attr)
        return weft_fail(-EINVAL, "argument attr is NULL");
    if (attr->npes < 1 || attr->npes > WEFT_WIRE_PES_MAX || attr->pe < 0 || attr->pe >= attr->npes)
        return weft_fail(-EINVAL,
                         "argument attr: PE %d of %d is not valid: a job has 1 to %d PEs, "
                         "numbered from 0",
                         attr->pe, attr->npes, WEFT_WIRE_PES_MAX);
    if (attr->requested < SHMEM_THREAD_SINGLE || attr->requested > SHMEM_THREAD_MULTIPLE)
        return weft_fail(-EINVAL, "argument attr: requested is %d: pass one of SHMEM_THREAD_*",
                         attr->requested);
    *given = (struct weft_boot_given){.pe = attr->pe, .npes = attr->npes};
    return read_way(flags, attr, given);
}

/* Returns an error if the process already is another PE: it belongs to one job for good. Repeating
 * the same initialisation is allowed. */
static int check_first(const struct weft_boot_given *given) {
    int pe, npes;
    if (!weft_boot_attached(&pe, &npes) || (pe == given->pe && npes == given->npes))
        return 0;
    return weft_fail(
        -EALREADY,
        "this process is PE %d of %d since its first initialisation, and cannot become PE %d of %d",
        pe, npes, given->pe, given->npes);
}

int shmemx_init_attr(unsigned flags, const shmemx_init_attr_t *attr) {
    WEFT_IN_CALL(__func__);
    struct weft_boot_given given;
    int pe, npes, result = read_attr(flags, attr, &given);
    result = result ? result : check_first(&given);
    if (result)
        return result;
    weft_boot_give(&given);
    result = weft_setup_begin(attr->requested, NULL);
    if (result == 0)
        return 0;
    if (weft_boot_attached(&pe, &npes))
        weft_boot_end_job(WEFT_STATUS_ERROR, true); /* so that the others do not wait for this PE */
    return weft_fail(result, "%s; a line on stderr says why", strerror(-result));
}
