/* SPDX-License-Identifier: BSD-3-Clause */
/* A number that comes early waits in a ring of places, and one that is applied makes those behind
 * it follow. Acknowledgments say how far a stream has come, so a later one stands for all before.
 */
#include "core/link.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/machine.h"
#include "core/bundle.h"
#include "core/job.h"

enum {
    BUNDLE_BYTES = WEFT_ENGINE_LETTER_MIN, /* with its head: every engine takes so many */
    YOUNG_NS = 20000,                      /* is a bundle until then */
    TELL_LETTERS = WEFT_LINK_LETTERS / 4,  /* are acknowledged without being asked */
    TELL_BYTES = WEFT_LINK_BYTES / 4,
    PATIENCE_MS = 2000, /* for the news that a PE is dead */
};

uint32_t weft_letter_first = UINT32_MAX - 511;
struct weft_links weft_links;
_Atomic uint32_t weft_links_unfinished;
_Atomic uint32_t weft_links_bundles;
_Atomic uint32_t weft_links_put_off;

void weft_link_fail(const char *format, ...) {
    va_list arguments;
    if (weft_links.failure[0])
        return;
    va_start(arguments, format);
    vsnprintf(weft_links.failure, sizeof weft_links.failure, format, arguments);
    va_end(arguments);
}

void weft_link_fail_closed(void) {
    weft_link_fail("this program has closed descriptors by which letters go to far PEs: close only "
                   "descriptors that the program has opened (engine '%s')",
                   weft_links.engine->name);
}

bool weft_letter_refuse(int from, const char *format, ...) {
    char text[sizeof weft_links.failure - 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    weft_link_fail("a letter of PE %d is damaged: %s (engine '%s')", from, text,
                   weft_links.engine->name);
    return false;
}

/* --- Links ----------------------------------------------------------------------------------- */

static struct weft_link *link_make(int pe) {
    struct weft_link *link = calloc(1, sizeof *link);
    if (!link) {
        weft_link_fail("no memory for letters to PE %d", pe);
        return NULL;
    }
    link->pe = pe;
    link->sent = link->acknowledged = link->written = link->asked = weft_letter_first - 1;
    link->watched = link->acknowledged;
    link->applied = link->told = link->wanted = weft_letter_first - 1;
    link->queue_end = &link->queue;
    return link;
}

struct weft_link *weft_link_of(int pe) {
    struct weft_link **link = &weft_links.of[pe];
    if (!*link)
        *link = link_make(pe);
    return *link;
}

static void link_make_due(struct weft_link *link) {
    if (link->due)
        return;
    link->due = true;
    link->next_due = weft_links.due;
    weft_links.due = link;
}

/* Its PE is dead, which the launcher tells, or cannot be reached. Of a want on this side nobody
 * tells. */
static void link_die(struct weft_link *link, int error) {
    if (error == -EMFILE || error == -ENFILE)
        weft_link_fail("no more connections to PEs of other hosts, such as PE %d: %s%s, or set "
                       "WEFT_CARRIERS=host",
                       link->pe, strerror(-error), weft_remedy(error).text);
    if (error == -EAFNOSUPPORT)
        weft_link_fail("PE %d%s has an address that this host's own cannot reach (one is of IPv4 "
                       "and one of IPv6, or only one is link-local): name all hosts by addresses "
                       "of one kind in --hosts, or, without oshrun, by WEFT_INTERFACE",
                       link->pe, weft_boot_on(link->pe).text);
    if (error == -EBADF || error == -ENOTSOCK)
        weft_link_fail_closed();
    link->error = error;
    link->dead_ns = weft_clock_ns();
    weft_links.dead = link;
}

void weft_link_give_up(int pe, int error) {
    struct weft_link *link = weft_link_of(pe);
    if (link && !link->error)
        link_die(link, error);
}

void weft_links_look_at_dead(void) {
    const struct weft_link *link = weft_links.dead;
    if (link && weft_boot_nhosts() == 1 &&
        weft_clock_ns() - link->dead_ns > PATIENCE_MS * WEFT_NS_PER_MS)
        weft_link_fail(
            "PE %d cannot be reached, though nobody has noticed that it died: %s (engine '%s')",
            link->pe, strerror(-link->error), weft_links.engine->name);
}

static bool link_is_connected(struct weft_link *link) {
    size_t bytes;
    if (link->engine)
        return true;
    const void *address = weft_links.user->address(link->pe, &bytes);
    int error = weft_links.engine->connect(weft_links.end, address, bytes, &link->engine);
    if (error == 0)
        return true;
    link->engine = NULL;
    link_die(link, error);
    return false;
}

static void links_set_unfinished(uint32_t links) {
    atomic_store(&weft_links_unfinished, links);
    weft_job_set_unfinished(links != 0);
}

void weft_link_count(struct weft_link *link) {
    bool unfinished = link->written != link->acknowledged || link->requested != link->answered;
    if (unfinished != link->unfinished)
        links_set_unfinished(weft_links_unfinished + (unfinished ? 1 : UINT32_MAX));
    link->unfinished = unfinished;
}

/* A quarter of what may be under way, so that whoever waits for room has it acknowledged. */
size_t weft_link_room(void) {
    size_t most = weft_links.engine->letter_bytes;
    return (most < TELL_BYTES ? most : TELL_BYTES) - sizeof(struct head);
}

/* --- Sending --------------------------------------------------------------------------------- */

/* Hands a letter to the engine, with the head as it has to be now: 0 or -EAGAIN, also of a dead
 * link. Whatever goes there acknowledges what has come from there. */
static int link_carry(struct weft_link *link, struct head *head, const struct iovec *text,
                      int nparts) {
    if (link->error || !link_is_connected(link))
        return -EAGAIN;
    struct iovec parts[WEFT_ENGINE_LETTER_PARTS] = {{head, sizeof *head}};
    for (int i = 0; i < nparts; i++)
        parts[i + 1] = text[i];
    head->heard = link->applied;
    head->from = (uint32_t)weft_job.pe;
    int result = weft_links.engine->letter(link->engine, parts, nparts + 1);
    if (result == 0) {
        link->told = link->applied;
        link->told_bytes = 0;
        if (weft_epoch_reached(link->told, link->wanted))
            link->wanted = link->told;
    } else if (result != -EAGAIN) {
        link_die(link, result);
    }
    return result ? -EAGAIN : 0;
}

/* Counts bytes of the letter that was numbered last. */
static void link_weigh(struct weft_link *link, size_t bytes) {
    link->sent_bytes += (uint32_t)bytes;
    link->bytes_until[link->sent % WEFT_LINK_RING] = link->sent_bytes;
}

/* Counts one that has been sent, or will be. */
static void link_number(struct weft_link *link, size_t bytes) {
    link->sent++;
    link_weigh(link, bytes);
    weft_link_count(link);
}

/* The limits: of letters, and of the answers that the peer may have to keep for want of room. */
static bool link_has_room(const struct weft_link *link, size_t bytes,
                          const struct weft_letter_request *request) {
    uint32_t acknowledged = link->acknowledged;
    uint32_t under_way = link->sent_bytes - link->bytes_until[acknowledged % WEFT_LINK_RING];
    if (link->sent - acknowledged >= WEFT_LINK_LETTERS ||
        (under_way && under_way + bytes > WEFT_LINK_BYTES))
        return false;
    if (!request)
        return true;
    uint32_t open = link->requested - link->answered;
    size_t more = request->block_bytes * request->nblocks;
    return open < WEFT_LINK_REQUESTS && (open == 0 || link->answer_bytes + more <= WEFT_LINK_BYTES);
}

/* --- Letters that are kept ------------------------------------------------------------------- */

static void bundle_close(struct weft_link *link) {
    atomic_fetch_sub(&weft_links_bundles, link->bundle != NULL);
    link->bundle = NULL;
}

static void link_keep(struct weft_link *link, struct weft_letter_kept *kept) {
    bundle_close(link);
    *link->queue_end = kept;
    link->queue_end = &kept->next;
    link_make_due(link);
}

/* Keeps a letter that has its number until the engine has room. */
static void link_queue(struct weft_link *link, const struct head *head, const struct iovec *text,
                       int nparts) {
    size_t bytes = sizeof *head + weft_text_bytes(text, nparts);
    struct weft_letter_kept *kept = malloc(sizeof *kept + bytes);
    if (!kept) {
        weft_link_fail("no memory for an answer of %zu bytes to PE %d", bytes, link->pe);
        return;
    }
    *kept = (struct weft_letter_kept){.bytes = bytes};
    memcpy(kept->letter, head, sizeof *head);
    unsigned char *at = kept->letter + sizeof *head;
    for (int i = 0; i < nparts; at += text[i++].iov_len)
        memcpy(at, text[i].iov_base, text[i].iov_len);
    link_keep(link, kept);
}

bool weft_link_send_kept(struct weft_link *link) {
    struct weft_letter_kept *kept;
    while ((kept = link->queue)) {
        struct head head;
        memcpy(&head, kept->letter, sizeof head);
        struct iovec text = {kept->letter + sizeof head, kept->bytes - sizeof head};
        if (link_carry(link, &head, &text, 1) != 0)
            return false;
        if (kept == link->bundle)
            bundle_close(link);
        link->queue = kept->next;
        if (!link->queue)
            link->queue_end = &link->queue;
        free(kept);
    }
    return true;
}

/* --- Bundles --------------------------------------------------------------------------------- */

bool weft_link_open_bundle(struct weft_link *link, uint64_t now_ns) {
    struct head head = {.number = link->sent + 1, .sort = BUNDLE};
    if (!weft_link_send_kept(link) || !link_has_room(link, BUNDLE_BYTES, NULL))
        return false;
    struct weft_letter_kept *bundle = malloc(sizeof *bundle + BUNDLE_BYTES);
    if (!bundle) {
        weft_link_fail("no memory for letters to PE %d", link->pe);
        return false;
    }
    *bundle = (struct weft_letter_kept){.bytes = sizeof head};
    memcpy(bundle->letter, &head, sizeof head);
    link_number(link, sizeof head);
    link_keep(link, bundle);
    link->bundle = bundle;
    link->bundle_ns = now_ns;
    atomic_fetch_add(&weft_links_bundles, 1);
    return true;
}

bool weft_link_add(struct weft_link *link, const struct weft_letter *letter) {
    struct weft_letter_kept *bundle = link->bundle;
    size_t bytes = weft_bundle_part_bytes(weft_text_bytes(letter->text, letter->nparts));
    if (!bundle || bundle->bytes + bytes > BUNDLE_BYTES || !link_has_room(link, bytes, NULL))
        return false;
    weft_bundle_add(bundle->letter + bundle->bytes, letter->text, letter->nparts);
    bundle->bytes += bytes;
    link_weigh(link, bytes);
    if (!letter->by_the_way)
        link->written = link->sent;
    weft_link_count(link);
    return true;
}

bool weft_link_try_send(struct weft_link *link, const struct weft_letter *letter) {
    const struct weft_letter_request *request = letter->request;
    size_t bytes = sizeof(struct head) + weft_text_bytes(letter->text, letter->nparts);
    struct head head = {.number = link->sent + 1, .sort = LETTER};
    head.asks = link->quiet_follows && letter->may_wait && link->acknowledged == link->sent;
    if (!weft_link_send_kept(link) || !link_has_room(link, bytes, request) ||
        link_carry(link, &head, letter->text, letter->nparts) != 0)
        return false;
    link->quiet_follows = false;
    if (head.asks)
        link->asked = head.number;
    if (!letter->by_the_way)
        link->written = head.number;
    if (request) {
        link->requests[link->requested++ % WEFT_LINK_REQUESTS] = *request;
        link->answer_bytes += request->block_bytes * request->nblocks;
    }
    link_number(link, bytes);
    return true;
}

/* The letter that is answered counts as applied from here on, so that the answer acknowledges it.
 */
void weft_letter_answer(int pe, const struct iovec *text, int nparts) {
    struct weft_link *link = weft_link_of(pe);
    struct head head = {.number = link->sent + 1, .sort = ANSWER};
    if (link->sent - link->acknowledged >= WEFT_LINK_RING - 1) {
        weft_letter_refuse(pe, "it asks for more than may be under way");
        return;
    }
    link->applied = link->applying;
    if (link->queue || link_carry(link, &head, text, nparts) != 0)
        link_queue(link, &head, text, nparts);
    link_number(link, sizeof head + weft_text_bytes(text, nparts));
}

/* --- What is due ----------------------------------------------------------------------------- */

void weft_link_ask(struct weft_link *link, bool all) {
    uint32_t goal = all ? link->sent : link->written;
    link->quiet_follows = goal - link->acknowledged == 1;
    if (weft_epoch_reached(link->asked, goal))
        return;
    link->asked = goal;
    link->must_ask = true;
    link_make_due(link);
}

/* Whether the peer waits for an acknowledgment, or may soon. */
static bool link_must_tell(const struct weft_link *link) {
    uint32_t untold = link->applied - link->told;
    bool asked = link->wanted != link->told && weft_epoch_reached(link->applied, link->wanted);
    return asked || untold >= TELL_LETTERS || link->told_bytes >= TELL_BYTES;
}

void weft_link_tell(struct weft_link *link) {
    if (link_must_tell(link))
        link_make_due(link);
}

/* Whether all that is kept is a bundle that had better wait for more. */
static bool link_lingers(const struct weft_link *link) {
    return link->bundle && link->queue == link->bundle && !link->must_ask &&
           weft_clock_ns() - link->bundle_ns < YOUNG_NS;
}

/* Whether all of it has gone. */
static bool link_send_due(struct weft_link *link, bool linger) {
    bool waits = linger && link_lingers(link);
    if (!waits && !weft_link_send_kept(link))
        return false;
    if (!link->must_ask && !link_must_tell(link))
        return !waits;
    struct head head = {.number = link->asked, .sort = CONTROL, .asks = link->must_ask};
    if (link_carry(link, &head, NULL, 0) != 0)
        return false;
    link->must_ask = false;
    return !waits;
}

void weft_links_send_due(bool linger) {
    struct weft_link *link = weft_links.due, *next;
    weft_links.due = NULL;
    for (; link; link = next) {
        next = link->next_due;
        link->due = false;
        if (!link_send_due(link, linger))
            link_make_due(link);
    }
}

/* --- The end --------------------------------------------------------------------------------- */

static void link_free(struct weft_link *link) {
    struct weft_letter_kept *next;
    for (; link->queue; link->queue = next) {
        next = link->queue->next;
        free(link->queue);
    }
    for (int i = 0; i < WEFT_LINK_RING; i++)
        free(link->early[i]);
    free(link);
}

void weft_links_free(void) {
    for (int pe = 0; weft_links.of && pe < weft_job.npes; pe++)
        if (weft_links.of[pe])
            link_free(weft_links.of[pe]);
    free(weft_links.of);
    weft_links = (struct weft_links){0};
    links_set_unfinished(0);
    atomic_store(&weft_links_bundles, 0);
    atomic_store(&weft_links_put_off, 0);
}
