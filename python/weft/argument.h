/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsing the arguments of a call: assigns them to names, and converts them to C values. */
#ifndef PYWEFT_ARGUMENT_H
#define PYWEFT_ARGUMENT_H

#include "module.h"

#define PYWEFT_ARGUMENTS_MAX 12

struct pyweft_signature {
    const char *call;
    int required;   /* this many are required */
    int positional; /* this many may be given without their names */
    const char *names[PYWEFT_ARGUMENTS_MAX + 1];
};

/* Assigns positional and keyword arguments to the names of the signature: given[i] is the argument
 * of names[i], a borrowed reference, or NULL if it was not given. Returns false with TypeError if
 * an argument is missing, unknown or given twice, or if there are too many. The arguments that
 * could be assigned are in `given` even then, so that a collective call can find its team and
 * inform the other members. */
bool pyweft_arguments_sort(const struct pyweft_signature *signature, PyObject *const *args,
                           Py_ssize_t nargs, PyObject *names, PyObject **given);

/* pyweft_arguments_sort for a call that needs a job: returns false with RuntimeError if none is
 * running. */
bool pyweft_arguments_in_job(const struct pyweft_signature *signature, PyObject *const *args,
                             Py_ssize_t nargs, PyObject *names, PyObject **given);

/* Each of these functions converts one argument, and leaves *value unchanged if object is NULL (not
 * given). They return false with TypeError for a wrong type, or ValueError for a value that is out
 * of range; the text names the argument. */
bool pyweft_argument_int(const char *call, const char *name, PyObject *object, int *value);
bool pyweft_argument_size(const char *call, const char *name, PyObject *object, size_t *value);
bool pyweft_argument_uint64(const char *call, const char *name, PyObject *object, uint64_t *value);

/* Sets *choice to the index of the string in `choices`, which ends with NULL. */
bool pyweft_argument_choice(const char *call, const char *name, PyObject *object,
                            const char *const *choices, int *choice);

/* Accepts "host" or "device". */
bool pyweft_argument_space(const char *call, PyObject *object, shmemx_space_t *space);

/* Accepts the number of a PE of the job. */
bool pyweft_argument_pe(const char *call, PyObject *object, int *pe);

/* Returns a list of PE numbers, to be freed with PyMem_Free, or NULL with an exception. The library
 * checks whether the list makes sense. */
int *pyweft_argument_pes(const char *call, PyObject *object, int *count);

/* Returns the `count` numbers of a sequence, to be freed with PyMem_Free, or NULL with an
 * exception. */
size_t *pyweft_argument_sizes(const char *call, const char *name, PyObject *object, size_t count);

/* Sets *stream. None and NULL mean WEFT_STREAM_HOST, that is the calling thread. Otherwise the
 * object is a cudaStream_t as a number, or has one: torch's streams as cuda_stream, cuda.core's as
 * __cuda_stream__, cupy's as ptr. */
bool pyweft_argument_stream(const char *call, PyObject *object, weft_stream *stream);

#endif
