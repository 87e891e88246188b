/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges among some PEs that are on several hosts, by messages. Members that are near to each
 * other are a group, whose first one leads it:
 *
 *     members --- what each gives ---> leader <--- what groups give ---> leaders of others
 *     members <--- what all give ----- leader
 *
 * So most members send one gift, and leaders have a channel to each host. A gift may say that there
 * is none, and why: an error comes to all. What comes early is kept; what one PE says of one
 * exchange comes in order, so exchanges of the same members follow each other. */
#include "far/meet.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "boot/boot.h"
#include "far/message.h"
#include "far/protocol.h"

enum { KEPT_MAX = 1 << 16 };

/* A message of an exchange that this PE has not come to, or not taken yet. */
struct kept {
    struct kept *next;
    uint64_t exchange;
    int from;
    size_t bytes;
    unsigned char given[];
};

static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;
static struct kept *first, **last = &first;
static int nkept;

bool weft_far_meet_keep(int from, uint64_t exchange, const void *given, size_t bytes) {
    struct kept *kept = malloc(sizeof *kept + bytes);
    if (!kept) {
        weft_channel_fail("no memory for %zu bytes that PE %d gives to an exchange", bytes, from);
        return false;
    }
    *kept = (struct kept){.exchange = exchange, .from = from, .bytes = bytes};
    if (bytes)
        memcpy(kept->given, given, bytes);
    pthread_mutex_lock(&keeping);
    bool room = nkept < KEPT_MAX;
    if (room) {
        *last = kept;
        last = &kept->next;
        nkept++;
    }
    pthread_mutex_unlock(&keeping);
    if (room)
        return true;
    free(kept);
    return weft_message_refuse(from, "%d gifts to exchanges are kept already", KEPT_MAX);
}

/* Where the earliest of this PE and exchange hangs; NULL hangs there: it has not come. */
static struct kept **kept_find(int from, uint64_t exchange) {
    struct kept **at = &first;
    while (*at && ((*at)->from != from || (*at)->exchange != exchange))
        at = &(*at)->next;
    return at;
}

/* It is the caller's to free; NULL: it has not come. */
static struct kept *kept_take(int from, uint64_t exchange) {
    pthread_mutex_lock(&keeping);
    struct kept **at = kept_find(from, exchange), *kept = *at;
    if (kept) {
        *at = kept->next;
        if (!*at)
            last = at;
        nkept--;
    }
    pthread_mutex_unlock(&keeping);
    return kept;
}

static bool kept_has(int from, uint64_t exchange) {
    pthread_mutex_lock(&keeping);
    bool has = *kept_find(from, exchange) != NULL;
    pthread_mutex_unlock(&keeping);
    return has;
}

void weft_far_meet_forget(void) {
    pthread_mutex_lock(&keeping);
    for (struct kept *kept = first, *next; kept; kept = next) {
        next = kept->next;
        free(kept);
    }
    first = NULL;
    last = &first;
    nkept = 0;
    pthread_mutex_unlock(&keeping);
}

/* --- Gifts ----------------------------------------------------------------------------------- */

/* How a gift begins. Data follow, in as many messages as they take. */
struct gift {
    int32_t error; /* 0, -EPROTO or -ECONNABORTED; then there are no data */
    int32_t gone;  /* who has finalized */
    uint64_t bytes;
};

/* One exchange under way. The members of a group are near to each other. */
struct meeting {
    const struct weft_boot_subset *subset;
    uint64_t number;
    struct weft_exchange *exchange;
    struct gift worst; /* what has gone wrong, anywhere */
    int *leader;       /* of every member: the number of the first one of its group */
    char *packed;      /* room for what a group gives */
};

/* The same on all: that a member is gone, the first of those, and else that sizes differ. */
static void meeting_hear(struct meeting *meeting, const struct gift *gift) {
    struct gift *worst = &meeting->worst;
    bool both_gone = gift->error == -ECONNABORTED && worst->error == -ECONNABORTED;
    if (!gift->error || (worst->error == -ECONNABORTED && !both_gone))
        return;
    if (!both_gone || gift->gone < worst->gone)
        *worst = (struct gift){gift->error, gift->gone, 0};
}

static void give(const struct meeting *meeting, int member, const void *data, size_t bytes) {
    struct weft_far_header text = {.kind = WEFT_FAR_MEET, .place.offset = meeting->number};
    struct gift gift = meeting->worst;
    size_t left = gift.bytes = gift.error ? 0 : bytes, said = sizeof text + sizeof gift;
    const char *at = data;
    for (bool begun = false; !begun || left > 0; begun = true) {
        size_t room = weft_channel_room() - said, piece = left < room ? left : room;
        struct weft_message message = {.payload = {{&text, sizeof text},
                                                   {&gift, begun ? 0 : sizeof gift},
                                                   {(void *)at, piece}},
                                       .nparts = 3};
        weft_message_send(meeting->subset->pes[member], &message);
        at += piece;
        left -= piece;
    }
}

/* The next message of a member, the caller's to free. NULL: the member has finalized instead. What
 * it gave before is here once its departure is seen, because it departs when all that it sent is
 * applied. */
static struct kept *message_await(const struct meeting *meeting, int member) {
    const struct weft_boot_subset *subset = meeting->subset;
    struct weft_waiter waiter = {.pe = subset->pes[member]};
    struct kept *kept;
    while (!(kept = kept_take(waiter.pe, meeting->number)) &&
           !(weft_pe_departed(waiter.pe) && !kept_has(waiter.pe, meeting->number))) {
        if (weft_job_aborted() && subset->over)
            subset->over();
        weft_message_turn(&waiter);
    }
    weft_waiter_end(&waiter);
    return kept;
}

/* Takes what a member gives, `bytes` if nothing is wrong. What does not fit is taken, too: the next
 * exchange of the same members must not find it. */
static void take(struct meeting *meeting, int member, void *data, size_t bytes) {
    int pe = meeting->subset->pes[member];
    struct gift gift = {.error = -ECONNABORTED, .gone = pe};
    struct kept *kept = message_await(meeting, member);
    size_t skip = sizeof gift, at = 0;
    if (kept && kept->bytes < sizeof gift)
        weft_job_panic("a message of PE %d is damaged: it gives %zu bytes to an exchange", pe,
                       kept->bytes);
    if (kept)
        memcpy(&gift, kept->given, sizeof gift);
    bool fits = gift.bytes == bytes && !gift.error;
    for (; kept; skip = 0) {
        size_t piece = kept->bytes - skip;
        if (fits && piece <= bytes - at && piece > 0)
            memcpy((char *)data + at, kept->given + skip, piece);
        at += piece;
        free(kept);
        kept = at < gift.bytes ? message_await(meeting, member) : NULL;
    }
    if (!gift.error && (!fits || at != gift.bytes))
        gift.error = -EPROTO;
    meeting_hear(meeting, &gift);
}

/* --- The three steps ------------------------------------------------------------------------- */

static char *given_by(const struct meeting *meeting, int member) {
    return (char *)meeting->exchange->all + (size_t)member * meeting->exchange->bytes;
}

/* Packs what the members of a group give, or with `open` puts it in its places; its bytes. */
static size_t group_pack(const struct meeting *meeting, int leader, bool open) {
    size_t bytes = meeting->exchange->bytes, packed = 0;
    for (int member = leader; member < meeting->subset->count; member++) {
        if (meeting->leader[member] != leader)
            continue;
        char *place = given_by(meeting, member), *at = meeting->packed + packed;
        if (bytes)
            memcpy(open ? place : at, open ? at : place, bytes);
        packed += bytes;
    }
    return packed;
}

static size_t group_bytes(const struct meeting *meeting, int leader) {
    size_t members = 0;
    for (int member = leader; member < meeting->subset->count; member++)
        members += meeting->leader[member] == leader;
    return members * meeting->exchange->bytes;
}

/* Among the leaders, of whom this member is one. */
static void exchange_groups(struct meeting *meeting, int me) {
    int count = meeting->subset->count;
    size_t bytes = group_pack(meeting, me, false);
    for (int other = 0; other < count; other++)
        if (meeting->leader[other] == other && other != me)
            give(meeting, other, meeting->packed, bytes);
    for (int other = 0; other < count; other++) {
        if (meeting->leader[other] != other || other == me)
            continue;
        take(meeting, other, meeting->packed, group_bytes(meeting, other));
        group_pack(meeting, other, true);
    }
}

static void lead(struct meeting *meeting, int me) {
    const struct weft_exchange *exchange = meeting->exchange;
    int count = meeting->subset->count;
    for (int member = me + 1; member < count; member++)
        if (meeting->leader[member] == me)
            take(meeting, member, given_by(meeting, member), exchange->bytes);
    exchange_groups(meeting, me);
    for (int member = me + 1; member < count; member++)
        if (meeting->leader[member] == me)
            give(meeting, member, exchange->all, (size_t)count * exchange->bytes);
}

static void follow(struct meeting *meeting, int me) {
    const struct weft_exchange *exchange = meeting->exchange;
    give(meeting, meeting->leader[me], exchange->mine, exchange->bytes);
    take(meeting, meeting->leader[me], exchange->all,
         (size_t)meeting->subset->count * exchange->bytes);
}

/* Finds the leader of every member; which number this PE has. */
static int groups_find(struct meeting *meeting, int *led) {
    int me = 0;
    for (int pe = 0; pe < weft_job.npes; pe++)
        led[pe] = -1;
    for (int member = 0; member < meeting->subset->count; member++) {
        int pe = meeting->subset->pes[member], *leader = &led[weft_far_first(pe)];
        if (*leader < 0)
            *leader = member;
        meeting->leader[member] = *leader;
        if (pe == weft_job.pe)
            me = member;
    }
    return me;
}

static void meet(struct meeting *meeting, int *led) {
    const struct weft_exchange *exchange = meeting->exchange;
    int me = groups_find(meeting, led);
    if (exchange->bytes)
        memcpy(given_by(meeting, me), exchange->mine, exchange->bytes);
    if (meeting->leader[me] == me)
        lead(meeting, me);
    else
        follow(meeting, me);
}

int weft_far_meet(const struct weft_boot_subset *subset, uint64_t number,
                  struct weft_exchange *exchange) {
    size_t count = (size_t)subset->count;
    struct meeting meeting = {.subset = subset,
                              .number = number,
                              .exchange = exchange,
                              .leader = malloc(count * sizeof *meeting.leader),
                              .packed = malloc(count * exchange->bytes + 1)};
    int *led = malloc((size_t)weft_job.npes * sizeof *led);
    if (!led || !meeting.leader || !meeting.packed)
        weft_job_panic("no memory for an exchange among %d PEs", subset->count);
    meet(&meeting, led);
    free(led);
    free(meeting.leader);
    free(meeting.packed);
    if (meeting.worst.error == -ECONNABORTED)
        return weft_fail(-ECONNABORTED, "PE %d has finalized and comes no more",
                         meeting.worst.gone);
    return meeting.worst.error;
}
