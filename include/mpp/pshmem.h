/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiling interface for who includes mpp/shmem.h. */
#include <pshmem.h>
