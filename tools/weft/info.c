/* SPDX-License-Identifier: BSD-3-Clause */
/* `weft info`: what this machine offers and how the library uses it. */
#include <shmem.h>
#include <stdio.h>
#include <weft.h>
#include "base/env.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/openssl.h"
#include "coll/choice.h"
#include "command.h"
#include "far/engine.h"
#include "far/message.h"
#include "core/team.h"
#include "job/window.h"
#include "ops/matmul.h"

static void print_size(const char *label, size_t bytes, const char *remark) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1024;
    printf("  %-12s %.4g %s%s%s\n", label, value, units[unit], *remark ? ", " : "", remark);
}

static void print_machine(void) {
    const char *limit;
    size_t available = weft_machine_memory_available(&limit);
    printf("machine\n  %-12s %d (affinity and cgroup quota)\n", "processors",
           weft_job.control->cores);
    print_size("memory", weft_machine_memory_total(), "");
    print_size("available", available, limit);
}

static void print_job(void) {
    uint32_t near = weft_windows.scratch.window.count;
    if (weft_job.far)
        printf("job\n  %-12s %d, of them near to PE 0 (load and store) %u\n", "PEs", weft_job.npes,
               near);
    else
        printf("job\n  %-12s %d, all near: load and store\n", "PEs", weft_job.npes);
    printf("  %-12s %s\n", "waits",
           weft_job.oversubscribed ? "yield, then sleep (more PEs than processors)"
                                   : "spin, then yield, then sleep");
    print_size("heap", weft_windows.heap.slot_bytes, "address space per PE; grows on demand");
    print_size("workspace", weft_team_workspace_capacity(), "address space per team and PE");
    printf("  %-12s %s\n", "statics",
           weft_windows.statics.window.bytes ? "symmetric" : "not symmetric");
}

/* Prints the engine that reaches PEs on other hosts, or would reach them, and the TLS library that
 * oshrun uses for connections to other hosts. */
static void print_hosts(void) {
    char text[WEFT_ENGINE_TEXT_BYTES];
    const struct weft_engine *engine;
    if (weft_job.far)
        weft_messages_describe(text, sizeof text);
    else if (weft_far_engine(&engine, text) == 0)
        engine->describe(NULL, text, sizeof text);
    printf("hosts\n  %-12s %s\n", weft_job.far ? "far PEs" : "engine", text);
    if (weft_openssl_load() == 0)
        printf("  %-12s %s\n", "TLS", weft_openssl.OpenSSL_version(0));
    else
        printf("  %-12s none: %s\n", "TLS", weft_fail_text());
}

static void print_collectives(void) {
    printf("collectives\n");
    for (int family = 0; family < WEFT_FAMILIES; family++) {
        char line[160];
        weft_choice_describe(line, sizeof line, (enum weft_family)family, weft_job.npes);
        printf("  %s\n", line);
    }
}

static void print_matmul(void) {
    static const struct {
        const char *name;
        weft_dtype dtype;
    } types[] = {{"f32", WEFT_F32}, {"f64", WEFT_F64}, {"bf16", WEFT_BF16}, {"f16", WEFT_F16}};
    printf("matmul\n");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        printf("  %-12s %s\n", types[i].name,
               weft_matmul_supports(types[i].dtype) == 0 ? "yes" : weft_last_error());
}

int weft_info(void) {
    shmem_init();
    if (shmem_my_pe() == 0) {
        printf("Weft %s, OpenSHMEM %d.%d\n", WEFT_VERSION_STRING, SHMEM_MAJOR_VERSION,
               SHMEM_MINOR_VERSION);
        print_machine();
        print_job();
        print_hosts();
        print_collectives();
        print_matmul();
    }
    weft_info_gpus();
    if (shmem_my_pe() == 0)
        weft_env_print();
    shmem_finalize();
    return 0;
}
