/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of a call: which was given for which name, and plain values out of them. */
#ifndef PYWEFT_ARGUMENT_H
#define PYWEFT_ARGUMENT_H

#include "module.h"

#define PYWEFT_ARGUMENTS_MAX 12

struct pyweft_signature {
    const char *call;
    int required;   /* the first so many must be given */
    int positional; /* the first so many may be given without their names */
    const char *names[PYWEFT_ARGUMENTS_MAX + 1];
};

/* given[i] is the argument of names[i], borrowed, or NULL where there is none. False with TypeError
 * if one is missing, unknown or too many; those that have a place are in `given` all the same, so
 * that the call may find out whom else it is about. */
bool pyweft_arguments_sort(const struct pyweft_signature *signature, PyObject *const *args,
                           Py_ssize_t nargs, PyObject *names, PyObject **given);

/* The same of a call that needs a job: False with RuntimeError unless one runs. */
bool pyweft_arguments_in_job(const struct pyweft_signature *signature, PyObject *const *args,
                             Py_ssize_t nargs, PyObject *names, PyObject **given);

/* Values; `value` keeps what it has where object is NULL. TypeError for another type, ValueError
 * for one that is out of range, naming the argument. */
bool pyweft_argument_int(const char *call, const char *name, PyObject *object, int *value);
bool pyweft_argument_size(const char *call, const char *name, PyObject *object, size_t *value);
bool pyweft_argument_uint64(const char *call, const char *name, PyObject *object, uint64_t *value);

/* One of the texts, as its place in the table, which NULL ends. */
bool pyweft_argument_choice(const char *call, const char *name, PyObject *object,
                            const char *const *choices, int *choice);

/* "host" or "device". */
bool pyweft_argument_space(const char *call, PyObject *object, shmemx_space_t *space);

/* A PE of the job. */
bool pyweft_argument_pe(const char *call, PyObject *object, int *pe);

/* A sequence of numbers of PEs, to be freed by PyMem_Free; NULL with an exception. Whether they are
 * a proper list, the library looks at. */
int *pyweft_argument_pes(const char *call, PyObject *object, int *count);

/* `count` numbers of a sequence, at most, for arrays of sizes: NULL with an exception. */
size_t *pyweft_argument_sizes(const char *call, const char *name, PyObject *object, size_t count);

/* A stream: None (or NULL) is WEFT_STREAM_HOST, the calling thread. Else a number as CUDA's
 * cudaStream_t, or an object that has one: torch's (cuda_stream), cuda.core's (__cuda_stream__),
 * cupy's (ptr). */
bool pyweft_argument_stream(const char *call, PyObject *object, weft_stream *stream);

#endif
