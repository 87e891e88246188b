/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the library that may block or need its locks. When a PE dies, Python's extension
 * abandons them by longjmp, and makes no further calls: each returns an error then.
 *
 * The jump skips the destructors of the frames in between, so a lambda passed here must own
 * nothing: no lock, no vector, and no object that takes Python's GIL. Such objects belong around
 * the call. */
#pragma once

#include <type_traits>

namespace weft {

/* pyweft_session_guard, pyweft_session_guard_limited and pyweft_error_text of the extension. */
using Guard = int (*)(int (*call)(void *), void *context);
using ErrorText = const char *(*)(int error);
inline Guard session_guard, session_guard_limited;
inline ErrorText error_text;

/* Returns the result of call(). limited: it is a wait with a timeout set by the program. */
template <typename Call> int guarded(Call call, bool limited = false) {
    static_assert(std::is_trivially_destructible_v<Call>, "a longjmp skips its destructor");
    Guard guard = limited ? session_guard_limited : session_guard;
    return guard([](void *at) noexcept { return (*static_cast<Call *>(at))(); }, &call);
}

} // namespace weft
