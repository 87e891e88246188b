/* SPDX-License-Identifier: BSD-3-Clause */
/* Weft's version, for the preprocessor: `#if WEFT_VERSION >= 100` compares versions, and `#ifdef
 * WEFT_VERSION` distinguishes Weft from other OpenSHMEM libraries. The Makefile reads the three
 * numbers from this file. */
#ifndef WEFT_VERSION_H
#define WEFT_VERSION_H

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

/* One number to compare: 0.1.0 is 100, 1.2.3 would be 10203. */
#define WEFT_VERSION (WEFT_VERSION_MAJOR * 10000 + WEFT_VERSION_MINOR * 100 + WEFT_VERSION_PATCH)

#define WEFT_VERSION_QUOTE(number) #number
#define WEFT_VERSION_TEXT(major, minor, patch) \
    WEFT_VERSION_QUOTE(major) "." WEFT_VERSION_QUOTE(minor) "." WEFT_VERSION_QUOTE(patch)
#define WEFT_VERSION_STRING \
    WEFT_VERSION_TEXT(WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH)

#endif
