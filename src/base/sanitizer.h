/* SPDX-License-Identifier: BSD-3-Clause */
/* Defines WEFT_THREAD_SANITIZER under the thread sanitizer, which gcc and clang announce
 * differently. */
#ifndef WEFT_BASE_SANITIZER_H
#define WEFT_BASE_SANITIZER_H

#if defined(__SANITIZE_THREAD__)
#define WEFT_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_THREAD_SANITIZER
#endif
#endif

#endif
