/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up, exit and query routines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <shmemx.h>
#include "boot/long_wait.h"
#include "core/init.h"
#include "device/device.h"
#include "api/body.h"
#include "api/define.h"

static void check_not_forked(void) {
    if (weft_job.phase == WEFT_JOB_FORKED)
        weft_misuse_phase(weft_current_call);
}

int weft_setup_begin(int requested, int *provided) {
    weft_device_register();
    return weft_init(requested, provided);
}

/* Ends the job after a failure, which has been logged, because this routine returns no error. */
void weft_setup_init(void) {
    check_not_forked();
    if (weft_setup_begin(SHMEM_THREAD_SINGLE, NULL) == 0)
        return;
    weft_boot_end_job(WEFT_STATUS_ERROR, true);
    weft_boot_exit(WEFT_STATUS_ERROR);
}

API(void, init, (void)) {
    WEFT_IN_CALL(__func__);
    weft_setup_init();
}

API(int, init_thread, (int requested, int *provided)) {
    WEFT_IN_CALL(__func__);
    check_not_forked();
    weft_check_local(__func__, "provided", provided, sizeof *provided);
    if (requested >= SHMEM_THREAD_SINGLE && requested <= SHMEM_THREAD_MULTIPLE)
        return weft_setup_begin(requested, provided);
    weft_log("%s: argument requested is %d: pass one of SHMEM_THREAD_*", __func__, requested);
    return -EINVAL;
}

/* Does nothing when it is called again, as programs do at their end; in checked mode that is
 * misuse. */
API(void, finalize, (void)) {
    weft_init_notice_fork();
    if (weft_job.phase == WEFT_JOB_AFTER && !weft_job.checked)
        return;
    weft_check_running(__func__);
    weft_finalize();
}

API(void, global_exit, (int status)) {
    if (weft_job.npes == 0)
        weft_misuse_phase(__func__);
    fflush(NULL);
    weft_job_end(status);
    exit(status);
}

void shmemx_set_end_handler(shmemx_end_handler_t handler) {
    weft_boot_set_end_handler(handler);
}

void shmemx_set_where_handler(shmemx_where_handler_t handler) {
    weft_long_wait_set_where_handler(handler);
}

void shmemx_set_log_handler(shmemx_log_handler_t handler) {
    weft_log_set_handler(handler);
}

API(void, query_initialized, (int *initialized)) {
    weft_check_local(__func__, "initialized", initialized, sizeof *initialized);
    *initialized = weft_initialized();
}

API(void, query_thread, (int *provided)) {
    weft_check_running(__func__);
    weft_check_local(__func__, "provided", provided, sizeof *provided);
    *provided = weft_thread_level();
}

API(int, my_pe, (void)) {
    weft_check_running(__func__);
    return weft_job.pe;
}

API(int, n_pes, (void)) {
    weft_check_running(__func__);
    return weft_job.npes;
}

API(int, pe_accessible, (int pe)) {
    weft_check_running(__func__);
    return pe >= 0 && pe < weft_job.npes;
}

API(int, addr_accessible, (const void *addr, int pe)) {
    weft_check_running(__func__);
    return weft_dispatch_symmetric(addr, 1, pe) && !weft_statics_meet_hole(addr, 1);
}

/* Returns NULL for an object that is not addressable. Static data of this PE are mapped a second
 * time beside the peers', but the result is their original address. */
static void *find_pointer(const void *dest, int pe) {
    void *near = weft_statics_meet_hole(dest, 1) ? NULL : weft_near(dest, 0, pe);
    return near && pe == weft_job.pe ? (void *)dest : near;
}

/* An object in a GPU's memory has no address for processors. */
API(void *, ptr, (const void *dest, int pe)) {
    weft_check_running(__func__);
    return find_pointer(dest, pe);
}

API(void *, team_ptr, (shmem_team_t team, const void *dest, int pe)) {
    weft_check_running(__func__);
    const struct weft_team *members = weft_team_find(team);
    if (!members || pe < 0 || pe >= members->npes)
        return NULL;
    return find_pointer(dest, weft_team_world_pe(members, pe));
}

void *shmemx_ptr(shmemx_space_t asker, const void *p, int pe) {
    weft_check_running(__func__);
    if (asker == SHMEMX_SPACE_DEVICE)
        return weft_job.devices ? weft_space_device->pointer(p, pe) : NULL;
    return asker == SHMEMX_SPACE_HOST ? find_pointer(p, pe) : NULL;
}

const char *shmemx_network(void) {
    weft_check_running(__func__);
    const struct weft_network *network = weft_boot_network();
    if (network)
        return network->interface;
    return weft_boot_nhosts() > 1 ? "" : NULL;
}

API(void, info_get_version, (int *major, int *minor)) {
    weft_check_local(__func__, "major", major, sizeof *major);
    weft_check_local(__func__, "minor", minor, sizeof *minor);
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}

API(void, info_get_name, (char *name)) {
    _Static_assert(sizeof SHMEM_VENDOR_STRING <= SHMEM_MAX_NAME_LEN, "the name fits");
    weft_check_local(__func__, "name", name, sizeof SHMEM_VENDOR_STRING);
    memcpy(name, SHMEM_VENDOR_STRING, sizeof SHMEM_VENDOR_STRING);
}

/* Does nothing: profiling tools replace it. */
API(void, pcontrol, (int level, ...)) {
    (void)level;
}
