// SPDX-License-Identifier: Apache-2.0
#include "onnx.h"

#include <inttypes.h>
#include <string.h>

#include "onnx_fold.h"
#include "onnx_layers.h"
#include "onnx_opaque.h"
#include "onnx_write.h"

enum { OPSET_FIRST = 13, OPSET_LAST = 23, INPUTS_MAX = 64, WALKS_MAX = 16 };

typedef bool (*handler)(walk *w);

// fold: where no operand depends on an input; take: where one does. A view of a weight is a view (take).
static const struct {
    const char *op;
    handler fold, take;
    bool views;
} operators[] = {
    {"Abs", fold_elementwise, NULL, false},
    {"Add", fold_elementwise, take_add, false},
    {"And", fold_elementwise, NULL, false},
    {"Attention", NULL, take_attention, false},
    {"AveragePool", NULL, take_average_pool, false},
    {"BatchNormalization", NULL, take_batch_norm, false},
    {"Cast", fold_cast, take_cast, true},
    {"Ceil", fold_elementwise, NULL, false},
    {"Clip", fold_elementwise, take_clip, false},
    {"Concat", fold_concat, take_concat, false},
    {"Constant", fold_constant, NULL, false},
    {"ConstantOfShape", fold_constant_of_shape, NULL, false},
    {"Conv", NULL, take_conv, false},
    {"ConvTranspose", NULL, take_conv_transpose, false},
    {"Cos", fold_elementwise, NULL, false},
    {"CumSum", fold_cumsum, NULL, false},
    {"DepthToSpace", NULL, take_blocks, false},
    {"Div", fold_elementwise, take_divide, false},
    {"Dropout", NULL, take_dropout, false},
    {"Equal", fold_elementwise, NULL, false},
    {"Erf", NULL, take_step, false},
    {"Exp", fold_elementwise, NULL, false},
    {"Expand", fold_expand, take_expand, true},
    {"Flatten", fold_flatten, take_flatten, true},
    {"Floor", fold_elementwise, NULL, false},
    {"GRU", NULL, take_recurrent, false},
    {"Gather", fold_gather, take_embedding, true},
    {"GatherND", fold_gather_nd, NULL, false},
    {"Gelu", NULL, take_gelu, false},
    {"Gemm", NULL, take_gemm, false},
    {"GlobalAveragePool", NULL, take_global_pool, false},
    {"Greater", fold_elementwise, NULL, false},
    {"GreaterOrEqual", fold_elementwise, NULL, false},
    {"GroupNormalization", NULL, take_group_norm, false},
    {"HardSigmoid", NULL, take_hard_sigmoid, false},
    {"HardSwish", NULL, take_activation, false},
    {"Identity", take_identity, take_identity, true},
    {"InstanceNormalization", NULL, take_instance_norm, false},
    {"IsNaN", fold_elementwise, take_step, false},
    {"LSTM", NULL, take_recurrent, false},
    {"LayerNormalization", NULL, take_layer_norm, false},
    {"LeakyRelu", NULL, take_leaky_relu, false},
    {"Less", fold_elementwise, NULL, false},
    {"LessOrEqual", fold_elementwise, NULL, false},
    {"Log", fold_elementwise, NULL, false},
    {"LogSoftmax", NULL, take_log_softmax, false},
    {"MatMul", NULL, take_matmul, false},
    {"Max", fold_elementwise, NULL, false},
    {"MaxPool", NULL, take_max_pool, false},
    {"Min", fold_elementwise, NULL, false},
    {"Mish", NULL, take_activation, false},
    {"Mod", fold_elementwise, NULL, false},
    {"Mul", fold_elementwise, take_multiply, false},
    {"Neg", fold_elementwise, take_step, false},
    {"Not", fold_elementwise, NULL, false},
    {"Or", fold_elementwise, NULL, false},
    {"Pad", NULL, take_pad, false},
    {"Pow", fold_elementwise, take_step, false},
    {"RMSNormalization", NULL, take_rms_norm, false},
    {"Range", fold_range, NULL, false},
    {"Reciprocal", fold_elementwise, take_step, false},
    {"ReduceMax", fold_reduce, NULL, false},
    {"ReduceMean", fold_reduce, take_mean, false},
    {"ReduceMin", fold_reduce, NULL, false},
    {"ReduceProd", fold_reduce, NULL, false},
    {"ReduceSum", fold_reduce, take_mean, false},
    {"Relu", NULL, take_activation, false},
    {"Reshape", fold_reshape, take_reshape, true},
    {"Resize", NULL, take_resize, false},
    {"Round", fold_elementwise, NULL, false},
    {"ScatterND", fold_scatter_nd, NULL, false},
    {"Shape", take_shape, take_shape, false},
    {"Sigmoid", NULL, take_activation, false},
    {"Sign", fold_elementwise, NULL, false},
    {"Sin", fold_elementwise, NULL, false},
    {"Slice", fold_slice, take_slice, true},
    {"Softmax", NULL, take_softmax, false},
    {"Softplus", NULL, take_softplus, false},
    {"SpaceToDepth", NULL, take_blocks, false},
    {"Split", fold_split, take_split, true},
    {"Sqrt", fold_elementwise, take_step, false},
    {"Squeeze", fold_squeeze, take_squeeze, true},
    {"Sub", fold_elementwise, take_subtract, false},
    {"Swish", NULL, take_activation, false},
    {"Tanh", NULL, take_activation, false},
    {"Tile", fold_tile, NULL, false},
    {"Transpose", fold_transpose, take_transpose, true},
    {"Trilu", fold_trilu, NULL, false},
    {"Unsqueeze", fold_squeeze, take_squeeze, true},
    {"Where", fold_elementwise, take_where, false},
    {"Xor", fold_elementwise, NULL, false},
};

// ---- inputs ---------------------------------------------------------------------------------------------------

static bool is_weight(const walk *w, uint32_t id)
{
    return id != ONNX_NOTHING && w->values[id].weight != NULL;
}

static bool is_float(const onnx_value *v)
{
    return v->type == ONNX_FLOAT || v->type == ONNX_FLOAT16 || v->type == ONNX_BFLOAT16;
}

// A sequence that a convolution or a pooling reads comes as [features, places].
static bool is_features_first(const walk *w, const onnx_value *v)
{
    static const char *const over[] = {"Conv", "MaxPool", "AveragePool"};
    for (const onnx_node *n = w->g->nodes; n != NULL; n = n->next) {
        for (size_t k = 0; n->input_count > 0 && n->inputs[0] == v->value && k < sizeof over / sizeof *over;
             k++) {
            if (strcmp(n->op, over[k]) == 0) {
                return v->rank == 3 && is_float(v);
            }
        }
    }
    return false;
}

// An image comes as [channels, height, width] where no Transpose says otherwise.
static bool is_image(const walk *w, const onnx_value *v)
{
    for (const onnx_node *n = w->g->nodes; n != NULL; n = n->next) {
        for (uint32_t k = 0; k < n->input_count; k++) {
            if (n->inputs[k] == v->value && strcmp(n->op, "Transpose") == 0) {
                return false;
            }
        }
    }
    return v->rank == 4 && is_float(v);
}

// Gives the second dimension of ids, where it is a name, the length that the walk is made with: one name for all.
static void close_sequence(walk *w)
{
    for (onnx_value *v = w->g->inputs; v != NULL; v = v->next) {
        const bool ids = v->type == ONNX_INT64 || v->type == ONNX_INT32;
        const char *name = v->has_shape && v->rank == 2 && ids ? v->symbols[1] : NULL;
        if (name == NULL || name[0] == '\0' || (v->value != ONNX_NOTHING && is_weight(w, v->value))) {
            continue;
        }
        w->open_sequence = w->open_sequence == NULL ? name : w->open_sequence;
        v->dims[1] = strcmp(w->open_sequence, name) == 0 ? w->sequence : -1;
    }
}

static bool check_input(walk *w, const onnx_value *v)
{
    const bool ids = v->type == ONNX_INT64 || v->type == ONNX_INT32;
    if (!v->has_shape || v->rank < 2) {
        return walk_refuse(w, "its input '%.60s' needs a shape of the batch and of what a sample has",
                           v->name);
    }
    if (!ids && !is_float(v)) {
        return walk_refuse(w, "its input '%.60s' needs to be of float or int64 elements", v->name);
    }
    for (uint32_t k = 1; k < v->rank; k++) {
        if (v->dims[k] < 1) {
            (void)walk_refuse(w,
                              "its input '%.60s' has the size '%.40s' at dimension %u, which is no number; "
                              "only the batch and one sequence of ids may be left open",
                              v->name, v->symbols[k], k);
            hr_err_try(w->g->err,
                       "python3 -m onnxruntime.tools.make_dynamic_shape_fixed --dim_param %.40s --dim_value "
                       "128 %.200s fixed.onnx",
                       v->symbols[k][0] != '\0' ? v->symbols[k] : "NAME", w->g->path);
            return false;
        }
    }
    if (v->dims[0] == 0 || (w->fixed_batch > 0 && v->dims[0] > 0 && v->dims[0] != w->fixed_batch)) {
        return walk_refuse(w, "its inputs need one batch, had %" PRId64 " and %" PRId64, w->fixed_batch,
                           v->dims[0]);
    }
    return true;
}

// Inputs that are numbers rather than ids, by the names that transformers gives them: a padding mask, with which every place
// counts, and places, which count 0, 1, …
static bool add_numbers(walk *w, const onnx_value *v, bool places)
{
    double *room = NULL;
    int64_t dims[2] = {ONNX_BATCH, v->dims[1]};
    const bool same[2] = {true, !places};
    numbers *n = numbers_blank(w->g, 2, dims, same, &room);
    for (int64_t k = 0; n != NULL && k < (places ? dims[1] : 1); k++) {
        room[k] = places ? (double)k : 1;
    }
    w->values[v->value].numbers = n;
    walk_note(w, "The input %.40s is left out: %s.", v->name,
              places ? "places count 0, 1 and so on" : "every place counts");
    return n != NULL;
}

static bool add_input(walk *w, const onnx_value *v)
{
    static const uint32_t as_image[4] = {0, 3, 1, 2}, as_steps[3] = {0, 2, 1};
    int64_t shape[ONNX_RANK];
    if (!check_input(w, v)) {
        return false;
    }
    w->fixed_batch = v->dims[0] > 0 ? v->dims[0] : w->fixed_batch;
    const bool mask = strcmp(v->name, "attention_mask") == 0, places = strcmp(v->name, "position_ids") == 0;
    if ((mask || places) && v->rank == 2 && v->type == ONNX_INT64) {
        return add_numbers(w, v, places);
    }
    const bool image = is_image(w, v), first = is_features_first(w, v);
    memcpy(shape, v->dims, sizeof shape);
    if (first) {
        shape[1] = v->dims[2];
        shape[2] = v->dims[1];
    }
    if (image) {
        shape[1] = v->dims[2];
        shape[2] = v->dims[3];
        shape[3] = v->dims[1];
    }
    shape[0] = ONNX_BATCH;
    layer *l = layer_new(w, "input", v->rank, shape);
    tensor *t = l == NULL ? NULL : tensor_plain(w, l, image ? as_image : first ? as_steps : NULL);
    if (t == NULL) {
        return false;
    }
    l->path = v->name;
    l->classes = v->type == ONNX_INT64 || v->type == ONNX_INT32 ? 1 : 0;
    w->values[v->value].tensor = t;
    *w->last = l;
    w->last = &l->next;
    return true;
}

// ---- nodes ----------------------------------------------------------------------------------------------------

static bool is_float_weight(const value *v)
{
    return v->weight != NULL && v->numbers == NULL && v->weight->rank > 0 &&
           (v->weight->type == ONNX_FLOAT || v->weight->type == ONNX_FLOAT16 ||
            v->weight->type == ONNX_BFLOAT16 || v->weight->type == ONNX_DOUBLE);
}

// All operands as numbers, also those that lie in the file as weights.
static bool load_operands(walk *w)
{
    for (uint32_t k = 0; k < w->node->input_count; k++) {
        const value v = walk_value(w, k);
        if (v.numbers != NULL || v.weight == NULL) {
            continue;
        }
        w->values[w->node->inputs[k]].numbers = numbers_of(w->g, v.weight);
        if (w->g->status != HR_OK) {
            return false;
        }
    }
    return true;
}

static bool check_operands(walk *w, bool *depends)
{
    const onnx_node *n = w->node;
    *depends = false;
    if (n->domain[0] != '\0' && strcmp(n->domain, "ai.onnx") != 0) {
        return walk_refuse(w, "an operator of '%.60s', where only ONNX's own are read", n->domain);
    }
    for (uint32_t k = 0; k < n->input_count; k++) {
        if (n->inputs[k] == ONNX_NOTHING) {
            continue;
        }
        const value *v = &w->values[n->inputs[k]];
        if (v->numbers == NULL && v->weight == NULL && v->tensor == NULL) {
            const char *name = intern_text(&w->g->values, n->inputs[k]);
            return walk_refuse(
                w, "it reads '%.60s', which nothing before it gives: a circle, or nodes out of order",
                name == NULL ? "" : onnx_print(w->g, "%s", name));
        }
        *depends = *depends || v->tensor != NULL;
    }
    return true;
}

static bool run_node(walk *w)
{
    bool depends = false;
    if (!check_operands(w, &depends)) {
        return false;
    }
    for (size_t k = 0; k < sizeof operators / sizeof *operators; k++) {
        if (strcmp(operators[k].op, w->node->op) != 0) {
            continue;
        }
        const value first = walk_value(w, 0);
        const bool view = operators[k].views && is_float_weight(&first);
        const handler by =
            operators[k].fold != NULL && !depends && !view ? operators[k].fold : operators[k].take;
        if (by == NULL) {
            return walk_refuse(w, "no layer of ours does this of what another computes");
        }
        w->takes_missing =
            by == operators[k].fold && (operators[k].views ? strcmp(w->node->op, "Gather") != 0
                                                           : by == fold_elementwise || by == fold_concat);
        const bool loads = by == operators[k].fold && by != operators[k].take;
        return (!loads || load_operands(w)) && by(w);
    }
    return walk_refuse(w, "no layer of ours does this");
}

// ---- the file -------------------------------------------------------------------------------------------------

static bool add_inputs(walk *w)
{
    uint32_t inputs = 0;
    for (const onnx_value *v = w->g->inputs; v != NULL; v = v->next) {
        if (v->value == ONNX_NOTHING || is_weight(w, v->value)) {
            continue;
        }
        if (inputs == 0) {
            w->batch_symbol = v->has_shape && v->rank > 0 && v->dims[0] < 0 ? v->symbols[0] : "";
        }
        if (inputs++ == INPUTS_MAX) {
            onnx_refuse(w->g, "it has more than %d inputs, which is the limit", INPUTS_MAX);
            return false;
        }
        if (!add_input(w, v)) {
            return false;
        }
    }
    return true;
}

// Who makes each value, and which shape the file says of it.
static bool index_values(walk *w, size_t count)
{
    onnx_graph *g = w->g;
    w->makers = onnx_take(g, count, sizeof *w->makers);
    w->shapes = w->makers == NULL ? NULL : onnx_take(g, count, sizeof *w->shapes);
    if (w->shapes == NULL) {
        return false;
    }
    for (onnx_node *n = g->nodes; n != NULL; n = n->next) {
        for (uint32_t k = 0; k < n->output_count; k++) {
            if (n->outputs[k] != ONNX_NOTHING) {
                w->makers[n->outputs[k]] = n;
            }
        }
    }
    for (int k = 0; k < 2; k++) {
        for (const onnx_value *v = k == 0 ? g->shapes : g->outputs; v != NULL; v = v->next) {
            if (v->value != ONNX_NOTHING) {
                w->shapes[v->value] = v;
            }
        }
    }
    return true;
}

static bool prepare(walk *w)
{
    onnx_graph *g = w->g;
    const size_t count = (size_t)intern_count(&g->values) + 1;
    w->batch_symbol = "";
    w->values = onnx_take(g, count, sizeof *w->values);
    w->reads = w->values == NULL ? NULL : onnx_take(g, count, sizeof *w->reads);
    if (w->reads == NULL || (g->lets_pass && !index_values(w, count))) {
        return false;
    }
    if (g->opset < OPSET_FIRST || g->opset > OPSET_LAST) {
        onnx_refuse(g, "needs operators of opset %d to %d, had %" PRId64, OPSET_FIRST, OPSET_LAST, g->opset);
        hr_err_try(g->err, "torch.onnx.export(…, opset_version=18)");
        return false;
    }
    for (const onnx_weight *t = g->weights; t != NULL; t = t->next) {
        if (t->value != ONNX_NOTHING) {
            w->values[t->value].weight = &t->tensor;
        }
    }
    for (const onnx_node *n = g->nodes; n != NULL; n = n->next) {
        for (uint32_t k = 0; k < n->input_count; k++) {
            if (n->inputs[k] != ONNX_NOTHING) {
                w->reads[n->inputs[k]]++;
            }
        }
    }
    for (const onnx_value *v = g->outputs; v != NULL; v = v->next) {
        if (v->value != ONNX_NOTHING) {
            w->reads[v->value]++;
        }
    }
    close_sequence(w);
    return add_inputs(w);
}

static bool read_model(walk *w, const char *name, text *model, text *knobs)
{
    if (!prepare(w)) {
        return false;
    }
    for (const onnx_node *n = w->g->nodes; n != NULL; n = n->next) {
        w->node = n;
        const bool good = n->opaque ? onnx_take_opaque(w) : run_node(w) || onnx_let_pass(w);
        if (!good || w->g->status != HR_OK) {
            return false;
        }
    }
    return !w->walk_again && onnx_write(w, name, model, knobs);
}

// Of a sequence that is left open: what model.sequence begins with, and the two lengths it is read under.
typedef struct open_lengths {
    int64_t begins, read, again;
} open_lengths;

static void forget_refusal(onnx_graph *g)
{
    if (g->status == HR_PRESET) {
        g->status = HR_OK;
        *g->err = (hr_err){.status = HR_OK};
    }
}

static bool read_under(onnx_graph *g, const char *name, const open_lengths *under, bool again, text *model,
                       text *knobs, walk *w)
{
    bool good = false;
    for (int walks = 0; walks == 0 || (w->walk_again && walks < WALKS_MAX); walks++) {
        forget_refusal(g);
        *w = (walk){.g = g, .sequence = again ? under->again : under->read, .sequence_begins = under->begins};
        w->last = &w->first;
        good = read_model(w, name, model, knobs);
        text_deinit(&w->notes);
    }
    if (w->walk_again) {
        onnx_refuse(g, "more of it would have to be opaque than is found in %d readings", WALKS_MAX);
    }
    return good;
}

static bool is_same(const text *a, const text *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->data, b->data, a->length) == 0);
}

// What is written of an open sequence must be the same under another length: else some layer has the length in it.
static bool confirm(onnx_graph *g, const char *name, const open_lengths *under, const text *model,
                    const text *knobs)
{
    walk w;
    text model_again = {0}, knobs_again = {0};
    const bool good = read_under(g, name, under, true, &model_again, &knobs_again, &w);
    const bool whole = !(model->failed || knobs->failed || model_again.failed || knobs_again.failed);
    if (good && whole && !(is_same(model, &model_again) && is_same(knobs, &knobs_again))) {
        onnx_refuse(g, "its length '%.60s' is left open, and a layer of it would have to know it",
                    w.open_sequence);
        hr_err_try(g->err,
                   "python3 -m onnxruntime.tools.make_dynamic_shape_fixed --dim_param %.40s --dim_value 128 "
                   "%.200s fixed.onnx",
                   w.open_sequence, g->path);
    }
    const bool same = good && whole && g->status == HR_OK;
    text_deinit(&model_again);
    text_deinit(&knobs_again);
    return same;
}

static bool read_any(onnx_graph *g, const char *name, text *model, text *knobs)
{
    static const open_lengths lengths[] = {
        {128, 127, 113}, {64, 61, 53}, {32, 31, 29}, {16, 13, 11}, {8, 7, 5}};
    enum { COUNT = sizeof lengths / sizeof *lengths };
    for (int k = 0; k < COUNT; k++) {
        walk w;
        const bool good = read_under(g, name, &lengths[k], false, model, knobs, &w);
        if (good || !w.too_long || g->status != HR_PRESET || k + 1 == COUNT) {
            return good && (w.open_sequence == NULL || confirm(g, name, &lengths[k], model, knobs));
        }
        text_deinit(model);
        text_deinit(knobs);
        forget_refusal(g);
    }
    return false;
}

// What is read as what; at_node: that a node of it was refused.
typedef struct request {
    const char *path, *name;
    bool lets_pass, at_node;
} request;

static hr_status import_as(request *r, text *model, text *knobs, hr_err *err)
{
    onnx_graph g;
    hr_status status = onnx_open(r->path, r->lets_pass, &g, err);
    if (status == HR_OK) {
        const bool good = read_any(&g, r->name, model, knobs);
        status = g.status;
        if (status == HR_OK && (!good || model->failed || knobs->failed)) {
            status = HR_FAIL(err, NOMEM, "%.160s: no memory to make a preset of it", r->path);
        }
    }
    r->at_node = g.at_node;
    onnx_close(&g);
    return status;
}

static bool can_pass(const request *refused)
{
    request r = {refused->path, refused->name, true, false};
    text model = {0}, knobs = {0};
    hr_err unread;
    const bool can = import_as(&r, &model, &knobs, &unread) == HR_OK;
    text_deinit(&model);
    text_deinit(&knobs);
    return can;
}

hr_status onnx_import(const char *path, const char *name, bool lets_pass, text *model, text *knobs,
                      hr_err *err)
{
    request r = {path, name, lets_pass, false};
    const hr_status status = import_as(&r, model, knobs, err);
    if (status == HR_PRESET && r.at_node && !lets_pass && can_pass(&r)) {
        hr_err_try(err, "headroom plan '%.200s' --opaque, which plans what is known of it", path);
    }
    return status;
}
