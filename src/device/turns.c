/* SPDX-License-Identifier: BSD-3-Clause */
/* The stream of each team's last call, and an event after that call.
 *
 * The event is recorded after every call, rather than on the last call's stream when another stream
 * is used: by then the program may have destroyed that stream although the call is unfinished, and
 * its handle may belong to another stream. The numbers of streams are never reused. The default
 * stream is never destroyed, so calls on it need no event until another stream is used. */
#include "device/device.h"

#define DEFAULT_STREAM UINT64_MAX /* in place of its number */

/* Indexed by the team's slot. Only one thread of a PE uses a team at a time. */
static struct turn {
    bool taken;          /* there has been a call that was not captured */
    bool records;        /* the current call needs an event after it */
    bool captured;       /* a graph may contain calls of the team */
    uint64_t stream;     /* number of the last call's stream */
    weft_cu_event event; /* after the last call, unless that is on the default stream; NULL until it
                            is needed */
} turns[WEFT_TEAMS_MAX];

static bool is_default(weft_cu_stream stream) {
    return !stream || stream == WEFT_CU_STREAM_LEGACY;
}

static int event_record(struct turn *turn, weft_cu_stream stream) {
    int error = 0;
    if (!turn->event)
        error = weft_cuda.cuEventCreate(&turn->event, WEFT_CU_EVENT_NO_TIMING);
    return error ? error : weft_cuda.cuEventRecord(turn->event, stream);
}

static int last_call_await(struct turn *turn, weft_cu_stream stream) {
    int error = turn->stream == DEFAULT_STREAM ? event_record(turn, NULL) : 0;
    if (error == 0)
        error = weft_cuda.cuStreamWaitEvent(stream, turn->event, 0);
    return weft_cuda_check(error, "a wait for the team's last call, which is on another stream");
}

static int turn_take(struct turn *turn, weft_cu_stream stream) {
    uint64_t number = DEFAULT_STREAM;
    int error = 0;
    turn->records = false;
    if (turn->stream == DEFAULT_STREAM && is_default(stream))
        return 0;
    if (!is_default(stream)) {
        if (weft_gpu_capturing(stream)) {
            turn->captured = true;
            return 0;
        }
        error = weft_cuda_check(weft_cuda.cuStreamGetId(stream, &number), "cuStreamGetId");
    }
    if (error == 0 && turn->taken && turn->stream != number)
        error = last_call_await(turn, stream);
    if (error)
        return error;
    turn->taken = true;
    turn->records = !is_default(stream);
    turn->stream = number;
    return 0;
}

int weft_device_turn_begin(const struct weft_team *team, weft_cu_stream stream) {
    int error = turn_take(&turns[team->slot], stream);
    if (error == 0 && team->npes > 1 && weft_job.checked)
        error = weft_gpu_mark_call(weft_device_call(team), true, stream);
    return error;
}

int weft_device_turn_end(const struct weft_team *team, weft_cu_stream stream) {
    struct turn *turn = &turns[team->slot];
    int error = 0;
    if (team->npes > 1 && weft_job.checked)
        error = weft_gpu_mark_call(weft_device_call(team), false, stream);
    if (error == 0 && turn->records)
        error = weft_cuda_check(event_record(turn, stream), "cuEventRecord");
    return error;
}

/* Waits for the event, which follows the last call, which ran after all others. */
static int last_call_finish(struct turn *turn) {
    int error = turn->stream == DEFAULT_STREAM ? event_record(turn, NULL) : 0;
    return error ? error : weft_cuda.cuEventSynchronize(turn->event);
}

bool weft_device_turns_finish(const struct weft_team *team) {
    struct turn *turn = &turns[team->slot];
    if (!turn->taken || weft_job_aborted())
        return !turn->taken;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int error = last_call_finish(turn);
    weft_gpu_leave(scope);
    return error == WEFT_CU_SUCCESS;
}

bool weft_device_turns_captured(const struct weft_team *team) {
    return turns[team->slot].captured;
}

static void turn_forget(struct turn *turn) {
    if (turn->event)
        weft_cuda.cuEventDestroy(turn->event);
    *turn = (struct turn){.taken = false};
}

void weft_device_turns_end(const struct weft_team *team) {
    struct turn *turn = &turns[team->slot];
    if (!turn->event) {
        *turn = (struct turn){.taken = false};
        return;
    }
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    turn_forget(turn);
    weft_gpu_leave(scope);
}

void weft_device_turns_close(void) {
    for (int slot = 0; slot < WEFT_TEAMS_MAX; slot++)
        turn_forget(&turns[slot]);
}
