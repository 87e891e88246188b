/* SPDX-License-Identifier: BSD-3-Clause */
/* all_reduce_rms_norm. */
#include "argument.h"
#include "operator.h"
#include "session.h"

/* Places of the array arguments in the signature. */
enum {
    OUT,
    SOURCE,
    RESIDUAL_OUT,
    BIAS,
    RESIDUAL,
    WEIGHT,
    NUMBERS,
    EPSILON = NUMBERS,
    QUANTIZED,
    SCALES,
    ARRAYS,
    GROUP = ARRAYS,
    TEAM,
    STREAM
};

struct norm_call {
    struct pyweft_operator on;
    const char *const *names;
    struct pyweft_array arrays[ARRAYS];
    weft_norm norm;
};

static bool is_given(PyObject *object) {
    return object && object != Py_None;
}

static bool take_array(struct norm_call *c, int which, PyObject *object, const char *dtype) {
    bool writes = which == OUT || which == RESIDUAL_OUT || which == QUANTIZED ||
                  (which == SCALES && c->norm.group > 0);
    enum pyweft_array_use use = writes ? PYWEFT_ARRAY_WRITTEN : PYWEFT_ARRAY_READ;
    struct pyweft_array *array = &c->arrays[which];
    return dtype ? pyweft_array_take_typed(array, c->on.call, c->names[which], object, use,
                                           c->on.stream, dtype)
                 : pyweft_array_take(array, c->on.call, c->names[which], object, use, c->on.stream);
}

static bool check_nelems(const struct norm_call *c, int which, size_t expected,
                         const char *because) {
    return pyweft_array_check_nelems(c->on.call, c->names[which], &c->arrays[which], expected,
                                     because);
}

/* The last dimension of source is a row. */
static bool set_shape(struct norm_call *c) {
    const struct pyweft_array *source = &c->arrays[SOURCE];
    if (source->ndim < 1 || source->ndim > PYWEFT_DIMS_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: argument source has %d dimensions: pass rows",
                     c->on.call, source->ndim);
        return false;
    }
    c->norm.cols = (size_t)source->shape[source->ndim - 1];
    c->norm.rows = c->norm.cols > 0 ? source->nelems / c->norm.cols : 0;
    c->norm.dtype = source->dtype->operand;
    return true;
}

static bool take_numbers(struct norm_call *c, PyObject *const *in) {
    for (int i = 0; i < NUMBERS; i++)
        if ((i <= RESIDUAL_OUT || is_given(in[i])) && !take_array(c, i, in[i], NULL))
            return false;
    if (!set_shape(c))
        return false;
    for (int i = 0; i < NUMBERS; i++) {
        bool row = i == BIAS || i == WEIGHT;
        size_t expected = row ? c->norm.cols : c->norm.rows * c->norm.cols;
        if (i > RESIDUAL_OUT && !is_given(in[i]))
            continue;
        if (!pyweft_array_check_dtype(c->on.call, c->names[i], &c->arrays[i], "source",
                                      &c->arrays[SOURCE]) ||
            !check_nelems(c, i, expected, row ? "as many as a row of source" : "as many as source"))
            return false;
    }
    return true;
}

static bool take_narrow(struct norm_call *c, PyObject *const *in) {
    size_t all = c->norm.rows * c->norm.cols;
    if (!is_given(in[QUANTIZED]))
        return true;
    if (!is_given(in[SCALES])) {
        PyErr_Format(PyExc_ValueError, "%s: argument quantized is given without scales",
                     c->on.call);
        return false;
    }
    return take_array(c, QUANTIZED, in[QUANTIZED], "float8_e4m3fn") &&
           take_array(c, SCALES, in[SCALES], "float32") &&
           check_nelems(c, QUANTIZED, all, "as many as source") &&
           check_nelems(c, SCALES, c->norm.group > 0 ? all / c->norm.group : 1,
                        "one, or one for each group");
}

static bool take_epsilon(struct norm_call *c, PyObject *object) {
    double epsilon = is_given(object) ? PyFloat_AsDouble(object) : 1e-6;
    c->norm.epsilon = (float)epsilon;
    return !PyErr_Occurred();
}

static int norm_arrays(struct norm_call *c) {
    const struct pyweft_array *a = c->arrays;
    c->norm.bias = a[BIAS].data;
    c->norm.residual = a[RESIDUAL].data;
    c->norm.weight = a[WEIGHT].data;
    c->norm.residual_out = a[RESIDUAL_OUT].data;
    c->norm.out = a[OUT].data;
    c->norm.quantized = a[QUANTIZED].data;
    c->norm.scales = (float *)a[SCALES].data;
    return weft_all_reduce_rms_norm(c->on.team, a[SOURCE].data, &c->norm, c->on.stream);
}

PYWEFT_FUNCTION(all_reduce_rms_norm) {
    static const struct pyweft_signature signature = {"all_reduce_rms_norm",
                                                      3,
                                                      3,
                                                      {"out", "source", "residual_out", "bias",
                                                       "residual", "weight", "epsilon", "quantized",
                                                       "scales", "group", "team", "stream"}};
    struct norm_call c = {.on.call = signature.call, .names = signature.names};
    PyObject *in[PYWEFT_ARGUMENTS_MAX];
    int error;
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&c.on, in[TEAM], in[STREAM]))
        return NULL;
    right = right && take_epsilon(&c, in[EPSILON]) &&
            pyweft_argument_size(c.on.call, "group", in[GROUP], &c.norm.group) &&
            take_numbers(&c, in) && take_narrow(&c, in);
    if (!right)
        c.norm.dtype = (weft_dtype)PYWEFT_OPERATOR_REFUSES;
    PYWEFT_WITHOUT_GIL(error, norm_arrays(&c));
    for (int i = 0; i < ARRAYS; i++)
        pyweft_array_drop(&c.arrays[i]);
    return pyweft_operator_close(&c.on, error);
}

PyMethodDef pyweft_norm_methods[] = {
    PYWEFT_METHOD(
        all_reduce_rms_norm,
        "all_reduce_rms_norm(out, source, residual_out, *, bias=None, residual=None, weight=None,\n"
        "                    epsilon=1e-6, quantized=None, scales=None, group=0, team=None,\n"
        "                    stream=None)\n--\n\n"
        "residual_out = the sum of the members' sources + bias + residual; out = each row of it\n"
        "divided by its root mean square, times weight. A row is the last dimension of source.\n"
        "quantized (float8_e4m3fn) receives out divided by scales: one float32 that is read, or\n"
        "with group > 0 one for each group of a row's elements, which are written.\n\n"
        "Collective over the team; a wrong argument on one member is a ValueError on all."),
    {NULL, NULL, 0, NULL},
};
