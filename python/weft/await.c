/* SPDX-License-Identifier: BSD-3-Clause */
#include "await.h"
#include <time.h>
#include "session.h"

static bool poll(bool (*holds)(void *), void *condition, bool hurry) {
    const struct timespec pause = {.tv_nsec = 50000};
    for (int turns = hurry ? 4000 : 400; turns > 0 && weft_session.running; turns--) {
        if (holds(condition))
            return true;
        if (!hurry)
            nanosleep(&pause, NULL);
    }
    return false;
}

static bool look(bool (*holds)(void *), void *condition, bool hurry) {
    int met;
    WEFT_UNLOCKED(met, poll(holds, condition, hurry));
    return met == true;
}

bool weft_await(const char *call, bool (*holds)(void *), void *condition) {
    for (bool hurry = true; !look(holds, condition, hurry); hurry = false)
        if (PyErr_CheckSignals() < 0 || !weft_session_check(call))
            return false;
    return true;
}
