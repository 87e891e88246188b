/* SPDX-License-Identifier: BSD-3-Clause */
#include "await.h"
#include <stdio.h>
#include "session.h"

enum { HURRIED_TURNS = 4000, TURNS = 400 };

/* Returns whether the condition was met within some turns. */
static bool poll(bool (*holds)(void *), void *condition, shmemx_wait_t *wait, bool hurry) {
    for (int turns = hurry ? HURRIED_TURNS : TURNS; turns > 0 && pyweft_session.running; turns--) {
        if (holds(condition))
            return true;
        if (!hurry)
            shmemx_wait_turn(wait);
    }
    return false;
}

static bool look(bool (*holds)(void *), void *condition, shmemx_wait_t *wait, bool hurry) {
    int met;
    PYWEFT_WITHOUT_GIL(met, poll(holds, condition, wait, hurry));
    return met == true;
}

static bool await(bool (*holds)(void *), void *condition, shmemx_wait_t *wait, const char *call) {
    for (bool hurry = true; !look(holds, condition, wait, hurry); hurry = false)
        if (PyErr_CheckSignals() < 0 || !pyweft_session_check(call))
            return false;
    return true;
}

bool pyweft_await(const char *call, bool (*holds)(void *), void *condition) {
    char name[48];
    shmemx_wait_t wait = {.call = name};
    snprintf(name, sizeof name, "weft.%s", call);
    bool met = await(holds, condition, &wait, call);
    shmemx_wait_end(&wait);
    return met;
}
