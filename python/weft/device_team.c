/* SPDX-License-Identifier: BSD-3-Clause */
/* The type DeviceTeam: the handle through which GPU kernels use a team. Like a team, it is freed by
 * free() or with the job, not with the Python object, because freeing it is collective. */
#include <weft/device.cuh>
#include "argument.h"
#include "error.h"
#include "session.h"
#include "team.h"
#include "type.h"

struct device_team_object {
    PyObject_HEAD PyObject *weak;
    weft_device_team handle; /* zeros after free() */
    const weft_device_team *address;
    int me, n;
    unsigned session;
};

static PyTypeObject *device_team_type;

static bool check(const struct device_team_object *team, const char *call) {
    if (!pyweft_session_check_made(call, "DeviceTeam", team->session))
        return false;
    bool alive = team->handle.version != 0;
    if (!alive)
        PyErr_Format(PyExc_ValueError, "%s: this DeviceTeam was freed", call);
    return alive;
}

static PyObject *make(const weft_device_team *handle, const weft_device_team *address) {
    struct device_team_object *team = PyObject_New(struct device_team_object, device_team_type);
    if (!team)
        return NULL;
    team->weak = NULL;
    team->handle = *handle;
    team->address = address;
    team->me = handle->me;
    team->n = handle->n;
    team->session = pyweft_session.number;
    return (PyObject *)team;
}

/* --- Attributes ------------------------------------------------------------------------------ */

PYWEFT_GETTER(address, struct device_team_object,
              check(object, "DeviceTeam.address") ? PyLong_FromVoidPtr((void *)object->address)
                                                  : NULL)

static PyObject *get_bytes(PyObject *self, void *unused) {
    struct device_team_object *team = (struct device_team_object *)self;
    (void)unused;
    if (!check(team, "DeviceTeam.bytes"))
        return NULL;
    return PyBytes_FromStringAndSize((const char *)&team->handle, sizeof team->handle);
}

PYWEFT_GETTER(me, struct device_team_object, PyLong_FromLong(object->me))
PYWEFT_GETTER(n, struct device_team_object, PyLong_FromLong(object->n))
PYWEFT_GETTER(channels, struct device_team_object,
              check(object, "DeviceTeam.channels")
                  ? PyLong_FromUnsignedLong(object->handle.channels)
                  : NULL)
PYWEFT_GETTER(slot_bytes, struct device_team_object,
              check(object, "DeviceTeam.slot_bytes")
                  ? PyLong_FromUnsignedLong(object->handle.slot_bytes)
                  : NULL)

static PyObject *repr(PyObject *self) {
    const struct device_team_object *team = (struct device_team_object *)self;
    bool live = pyweft_session.running && team->session == pyweft_session.number &&
                team->handle.version != 0;
    return PyUnicode_FromFormat("<weft.DeviceTeam, rank %d of %d%s>", team->me, team->n,
                                live ? "" : ", gone");
}

/* --- Methods --------------------------------------------------------------------------------- */

static PyObject *free_team(PyObject *self, PyObject *unused) {
    struct device_team_object *team = (struct device_team_object *)self;
    (void)unused;
    if (!check(team, "DeviceTeam.free"))
        return NULL;
    weft_device_team handle = team->handle;
    team->handle.version = 0; /* also stops other threads */
    int error;
    PYWEFT_WITHOUT_GIL(error, shmemx_device_team_free(&handle));
    return pyweft_error_result("DeviceTeam.free", error);
}

/* Not after an exception: the other members may not come. */
PYWEFT_FUNCTION(leave) {
    (void)names;
    if (nargs > 0 && args[0] != Py_None)
        Py_RETURN_NONE;
    return free_team(self, NULL);
}

static PyMethodDef methods[] = {
    {"free", free_team, METH_NOARGS,
     "free($self, /)\n--\n\n"
     "Frees it, after the last kernel of this PE that uses it. Collective over the\n"
     "members. The end of the job frees all that are left."},
    PYWEFT_TYPE_ENTER,
    PYWEFT_METHOD_AS("__exit__", leave,
                     "__exit__($self, /, kind, value, traceback)\n--\n\n"
                     "free(), except after an exception."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"address", get_address, NULL,
     "Address of the weft_device_team in this PE's GPU memory, for kernels that take numbers.",
     NULL},
    {"bytes", get_bytes, NULL,
     "The weft_device_team itself, 128 bytes, for kernels that take it by value.", NULL},
    {"me", get_me, NULL, "This PE's rank in the team.", NULL},
    {"n", get_n, NULL, "Number of members.", NULL},
    {"channels", get_channels, NULL,
     "Number of channels, on which thread blocks of the members synchronise.", NULL},
    {"slot_bytes", get_slot_bytes, NULL, "Bytes for packets from each member on each channel.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PYWEFT_WEAK_MEMBERS(struct device_team_object);

static PyType_Slot slots[] = {
    {Py_tp_doc, "The handle through which GPU kernels use a team: the weft_device_team of\n"
                "<weft/device.cuh>, with its own synchronisation words and packets. Made by\n"
                "weft.device_team()."},
    {Py_tp_dealloc, pyweft_type_dealloc},
    {Py_tp_repr, repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "weft.DeviceTeam",
    .basicsize = sizeof(struct device_team_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static uint32_t narrow(size_t number) {
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

/* A member with a wrong number calls the library nevertheless, which informs the others. For a
 * wrong team or an unknown argument it does not, and the others wait. */
PYWEFT_FUNCTION(device_team) {
    static const struct pyweft_signature signature = {
        "device_team", 0, 3, {"team", "channels", "slot_bytes"}};
    PyObject *in[3];
    shmem_team_t team;
    size_t channels = 64, slot_bytes = 4096;
    int size, error;
    (void)self;
    bool sorted = pyweft_arguments_in_job(&signature, args, nargs, names, in);
    if (!sorted || !pyweft_team_take(signature.call, in[0], &team, &size))
        return NULL;
    if (!pyweft_argument_size(signature.call, "channels", in[1], &channels) ||
        !pyweft_argument_size(signature.call, "slot_bytes", in[2], &slot_bytes))
        channels = 0;
    weft_device_team handle;
    const weft_device_team *address = NULL;
    PYWEFT_WITHOUT_GIL(error,
                       shmemx_device_team(team, narrow(channels), narrow(slot_bytes), &handle));
    if (error == 0)
        error = shmemx_device_team_address(&handle, &address);
    if (PyErr_Occurred())
        return NULL;
    return error ? pyweft_error_raise(signature.call, error) : make(&handle, address);
}

PyMethodDef pyweft_device_team_methods[] = {
    PYWEFT_METHOD(
        device_team,
        "device_team(team=None, channels=64, slot_bytes=4096)\n--\n\n"
        "Makes the handle through which GPU kernels of a team's members (None: all PEs) put,\n"
        "signal, wait and synchronise. Thread blocks synchronise on `channels` channels, each\n"
        "with `slot_bytes` for packets (a multiple of 16, or 0). Collective over the team."),
    {NULL, NULL, 0, NULL},
};

bool pyweft_device_team_define(PyObject *module) {
    device_team_type = pyweft_type_define(module, &spec);
    return device_team_type != NULL;
}
