/* SPDX-License-Identifier: BSD-3-Clause */
/* The channels of teams: one region for each form, a share of the members' GPU memory, which is
 * made when the team first needs it and lives as long as the team.
 *
 * Making a region is collective over the members, on the host alone, so it also works during stream
 * capture: the memory is initialised before any member can write to it. With each region the
 * members compare the settings and facts that decide between algorithms. All members get the same
 * result, and remember which forms they cannot make. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "base/hash.h"
#include "base/size.h"
#include "transport/gpu_kernel.h"
#include "core/share.h"
#include "device/half.h"

struct region {
    struct weft_block *block;
    struct weft_share *share; /* NULL if there is none */
    bool refused;             /* no attempt will be made again */
};

enum { COPIES_MAX = 48, COPY_BYTES_MIN = 1 << 20 };
enum { HALF_BYTES_MIN = 1 << 20, HALVES_MAX = 48 };

/* The memory through which products exchange data: two parts, each with a half and, before it,
 * WEFT_HALF_WORDS bytes. Only the first part's bytes are used, for the words of both halves. Calls
 * of the host use the halves in turn, and so do the calls of each capture. */
struct halves {
    struct region regions[HALVES_MAX]; /* the last is the largest; graphs may use the others */
    int nregions;
    unsigned calls;    /* of the host */
    uint64_t capture;  /* the last capture, */
    unsigned captured; /* and its calls */
};

struct team_channels {
    struct region regions[WEFT_FORMS];
    uint32_t blocks_max; /* agreed upon by the members; 0 before that */
    uint32_t sms_least;  /* of the members' GPUs */
    bool kept;           /* until the job ends: a graph or an unfinished call may use them */
    struct weft_block *copies[COPIES_MAX]; /* the last is the largest; graphs may use the others */
    int ncopies;
    struct halves halves;
    void *notes;
};

/* Indexed by the team's slot. Only one thread of a PE uses a team at a time. */
static struct team_channels of_teams[WEFT_TEAMS_MAX];

/* The channels of teams that have ended, until the members have parted. */
static struct ended {
    struct team_channels channels;
    struct ended *next;
} * all_ended;
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;

/* The slot of the team whose kernels may take the whole GPU; FREE, or a team that has ended, whose
 * graphs may still run. */
enum { FREE = -1, ENDED = -2 };
static _Atomic int claimant = FREE;

/* --- Settings --------------------------------------------------------------------------------- */

/* The facts that each member contributes before a region is made. */
enum { SETTING_BYTES = 24 };
struct member_facts {
    char engine[SETTING_BYTES], algorithm[SETTING_BYTES], sms[SETTING_BYTES];
    char products[SETTING_BYTES], deterministic[SETTING_BYTES];
    uint32_t multiprocessors;
    int32_t error; /* nonzero: the member's block could not be made */
    int32_t kernels_wait;
};

static struct member_facts own_facts(int error) {
    struct member_facts facts = {
        .multiprocessors = (uint32_t)weft_device.gpu->sms,
        .error = error,
        .kernels_wait = !weft_device.staged && weft_gpu_abort.word != NULL,
    };
    strncpy(facts.engine, weft_env.engine, SETTING_BYTES - 1);
    strncpy(facts.algorithm, weft_env.algorithm, SETTING_BYTES - 1);
    strncpy(facts.sms, weft_env.sms, SETTING_BYTES - 1);
    strncpy(facts.products, weft_env.products, SETTING_BYTES - 1);
    strncpy(facts.deterministic, weft_env.deterministic, SETTING_BYTES - 1);
    return facts;
}

/* Returns an error that names the first PE with another setting than the first member, or 0. */
static int check_setting(const struct weft_boot_subset *subset, const struct member_facts *all,
                         const char *name, size_t offset) {
    const char *first = (const char *)&all[0] + offset;
    for (int i = 1; i < subset->count; i++) {
        const char *other = (const char *)&all[i] + offset;
        if (strcmp(first, other) != 0)
            return weft_fail(-EINVAL,
                             "%s is '%s' on PE %d and '%s' on PE %d: set it to the same on all PEs",
                             name, first, subset->pes[0], other, subset->pes[i]);
    }
    return 0;
}

static int check_settings(const struct weft_boot_subset *subset, const struct member_facts *all) {
    static const struct {
        const char *name;
        size_t offset;
    } settings[] = {{"SHMEMX_ENGINE", offsetof(struct member_facts, engine)},
                    {"SHMEMX_ALGORITHM", offsetof(struct member_facts, algorithm)},
                    {"SHMEMX_SMS", offsetof(struct member_facts, sms)},
                    {"WEFT_PRODUCTS", offsetof(struct member_facts, products)},
                    {"WEFT_DETERMINISTIC", offsetof(struct member_facts, deterministic)}};
    int error = 0;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0] && error == 0; i++)
        error = check_setting(subset, all, settings[i].name, settings[i].offset);
    return error;
}

/* Returns the number of multiprocessors that a collective may use. For "auto", and any invalid
 * value, that is the maximum. */
static uint32_t sms_wanted(void) {
    char *end;
    unsigned long sms = strtoul(weft_env.sms, &end, 10);
    if (end != weft_env.sms && *end == '\0' && sms >= 1 && sms <= WEFT_GPU_CHANNELS)
        return (uint32_t)sms;
    if (strcmp(weft_env.sms, "auto") != 0)
        weft_log("SHMEMX_SMS is '%s', and auto is used: set it to auto or to a number from 1 to %d",
                 weft_env.sms, WEFT_GPU_CHANNELS);
    return WEFT_GPU_CHANNELS;
}

/* Evaluates the members' facts. Returns 0, -EINVAL with text if settings differ, or -ENOTSUP if a
 * member cannot take part. */
static int take_facts(struct team_channels *channels, const struct weft_boot_subset *subset,
                      const struct member_facts *all) {
    int error = check_settings(subset, all);
    uint32_t blocks = channels->blocks_max ? channels->blocks_max : sms_wanted();
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < subset->count && error == 0; i++) {
        if (all[i].error || !all[i].kernels_wait)
            return -ENOTSUP;
        if (all[i].multiprocessors < least)
            least = all[i].multiprocessors;
    }
    channels->sms_least = least;
    channels->blocks_max = least < blocks ? least : blocks;
    return error;
}

/* --- Regions ---------------------------------------------------------------------------------- */

static void region_free(struct region *region) {
    if (region->share)
        weft_share_release(region->share);
    if (region->block)
        weft_block_free(region->block);
    *region = (struct region){.block = NULL};
}

/* Allocates and initialises this PE's part of a region. Local. */
static int region_alloc(struct region *region, enum weft_gpu_form form, int n) {
    size_t words = weft_gpu_form_words_bytes(form, n), inbox = weft_gpu_inbox_bytes(form, n);
    int fill = weft_gpu_form_fill(form);
    if (weft_device.staged)
        return -ENOTSUP;
    int error = weft_block_alloc(&region->block, SHMEMX_SPACE_DEVICE, weft_device.gpu->ordinal,
                                 words + inbox);
    if (error || fill == 0)
        return error;
    return weft_gpu_memory_fill(weft_device.gpu,
                                (weft_cu_address)weft_block_at(region->block) + words, fill, inbox);
}

/* Shares a region after this PE has allocated its part, or has failed with `error`. Returns 0 or
 * -errno, the same on all members: -ENOTSUP without text if one of them has failed. */
static int region_share(struct team_channels *channels, struct region *region, int error,
                        const struct weft_boot_subset *subset) {
    struct member_facts mine = own_facts(error), all[subset->count];
    struct weft_exchange exchange = {.mine = &mine, .bytes = sizeof mine, .all = all};
    error = weft_boot_exchange_among(subset, &exchange);
    error = error ? error : take_facts(channels, subset, all);
    error = error ? error : weft_share_attach(&region->share, region->block, subset);
    if (error)
        region_free(region);
    return error;
}

/* Fills in the subset of the team's members, whose numbers are in pes[npes]. */
static struct weft_boot_subset members_of(const struct weft_team *team, int *pes) {
    for (int i = 0; i < team->npes; i++)
        pes[i] = weft_team_world_pe(team, i);
    uint64_t tag = weft_hash(WEFT_HASH_BASIS, &team->slot, sizeof team->slot);
    return (struct weft_boot_subset){pes, team->npes, weft_hash(tag, "channels", 8),
                                     weft_job_die_aborted};
}

/* Returns 0 if the region exists or can be made. If one member cannot make it, all members use
 * another algorithm from now on and later calls return -ENOTSUP. Errors that the program can
 * correct are returned each time. */
static int region_find(struct team_channels *channels, enum weft_gpu_form form,
                       const struct weft_team *team) {
    struct region *region = &channels->regions[form];
    if (region->share || region->refused)
        return region->share ? 0 : -ENOTSUP;
    int pes[team->npes];
    struct weft_boot_subset subset = members_of(team, pes);
    int error = region_share(channels, region, region_alloc(region, form, team->npes), &subset);
    if (error == 0 || error == -EINVAL || error == -ECONNABORTED)
        return error;
    region->refused = true;
    return -ENOTSUP;
}

/* --- Channels of teams ------------------------------------------------------------------------ */

/* Returns a form's memory on all members, from `offset` on. */
static struct weft_array region_array(const struct region *region, size_t offset) {
    const struct weft_window *window = weft_share_window(region->share);
    const char *own = weft_block_at(region->block);
    return weft_window_array(window, own + offset, 0, 1, NULL);
}

int weft_device_channels(struct weft_gpu_channels *channels, const struct weft_team *team,
                         enum weft_gpu_form form) {
    struct team_channels *own = &of_teams[team->slot];
    int n = team->npes, error = region_find(own, WEFT_FORM_LL, team);
    error = error || form == WEFT_FORM_LL ? error : region_find(own, form, team);
    if (error)
        return error;
    *channels = (struct weft_gpu_channels){
        .words = region_array(&own->regions[WEFT_FORM_LL], 0),
        .inbox = region_array(&own->regions[form], weft_gpu_form_words_bytes(form, n)),
        .me = team->my_pe,
        .n = n,
        .slot_units = weft_gpu_slot_units(form, n),
        .blocks_max = own->blocks_max};
    return 0;
}

int weft_device_channels_copy(void **copy, const struct weft_team *team, size_t bytes) {
    struct team_channels *own = &of_teams[team->slot];
    struct weft_block *made;
    if (own->ncopies == 0 || weft_block_bytes(own->copies[own->ncopies - 1]) < bytes) {
        size_t whole = weft_power_of_two_up(bytes < COPY_BYTES_MIN ? COPY_BYTES_MIN : bytes);
        int error = weft_block_alloc(&made, SHMEMX_SPACE_DEVICE, weft_device.gpu->ordinal, whole);
        if (error)
            return error;
        assert(own->ncopies < COPIES_MAX); /* each is at least twice as large as the one before */
        own->copies[own->ncopies++] = made;
    }
    *copy = weft_block_at(own->copies[own->ncopies - 1]);
    return 0;
}

/* --- Halves ----------------------------------------------------------------------------------- */

/* Adds a region whose halves have at least these bytes. Returns 0 or -errno with text, the same on
 * all members. */
static int halves_grow(struct team_channels *channels, const struct weft_team *team, size_t bytes) {
    struct halves *halves = &channels->halves;
    struct region *region = &halves->regions[halves->nregions];
    size_t part = bytes + WEFT_HALF_WORDS;
    size_t whole = 2 * weft_power_of_two_up(part < HALF_BYTES_MIN ? HALF_BYTES_MIN : part);
    int pes[team->npes];
    struct weft_boot_subset subset = members_of(team, pes);
    assert(halves->nregions < HALVES_MAX); /* each is at least twice as large as the one before */
    int error =
        weft_block_alloc(&region->block, SHMEMX_SPACE_DEVICE, weft_device.gpu->ordinal, whole);
    error = region_share(channels, region, error, &subset);
    if (error == -ENOTSUP)
        return weft_fail(-ENOMEM,
                         "%s of GPU memory, through which the members exchange data, cannot be "
                         "allocated on the GPUs of all members",
                         weft_size(whole).text);
    if (error == 0)
        halves->nregions++;
    return error;
}

/* Returns the number of this call, among those of the host or of its capture, which is 0 for the
 * host. */
static unsigned halves_count(struct halves *halves, uint64_t capture) {
    if (capture != 0 && capture != halves->capture) {
        halves->capture = capture;
        halves->captured = 0;
    }
    return capture == 0 ? halves->calls++ : halves->captured++;
}

/* Returns the bytes of a half, 0 if there is none. */
static size_t half_bytes(const struct halves *halves) {
    int n = halves->nregions;
    return n == 0 ? 0 : weft_block_bytes(halves->regions[n - 1].block) / 2 - WEFT_HALF_WORDS;
}

/* The last call of a graph may use the same half as the next call. Calls of the host cannot know
 * this, so they meet first; so does the first call of a graph, which follows the graph's last call
 * when it is launched again. */
int weft_device_channels_half(struct weft_device_half *half, const struct weft_team *team,
                              size_t bytes, weft_cu_stream stream) {
    struct team_channels *own = &of_teams[team->slot];
    struct halves *halves = &own->halves;
    uint64_t capture = 0;
    int error = half_bytes(halves) < bytes ? halves_grow(own, team, bytes) : 0;
    error = error ? error : weft_gpu_capture_id(stream, &capture);
    if (error)
        return error;
    unsigned call = halves_count(halves, capture);
    const struct region *region = &halves->regions[halves->nregions - 1];
    half->all =
        region_array(region, WEFT_HALF_WORDS + call % 2 * (WEFT_HALF_WORDS + half_bytes(halves)));
    half->words = region_array(region, 0);
    half->meets = capture != 0 ? call == 0 : weft_device_turns_captured(team);
    half->sms = (int)own->sms_least;
    return 0;
}

/* --- What the members know -------------------------------------------------------------------- */

int weft_device_channels_exchange(const struct weft_team *team, struct weft_exchange *exchange) {
    int pes[team->npes];
    struct weft_boot_subset subset = members_of(team, pes);
    return weft_boot_exchange_among(&subset, exchange);
}

void *weft_device_channels_notes(const struct weft_team *team, size_t bytes) {
    struct team_channels *own = &of_teams[team->slot];
    if (!own->notes)
        own->notes = calloc(1, bytes);
    return own->notes;
}

bool weft_device_channels_claim(const struct weft_team *team) {
    int found = FREE;
    return atomic_compare_exchange_strong(&claimant, &found, team->slot) || found == team->slot;
}

static void claim_end(const struct weft_team *team, int next) {
    int found = team->slot;
    atomic_compare_exchange_strong(&claimant, &found, next);
}

void weft_device_channels_unclaim(const struct weft_team *team) {
    claim_end(team, FREE);
}

/* --- The end ---------------------------------------------------------------------------------- */

static void channels_free(struct team_channels *channels) {
    for (int i = 0; i < channels->halves.nregions; i++)
        region_free(&channels->halves.regions[i]);
    for (int i = 0; i < channels->ncopies; i++)
        weft_block_free(channels->copies[i]);
    for (int form = 0; form < WEFT_FORMS; form++)
        region_free(&channels->regions[form]);
    free(channels->notes);
}

/* Takes the team's channels, so that the slot is free for another team. */
static struct team_channels channels_take(int slot) {
    struct team_channels taken = of_teams[slot];
    of_teams[slot] = (struct team_channels){.blocks_max = 0};
    return taken;
}

/* Records that no work of the team uses this memory any more. */
static void channels_set_idle(const struct team_channels *channels) {
    for (int i = 0; i < channels->ncopies; i++)
        weft_block_set_idle(channels->copies[i]);
    for (int i = 0; i < channels->halves.nregions; i++)
        weft_block_set_idle(channels->halves.regions[i].block);
    for (int form = 0; form < WEFT_FORMS; form++)
        if (channels->regions[form].block)
            weft_block_set_idle(channels->regions[form].block);
}

void weft_device_channels_end(const struct weft_team *team, bool finished) {
    struct team_channels taken = channels_take(team->slot);
    struct ended *one = taken.blocks_max || taken.ncopies > 0 ? malloc(sizeof *one) : NULL;
    taken.kept = !finished || weft_device_turns_captured(team);
    claim_end(team, taken.kept ? ENDED : FREE);
    if (!taken.kept)
        channels_set_idle(&taken);
    if (!one) { /* without the list entry, kept memory is never freed */
        if (!taken.kept)
            channels_free(&taken);
        return;
    }
    one->channels = taken;
    pthread_mutex_lock(&ending);
    one->next = all_ended;
    all_ended = one;
    pthread_mutex_unlock(&ending);
}

/* Removes from the list what can be freed now, or everything if the job ends. */
static struct ended *ended_take(bool all) {
    struct ended *taken = NULL;
    pthread_mutex_lock(&ending);
    for (struct ended **at = &all_ended, *one = *at; one; one = *at) {
        if (one->channels.kept && !all) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        one->next = taken;
        taken = one;
    }
    pthread_mutex_unlock(&ending);
    return taken;
}

static void ended_free(struct ended *list) {
    for (struct ended *next; list; list = next) {
        next = list->next;
        channels_free(&list->channels);
        free(list);
    }
}

void weft_device_channels_sweep(void) {
    ended_free(ended_take(false));
}

void weft_device_channels_close(void) {
    ended_free(ended_take(true));
    for (int slot = 0; slot < WEFT_TEAMS_MAX; slot++) {
        struct team_channels taken = channels_take(slot);
        channels_free(&taken);
    }
}
