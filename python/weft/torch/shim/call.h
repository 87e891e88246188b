/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the library that may wait, or need its locks. When a PE dies, Python's extension leaves
 * them in their middle, by longjmp, and makes none any more: each returns an error then.
 *
 * The jump passes over the frames in between without a destructor, so a lambda given here holds
 * nothing: neither a lock, nor a vector, nor what takes Python's lock back. Those are around it. */
#pragma once

#include <type_traits>

namespace weft {

/* pyweft_session_guard, pyweft_session_guard_limited and pyweft_error_text of the extension. */
using Guard = int (*)(int (*call)(void *), void *context);
using ErrorText = const char *(*)(int error);
inline Guard session_guard, session_guard_limited;
inline ErrorText error_text;

/* What call() returns. limited: it is a wait to which the program has set a limit. */
template <typename Call> int guarded(Call call, bool limited = false) {
    static_assert(std::is_trivially_destructible_v<Call>, "nobody would destroy it");
    Guard guard = limited ? session_guard_limited : session_guard;
    return guard([](void *at) noexcept { return (*static_cast<Call *>(at))(); }, &call);
}

} // namespace weft
