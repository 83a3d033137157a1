// SPDX-License-Identifier: Apache-2.0
// The tables: kinds by name, and the attributes that a person may write.
#include "model/layer_kind.h"

#include <string.h>

#include "model/layer_expand.h"
#include "ops/experts.h"

// Largest counts: of units, filters and image sides; and of window sides, strides and padding.
#define MAX_COUNT   16777216
#define MAX_WINDOW  65535
#define MAX_BUCKETS 256 // in both directions

#define BOOLEAN "false", "true"
#define ACTIVATIONS                                                                                          \
    "none", "relu", "relu6", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid", "hard_sigmoid", "hard_swish",   \
        "leaky_relu", "softplus", "mish"
#define INITS                                                                                                \
    "glorot_uniform", "he_uniform", "glorot_normal", "he_normal", "he_normal_fan_out", "normal",             \
        "truncated_normal", "uniform"

static const attr_row attr_rows[ATTR_ID_COUNT] = {
    [ATTR_UNITS] = {.name = "units", .type = ATTR_TYPE_INT, .required = true, .min = 1, .max = MAX_COUNT},
    [ATTR_FILTERS] = {.name = "filters", .type = ATTR_TYPE_INT, .required = true, .min = 1, .max = MAX_COUNT},
    [ATTR_KERNEL] = {.name = "kernel", .type = ATTR_TYPE_PAIR, .required = true, .min = 1, .max = MAX_WINDOW},
    [ATTR_SIZE] = {.name = "size", .type = ATTR_TYPE_PAIR, .required = true, .min = 1, .max = MAX_WINDOW},
    [ATTR_STRIDE] = {.name = "stride", .type = ATTR_TYPE_PAIR, .min = 1, .max = MAX_WINDOW, .fallback = 1},
    [ATTR_DILATION] =
        {.name = "dilation", .type = ATTR_TYPE_PAIR, .min = 1, .max = MAX_WINDOW, .fallback = 1},
    [ATTR_POOL_STRIDE] =
        {.name = "stride", .type = ATTR_TYPE_PAIR, .min = 1, .max = MAX_WINDOW, .fallback = 0},
    [ATTR_PADDING] = {.name = "padding", .type = ATTR_TYPE_PADDING, .min = 0, .max = MAX_WINDOW},
    [ATTR_EDGES] =
        {.name = "padding", .type = ATTR_TYPE_EDGES, .required = true, .min = 0, .max = MAX_WINDOW},
    [ATTR_TAPS] = {.name = "kernel", .type = ATTR_TYPE_INT, .required = true, .min = 1, .max = MAX_WINDOW},
    [ATTR_PLACES] = {.name = "size", .type = ATTR_TYPE_INT, .required = true, .min = 1, .max = MAX_WINDOW},
    [ATTR_STEP] = {.name = "stride", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_WINDOW, .fallback = 1},
    [ATTR_POOL_STEP] = {.name = "stride", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_WINDOW},
    [ATTR_SPREAD] = {.name = "dilation", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_WINDOW, .fallback = 1},
    [ATTR_ENDS] =
        {.name = "padding", .type = ATTR_TYPE_PADDING, .min = 0, .max = MAX_WINDOW, .choices = {"causal"}},
    [ATTR_GROUPS] = {.name = "groups", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_COUNT, .fallback = 1},
    [ATTR_NORM_GROUPS] =
        {.name = "groups", .type = ATTR_TYPE_INT, .required = true, .min = 1, .max = MAX_COUNT},
    [ATTR_MULTIPLIER] =
        {.name = "multiplier", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_WINDOW, .fallback = 1},
    [ATTR_BIAS] = {.name = "bias", .type = ATTR_TYPE_CHOICE, .fallback = 1, .choices = {BOOLEAN, "own"}},
    [ATTR_KEY_BIAS] = {.name = "key_bias", .type = ATTR_TYPE_CHOICE, .choices = {"as_bias", BOOLEAN}},
    [ATTR_OUTPUT_BIAS] = {.name = "output_bias", .type = ATTR_TYPE_CHOICE, .choices = {"as_bias", BOOLEAN}},
    [ATTR_ACTIVATION] = {.name = "activation", .type = ATTR_TYPE_CHOICE, .choices = {ACTIVATIONS}},
    [ATTR_INIT] = {.name = "init", .type = ATTR_TYPE_CHOICE, .choices = {INITS}},
    [ATTR_TABLE_INIT] = {.name = "init", .type = ATTR_TYPE_CHOICE, .fallback = 7, .choices = {INITS}},
    [ATTR_INIT_SCALE] =
        {.name = "init_scale", .type = ATTR_TYPE_REAL, .min = 0, .max = 1000, .fallback = 0.05},
    [ATTR_OUTPUT_SCALE] = {.name = "output_init_scale", .type = ATTR_TYPE_REAL, .min = 0, .max = 1000},
    [ATTR_EPSILON] = {.name = "epsilon", .type = ATTR_TYPE_REAL, .min = 1e-12, .max = 1, .fallback = 1e-3},
    [ATTR_MOMENTUM] = {.name = "momentum", .type = ATTR_TYPE_REAL, .min = 0, .max = 1, .fallback = 0.01},
    [ATTR_SHAPE] = {.name = "shape", .type = ATTR_TYPE_SHAPE, .required = true, .min = 1, .max = INT32_MAX},
    [ATTR_COUNT_PADDING] = {.name = "count_padding", .type = ATTR_TYPE_CHOICE, .choices = {BOOLEAN}},
    [ATTR_TRANSPOSE] = {.name = "transpose", .type = ATTR_TYPE_CHOICE, .choices = {BOOLEAN}},
    [ATTR_VOCABULARY] = {.name = "vocabulary", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_COUNT},
    [ATTR_HEADS] = {.name = "heads", .type = ATTR_TYPE_INT, .required = true, .min = 1, .max = MAX_WINDOW},
    [ATTR_KV_HEADS] = {.name = "kv_heads", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_WINDOW},
    [ATTR_HEAD_DIM] = {.name = "head_dim", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_WINDOW},
    [ATTR_ROTARY] = {.name = "rotary", .type = ATTR_TYPE_REAL, .min = 1, .max = 1e12},
    [ATTR_QK_EPSILON] = {.name = "qk_norm_epsilon", .type = ATTR_TYPE_REAL, .min = 1e-12, .max = 1},
    [ATTR_SCALE] = {.name = "scale", .type = ATTR_TYPE_REAL, .min = 1e-6, .max = 1e6},
    [ATTR_BUCKETS] = {.name = "buckets", .type = ATTR_TYPE_INT, .min = 2, .max = MAX_BUCKETS, .fallback = 32},
    [ATTR_DISTANCE] =
        {.name = "distance", .type = ATTR_TYPE_INT, .min = 2, .max = MAX_COUNT, .fallback = 128},
    [ATTR_FORM] = {.name = "form", .type = ATTR_TYPE_CHOICE, .choices = {"streaming", "materialised"}},
    [ATTR_IN_PLACE] = {.name = "in_place", .type = ATTR_TYPE_CHOICE, .choices = {BOOLEAN}},
    [ATTR_PACKED] = {.name = "packed", .type = ATTR_TYPE_CHOICE, .choices = {BOOLEAN, "views"}},
    [ATTR_CAUSAL] = {.name = "causal", .type = ATTR_TYPE_CHOICE, .choices = {BOOLEAN}},
    [ATTR_DROPOUT] = {.name = "dropout", .type = ATTR_TYPE_REAL, .min = 0, .max = 0.999},
    [ATTR_RATE] = {.name = "rate", .type = ATTR_TYPE_REAL, .required = true, .min = 0, .max = 0.999},
    [ATTR_APPROXIMATE] = {.name = "approximate", .type = ATTR_TYPE_CHOICE, .choices = {BOOLEAN}},
    [ATTR_SLOPE] =
        {.name = "slope", .type = ATTR_TYPE_REAL, .min = 0, .max = 1, .fallback = LAYER_LEAKY_SLOPE},
    [ATTR_AXIS] =
        {.name = "axis", .type = ATTR_TYPE_INT, .min = -OP_MAX_RANK, .max = OP_MAX_RANK - 1, .fallback = -1},
    [ATTR_FROM] = {.name = "from", .type = ATTR_TYPE_INT, .min = 0, .max = INT32_MAX - 1},
    [ATTR_COUNT] = {.name = "count", .type = ATTR_TYPE_INT, .min = 1, .max = INT32_MAX, .fallback = 0},
    [ATTR_COPIES] = {.name = "count", .type = ATTR_TYPE_INT, .required = true, .min = 1, .max = MAX_COUNT},
    [ATTR_ROWS] = {.name = "rows", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_COUNT},
    [ATTR_FACTOR] = {.name = "factor", .type = ATTR_TYPE_REAL, .required = true, .min = -1e6, .max = 1e6},
    [ATTR_INITIAL] = {.name = "initial", .type = ATTR_TYPE_REAL, .min = -1e6, .max = 1e6, .fallback = 1},
    [ATTR_OF] = {.name = "of", .type = ATTR_TYPE_CHOICE, .choices = {"sum", "mean"}},
    [ATTR_EXPERTS] =
        {.name = "experts", .type = ATTR_TYPE_INT, .required = true, .min = 1, .max = OP_MAX_EXPERTS},
    [ATTR_TOP_K] = {.name = "top_k", .type = ATTR_TYPE_INT, .min = 1, .max = OP_MAX_CHOICES, .fallback = 2},
    [ATTR_CAPACITY_FACTOR] =
        {.name = "capacity_factor", .type = ATTR_TYPE_REAL, .min = 0.01, .max = 1024, .fallback = 1.25},
    [ATTR_GATED] = {.name = "gated", .type = ATTR_TYPE_CHOICE, .fallback = 1, .choices = {BOOLEAN}},
    [ATTR_NORMALISE] = {.name = "normalise", .type = ATTR_TYPE_CHOICE, .fallback = 1, .choices = {BOOLEAN}},
    [ATTR_AXES] =
        {.name = "axes", .type = ATTR_TYPE_SHAPE, .required = true, .min = 1, .max = OP_MAX_RANK - 1},
    [ATTR_SHIFT] =
        {.name = "shift", .type = ATTR_TYPE_PAIR, .required = true, .min = -MAX_WINDOW, .max = MAX_WINDOW},
    [ATTR_SIZE_OR_TO] = {.name = "size", .type = ATTR_TYPE_PAIR, .min = 1, .max = MAX_WINDOW},
    [ATTR_TO] = {.name = "to", .type = ATTR_TYPE_PAIR, .min = 1, .max = MAX_COUNT},
    [ATTR_MODE] = {.name = "mode", .type = ATTR_TYPE_CHOICE, .choices = {"nearest", "bilinear"}},
    [ATTR_CORNERS] = {.name = "align_corners", .type = ATTR_TYPE_CHOICE, .choices = {BOOLEAN}},
    [ATTR_SHIFTED] = {.name = "shift", .type = ATTR_TYPE_PAIR, .min = 0, .max = MAX_WINDOW},
    [ATTR_PARAMETERS] = {.name = "parameters", .type = ATTR_TYPE_INT, .min = 0, .max = 0x1p40},
    [ATTR_BALANCE] = {.name = "balance", .type = ATTR_TYPE_REAL, .min = 0, .max = 1e6},
};

static const layer_kind *const kinds[LAYER_KIND_COUNT] = {
#define X(name) [LAYER_##name] = &layer_kind_##name,
    LAYER_KIND_MAP(X)
#undef X
};

const layer_kind *layer_kind_at(layer_kind_id id)
{
    return kinds[id];
}

layer_kind_id layer_kind_find(const char *name)
{
    layer_kind_id id = 0;
    while (id < LAYER_KIND_COUNT && strcmp(kinds[id]->name, name) != 0) {
        id++;
    }
    return id;
}

attr_id layer_kind_width(const layer_kind *kind)
{
    const uint8_t *id = kind->attrs;
    while (*id != ATTR_NONE && *id != ATTR_UNITS && *id != ATTR_FILTERS) {
        id++;
    }
    return (attr_id)*id;
}

const attr_row *attr_row_of(attr_id id)
{
    return &attr_rows[id];
}
