/* SPDX-License-Identifier: BSD-3-Clause */
#include "await.h"
#include <time.h>
#include "session.h"

static bool look(bool (*holds)(const void *), const void *condition, bool hurry) {
    const struct timespec pause = {.tv_nsec = 50000};
    bool met = false;
    WEFT_BEGIN_UNLOCKED;
    for (int turns = hurry ? 4000 : 400; turns > 0 && weft_session.running; turns--) {
        if ((met = holds(condition)))
            break;
        if (!hurry)
            nanosleep(&pause, NULL);
    }
    WEFT_END_UNLOCKED;
    return met;
}

bool weft_await(const char *call, bool (*holds)(const void *), const void *condition) {
    bool hurry = true;
    if (!holds(condition))
        for (; !look(holds, condition, hurry); hurry = false)
            if (PyErr_CheckSignals() < 0 || !weft_session_check(call))
                return false;
    return true;
}
