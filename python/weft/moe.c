/* SPDX-License-Identifier: BSD-3-Clause */
/* The type MoE: dispatches of tokens to experts, and combines of their results. Like a team it is
 * destroyed by destroy() or with the job, not with the Python object. */
#include <string.h>
#include "error.h"
#include "operator.h"
#include "session.h"
#include "team.h"
#include "type.h"

struct moe_object {
    PyObject_HEAD PyObject *weak, *team;
    weft_moe handle; /* NULL: destroyed */
    weft_moe_shape shape;
    size_t experts_each; /* of a member */
    unsigned session;
};

static bool check_alive(const struct moe_object *moe, const char *call) {
    if (!pyweft_session_check_made(call, "MoE", moe->session))
        return false;
    if (!moe->handle)
        PyErr_Format(PyExc_ValueError, "%s: this MoE was destroyed", call);
    return moe->handle != NULL;
}

/* --- Arrays ----------------------------------------------------------------------------------- */

/* Places of the arguments in the signatures of both calls. */
enum { TOKENS, EXPERTS, DATA, SOURCES, OFFSETS, WEIGHTS, ROW_WEIGHTS, SCALES, ROW_SCALES, ARRAYS };
enum { FACTORS = SCALES };

/* What the number of an array's elements depends on. Arrays of rows may be longer. */
enum extent {
    COLS_OF_TOKENS,
    SLOTS,
    SCALES_OF_TOKENS,
    EXPERTS_END,
    ROWS,
    COLS_OF_ROWS,
    SCALES_OF_ROWS
};

/* An argument. The types of those without a type are the same. */
struct rule {
    const char *name, *dtype;
    enum extent extent;
    enum pyweft_array_use use;
};

struct moe_call {
    struct pyweft_operator on;
    const struct pyweft_signature *signature;
    const struct rule *rules;
    struct moe_object *moe;
    struct pyweft_array arrays[ARRAYS];
    size_t ntokens, nrows; /* rows: those to be combined, or room for a dispatch */
};

static bool take_array(struct moe_call *c, int which, PyObject *object) {
    const struct rule *rule = &c->rules[which];
    struct pyweft_array *array = &c->arrays[which];
    if (which >= c->signature->required && (!object || object == Py_None))
        return true;
    return rule->dtype
               ? pyweft_array_take_typed(array, c->on.call, rule->name, object, rule->use,
                                         c->on.stream, rule->dtype)
               : pyweft_array_take(array, c->on.call, rule->name, object, rule->use, c->on.stream);
}

static size_t extent_of(const struct moe_call *c, enum extent extent) {
    const weft_moe_shape *s = &c->moe->shape;
    const size_t extents[] = {[COLS_OF_TOKENS] = c->ntokens * s->cols,
                              [SLOTS] = c->ntokens * s->top_k,
                              [SCALES_OF_TOKENS] = c->ntokens * s->scale_cols,
                              [EXPERTS_END] = c->moe->experts_each + 1,
                              [ROWS] = c->nrows,
                              [COLS_OF_ROWS] = c->nrows * s->cols,
                              [SCALES_OF_ROWS] = c->nrows * s->scale_cols};
    return extents[extent];
}

static bool check_extent(const struct moe_call *c, int which) {
    const struct pyweft_array *array = &c->arrays[which];
    enum extent extent = c->rules[which].extent;
    size_t expected = extent_of(c, extent);
    bool longer = extent >= ROWS;
    if (!array->dtype || array->nelems == expected || (longer && array->nelems > expected))
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument %s has %zu elements: pass %s%zu", c->on.call,
                 c->rules[which].name, array->nelems, longer ? "at least " : "", expected);
    return false;
}

/* Returns the number of rows that a dispatch has written: 0 for a GPU, whose numbers the host does
 * not know. The library checks that it is valid. */
static size_t read_nrows(const struct moe_call *c) {
    const struct pyweft_array *offsets = &c->arrays[OFFSETS];
    int32_t last = 0;
    if (offsets->device < 0 && offsets->nelems == c->moe->experts_each + 1)
        memcpy(&last, offsets->data + c->moe->experts_each * sizeof last, sizeof last);
    return last > 0 ? (size_t)last : 0;
}

/* The number of tokens follows from the experts. */
static bool take_arrays(struct moe_call *c, PyObject *const *in) {
    for (int i = 0; i < ARRAYS; i++)
        if (c->rules[i].name && !take_array(c, i, in[i]))
            return false;
    bool combines = c->rules[DATA].use == PYWEFT_ARRAY_READ;
    c->ntokens = c->arrays[EXPERTS].nelems / c->moe->shape.top_k;
    c->nrows = combines ? read_nrows(c) : c->moe->shape.rows_max;
    for (int i = 0; i < ARRAYS; i++)
        if (!check_extent(c, i))
            return false;
    return pyweft_array_check_dtype(c->on.call, "tokens", &c->arrays[TOKENS], "data",
                                    &c->arrays[DATA]);
}

static weft_moe_rows rows_of(const struct moe_call *c) {
    const struct pyweft_array *a = c->arrays;
    bool scales = c->rules[ROW_SCALES].name != NULL;
    return (weft_moe_rows){a[DATA].data, scales ? (float *)a[ROW_SCALES].data : NULL,
                           (float *)a[ROW_WEIGHTS].data, (int32_t *)a[SOURCES].data,
                           (int32_t *)a[OFFSETS].data};
}

/* --- Dispatch and combine --------------------------------------------------------------------- */

typedef int moe_function(const struct moe_call *call, weft_dtype dtype);

/* A member with wrong arguments calls the library nevertheless (operator.h), with a type that it
 * refuses. */
static PyObject *run(struct moe_call *c, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                     PyObject *names, moe_function *function) {
    PyObject *in[ARRAYS + 1] = {NULL};
    int error, stream = 0;
    while (strcmp(c->signature->names[stream], "stream") != 0)
        stream++;
    c->on.call = c->signature->call;
    c->moe = (struct moe_object *)self;
    bool right = pyweft_arguments_sort(c->signature, args, nargs, names, in);
    if (!check_alive(c->moe, c->on.call) || !pyweft_operator_open(&c->on, c->moe->team, in[stream]))
        return NULL;
    right = right && take_arrays(c, in);
    weft_dtype dtype = right ? c->arrays[DATA].dtype->operand : (weft_dtype)PYWEFT_OPERATOR_REFUSES;
    PYWEFT_WITHOUT_GIL(error, function(c, dtype));
    for (int i = 0; i < ARRAYS; i++)
        pyweft_array_drop(&c->arrays[i]);
    return pyweft_operator_close(&c->on, error);
}

static int dispatch_arrays(const struct moe_call *c, weft_dtype dtype) {
    const struct pyweft_array *a = c->arrays;
    weft_moe_rows rows = rows_of(c);
    return weft_moe_dispatch(c->moe->handle, dtype, a[TOKENS].data, (float *)a[SCALES].data,
                             (int32_t *)a[EXPERTS].data, (float *)a[WEIGHTS].data, c->ntokens,
                             &rows, c->on.stream);
}

PYWEFT_FUNCTION(dispatch) {
    static const struct pyweft_signature signature = {"MoE.dispatch",
                                                      5,
                                                      5,
                                                      {"tokens", "experts", "data", "sources",
                                                       "offsets", "weights", "row_weights",
                                                       "scales", "row_scales", "stream"}};
    static const struct rule rules[ARRAYS] = {
        [TOKENS] = {"tokens", NULL, COLS_OF_TOKENS, PYWEFT_ARRAY_READ},
        [EXPERTS] = {"experts", "int32", SLOTS, PYWEFT_ARRAY_READ},
        [DATA] = {"data", NULL, COLS_OF_ROWS, PYWEFT_ARRAY_WRITTEN},
        [SOURCES] = {"sources", "int32", ROWS, PYWEFT_ARRAY_WRITTEN},
        [OFFSETS] = {"offsets", "int32", EXPERTS_END, PYWEFT_ARRAY_WRITTEN},
        [WEIGHTS] = {"weights", "float32", SLOTS, PYWEFT_ARRAY_READ},
        [ROW_WEIGHTS] = {"row_weights", "float32", ROWS, PYWEFT_ARRAY_WRITTEN},
        [SCALES] = {"scales", "float32", SCALES_OF_TOKENS, PYWEFT_ARRAY_READ},
        [ROW_SCALES] = {"row_scales", "float32", SCALES_OF_ROWS, PYWEFT_ARRAY_WRITTEN}};
    struct moe_call call = {.signature = &signature, .rules = rules};
    return run(&call, self, args, nargs, names, dispatch_arrays);
}

static int combine_arrays(const struct moe_call *c, weft_dtype dtype) {
    const struct pyweft_array *a = c->arrays;
    weft_moe_rows rows = rows_of(c);
    return weft_moe_combine(c->moe->handle, dtype, &rows, (float *)a[FACTORS].data,
                            (int32_t *)a[EXPERTS].data, c->ntokens, a[TOKENS].data,
                            (float *)a[WEIGHTS].data, c->on.stream);
}

PYWEFT_FUNCTION(combine) {
    static const struct pyweft_signature signature = {"MoE.combine",
                                                      5,
                                                      5,
                                                      {"tokens", "experts", "data", "sources",
                                                       "offsets", "weights", "row_weights",
                                                       "factors", "stream"}};
    static const struct rule rules[ARRAYS] = {
        [TOKENS] = {"tokens", NULL, COLS_OF_TOKENS, PYWEFT_ARRAY_WRITTEN},
        [EXPERTS] = {"experts", "int32", SLOTS, PYWEFT_ARRAY_READ},
        [DATA] = {"data", NULL, COLS_OF_ROWS, PYWEFT_ARRAY_READ},
        [SOURCES] = {"sources", "int32", ROWS, PYWEFT_ARRAY_READ},
        [OFFSETS] = {"offsets", "int32", EXPERTS_END, PYWEFT_ARRAY_READ},
        [WEIGHTS] = {"weights", "float32", SLOTS, PYWEFT_ARRAY_WRITTEN},
        [ROW_WEIGHTS] = {"row_weights", "float32", ROWS, PYWEFT_ARRAY_READ},
        [FACTORS] = {"factors", "float32", ROWS, PYWEFT_ARRAY_READ}};
    struct moe_call call = {.signature = &signature, .rules = rules};
    return run(&call, self, args, nargs, names, combine_arrays);
}

/* --- Making and ending ------------------------------------------------------------------------ */

static bool take_shape(weft_moe_shape *shape, PyObject *const *in) {
    size_t *const sizes[] = {&shape->experts,    &shape->top_k,    &shape->cols,
                             &shape->tokens_max, &shape->rows_max, &shape->scale_cols};
    static const char *const names[] = {"experts",    "top_k",    "cols",
                                        "tokens_max", "rows_max", "scale_cols"};
    for (int i = 0; i < 6; i++)
        if (!pyweft_argument_size("MoE", names[i], in[i], sizes[i]))
            return false;
    const struct pyweft_dtype_row *row = in[6] ? pyweft_dtype_find("MoE", in[6]) : NULL;
    shape->dtype = row ? row->operand : WEFT_F32;
    return row || !in[6];
}

static PyObject *wrap(PyTypeObject *type, PyObject *team, int size, weft_moe handle,
                      const weft_moe_shape *shape) {
    struct moe_object *moe = PyObject_New(struct moe_object, type);
    if (!moe)
        return NULL;
    moe->weak = NULL;
    moe->team = Py_NewRef(team && team != Py_None ? team : pyweft_team_world());
    moe->handle = handle;
    moe->shape = *shape;
    moe->shape.rows_max = weft_moe_rows_max(handle);
    moe->experts_each = shape->experts / (size_t)size;
    moe->session = pyweft_session.number;
    return (PyObject *)moe;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *names) {
    static char *keywords[] = {"experts",    "top_k", "cols", "tokens_max", "rows_max",
                               "scale_cols", "dtype", "team", NULL};
    struct pyweft_operator on = {.call = "MoE"};
    PyObject *in[8] = {NULL};
    weft_moe_shape shape = {.rows_max = 0};
    weft_moe handle;
    int error;
    bool right =
        PyArg_ParseTupleAndKeywords(args, names, "OOOO|OO$OO:MoE", keywords, &in[0], &in[1], &in[2],
                                    &in[3], &in[4], &in[5], &in[6], &in[7]);
    if (!pyweft_operator_open(&on, in[7], NULL))
        return NULL;
    right = right && take_shape(&shape, in);
    PYWEFT_WITHOUT_GIL(error, weft_moe_create(on.team, right ? &shape : NULL, &handle));
    PyObject *none = pyweft_operator_close(&on, error);
    if (!none)
        return NULL;
    Py_DECREF(none);
    return wrap(type, in[7], on.size, handle, &shape);
}

static PyObject *destroy(PyObject *self, PyObject *unused) {
    struct moe_object *moe = (struct moe_object *)self;
    int error;
    (void)unused;
    if (!check_alive(moe, "MoE.destroy"))
        return NULL;
    PYWEFT_WITHOUT_GIL(error, weft_moe_destroy(moe->handle));
    if (!error)
        moe->handle = NULL;
    return pyweft_error_result("MoE.destroy", error);
}

/* After an exception the other members may not come to the end of the block. */
PYWEFT_FUNCTION(leave) {
    const struct moe_object *moe = (struct moe_object *)self;
    (void)names;
    if (nargs == 0 || args[0] != Py_None || !moe->handle || !pyweft_session.running)
        Py_RETURN_NONE;
    return destroy(self, NULL);
}

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_ClearWeakRefs(self);
    Py_DECREF(((struct moe_object *)self)->team);
    PyObject_Free(self);
    Py_DECREF(type);
}

PYWEFT_GETTER(team, struct moe_object, Py_NewRef(object->team))
PYWEFT_GETTER(rows_max, struct moe_object, PyLong_FromSize_t(object->shape.rows_max))
PYWEFT_GETTER(experts_each, struct moe_object, PyLong_FromSize_t(object->experts_each))

static PyObject *repr(PyObject *self) {
    const struct moe_object *moe = (struct moe_object *)self;
    return PyUnicode_FromFormat("<weft.MoE of %zu experts, %zu for a token%s>", moe->shape.experts,
                                moe->shape.top_k, moe->handle ? "" : ", destroyed");
}

static PyMethodDef methods[] = {
    PYWEFT_METHOD(
        dispatch,
        "dispatch($self, /, tokens, experts, data, sources, offsets, *, weights=None,\n"
        "         row_weights=None, scales=None, row_scales=None, stream=None)\n--\n\n"
        "Sends each token's row, weights and scales to its experts. tokens is ntokens x cols,\n"
        "experts (int32) ntokens x top_k, -1 for a slot without an expert, weights (float32)\n"
        "as experts, scales (float32) ntokens x scale_cols. On return data[:n], sources[:n],\n"
        "row_weights[:n] and row_scales[:n] are the rows for this member's experts: those of\n"
        "its expert e are offsets[e] to offsets[e + 1], in the order of ranks, tokens and\n"
        "slots. sources, of int32, are (rank * tokens_max + token) * top_k + slot. All have\n"
        "room for rows_max rows, offsets for experts_each + 1 numbers.\n\n"
        "Collective over the team. RuntimeError on all members, and nothing is written, if\n"
        "one would receive more than rows_max rows."),
    PYWEFT_METHOD(
        combine,
        "combine($self, /, tokens, experts, data, sources, offsets, *, weights=None,\n"
        "        row_weights=None, factors=None, stream=None)\n--\n\n"
        "tokens[t] = the sum of token t's rows of data, each times its factor, from all\n"
        "members. experts, sources and offsets are those of the dispatch. weights receives\n"
        "row_weights of each slot, 0 for a slot without an expert. Types of data are\n"
        "float32, float64, bfloat16, float16; arrays of rows may end with the last row.\n\n"
        "Collective over the team."),
    {"destroy", destroy, METH_NOARGS, "destroy($self, /)\n--\n\nCollective over the team."},
    PYWEFT_TYPE_ENTER,
    PYWEFT_METHOD_AS("__exit__", leave,
                     "__exit__($self, /, kind, value, traceback)\n--\n\n"
                     "destroy(), unless there is an exception."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"team", get_team, NULL, "The Team.", NULL},
    {"rows_max", get_rows_max, NULL, "The most rows that a member receives.", NULL},
    {"experts_each", get_experts_each, NULL, "The number of experts of each member.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PYWEFT_WEAK_MEMBERS(struct moe_object);

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "MoE(experts, top_k, cols, tokens_max, rows_max=0, scale_cols=0, *, dtype='float32',\n"
     "    team=None)\n--\n\n"
     "A mixture of experts over a team: expert e belongs to rank e // (experts // size). A\n"
     "token has top_k slots, and a row of cols elements of dtype or of a narrower type; a\n"
     "member has at most tokens_max tokens in a call, and receives at most rows_max rows (0:\n"
     "enough for all tokens whose experts are all different). Collective, like destroy()."},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "weft.MoE",
    .basicsize = sizeof(struct moe_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

bool pyweft_moe_define(PyObject *module) {
    return pyweft_type_define(module, &spec) != NULL;
}
