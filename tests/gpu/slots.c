/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the rules by which collectives of kernels share slots, as a model: in every sequence
 * of calls no word is overwritten before it is read, read before it is there, or waited for in
 * vain; and without any one of the rules some sequence fails. PEs: 1
 *
 * A PE's kernels are a straight line of stores to its peers, waits and loads. A store is posted: it
 * arrives any time later, only after earlier stores of its PE to the same word or, if it is a
 * release, to any word. So the possible orders of a run are those of one graph, whose edges are a
 * PE's steps, a store's arrival after its step, and a wait after the arrival that ends it. The
 * model makes that graph and checks for each word whether the graph orders its loads and stores;
 * if it does not, some run fails. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tap.h"

enum { PES_MAX = 4, CALLS_MAX = 40, EVENTS_MAX = 4096, EDGES_MAX = 4 * EVENTS_MAX, NONE = -1 };
enum { UNITS = 2 }; /* of packets */

/* --- The rules ------------------------------------------------------------------------------- */

enum rule {
    TWO_SLOTS,     /* packets and marked words alternate between two slots, by the epoch's parity */
    CLASSES_APART, /* calls in which every member receives from all, and others, have separate
                      epochs and slots */
    EMPTY_PACKETS, /* a member without a chunk receives an empty packet from each member */
    STARTED_FIRST, /* a sender of the other class waits until receivers are past the call before */
    SLOTS_OF_CHANNELS, /* a slot belongs to its channel, whatever the number of blocks of a call is
                        */
    WIDE_WORDS,        /* words that are compared by >= do not wrap around */
    READY_FIRST,       /* data are sent to a peer that has started the call */
    DONE_BEHIND_DATA,  /* DONE is a release */
    MARKS_PUT_BACK,    /* a reader of a marked word marks it again in the same call */
    HEARD_FIRST,     /* answers, which have one slot, are sent to members known to be in the call */
    INBOX_ZEROED,    /* before flags wrap around the inbox is zeroed, once for each parity */
    PACKETS_COUNTED, /* packets have epochs of their own: no other call is to zero their inbox */
    RULES
};
static const char *const rule_names[RULES] = {
    "two slots",         "classes apart", "empty packets", "started first",
    "slots of channels", "wide words",    "ready first",   "done behind data",
    "marks put back",    "heard first",   "inbox zeroed",  "packets counted"};
static bool kept[RULES];

/* --- Words ----------------------------------------------------------------------------------- */

enum region { PACKETS, DIRECTED, MARKED, ANSWERS, STARTED, READY, DONE, DEST, REGIONS };
enum { WORDS_OF_REGION = 2 * 2 * PES_MAX * 4, WORDS_MAX = PES_MAX * REGIONS * WORDS_OF_REGION };

/* Word `unit` for `peer` in slot `slot` of a channel, in this region of `owner`. */
struct place {
    int channel, slot, peer, unit;
};

static int word_at(int owner, enum region region, struct place p) {
    int index = ((p.channel * 2 + p.slot) * PES_MAX + p.peer) * 4 + p.unit;
    return (owner * REGIONS + (int)region) * WORDS_OF_REGION + index;
}

static int word_of(int owner, enum region region, int peer) {
    return word_at(owner, region, (struct place){.peer = peer});
}

/* --- The graph ------------------------------------------------------------------------------- */

enum access {
    JOIN,
    WRITE,
    READ,        /* must find the content `tag` */
    POLL,        /* waits for `value`, and then finds the content `tag` */
    POLL_MARKED, /* waits until there is no mark */
    AWAIT        /* waits for `value` or more */
};

struct event {
    enum access access;
    int word, value, tag;
    int previous; /* the PE's step before this one */
    int match;    /* the write that it must find */
    int edges;    /* a list of the preceding events */
    int next;     /* on the same word */
};

static struct event events[EVENTS_MAX];
static struct { int from, next; } edges[EDGES_MAX];
static int nevents, nedges, on_word[WORDS_MAX];
static int last_store[PES_MAX][WORDS_MAX];
static uint64_t before[EVENTS_MAX][EVENTS_MAX / 64];
static char visited[EVENTS_MAX];

static void add_edge(int from, int to) {
    if (from == NONE)
        return;
    if (nedges == EDGES_MAX)
        abort();
    edges[nedges].from = from, edges[nedges].next = events[to].edges;
    events[to].edges = nedges++;
}

static int add_event(enum access access, int word, int value, int tag) {
    if (nevents == EVENTS_MAX)
        abort();
    int next = word == NONE ? NONE : on_word[word];
    events[nevents] = (struct event){access, word, value, tag, NONE, NONE, NONE, next};
    if (word != NONE)
        on_word[word] = nevents;
    return nevents++;
}

static bool is_before(int first, int second) {
    return before[second][first / 64] >> (first % 64) & 1;
}

/* Collects all events before an event. Returns false if it precedes itself: then no wait ends. */
static bool order_event(int event) {
    if (visited[event])
        return visited[event] == 2;
    visited[event] = 1;
    uint64_t *set = before[event];
    size_t words = (size_t)nevents / 64 + 1;
    memset(set, 0, words * sizeof *set);
    for (int edge = events[event].edges; edge != NONE; edge = edges[edge].next) {
        int from = edges[edge].from;
        if (!order_event(from))
            return false;
        for (size_t i = 0; i < words; i++)
            set[i] |= before[from][i];
        set[from / 64] |= UINT64_C(1) << (from % 64);
    }
    visited[event] = 2;
    return true;
}

/* --- Steps of a PE --------------------------------------------------------------------------- */

/* A sequence of steps: of a PE, or of some of its warps for a while. */
struct line {
    int last;                  /* step */
    int unordered[EVENTS_MAX]; /* its stores since the last release */
    int nunordered;
};

/* A PE, and its counts so far. */
static struct {
    int pe, npes, call, flag_bits;
    int epochs[2], packet_epochs[2], directed_epoch;
} self;

static int peer_at(int distance) {
    return (self.pe + distance) % self.npes;
}

/* Returns the tag of a word's content in this call, different from other contents. */
static int tag_of(int what) {
    return self.call * 64 + what;
}

static void post(struct line *line, int word, int value, int tag) {
    int store = add_event(WRITE, word, value, tag);
    add_edge(line->last, store);
    add_edge(last_store[self.pe][word], store);
    last_store[self.pe][word] = store;
    line->unordered[line->nunordered++] = store;
}

/* `orders`: the rule that makes it a release. */
static void post_release(struct line *line, enum rule orders, int word, int value) {
    int earlier = line->nunordered;
    post(line, word, value, 0);
    if (!kept[orders])
        return;
    int release = line->unordered[earlier];
    for (int i = 0; i < earlier; i++)
        add_edge(line->unordered[i], release);
    line->unordered[0] = release, line->nunordered = 1;
}

static void step(struct line *line, enum access access, int word, int value, int tag) {
    int event = add_event(access, word, value, tag);
    add_edge(line->last, event);
    events[event].previous = line->last;
    line->last = event;
}

static void await(struct line *line, int word, int value) {
    if (value > 0)
        step(line, AWAIT, word, value, 0);
}

static void join(struct line *line, const struct line *other) {
    int event = add_event(JOIN, NONE, 0, 0);
    add_edge(line->last, event);
    add_edge(other->last, event);
    line->last = event;
    for (int i = 0; i < other->nunordered; i++)
        line->unordered[line->nunordered++] = other->unordered[i];
}

/* --- The calls ------------------------------------------------------------------------------- */

/* A flag is the low part of an epoch, and never 0, which marks an empty slot. */
static int flag_of(int epoch) {
    return epoch & ((1 << self.flag_bits) - 1);
}

/* By one, or from one of odd parity by three: parities alternate. */
static int next_epoch(int epoch) {
    return flag_of(epoch + 1) == 0 ? epoch + 3 : epoch + 1;
}

static int packet_at(int owner, int channel, int epoch, int source, int unit) {
    struct place place = {kept[SLOTS_OF_CHANNELS] ? channel : 0, kept[TWO_SLOTS] ? epoch & 1 : 0,
                          source, unit};
    return word_at(owner, PACKETS, place);
}

/* Twice in a row before the flags wrap around, once for each parity. */
static void zero_inbox(struct line *line, int channel, int epoch) {
    if (!kept[INBOX_ZEROED] || flag_of(epoch) < flag_of(-2))
        return;
    for (int distance = 1; distance < self.npes; distance++)
        for (int unit = 0; unit < UNITS; unit++)
            step(line, WRITE, packet_at(self.pe, channel, epoch, peer_at(distance), unit), 0, NONE);
}

/* Units from `first` on in steps of `blocks`, between all members but one, which has no chunk. */
static void send_packets(struct line *line, int channel, int units, int blocks, int chunkless) {
    int *count = kept[PACKETS_COUNTED] ? &self.packet_epochs[channel] : &self.epochs[channel];
    int epoch = *count = next_epoch(*count);
    for (int distance = 1; distance < self.npes; distance++)
        for (int unit = channel; unit < units; unit += blocks)
            if (peer_at(distance) != chunkless || kept[EMPTY_PACKETS])
                post(line, packet_at(peer_at(distance), channel, epoch, self.pe, unit),
                     flag_of(epoch), tag_of(0));
    for (int distance = 1; distance < self.npes; distance++)
        for (int unit = channel; unit < units; unit += blocks)
            if (self.pe != chunkless || kept[EMPTY_PACKETS])
                step(line, POLL, packet_at(self.pe, channel, epoch, peer_at(distance), unit),
                     flag_of(epoch), tag_of(0));
    zero_inbox(line, channel, epoch);
}

/* One block, or two, for two units: each block is a sequence of its own. */
static void all_reduce(struct line *line, int blocks) {
    static struct line second;
    second.last = line->last, second.nunordered = 0;
    send_packets(line, 0, UNITS, blocks, NONE);
    if (blocks == 2) {
        send_packets(&second, 1, UNITS, blocks, NONE);
        join(line, &second);
    }
}

static void all_reduce_small(struct line *line, int unused) {
    (void)unused;
    send_packets(line, 0, 1, 1, NONE);
}

static void reduce_scatter(struct line *line, int chunkless) {
    send_packets(line, 0, 1, 1, chunkless);
}

static void send_marked(struct line *line, enum region region, int slot) {
    for (int distance = 1; distance < self.npes; distance++)
        post(line,
             word_at(peer_at(distance), region, (struct place){.slot = slot, .peer = self.pe}), 1,
             tag_of(region));
}

/* Every word of a slot shows itself whether it has arrived, and is marked again after it is read.
 */
static void take_marked(struct line *line, enum region region, int slot) {
    for (int distance = 1; distance < self.npes; distance++) {
        struct place place = {.slot = slot, .peer = peer_at(distance)};
        step(line, POLL_MARKED, word_at(self.pe, region, place), 1, tag_of(region));
        if (!kept[MARKS_PUT_BACK])
            place.slot = !slot;
        step(line, WRITE, word_at(self.pe, region, place), 0, NONE);
    }
}

/* In one shot or two. */
static void all_reduce_marked(struct line *line, int shots) {
    int epoch = self.epochs[0] = next_epoch(self.epochs[0]);
    int slot = kept[TWO_SLOTS] ? epoch & 1 : 0;
    send_marked(line, MARKED, slot);
    if (shots == 2 && !kept[HEARD_FIRST])
        send_marked(line, ANSWERS, 0);
    take_marked(line, MARKED, slot);
    if (shots == 2 && kept[HEARD_FIRST])
        send_marked(line, ANSWERS, 0);
    if (shots == 2)
        take_marked(line, ANSWERS, 0);
}

/* All members signal all others, and wait for them. */
static void tell_done(struct line *line, int epoch) {
    for (int distance = 1; distance < self.npes; distance++)
        post_release(line, DONE_BEHIND_DATA, word_of(peer_at(distance), DONE, self.pe), epoch);
    for (int distance = 1; distance < self.npes; distance++)
        await(line, word_of(self.pe, DONE, peer_at(distance)), epoch);
}

/* The program's array: a part for each member. */
static void use_result(struct line *line) {
    for (int distance = 1; distance < self.npes; distance++)
        step(line, READ, word_of(self.pe, DEST, peer_at(distance)), 0, tag_of(0));
}

static void exchange(struct line *line, int unused) {
    int epoch = self.epochs[0] = next_epoch(self.epochs[0]);
    (void)unused;
    for (int distance = 1; distance < self.npes; distance++)
        post(line, word_of(peer_at(distance), READY, self.pe), epoch, 0);
    for (int distance = 1; distance < self.npes && kept[READY_FIRST]; distance++)
        await(line, word_of(self.pe, READY, peer_at(distance)), epoch);
    for (int distance = 1; distance < self.npes; distance++)
        post(line, word_of(peer_at(distance), DEST, self.pe), 0, tag_of(0));
    tell_done(line, epoch);
    use_result(line);
}

/* --- The other class ------------------------------------------------------------------------- */

static int directed_at(int owner, int epoch, int root) {
    return kept[CLASSES_APART]
               ? word_at(owner, DIRECTED, (struct place){.slot = epoch & 1, .peer = root})
               : packet_at(owner, 0, epoch, root, 0);
}

static void broadcast(struct line *line, int root) {
    int *epoch = kept[CLASSES_APART] ? &self.directed_epoch : &self.epochs[0];
    *epoch = next_epoch(*epoch);
    if (self.pe != root) {
        post(line, word_of(root, STARTED, self.pe), *epoch, 0);
        step(line, POLL, directed_at(self.pe, *epoch, root), flag_of(*epoch), tag_of(0));
        return;
    }
    for (int distance = 1; distance < self.npes && kept[STARTED_FIRST]; distance++)
        await(line, word_of(self.pe, STARTED, peer_at(distance)), *epoch - 1);
    for (int distance = 1; distance < self.npes; distance++)
        post(line, directed_at(peer_at(distance), *epoch, root), flag_of(*epoch), tag_of(0));
}

/* --- Errors that the model finds -------------------------------------------------------------- */

/* Returns whether a wait ends with this content of its word. Narrow words have two bits. */
static bool ends_wait(const struct event *wait, int value) {
    if (wait->access == AWAIT)
        return kept[WIDE_WORDS] ? value >= wait->value : ((value - wait->value) & 3) < 2;
    return value == wait->value;
}

/* Finds the write that an access must find, or the first one that ends a wait; a word that is
 * waited for with >= has one writer, whose stores are on the list from the last to the first. */
static int find_match(const struct event *access) {
    int found = NONE;
    for (int e = on_word[access->word]; e != NONE; e = events[e].next)
        if (events[e].access == WRITE &&
            (access->access == AWAIT ? ends_wait(access, events[e].value)
                                     : events[e].tag == access->tag))
            found = e;
    return found;
}

/* Adds the edges that end waits. Returns false if a wait never ends. */
static bool end_waits(void) {
    for (int e = 0; e < nevents; e++) {
        struct event *event = &events[e];
        if (event->access == WRITE || event->access == JOIN)
            continue;
        if (event->access == AWAIT && ends_wait(event, 0))
            continue;
        event->match = find_match(event);
        if (event->match == NONE)
            return false;
        if (event->access != READ)
            add_edge(event->match, e);
    }
    return true;
}

/* Returns whether a poll may mistake an older content for the expected one. */
static bool is_taken_for(const struct event *poll, int old) {
    if (poll->access == READ || !ends_wait(poll, events[old].value))
        return false;
    for (int e = on_word[poll->word]; e != NONE; e = events[e].next)
        if (events[e].access == WRITE && !ends_wait(poll, events[e].value) && is_before(old, e) &&
            (e == poll->previous || (poll->previous != NONE && is_before(e, poll->previous))))
            return false;
    return true;
}

static const char *judge_access(int access) {
    const struct event *event = &events[access];
    if (event->match == NONE || event->access == AWAIT)
        return NULL;
    if (!is_before(event->match, access))
        return "is read before it is there";
    for (int e = on_word[event->word]; e != NONE; e = events[e].next) {
        if (events[e].access != WRITE || e == event->match || is_before(access, e))
            continue;
        if (!is_before(e, event->match))
            return "is overwritten before it is read";
        if (is_taken_for(event, e))
            return "is taken for an older one";
    }
    return NULL;
}

/* Returns NULL, or an error that a run of these calls may have. */
static const char *judge(void) {
    if (!end_waits())
        return "is waited for in vain";
    memset(visited, 0, sizeof visited);
    for (int e = 0; e < nevents; e++)
        if (!order_event(e))
            return "is waited for by all";
    const char *wrong = NULL;
    for (int e = 0; e < nevents && !wrong; e++)
        wrong = judge_access(e);
    return wrong;
}

/* --- Sequences ------------------------------------------------------------------------------- */

struct kind {
    const char *name;
    void (*run)(struct line *line, int with);
    int with; /* EACH: of each member once */
};
enum { EACH = -2 };
static const struct kind kinds[] = {{"all-reduce", all_reduce, 1},
                                    {"all-reduce by 2 blocks", all_reduce, 2},
                                    {"marked all-reduce", all_reduce_marked, 1},
                                    {"marked all-reduce in two shots", all_reduce_marked, 2},
                                    {"exchange", exchange, 0},
                                    {"reduce-scatter without the chunk of", reduce_scatter, EACH},
                                    {"broadcast of", broadcast, EACH}};
enum { KINDS = sizeof kinds / sizeof *kinds, CHOICES_MAX = KINDS * PES_MAX };
static const struct kind small = {"small all-reduce", all_reduce_small, 0};

/* The kinds with all that they may be called with. */
static int list_choices(struct kind *choices, int npes) {
    int count = 0;
    for (int k = 0; k < KINDS; k++)
        for (int pe = 0; pe < (kinds[k].with == EACH ? npes : 1); pe++) {
            choices[count] = kinds[k];
            choices[count++].with = kinds[k].with == EACH ? pe : kinds[k].with;
        }
    return count;
}

/* Judges equal calls on all PEs. */
static const char *judge_calls(const struct kind *const *calls, int ncalls, int npes,
                               int flag_bits) {
    static struct line line;
    nevents = nedges = 0;
    memset(on_word, 0xff, sizeof on_word);
    memset(last_store, 0xff, sizeof last_store);
    for (int pe = 0; pe < npes; pe++) {
        memset(&self, 0, sizeof self);
        self.pe = pe, self.npes = npes, self.flag_bits = flag_bits;
        line.last = NONE, line.nunordered = 0;
        for (; self.call < ncalls; self.call++)
            calls[self.call]->run(&line, calls[self.call]->with);
    }
    return judge();
}

static void print_calls(const char *before_it, const struct kind *const *calls, int ncalls,
                        const char *wrong) {
    printf("# %s:", before_it);
    for (int i = 0; i < ncalls; i++) {
        bool each = calls[i]->run == reduce_scatter || calls[i]->run == broadcast;
        printf("%s %s", i ? "," : "", calls[i]->name);
        if (each)
            printf(" %d", calls[i]->with);
    }
    printf(": a word %s\n", wrong);
}

/* Judges all sequences of `ncalls` calls, until one fails. Returns the number judged, or 0. */
static long search(int npes, int ncalls, const char *title) {
    struct kind choices[CHOICES_MAX];
    const struct kind *calls[CALLS_MAX];
    int count = list_choices(choices, npes), digits[CALLS_MAX] = {0};
    for (long looked = 1;; looked++) {
        for (int i = 0; i < ncalls; i++)
            calls[i] = &choices[digits[i]];
        const char *wrong = judge_calls(calls, ncalls, npes, 30);
        if (wrong) {
            print_calls(title, calls, ncalls, wrong);
            return 0;
        }
        int i = ncalls - 1;
        for (; i >= 0 && ++digits[i] == count; i--)
            digits[i] = 0;
        if (i < 0)
            return looked;
    }
}

/* Like search, for the shortest failing sequence up to this length. */
static bool is_found(enum rule rule, int npes, int ncalls_max) {
    bool found = false;
    kept[rule] = false;
    for (int ncalls = 1; ncalls <= ncalls_max && !found; ncalls++)
        found = search(npes, ncalls, rule_names[rule]) == 0;
    kept[rule] = true;
    return found;
}

/* Flags of three bits recur every eight epochs, and large calls are rare, so the content of their
 * slots is old. Exchanges between them have no packets. */
static bool wrap_is_right(unsigned seed) {
    const struct kind *calls[CALLS_MAX];
    for (int i = 0; i < CALLS_MAX; i++) {
        seed = seed * 1664525 + 1013904223;
        calls[i] = seed >> 16 & 7 ? seed >> 19 & 1 ? &small : &kinds[3] : &kinds[0];
    }
    return judge_calls(calls, CALLS_MAX, 2 + (int)(seed >> 20 & 1), 3) == NULL;
}

enum { SEEDS = 200 };

int main(void) {
    int npes_max = getenv("WEFT_TEST_LONG") ? 4 : 3;
    tap_start(0);
    for (int rule = 0; rule < RULES; rule++)
        kept[rule] = true;
    tap_case("four calls of any kinds never meet in a slot");
    for (int npes = 2; npes <= npes_max; npes++) {
        long looked = search(npes, 4, "with all rules");
        EXPECT(looked > 0, "of %d PEs", npes);
        printf("# %d PEs: %ld sequences\n", npes, looked);
    }
    tap_case("without one of the rules some do");
    for (int rule = 0; rule < INBOX_ZEROED; rule++)
        EXPECT(is_found((enum rule)rule, 3, 4), "without %s", rule_names[rule]);
    tap_case("flags that come round are not taken for older ones, as the inbox is zeroed");
    for (unsigned seed = 0; seed < SEEDS; seed++)
        EXPECT(wrap_is_right(seed), "seed %u", seed);
    for (int rule = INBOX_ZEROED; rule < RULES; rule++) {
        kept[rule] = false;
        int wrong = 0;
        for (unsigned seed = 0; seed < SEEDS; seed++)
            wrong += !wrap_is_right(seed);
        EXPECT(wrong > 0, "without %s all seeds are right", rule_names[rule]);
        kept[rule] = true;
    }
    return tap_finish();
}
