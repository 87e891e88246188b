/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries: the memory that can be accessed, the network, and the library's name and version. */
#include "argument.h"
#include "array.h"
#include "error.h"
#include "session.h"
#include "team.h"

PYWEFT_FUNCTION(pe_accessible) {
    static const struct pyweft_signature signature = {"pe_accessible", 1, 1, {"pe"}};
    PyObject *in[1];
    int pe;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_int(signature.call, "pe", in[0], &pe))
        return NULL;
    return PyBool_FromLong(shmem_pe_accessible(pe));
}

static bool is_accessible(const struct pyweft_array *array, int pe) {
    return array->bytes == 0 || (shmem_addr_accessible(array->data, pe) &&
                                 shmem_addr_accessible(array->data + array->bytes - 1, pe));
}

PYWEFT_FUNCTION(addr_accessible) {
    static const struct pyweft_signature signature = {"addr_accessible", 2, 2, {"array", "pe"}};
    struct pyweft_array array = {0};
    PyObject *in[2], *result = NULL;
    int pe;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in))
        return NULL;
    if (pyweft_argument_int(signature.call, "pe", in[1], &pe) &&
        pyweft_array_take(&array, signature.call, "array", in[0], PYWEFT_ARRAY_READ,
                          WEFT_STREAM_HOST))
        result = PyBool_FromLong(shmem_pe_accessible(pe) && is_accessible(&array, pe));
    pyweft_array_drop(&array);
    return result;
}

/* Returns the PE with this rank in the team, or -1 with ValueError. */
static int world_pe(const char *call, shmem_team_t team, int size, PyObject *object) {
    int pe;
    if (!pyweft_argument_int(call, "pe", object, &pe))
        return -1;
    if (pe >= 0 && pe < size)
        return shmem_team_translate_pe(team, pe, SHMEM_TEAM_WORLD);
    PyErr_Format(PyExc_ValueError, "%s: argument pe is %d: the team has ranks 0 to %d", call, pe,
                 size - 1);
    return -1;
}

PYWEFT_FUNCTION(ptr) {
    static const struct pyweft_signature signature = {"ptr", 2, 2, {"array", "pe", "team"}};
    struct pyweft_array array = {0};
    shmem_team_t team;
    PyObject *in[3], *result = NULL;
    int size, pe;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_team_take(signature.call, in[2], &team, &size) ||
        (pe = world_pe(signature.call, team, size, in[1])) < 0)
        return NULL;
    if (pyweft_array_take(&array, signature.call, "array", in[0], PYWEFT_ARRAY_READ,
                          WEFT_STREAM_HOST) &&
        pyweft_array_check_symmetric(signature.call, "array", &array, pe)) {
        void *there =
            shmemx_ptr(array.device < 0 ? SHMEMX_SPACE_HOST : SHMEMX_SPACE_DEVICE, array.data, pe);
        result = there ? PyLong_FromVoidPtr(there) : Py_NewRef(Py_None);
    }
    pyweft_array_drop(&array);
    return result;
}

static PyObject *network(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    if (!pyweft_session_check("network"))
        return NULL;
    const char *interface = shmemx_network();
    return interface ? PyUnicode_DecodeFSDefault(interface) : Py_NewRef(Py_None);
}

static PyObject *info_get_version(PyObject *self, PyObject *unused) {
    int major, minor;
    (void)self;
    (void)unused;
    shmem_info_get_version(&major, &minor);
    return Py_BuildValue("(ii)", major, minor);
}

static PyObject *info_get_name(PyObject *self, PyObject *unused) {
    char name[SHMEM_MAX_NAME_LEN];
    (void)self;
    (void)unused;
    shmem_info_get_name(name);
    return PyUnicode_FromString(name);
}

PyMethodDef pyweft_info_methods[] = {
    PYWEFT_METHOD(pe_accessible,
                  "pe_accessible(pe)\n--\n\n"
                  "Returns whether there is a PE of this number whose memory can be accessed.\n\n"
                  "TypeError: no number. RuntimeError: before init(), after finalize()."),
    PYWEFT_METHOD(
        addr_accessible,
        "addr_accessible(array, pe)\n--\n\n"
        "Returns whether the array is symmetric memory with an accessible copy on PE pe.\n\n"
        "TypeError: no array. RuntimeError: before init(), after finalize()."),
    PYWEFT_METHOD(
        ptr,
        "ptr(array, pe, *, team=None)\n--\n\n"
        "Returns the address, as a number, through which this PE (its GPU, for memory of\n"
        "GPUs) loads and stores PE pe's copy of the symmetric array, or None if it cannot.\n"
        "With a team, pe is a rank of it. Keeps nothing alive: Buffer.peer() returns a\n"
        "Buffer, which does.\n\n"
        "ValueError: an array that is not symmetric, no such PE. RuntimeError: before init(),\n"
        "after finalize()."),
    {"network", network, METH_NOARGS,
     "network()\n--\n\n"
     "Returns the network interface that connects this host to the job's other hosts, such\n"
     "as eth0, for the program's own connections; None in a job on one host, and '' if it\n"
     "is unknown.\n\n"
     "RuntimeError: before init(), after finalize()."},
    {"info_get_version", info_get_version, METH_NOARGS,
     "info_get_version()\n--\n\n"
     "Returns the supported version of OpenSHMEM: (1, 6)."},
    {"info_get_name", info_get_name, METH_NOARGS,
     "info_get_name()\n--\n\n"
     "Returns the library's name and version as text."},
    {NULL, NULL, 0, NULL},
};
