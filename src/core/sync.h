/* SPDX-License-Identifier: BSD-3-Clause */
/* Synchronisation of a team: barrier, posting of small facts, agreement, progress.
 *
 * All words live in the members' scratch slots and are epoch-valued: they are set, never reset, and
 * a PE that runs ahead can only make them larger. A member shows facts in words of its own, where
 * near ones read them, and pushes them to each far one, into that one's inbox: so nobody asks
 * another host. Words of near members take no more memory as the team grows; an inbox has an entry
 * for each member. */
#ifndef WEFT_CORE_SYNC_H
#define WEFT_CORE_SYNC_H

#include <stddef.h>
#include <stdint.h>
#include <shmem.h>
#include "job/placement.h"
#include "job/wait.h"
#include "core/levels.h"

#define WEFT_SYNC_ROUNDS 16 /* 65536 members */
#define WEFT_POST_BYTES  192

/* A fact that one member shows to all: written by the owner, read in place by near members. */
struct weft_post {
    struct weft_word posted;
    _Alignas(64) unsigned char payload[WEFT_POST_BYTES];
};

/* What one member sends to the others in one of their data-moving collectives (coll/packet.h). The
 * payload begins in the cache line of the word that announces it, so that a small one arrives with
 * it. */
#define WEFT_PACKETS      8
#define WEFT_PACKET_BYTES 2032
struct weft_packet {
    union {
        struct weft_word posted;
        struct {
            uint64_t word;
            uint64_t bytes; /* of the sender's payload, for whom it can differ */
            unsigned char payload[WEFT_PACKET_BYTES];
        };
    };
};

#define WEFT_ACTIVE_POSTS_BYTES 1024
#define WEFT_STREAM_CALLS       7

struct weft_team_words {
    struct weft_word rounds[2]
                           [WEFT_SYNC_ROUNDS]; /* barrier, closing: set by the one 2^r before me */
    struct weft_word arrived, released; /* crowded barrier: the words of member 0 are everyone's;
                                           where some are far, those of a leader its near ones' */
    struct weft_post post[2];           /* by parity of the post epoch */
    struct weft_word progress;          /* set by the owner as its part of a call gets done */
    struct weft_word packets_read;      /* the owner needs no packet up to this epoch any more */
    struct weft_word brought[2];        /* parts of far members' matrices: see ops/far_rows.h */
    _Atomic uint32_t lost_member;       /* WORLD's only; see coll/lost_member.h */
    _Atomic uint32_t pinned, returning; /* SHARED's only; see core/pin.h */
    _Atomic uint32_t lock_bell;         /* WORLD's only; see core/lock.h */
    _Atomic uint32_t taken;             /* of those parts, by the owner */
    _Alignas(64) unsigned char active_posts[WEFT_ACTIVE_POSTS_BYTES]; /* WORLD's only; see
                                                                         coll/active.c */
    _Alignas(64) uint64_t stream_calls; /* of the owner; and what the last of them were, by number:
                                           see coll/same_way.h */
    _Atomic uint64_t stream_ways[WEFT_STREAM_CALLS];
    struct weft_packet packets[WEFT_PACKETS]; /* by the packet epoch modulo their number */
    _Atomic long signals[];                   /* WORLD's only, by PE; see coll/active.c */
};

/* What one far member sends to this PE; for near ones its own words are there. */
struct weft_inbox {
    struct weft_post post[2];
    struct weft_word progress;
};

/* What comes from other hosts in a team's data-moving collectives. Packets of a host's members come
 * together to the first member of this one, where all read them: in front of this, so many bytes
 * for each of the last packet epochs; announced by a word for each of these and each host. What
 * members push to this one is announced by a word for each. */
#define WEFT_RECEIVE_BYTES 16384 /* at most, for an epoch; small slots have less */
struct weft_receive {
    struct weft_word closing, closed; /* of those near to this one: counted here, and set */
    struct weft_word words[];         /* pushed: by member; behind them those of packets */
};

#define WEFT_TEAMS_MAX 256

/* Some PEs, a slot of the scratch window, and how far its words have come. */
struct weft_team {
    int my_pe, npes; /* within the team */
    struct weft_member_list member_list;
    int slot;            /* of the scratch window */
    uint32_t generation; /* of the handle */
    shmem_team_config_t config;

    bool far;                      /* some member is */
    struct weft_levels *levels;    /* then */
    struct weft_team_words *words; /* this PE's own */
    struct weft_inbox *inbox;      /* the same, by member; at the end of the slot */
    struct weft_receive *receive;  /* the same; before that */
    size_t receive_bytes;          /* of packets, for an epoch */
    uint32_t barrier_epoch, closing_epoch, post_epoch;
    uint32_t packet_epoch; /* one a data-moving collective */
    uint32_t packets_read; /* by all members, as far as this one knows */
    uint32_t progress;     /* how far this team's progress words have come; equal on all members */
    uint32_t far_parts;    /* that near members have had brought here; equal on all of these */
    uint32_t pushes;       /* from one member to another, at most; equal on all members */
    uint32_t pushes_renewed; /* when its words were set last */
    size_t workspace_committed;
};

static inline int weft_team_world_pe(const struct weft_team *team, int member) {
    return weft_member_pe(&team->member_list, member);
}

/* The member so far behind this one, in a ring of all: 0 is this one. */
static inline int weft_team_member_after(const struct weft_team *team, int distance) {
    int member = team->my_pe + distance;
    return member >= team->npes ? member - team->npes : member;
}

static inline bool weft_team_member_is_far(const struct weft_team *team, int member) {
    return __builtin_expect(team->far, 0) && weft_is_far(weft_team_world_pe(team, member));
}

/* Where a near member is among places that are evenly apart (weft/addr.h): its number, or its slot
 * where there is a list. */
static inline int weft_team_place(const struct weft_team *team, int member) {
    const int *pes = team->member_list.pes;
    return pes ? (int)weft_window_slot(&weft_windows.scratch.window, pes[member]) : member;
}

/* The team's slot in the scratch memory of a world PE: words, then workspace, then receive area and
 * inbox if PEs of the job are far. */
static inline size_t weft_team_slot_bytes(void) {
    return weft_windows.scratch.slot_bytes / WEFT_TEAMS_MAX;
}

/* Of a near PE. */
static inline char *weft_team_slot_of(int slot, int world_pe) {
    const struct weft_window *scratch = &weft_windows.scratch.window;
    const char *own = (const char *)scratch->local + (size_t)slot * weft_team_slot_bytes();
    return weft_window_at(scratch, own, weft_window_slot(scratch, world_pe));
}

static inline struct weft_team_words *weft_team_words_of(const struct weft_team *team, int member) {
    return (struct weft_team_words *)weft_team_slot_of(team->slot,
                                                       weft_team_world_pe(team, member));
}

/* What `member` sends to this PE, where that one is far. At the member, what this PE sends to it
 * has the name of the entry of this PE here. */
static inline struct weft_inbox *weft_team_inbox(const struct weft_team *team, int member) {
    return &team->inbox[member];
}

/* What a near member receives. */
static inline struct weft_receive *weft_team_receive(const struct weft_team *team, int member) {
    ptrdiff_t offset = (char *)team->receive - (char *)team->words;
    return (struct weft_receive *)((char *)weft_team_words_of(team, member) + offset);
}

/* Where packets of the current epoch come. */
static inline unsigned char *weft_receive_room(const struct weft_team *team,
                                               struct weft_receive *receive) {
    size_t behind = WEFT_PACKETS - team->packet_epoch % WEFT_PACKETS;
    return (unsigned char *)receive - behind * team->receive_bytes;
}

/* Its words: what `from` has pushed to it; which packets of a host have come to it. */
static inline struct weft_word *weft_receive_pushed(struct weft_receive *receive, int from) {
    return &receive->words[from];
}
static inline struct weft_word *weft_receive_packets(const struct weft_team *team,
                                                     struct weft_receive *receive, int host) {
    uint32_t slot = 1 + team->packet_epoch % WEFT_PACKETS;
    return &receive->words[slot * (uint32_t)team->npes + (uint32_t)host];
}

/* No member leaves before every member has entered; stores before it are visible after it. What is
 * under way to far members is so only behind a quiet. */
void weft_sync_barrier(struct weft_team *team);

/* The same among those that are near to this one, of a team with far members; all members call it.
 */
void weft_sync_barrier_near(struct weft_team *team);

/* The last barrier of a team. Behind it no member looks at another's words any more, so that they
 * can be used anew; and it has words of its own, so that a PE which returns from main does not pass
 * for one that has come to the barrier in which the others are. */
void weft_sync_close(struct weft_team *team);

/* Shows `bytes` (<= WEFT_POST_BYTES) to the team. Opens a round: each member then reads every other
 * member's post with weft_sync_peek before it posts again. Collective. */
void weft_sync_post(struct weft_team *team, const void *payload, size_t bytes);

/* Waits until `member` has posted in this round; its payload, valid until this PE's next post. */
const void *weft_sync_peek(struct weft_team *team, int member);

/* The same, but gives up, with NULL, after a few turns. `waiter` is the caller's wait, which may go
 * on over several of these. */
const void *weft_sync_peek_briefly(struct weft_team *team, int member, struct weft_waiter *waiter);

/* Whether `member` has posted in this round already. */
int weft_sync_posted(struct weft_team *team, int member);

/* The smallest `mine` of all members. Collective; a round of posts. */
uint64_t weft_sync_min(struct weft_team *team, uint64_t mine);

/* Progress within one collective call: every member announces the same number of steps per call.
 *   uint32_t begin = weft_progress_begin(team, nsteps);   on entry, on every member alike
 *   weft_progress_set(team, begin + k)                     my first k steps are done
 *   weft_progress_wait(team, member, begin + k)     until the member's first k are done
 * The steps of the last call must be known to be over (a barrier, say) before the next begins. */
uint32_t weft_progress_begin(struct weft_team *team, uint32_t nsteps);
void weft_progress_set(struct weft_team *team, uint32_t value);
void weft_progress_wait(struct weft_team *team, int member, uint32_t value);

/* The two halves of setting it: for near members, and for far ones, who may hear of other steps. */
void weft_progress_set_near(struct weft_team *team, uint32_t value);
void weft_progress_set_far(struct weft_team *team, uint32_t value);

/* Whether they are done already. */
bool weft_progress_reached(struct weft_team *team, int member, uint32_t value);

#endif
