/* SPDX-License-Identifier: BSD-3-Clause */
/* Integer types through which an object of any type of their size may be loaded and stored. */
#ifndef WEFT_BASE_ALIAS_H
#define WEFT_BASE_ALIAS_H

#include <stdint.h>

typedef uint8_t __attribute__((may_alias)) weft_alias8;
typedef uint16_t __attribute__((may_alias)) weft_alias16;
typedef uint32_t __attribute__((may_alias)) weft_alias32;
typedef uint64_t __attribute__((may_alias)) weft_alias64;

#endif
