/* SPDX-License-Identifier: BSD-3-Clause */
/* Synchronisation of a team: barriers, posts of small facts, agreement, progress.
 *
 * All words are in the members' scratch slots. They hold epochs: they are set and never reset, and
 * a PE that is ahead can only make them larger. A member shows facts in its own words, where near
 * members read them, and sends them to each far member's inbox, so that no member has to request
 * them from another host. The words for near members take no more memory in a larger team; an inbox
 * has an entry per member. */
#ifndef WEFT_CORE_SYNC_H
#define WEFT_CORE_SYNC_H

#include <stddef.h>
#include <stdint.h>
#include <shmem.h>
#include "job/placement.h"
#include "job/wait.h"
#include "core/levels.h"

#define WEFT_SYNC_ROUNDS 16 /* for up to 65536 members */
#define WEFT_POST_BYTES  192

/* A fact that one member shows to all others; near members read it in place. */
struct weft_post {
    struct weft_word posted;
    _Alignas(64) unsigned char payload[WEFT_POST_BYTES];
};

/* The data that one member sends to the others in a data-moving collective (coll/packet.h). The
 * payload begins in the cache line of the word that announces it, so that a small payload arrives
 * together with the word. */
#define WEFT_PACKETS      8
#define WEFT_PACKET_BYTES 2032
struct weft_packet {
    union {
        struct weft_word posted;
        struct {
            uint64_t word;
            uint64_t bytes; /* of the sender's payload, if it can differ between members */
            unsigned char payload[WEFT_PACKET_BYTES];
        };
    };
};

#define WEFT_ACTIVE_POSTS_BYTES 1024
#define WEFT_STREAM_CALLS       7

struct weft_team_words {
    struct weft_word rounds[2][WEFT_SYNC_ROUNDS]; /* barrier, closing */
    struct weft_word arrived, released; /* crowded barriers use member 0's, far ones a leader's */
    struct weft_post post[2];           /* indexed by the parity of the post epoch */
    struct weft_word progress;          /* set by the owner as it completes steps of a call */
    struct weft_word packets_read;      /* the owner needs no packet up to this epoch any more */
    struct weft_word far_rows[2];       /* parts of far matrices; see ops/far_rows.h */
    _Atomic uint32_t lost_member;       /* used in WORLD only; see coll/lost_member.h */
    _Atomic uint32_t pinned, returning; /* used in SHARED only; see core/pin.h */
    _Atomic uint32_t lock_bell;         /* used in WORLD only; see core/lock.h */
    _Atomic uint32_t taken;             /* parts of far members' matrices taken by the owner */
    _Alignas(64) unsigned char active_posts[WEFT_ACTIVE_POSTS_BYTES]; /* coll/active.c */
    _Alignas(64) uint64_t
        stream_calls; /* of the owner, and the last ones' kinds: coll/same_way.h */
    _Atomic uint64_t stream_ways[WEFT_STREAM_CALLS];
    struct weft_packet packets[WEFT_PACKETS]; /* indexed by the packet epoch modulo WEFT_PACKETS */
    _Atomic long signals[];                   /* by PE, used in WORLD only; see coll/active.c */
};

/* The facts that one far member sends to this PE; a near member shows them in its own words. */
struct weft_inbox {
    struct weft_post post[2];
    struct weft_word progress;
};

/* The area for data that arrives from other hosts in a team's data-moving collectives. The packets
 * of a host's members arrive together at the first member of this host, where all its members read
 * them. They are stored in front of this struct, receive_bytes for each of the last WEFT_PACKETS
 * epochs, and announced by one word per epoch and host. Pushes to this member are announced by one
 * word per sender. */
#define WEFT_RECEIVE_BYTES 16384 /* the most for one epoch; small slots have less */
struct weft_receive {
    struct weft_word closing, closed; /* of the last barrier: counts near members; releases them */
    struct weft_word words[];         /* pushes, by sender; then packets, by epoch and host */
};

#define WEFT_TEAMS_MAX 256

/* A team: its members, its slot of the scratch window, and the epochs of its words. */
struct weft_team {
    int my_pe, npes; /* member number and number of members */
    struct weft_member_list member_list;
    int slot;            /* in the scratch window */
    uint32_t generation; /* of the handle */
    shmem_team_config_t config;

    bool far;                      /* some member is far */
    struct weft_levels *levels;    /* NULL unless some member is far */
    struct weft_team_words *words; /* this PE's words */
    struct weft_inbox *inbox;      /* if some member is far: by member, at the end of the slot */
    struct weft_receive *receive;  /* if some member is far: in front of the inbox */
    size_t receive_bytes;          /* room for the packets of one epoch */
    uint32_t barrier_epoch, closing_epoch, post_epoch;
    uint32_t packet_epoch; /* one per data-moving collective */
    uint32_t packets_read; /* by all members, as far as this member knows */
    uint32_t progress;     /* the steps announced so far; equal on all members */
    uint32_t far_parts;    /* prefetched parts of far members so far; equal on all near members */
    uint32_t
        pushes; /* an upper bound of the pushes from one member to another; equal on all members */
    uint32_t pushes_renewed; /* when the words of pushes were last set */
    size_t workspace_committed;
};

static inline int weft_team_world_pe(const struct weft_team *team, int member) {
    return weft_member_pe(&team->member_list, member);
}

/* Returns the member `distance` after this one in a ring of all members; 0 is this one. */
static inline int weft_team_member_after(const struct weft_team *team, int distance) {
    int member = team->my_pe + distance;
    return member >= team->npes ? member - team->npes : member;
}

static inline bool weft_team_member_is_far(const struct weft_team *team, int member) {
    return __builtin_expect(team->far, 0) && weft_is_far(weft_team_world_pe(team, member));
}

/* Returns the position of a near member among places at equal distances (weft/addr.h): its number
 * or, if the team has a list of PEs, its slot. */
static inline int weft_team_place(const struct weft_team *team, int member) {
    const int *pes = team->member_list.pes;
    return pes ? (int)weft_window_slot(&weft_windows.scratch.window, pes[member]) : member;
}

/* Returns the size of a team's slot in the scratch memory of a PE: words, then workspace, then, if
 * some PE of the job is far, the receive area and the inbox. */
static inline size_t weft_team_slot_bytes(void) {
    return weft_windows.scratch.slot_bytes / WEFT_TEAMS_MAX;
}

/* `world_pe` is near. */
static inline char *weft_team_slot_of(int slot, int world_pe) {
    const struct weft_window *scratch = &weft_windows.scratch.window;
    const char *own = (const char *)scratch->local + (size_t)slot * weft_team_slot_bytes();
    return weft_window_at(scratch, own, weft_window_slot(scratch, world_pe));
}

static inline struct weft_team_words *weft_team_words_of(const struct weft_team *team, int member) {
    return (struct weft_team_words *)weft_team_slot_of(team->slot,
                                                       weft_team_world_pe(team, member));
}

/* Returns the inbox entry for `member`, which is far. For a message to a far member, the entry of
 * this PE here names the entry there. */
static inline struct weft_inbox *weft_team_inbox(const struct weft_team *team, int member) {
    return &team->inbox[member];
}

/* Returns the receive area of a near member. */
static inline struct weft_receive *weft_team_receive(const struct weft_team *team, int member) {
    ptrdiff_t offset = (char *)team->receive - (char *)team->words;
    return (struct weft_receive *)((char *)weft_team_words_of(team, member) + offset);
}

/* Returns where packets of the current epoch are stored. */
static inline unsigned char *weft_receive_room(const struct weft_team *team,
                                               struct weft_receive *receive) {
    size_t behind = WEFT_PACKETS - team->packet_epoch % WEFT_PACKETS;
    return (unsigned char *)receive - behind * team->receive_bytes;
}

/* Return the word that announces pushes from `from`, and the word that announces the packets of a
 * host. */
static inline struct weft_word *weft_receive_pushed(struct weft_receive *receive, int from) {
    return &receive->words[from];
}
static inline struct weft_word *weft_receive_packets(const struct weft_team *team,
                                                     struct weft_receive *receive, int host) {
    uint32_t slot = 1 + team->packet_epoch % WEFT_PACKETS;
    return &receive->words[slot * (uint32_t)team->npes + (uint32_t)host];
}

/* Blocks until all members have entered. Stores before the barrier are visible after it; messages
 * to far members only after a quiet. */
void weft_sync_barrier(struct weft_team *team);

/* A barrier of the members that are near to this one, in a team with far members. All members of
 * the team must call it. */
void weft_sync_barrier_near(struct weft_team *team);

/* The last barrier of a team. After it no member reads another's words, so the slot can be reused.
 * It has its own words, so that a PE which returns from main is not counted in a barrier that the
 * others are in. */
void weft_sync_close(struct weft_team *team);

/* Returns whether weft_sync_close waits on this word of the team. */
bool weft_sync_closes(const struct weft_team *team, const struct weft_word *word);

/* Shows `bytes` (<= WEFT_POST_BYTES) to the team. Opens a round: before its next post every member
 * reads all posts of this round with weft_sync_peek. Collective. */
void weft_sync_post(struct weft_team *team, const void *payload, size_t bytes);

/* Waits until `member` has posted in this round. Returns its payload, valid until this PE's next
 * post. */
const void *weft_sync_peek(struct weft_team *team, int member);

/* As weft_sync_peek, but returns NULL after a few turns. The caller owns the waiter; its wait may
 * go on over several calls. */
const void *weft_sync_peek_briefly(struct weft_team *team, int member, struct weft_waiter *waiter);

/* Returns whether `member` has posted in this round. */
int weft_sync_posted(struct weft_team *team, int member);

/* Returns the smallest `mine` of all members. Collective; a round of posts. */
uint64_t weft_sync_min(struct weft_team *team, uint64_t mine);

/* Progress within one collective call: every member announces the same number of steps per call.
 *
 *   uint32_t begin = weft_progress_begin(team, nsteps);   on entry, on every member
 *   weft_progress_set(team, begin + k)                    this member's first k steps are done
 *   weft_progress_wait(team, member, begin + k)           waits for a member's first k steps
 *
 * All members must have finished the steps of one call (a barrier, say) before the next call
 * begins. */
uint32_t weft_progress_begin(struct weft_team *team, uint32_t nsteps);
void weft_progress_set(struct weft_team *team, uint32_t value);
void weft_progress_wait(struct weft_team *team, int member, uint32_t value);

/* The two halves of weft_progress_set: for near members, and for far members, to whom fewer steps
 * may be announced. */
void weft_progress_set_near(struct weft_team *team, uint32_t value);
void weft_progress_set_far(struct weft_team *team, uint32_t value);

/* Returns whether the member's steps up to `value` are done. */
bool weft_progress_reached(struct weft_team *team, int member, uint32_t value);

#endif
