/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "execute.h"

static void pe_quiet(const struct op *op) {
    int pes[PES_MAX];
    size_t count = 0;
    for (int pe = 0; pe < npes; pe++)
        if (op->included >> pe & 1)
            pes[count++] = teams[contexts[me][op->ctx].team].member[pe];
    late_deliver(op->ctx, op->included);
    if (op->plain)
        shmem_pe_quiet(count ? pes : NULL, count);
    else
        shmem_ctx_pe_quiet(op_ctx(op), count ? pes : NULL, count);
    landing_quiet(op->ctx, op->included);
}

void execute_order(const struct op *op) {
    if (op->class == PE_QUIET)
        pe_quiet(op);
    else if (op->class == FENCE) {
        late_deliver(op->ctx, everybody());
        op->plain ? shmem_fence() : shmem_ctx_fence(op_ctx(op));
    } else {
        late_deliver(op->ctx, everybody());
        op->plain ? shmem_quiet() : shmem_ctx_quiet(op_ctx(op));
        landing_quiet(op->ctx, everybody());
    }
}

static void session(const struct op *op) {
    shmem_ctx_session_config_t config = {op->number};
    shmem_ctx_session_start(ctx_handles[op->ctx], op->value & 1 ? SHMEM_CTX_SESSION_BATCH : 0,
                            op->value & 2 ? &config : NULL,
                            op->value & 2 ? SHMEM_CTX_SESSION_TOTAL_OPS : 0);
    if (op->number & 1)
        shmem_ctx_session_stop(ctx_handles[op->ctx]);
}

void execute_context(const struct op *op) {
    shmem_ctx_t *ctx = &ctx_handles[op->ctx];
    shmem_team_t team;
    int failed = 0;
    switch (op->verb) {
    case CTX_CREATE:
        if (op->team == WORLD && op->form)
            failed = shmem_ctx_create((long)op->value, ctx);
        else
            failed = shmem_team_create_ctx(teams[op->team].handle, (long)op->value, ctx);
        if (failed || *ctx == SHMEM_CTX_INVALID)
            diverge(op, "a context could not be created: %d", failed);
        break;
    case CTX_DESTROY:
        late_deliver(op->ctx, everybody());
        shmem_ctx_destroy(*ctx);
        landing_quiet(op->ctx, everybody());
        break;
    case CTX_SESSION:
        session(op);
        break;
    default:
        failed = shmem_ctx_get_team(*ctx, &team);
        if (failed || team != teams[op->team].handle)
            diverge(op, "shmem_ctx_get_team: %d, another team", failed);
    }
}

/* Stores a new team's handle, and checks a member's number in the team. */
static void receive_team(const struct op *op, int slot, shmem_team_t handle) {
    struct team *team = &teams[slot];
    bool member = team->members >> me & 1;
    if (member != (handle != SHMEM_TEAM_INVALID))
        diverge(op, "team of %d PEs: the handle is %s", team->npes, member ? "invalid" : "valid");
    team->handle = handle;
    if (member &&
        (shmem_team_my_pe(handle) != team->member[me] || shmem_team_n_pes(handle) != team->npes))
        diverge(op, "PE %d of %d in the new team, not %d of %d", shmem_team_my_pe(handle),
                shmem_team_n_pes(handle), team->member[me], team->npes);
}

static void split_2d(const struct op *op, const shmem_team_config_t *config, long mask) {
    shmem_team_t rows, columns;
    int failed = shmem_team_split_2d(teams[op->team].handle, op->size, config, mask, &rows, config,
                                     mask, &columns);
    if (failed)
        diverge(op, "shmem_team_split_2d: %d", failed);
    receive_team(op, op->counts[me] & 255, rows);
    receive_team(op, op->counts[me] >> 8, columns);
}

static void split(const struct op *op) {
    shmem_team_config_t values = {(int)op->value}, *config = op->value ? &values : NULL;
    long mask = op->value ? SHMEM_TEAM_NUM_CONTEXTS : 0;
    shmem_team_t handle;
    if (op->verb == TEAM_SPLIT_2D) {
        split_2d(op, config, mask);
        return;
    }
    int failed = shmem_team_split_strided(teams[op->team].handle, op->start, op->stride, op->size,
                                          config, mask, &handle);
    if (failed)
        diverge(op, "shmem_team_split_strided %d:%d:%d returned %d", op->start, op->stride,
                op->size, failed);
    receive_team(op, op->slot, handle);
}

void execute_team(const struct op *op) {
    if (op->verb != TEAM_DESTROY) {
        split(op);
        return;
    }
    for (int ctx = 1; ctx < CTXS; ctx++)
        if (!contexts[me][ctx].live)
            late_deliver(ctx, everybody());
    for (int ctx = 1; ctx < CTXS; ctx++)
        if (op->counts[me] >> ctx & 1)
            shmem_ctx_destroy(ctx_handles[ctx]);
    shmem_team_destroy(teams[op->slot].handle);
    for (int ctx = 1; ctx < CTXS; ctx++)
        if (!contexts[me][ctx].live)
            landing_quiet(ctx, everybody());
}

static void expect_int(const struct op *op, const char *what, int got, int want) {
    if (got != want)
        diverge(op, "%s is %d, not %d", what, got, want);
}

static void ask_team(const struct op *op, const struct team *team) {
    shmem_team_config_t config;
    expect_int(op, "shmem_team_my_pe", shmem_team_my_pe(team->handle), team->member[me]);
    expect_int(op, "shmem_team_n_pes", shmem_team_n_pes(team->handle), team->npes);
    expect_int(op, "shmem_team_get_config",
               shmem_team_get_config(team->handle, SHMEM_TEAM_NUM_CONTEXTS, &config), 0);
    if (op->team > SHARED)
        expect_int(op, "num_contexts", config.num_contexts, team->num_contexts);
}

static void ask_ptr(const struct op *op, const struct team *team) {
    void *here = memory_real(op->remote);
    unsigned char *there = shmem_ptr(here, op->target);
    if (!!there != objects_is_near(me, op->target) || (op->target == me) != (there == here))
        diverge(op, "shmem_ptr(%p, %d) is %p", here, op->target, (void *)there);
    if (shmem_team_ptr(team->handle, here, team->member[op->target]) != there)
        diverge(op, "shmem_team_ptr is not %p", (void *)there);
    expect_int(op, "shmem_addr_accessible", shmem_addr_accessible(here, op->target), 1);
    expect_int(op, "of private memory", shmem_addr_accessible(&here, op->target), 0);
}

static void ask_invalid(const struct op *op, const struct team *team) {
    shmem_team_config_t config;
    shmem_team_t made = SHMEM_TEAM_WORLD, none = SHMEM_TEAM_INVALID;
    expect_int(op, "my_pe of no team", shmem_team_my_pe(none), -1);
    expect_int(op, "n_pes of no team", shmem_team_n_pes(none), -1);
    expect_int(op, "translation to no team", shmem_team_translate_pe(team->handle, 0, none), -1);
    expect_int(op, "translation of no PE",
               shmem_team_translate_pe(team->handle, team->npes, SHMEM_TEAM_WORLD), -1);
    expect_int(op, "config of no team", shmem_team_get_config(none, 0, &config) != 0, 1);
    expect_int(op, "split of no team", shmem_team_split_strided(none, 0, 1, 1, NULL, 0, &made) != 0,
               1);
    expect_int(op, "its handle", made == SHMEM_TEAM_INVALID, 1);
    shmem_team_destroy(none);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
}

static void ask_job(const struct op *op) {
    int initialized = 0, major, minor;
    shmem_query_initialized(&initialized);
    shmem_info_get_version(&major, &minor);
    expect_int(op, "shmem_my_pe", shmem_my_pe(), me);
    expect_int(op, "shmem_n_pes", shmem_n_pes(), npes);
    expect_int(op, "initialized", initialized, 1);
    expect_int(op, "version", major * 100 + minor, 106);
    expect_int(op, "shmem_pe_accessible", shmem_pe_accessible(op->target), 1);
    expect_int(op, "accessibility of no PE", shmem_pe_accessible(npes), 0);
}

void execute_query(const struct op *op) {
    const struct team *team = &teams[op->team], *other = &teams[op->slot];
    int member = other->member[op->target];
    switch (op->verb) {
    case ASK_TEAM:
        ask_team(op, team);
        break;
    case ASK_TRANSLATE:
        expect_int(op, "shmem_team_translate_pe",
                   shmem_team_translate_pe(team->handle, team->member[op->target], other->handle),
                   member == NO_MEMBER ? -1 : member);
        break;
    case ASK_PTR:
        ask_ptr(op, team);
        break;
    case ASK_INVALID:
        ask_invalid(op, team);
        break;
    default:
        ask_job(op);
    }
}

void execute_quiets(uint16_t ctxs) {
    for (int ctx = 1; ctx < CTXS; ctx++)
        if (ctxs >> ctx & 1) {
            late_deliver(ctx, everybody());
            shmem_ctx_quiet(ctx_handles[ctx]);
            landing_quiet(ctx, everybody());
        }
}

void execute_barrier(const struct op *op) {
    switch (op->verb) {
    case BARRIER_ALL:
    case FLUSH:
        execute_quiets(op->counts[me]);
        late_deliver(0, everybody());
        shmem_barrier_all();
        landing_quiet(0, everybody());
        break;
    case SYNC_ALL:
        shmem_sync_all();
        break;
    default:
        if (shmem_team_sync(teams[op->team].handle) != 0)
            diverge(op, "shmem_team_sync fails");
    }
}

static void nothing(const struct op *op) {
    void *none[] = {shmem_malloc(0), shmem_calloc(0, 8), shmem_align(64, 0),
                    shmem_malloc_with_hints(0, 0), shmem_realloc(NULL, 0)};
    shmem_free(NULL);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (none[i])
            diverge(op, "no bytes at %p", none[i]);
}

static void *allocate(const struct op *op, void *old) {
    switch (op->verb) {
    case MEMORY_MALLOC:
        return shmem_malloc(op->nblocks);
    case MEMORY_CALLOC:
        return shmem_calloc(op->nblocks, 1);
    case MEMORY_ALIGN:
        return shmem_align(op->value, op->nblocks);
    case MEMORY_HINTS:
        return shmem_malloc_with_hints(op->nblocks, (long)op->value);
    default:
        return shmem_realloc(old, op->nblocks);
    }
}

static bool all_zero(const unsigned char *bytes, size_t count) {
    return count == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0);
}

/* Ends with a sync: no PE writes to the block before its owner has checked and filled it. */
void execute_memory(const struct op *op) {
    struct block *block = &blocks[op->slot];
    uint32_t begin = block_offset(op->slot), kept;
    if (op->verb == MEMORY_NOTHING) {
        nothing(op);
        return;
    }
    execute_quiets(op->counts[me]);
    late_deliver(0, everybody());
    if (op->verb == MEMORY_FREE) {
        shmem_free(block->real);
        block->real = NULL;
        landing_quiet(0, everybody());
        return;
    }
    block->real = allocate(op, block->real);
    landing_quiet(0, everybody());
    uint64_t alignment = op->verb == MEMORY_ALIGN ? op->value : 16;
    if (!block->real || (uintptr_t)block->real % alignment != 0)
        diverge(op, "%u bytes, aligned to %u, at %p", op->nblocks, (unsigned)alignment,
                block->real);
    if (op->verb == MEMORY_CALLOC && !all_zero(block->real, op->nblocks))
        diverge(op, "shmem_calloc's memory is not zero");
    kept = op->verb != MEMORY_REALLOC ? 0 : op->bsize < block->known ? op->bsize : block->known;
    if (kept && memory_differs(begin, begin + kept) < SPACE)
        diverge_at(op, memory_differs(begin, begin + kept));
    memory_load(begin + kept, block->known - kept);
    shmem_sync_all();
}
