/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE is placed on units: cores, or hardware threads if those are bound to. Units are taken
 * round-robin over the machine parts that --map-by names, starting with the first unit of each
 * part. The PE is bound to all --bind-to parts that contain its units. Without these options each
 * PE gets a contiguous share of the processors, because PEs with adjacent numbers then share
 * caches. */
#include "launch/bind.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/machine.h"
#include "boot/hosts.h"

enum { WIDTH_MAX = CPU_SETSIZE };

static const char parts_known[] = "the parts of a machine are hwthread, core, l1cache, l2cache, "
                                  "l3cache, numa, socket and slot";

/* Returns the length of the word up to the next colon, and moves *at past the colon. */
static size_t word_next(const char **at, const char **word) {
    *word = *at;
    size_t length = strcspn(*at, ":");
    *at += length + ((*at)[length] == ':');
    return length;
}

static bool word_is(const char *word, size_t length, const char *other) {
    return strlen(other) == length && strncasecmp(word, other, length) == 0;
}

/* Returns whether a modifier is accepted by other launchers after the part's name and changes
 * nothing here. */
static bool modifier_is_idle(const char *word, size_t length) {
    static const char *const idle[] = {"oversubscribe",    "nooversubscribe", "span",
                                       "overload-allowed", "if-supported",    "hwtcpus",
                                       "corecpus",         "no-overload",     ""};
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (word_is(word, length, idle[i]))
            return true;
    return false;
}

/* Accepts "PE=2", and the bare number of hydra's "core:2". */
static bool modifier_take(struct weft_binding *binding, const char *word, size_t length) {
    bool named = length > 3 && strncasecmp(word, "pe=", 3) == 0;
    char *end;
    long width = strtol(named ? word + 3 : word, &end, 10);
    if (end == word + length && length > 0 && width > 0 && width <= WIDTH_MAX) {
        binding->width = (int)width;
        return true;
    }
    return modifier_is_idle(word, length);
}

static const char *modifiers_take(struct weft_binding *binding, const char *at) {
    const char *word;
    while (*at) {
        size_t length = word_next(&at, &word);
        if (!modifier_take(binding, word, length))
            return "after the part there may be :PE=N and :oversubscribe";
    }
    return NULL;
}

const char *weft_bind_parse_level(struct weft_binding *binding, const char *text) {
    const char *at = text, *word;
    size_t length = word_next(&at, &word);
    int level = weft_level_find(word, length);
    if (level < 0 && !word_is(word, length, "none"))
        return parts_known;
    binding->kind = level < 0 ? WEFT_BIND_NONE : WEFT_BIND_LEVEL;
    binding->level = level < 0 ? WEFT_LEVEL_HOST : (enum weft_level)level;
    return modifiers_take(binding, at);
}

const char *weft_bind_parse_map(struct weft_binding *binding, const char *text) {
    const char *at = text, *word;
    size_t length = word_next(&at, &word);
    binding->per = 0;
    if (word_is(word, length, "ppr")) {
        char *end;
        length = word_next(&at, &word);
        long per = strtol(word, &end, 10);
        if (end != word + length || per < 1 || per > WIDTH_MAX)
            return "the form is ppr:N:part, such as ppr:2:socket";
        binding->per = (int)per;
        length = word_next(&at, &word);
    }
    int level = length == 0 ? WEFT_LEVEL_HOST : weft_level_find(word, length);
    if (level < 0)
        return parts_known;
    binding->map = (enum weft_level)level;
    return modifiers_take(binding, at);
}

const char *weft_bind_parse_rank(struct weft_binding *binding, const char *text) {
    bool as_placed = word_is(text, strlen(text), "fill") || word_is(text, strlen(text), "span");
    int level = as_placed ? WEFT_LEVEL_HOST : weft_level_find(text, strlen(text));
    binding->rank = (enum weft_level)level;
    return level < 0 ? parts_known : NULL;
}

static void allowed_find(const struct weft_binding *binding, cpu_set_t *allowed) {
    cpu_set_t only;
    weft_machine_processors(allowed);
    if (!binding->only || !weft_topology_parse(binding->only, &only))
        return;
    CPU_AND(&only, &only, allowed);
    if (CPU_COUNT(&only) > 0)
        *allowed = only;
    else
        fprintf(stderr,
                "oshrun: this job may use none of the processors %s; using all that it may use\n",
                binding->only);
}

int weft_bind_demand(const struct weft_binding *binding) {
    static struct weft_parts parts;
    cpu_set_t allowed;
    if (binding->per == 0)
        return 0;
    allowed_find(binding, &allowed);
    weft_topology_parts(binding->map, &allowed, &parts);
    return binding->per * parts.count;
}

/* Gives each PE an equal, contiguous share of the allowed processors. */
static void processors_share_out(int npes, const cpu_set_t *allowed, cpu_set_t *sets) {
    long count = CPU_COUNT(allowed);
    for (int pe = 0; pe < npes; pe++) {
        long begin = count * pe / npes, end = count * (pe + 1) / npes, seen = 0;
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (!CPU_ISSET(cpu, allowed))
                continue;
            if (seen >= begin && seen < end)
                CPU_SET(cpu, &sets[pe]);
            seen++;
        }
    }
}

static bool sets_meet(const cpu_set_t *one, const cpu_set_t *other) {
    cpu_set_t both;
    CPU_AND(&both, one, other);
    return CPU_COUNT(&both) > 0;
}

/* Returns unit number `place` of a part of the machine. If the part has fewer units, counting
 * starts again at its first if `by_turns` is set; otherwise returns NULL. */
static const cpu_set_t *unit_find(const struct weft_parts *units, const cpu_set_t *part, int place,
                                  bool by_turns) {
    int inside = 0;
    for (int i = 0; i < units->count; i++)
        inside += sets_meet(&units->part[i], part);
    if (place >= inside && !by_turns)
        return NULL;
    place %= inside;
    for (int i = 0; i < units->count; i++)
        if (sets_meet(&units->part[i], part) && place-- == 0)
            return &units->part[i];
    return NULL;
}

/* Adds to `set` all parts of the level that contain the unit. */
static void set_add_around(const struct weft_parts *around, const cpu_set_t *unit, cpu_set_t *set) {
    for (int i = 0; i < around->count; i++)
        if (sets_meet(&around->part[i], unit))
            CPU_OR(set, set, &around->part[i]);
}

static bool set_begins_in(const cpu_set_t *set, const cpu_set_t *part) {
    int cpu = 0;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, set))
        cpu++;
    return CPU_ISSET(cpu, part);
}

/* Renumbers the PEs round-robin over the parts of the level: the first PE of each part, then the
 * second PE of each part, and so on. */
static void parts_renumber(enum weft_level level, int npes, const cpu_set_t *allowed,
                           cpu_set_t *sets) {
    static struct weft_parts parts;
    cpu_set_t *placed = malloc((size_t)npes * sizeof *placed);
    if (!placed)
        return; /* without memory PEs keep their numbers */
    memcpy(placed, sets, (size_t)npes * sizeof *placed);
    weft_topology_parts(level, allowed, &parts);
    for (int next = 0, turn = 0; next < npes; turn++)
        for (int part = 0; part < parts.count; part++)
            for (int pe = 0, seen = 0; pe < npes; pe++)
                if (set_begins_in(&placed[pe], &parts.part[part]) && seen++ == turn)
                    sets[next++] = placed[pe];
    free(placed);
}

/* Chooses units for all PEs. Returns true if each PE has units of its own, or if the bind level is
 * larger than a core, so that PEs may share units. */
static bool pes_place(const struct weft_binding *binding, int npes, const cpu_set_t *allowed,
                      cpu_set_t *sets) {
    static struct weft_parts by, units, around;
    bool threads = binding->level == WEFT_LEVEL_HWTHREAD || binding->map == WEFT_LEVEL_HWTHREAD;
    int width = binding->width ? binding->width : 1, per = binding->per ? binding->per : 1;
    weft_topology_parts(binding->map, allowed, &by);
    weft_topology_parts(threads ? WEFT_LEVEL_HWTHREAD : WEFT_LEVEL_CORE, allowed, &units);
    weft_topology_parts(binding->level, allowed, &around);
    for (int pe = 0; pe < npes; pe++) {
        const cpu_set_t *part = &by.part[pe / per % by.count];
        int place = (pe / per / by.count * per + pe % per) * width;
        for (int i = 0; i < width; i++) {
            const cpu_set_t *unit =
                unit_find(&units, part, place + i, binding->level > WEFT_LEVEL_CORE);
            if (!unit)
                return false;
            set_add_around(&around, unit, &sets[pe]);
        }
    }
    if (binding->rank != WEFT_LEVEL_HOST)
        parts_renumber(binding->rank, npes, allowed, sets);
    return true;
}

/* Chooses the bind level if the user did not: the --map-by part; or cores if each PE gets several
 * cores, or if only --rank-by is given. */
static struct weft_binding binding_complete(const struct weft_binding *asked) {
    struct weft_binding binding = *asked;
    bool mapped = asked->map != WEFT_LEVEL_HOST, ranked = asked->rank != WEFT_LEVEL_HOST;
    if (asked->kind != WEFT_BIND_SHARE || (asked->width == 0 && !mapped && !ranked))
        return binding;
    binding.kind = WEFT_BIND_LEVEL;
    binding.level = asked->width > 0 || !mapped ? WEFT_LEVEL_CORE : asked->map;
    return binding;
}

static bool binding_plan(const struct weft_binding *binding, int npes, int cores,
                         const cpu_set_t *allowed, cpu_set_t *sets) {
    if (binding->kind == WEFT_BIND_LEVEL && pes_place(binding, npes, allowed, sets))
        return true;
    if (binding->kind == WEFT_BIND_LEVEL)
        fprintf(stderr,
                "oshrun: not binding %d PEs: there are too few %s for them among the %d processors "
                "that this job may use\n",
                npes, weft_level_name(binding->level), CPU_COUNT(allowed));
    bool shares =
        binding->kind == WEFT_BIND_SHARE && npes > 1 && npes <= cores && npes <= CPU_COUNT(allowed);
    if (shares)
        processors_share_out(npes, allowed, sets);
    for (int pe = 0; !shares && pe < npes; pe++)
        sets[pe] = *allowed;
    return shares || binding->only;
}

static void binding_report(const int *pes, int npes, bool bound, const cpu_set_t *sets) {
    char list[512];
    for (int i = 0; i < npes; i++) {
        weft_topology_format(&sets[i], list, sizeof list);
        fprintf(stderr, "oshrun: PE %d%s is %s %s\n", pes[i], weft_boot_on(pes[i]).text,
                bound ? "bound to processors" : "not bound, and may use processors", list);
    }
}

bool weft_bind_plan(const struct weft_binding *asked, const int *pes, int npes, int cores,
                    cpu_set_t *sets) {
    struct weft_binding binding = binding_complete(asked);
    cpu_set_t allowed;
    allowed_find(&binding, &allowed);
    memset(sets, 0, (size_t)npes * sizeof *sets);
    bool bound = binding_plan(&binding, npes, cores, &allowed, sets);
    if (binding.report)
        binding_report(pes, npes, bound, sets);
    return bound;
}
