/* SPDX-License-Identifier: BSD-3-Clause */
/* Declares to shmem4py which routines this library has. shmem4py knows the headers of five other
 * libraries. For an unknown library without these macros it assumes OpenSHMEM 1.3 and defines the
 * newer routines itself, which conflicts with our prototypes. shmem.h includes this file in modules
 * that cffi generates, such as shmem4py's. */
#ifndef WEFT_SHMEM4PY_H
#define WEFT_SHMEM4PY_H

#define PySHMEM_HAVE_shmem_malloc_with_hints 1
#define PySHMEM_HAVE_shmem_team_t            1
#define PySHMEM_HAVE_SHMEM_CTX_INVALID       1
#define PySHMEM_HAVE_shmem_amo_nbi           1
#define PySHMEM_HAVE_shmem_put_signal        1
#define PySHMEM_HAVE_shmem_signal_fetch      1
#define PySHMEM_HAVE_shmem_signal_wait_until 1
#define PySHMEM_HAVE_shmem_broadcast         1
#define PySHMEM_HAVE_shmem_collect           1
#define PySHMEM_HAVE_shmem_fcollect          1
#define PySHMEM_HAVE_shmem_alltoall          1
#define PySHMEM_HAVE_shmem_alltoalls         1
#define PySHMEM_HAVE_shmem_broadcastmem      1
#define PySHMEM_HAVE_shmem_collectmem        1
#define PySHMEM_HAVE_shmem_fcollectmem       1
#define PySHMEM_HAVE_shmem_alltoallmem       1
#define PySHMEM_HAVE_shmem_alltoallsmem      1
#define PySHMEM_HAVE_shmem_reduce            1
#define PySHMEM_HAVE_shmem_wait_test_many    1
#define PySHMEM_HAVE_shmem_pcontrol          1

#endif
