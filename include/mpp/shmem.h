/* SPDX-License-Identifier: BSD-3-Clause */
/* The name that programs before OpenSHMEM 1.1 include. */
#include <shmem.h>
