// SPDX-License-Identifier: Apache-2.0
// Layers of images: windows that slide over [height, width, channels].
#include <inttypes.h>
#include <string.h>

#include "onnx_fold.h"
#include "onnx_layers.h"

// What a node with windows says.
typedef struct window {
    int64_t kernel[2], stride[2], dilation[2], before[2], behind[2], out[2], have[2];
    int64_t reach[2]; // pixels that a window lies over
    bool ceil;
} window;

typedef enum pad_kind { PAD_AMOUNT, PAD_SAME, PAD_ZEROS } pad_kind;

static bool two_of(walk *w, const char *key, int64_t otherwise, uint32_t wanted, int64_t *out)
{
    const onnx_attribute *a = onnx_find(w->node, key);
    for (uint32_t k = 0; k < wanted; k++) {
        out[k] = otherwise;
    }
    if (a == NULL || a->count == 0) {
        return true;
    }
    if (a->count != wanted) {
        return walk_refuse(w, "needs windows over height and width, had %u numbers in '%s'", a->count, key);
    }
    for (uint32_t k = 0; k < wanted; k++) {
        out[k] = a->wholes[k];
        if (out[k] < 0 || out[k] > 65535) {
            return walk_refuse(w, "needs %s from 0 to 65535, had %" PRId64, key, out[k]);
        }
    }
    return true;
}

static void same_upper(window *v)
{
    for (int k = 0; k < 2; k++) {
        const int64_t out = (v->have[k] + v->stride[k] - 1) / v->stride[k];
        const int64_t total = (out - 1) * v->stride[k] + v->reach[k] - v->have[k];
        v->before[k] = total > 0 ? total / 2 : 0;
        v->behind[k] = total > 0 ? total - total / 2 : 0;
    }
}

static bool read_window(walk *w, const tensor *x, const int64_t *kernel, window *v)
{
    int64_t pads[4];
    const onnx_attribute *same = onnx_find(w->node, "auto_pad");
    if (x->rank != 4) {
        return walk_refuse(w, "needs [batch, channels, height, width], had %u dimensions", x->rank);
    }
    if (!two_of(w, "kernel_shape", 1, 2, v->kernel) || !two_of(w, "strides", 1, 2, v->stride) ||
        !two_of(w, "dilations", 1, 2, v->dilation) || !two_of(w, "pads", 0, 4, pads)) {
        return false;
    }
    v->ceil = onnx_whole(w->node, "ceil_mode", 0) != 0;
    for (int k = 0; k < 2; k++) {
        v->kernel[k] = kernel != NULL ? kernel[k] : v->kernel[k];
        v->have[k] = dim_size(x, 2 + (uint32_t)k);
        v->before[k] = pads[k];
        v->behind[k] = pads[2 + k];
        if (v->kernel[k] < 1 || v->kernel[k] > 65535 || v->stride[k] < 1 || v->dilation[k] < 1) {
            return walk_refuse(w, "needs windows, strides and dilations of 1 or more");
        }
        v->dilation[k] = v->kernel[k] > 1 ? v->dilation[k] : 1;
        v->reach[k] = (v->kernel[k] - 1) * v->dilation[k] + 1;
        if (v->dilation[k] != 1 && kernel == NULL) {
            return walk_refuse(w, "pooling with a dilation of %" PRId64 ", which no layer has",
                               v->dilation[k]);
        }
    }
    if (same != NULL && strcmp(same->word, "SAME_UPPER") == 0) {
        same_upper(v);
    } else if (same != NULL && strcmp(same->word, "SAME_LOWER") == 0) {
        return walk_refuse(w, "padding of which more lies before the image than behind (SAME_LOWER)");
    }
    for (int k = 0; k < 2; k++) {
        const int64_t room = v->have[k] + v->before[k] + v->behind[k] - v->reach[k];
        if (room < 0) {
            return walk_refuse(w, "windows of %" PRId64 " over an image of %" PRId64, v->reach[k],
                               v->have[k]);
        }
        v->out[k] = (v->ceil ? room + v->stride[k] - 1 : room) / v->stride[k] + 1;
        v->out[k] -= v->ceil && (v->out[k] - 1) * v->stride[k] >= v->have[k] + v->before[k] ? 1 : 0;
        v->behind[k] = (v->out[k] - 1) * v->stride[k] + v->reach[k] - v->have[k] - v->before[k];
    }
    return true;
}

static pad_kind kind_of(const window *v)
{
    bool same = true, amount = v->before[0] == v->before[1];
    for (int k = 0; k < 2; k++) {
        const int64_t out = (v->have[k] + v->stride[k] - 1) / v->stride[k];
        const int64_t total = (out - 1) * v->stride[k] + v->reach[k] - v->have[k];
        const int64_t all = total > 0 ? total : 0, behind = v->behind[k] > 0 ? v->behind[k] : 0;
        same = same && out == v->out[k] && all / 2 == v->before[k] && all - all / 2 == behind;
        amount = amount && v->behind[k] > v->before[k] - v->stride[k] && v->behind[k] <= v->before[k];
    }
    return amount ? PAD_AMOUNT : same ? PAD_SAME : PAD_ZEROS;
}

static layer *zero_pad(walk *w, layer *l, const int64_t *before, const int64_t *behind)
{
    const int64_t shape[4] = {l->shape[0], l->shape[1] + before[0] + behind[0],
                              l->shape[2] + before[1] + behind[1], l->shape[3]};
    layer *out = walk_emit(w, "zero_pad", l, 4, shape);
    if (out != NULL) {
        layer_word(w, out, "padding",
                   onnx_print(w->g, "[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]", before[0],
                              behind[0], before[1], behind[1]));
    }
    return out;
}

// The image with zeros around it, where no attribute says the padding.
static layer *padded(walk *w, layer *l, const window *v)
{
    int64_t behind[2];
    if (l == NULL || kind_of(v) != PAD_ZEROS) {
        return l;
    }
    for (int k = 0; k < 2; k++) {
        behind[k] = v->behind[k] > 0 ? v->behind[k] : 0;
    }
    walk_note(w, "A padding that differs by side is a zero_pad layer of its own, which copies the image.");
    return zero_pad(w, l, v->before, behind);
}

static void put_padding(walk *w, layer *l, const window *v)
{
    const pad_kind kind = kind_of(v);
    if (kind == PAD_SAME) {
        layer_word(w, l, "padding", "same");
    } else if (kind == PAD_AMOUNT && v->before[0] > 0) {
        layer_whole(w, l, "padding", v->before[0]);
    }
}

static tensor *image_of(walk *w, layer *l)
{
    static const uint32_t order[4] = {0, 3, 1, 2};
    return l == NULL ? NULL : tensor_plain(w, l, order);
}

// ---- convolutions ---------------------------------------------------------------------------------------------

bool take_conv(walk *w)
{
    window v;
    tensor *x = walk_tensor(w, 0);
    if (x != NULL && x->rank == 3) {
        return take_conv_steps(w, x);
    }
    const onnx_tensor *weight = x == NULL ? NULL : conv_weight(w, 1, 4);
    const onnx_tensor *bias = weight == NULL || !walk_has(w, 2) ? NULL : conv_weight(w, 2, 1);
    if (weight == NULL || w->g->status != HR_OK || !read_window(w, x, weight->dims + 2, &v)) {
        return false;
    }
    const int64_t groups = onnx_whole(w->node, "group", 1), filters = weight->dims[0];
    const int64_t channels = dim_size(x, 1);
    if (groups < 1 || channels % groups != 0 || filters % groups != 0 ||
        weight->dims[1] != channels / groups) {
        return walk_refuse(
            w, "%" PRId64 " filters of %" PRId64 " channels in %" PRId64 " groups, over %" PRId64 " channels",
            filters, weight->dims[1], groups, channels);
    }
    layer *l = padded(w, walk_image(w, x), &v);
    const bool depthwise = groups == channels && groups > 1, folded = conv_has_folded_norm(w, weight);
    const int64_t shape[4] = {ONNX_BATCH, v.out[0], v.out[1], filters};
    layer *out = l == NULL ? NULL : walk_emit(w, depthwise ? "depthwise_conv2d" : "conv2d", l, 4, shape);
    if (out == NULL) {
        return false;
    }
    layer_whole(w, out, depthwise ? "multiplier" : "filters", depthwise ? filters / channels : filters);
    layer_pair(w, out, "kernel", v.kernel);
    layer_pair(w, out, "stride", v.stride);
    if (v.dilation[0] != 1 || v.dilation[1] != 1) {
        layer_pair(w, out, "dilation", v.dilation);
    }
    put_padding(w, out, &v);
    if (!depthwise) {
        layer_whole(w, out, "groups", groups);
    }
    const onnx_tensor *own = bias == NULL || (folded && !conv_has_own_bias(bias)) ? NULL : bias;
    layer_word(w, out, "bias", own != NULL ? "true" : "false");
    layer_param(w, out, weight);
    layer_param(w, out, own);
    return walk_give(w, 0, image_of(w, folded ? conv_unfolded_norm(w, out) : out));
}

// What a transposed convolution says of its padding.
typedef struct turned {
    int64_t pads[4], more[2], stride[2], dilation[2], out[2];
    bool plain, same; // the same on all sides; as our `same`
} turned;

static bool read_turned(walk *w, const layer *l, const onnx_tensor *weight, turned *v)
{
    if (!two_of(w, "output_padding", 0, 2, v->more) || !two_of(w, "pads", 0, 4, v->pads) ||
        !two_of(w, "strides", 1, 2, v->stride) || !two_of(w, "dilations", 1, 2, v->dilation)) {
        return false;
    }
    if (onnx_whole(w->node, "group", 1) != 1 || v->dilation[0] != 1 || v->dilation[1] != 1 ||
        onnx_find(w->node, "output_shape") != NULL || weight->dims[0] != l->shape[3]) {
        return walk_refuse(w, "a transposed convolution in groups, dilated or with a given output");
    }
    v->plain = v->more[0] == 0 && v->more[1] == 0;
    v->same = true;
    for (int k = 0; k < 2; k++) {
        const int64_t kernel = weight->dims[2 + k], total = kernel - v->stride[k],
                      before = total > 0 ? total / 2 : 0;
        v->plain = v->plain && v->pads[k] == v->pads[0] && v->pads[2 + k] == v->pads[0];
        v->same = v->same && v->pads[k] == before && v->pads[2 + k] - v->more[k] == total - before;
        if (v->stride[k] < 1 || kernel > 65535) {
            return walk_refuse(w, "needs strides of 1 or more and kernels up to 65535");
        }
        v->out[k] = (l->shape[1 + k] - 1) * v->stride[k] + kernel + v->more[k] - v->pads[k] - v->pads[2 + k];
    }
    return v->plain || v->same ||
           walk_refuse(w, "a transposed convolution whose padding differs by side") != NULL;
}

bool take_conv_transpose(walk *w)
{
    turned v;
    tensor *x = walk_tensor(w, 0);
    const onnx_tensor *weight = x == NULL ? NULL : conv_weight(w, 1, 4);
    const onnx_tensor *bias = weight == NULL || !walk_has(w, 2) ? NULL : conv_weight(w, 2, 1);
    layer *l = weight == NULL || w->g->status != HR_OK ? NULL : walk_image(w, x);
    if (l == NULL || !read_turned(w, l, weight, &v)) {
        return false;
    }
    const int64_t shape[4] = {ONNX_BATCH, v.out[0], v.out[1], weight->dims[1]};
    layer *out = walk_emit(w, "conv2d_transpose", l, 4, shape);
    if (out == NULL) {
        return false;
    }
    layer_whole(w, out, "filters", weight->dims[1]);
    layer_pair(w, out, "kernel", weight->dims + 2);
    layer_pair(w, out, "stride", v.stride);
    layer_word(w, out, "bias", bias != NULL ? "true" : "false");
    if (!v.plain) {
        layer_word(w, out, "padding", "same");
    } else if (v.pads[0] > 0) {
        layer_whole(w, out, "padding", v.pads[0]);
    }
    layer_param(w, out, weight);
    layer_param(w, out, bias);
    return walk_give(w, 0, image_of(w, out));
}

// ---- pooling --------------------------------------------------------------------------------------------------

static bool pool(walk *w, const char *kind, bool counts_padding)
{
    window v;
    tensor *x = walk_tensor(w, 0);
    if (x != NULL && x->rank == 3) {
        return take_pool_steps(w, x, kind, counts_padding);
    }
    if (x == NULL || !read_window(w, x, NULL, &v)) {
        return false;
    }
    layer *l = walk_image(w, x);
    const bool padding = v.before[0] > 0 || v.before[1] > 0, counted = counts_padding && padding;
    const bool further = v.behind[0] > v.before[0] || v.behind[1] > v.before[1];
    if (l == NULL || kind_of(&v) == PAD_ZEROS ||
        (counted && further)) { // zeros would be maxima, or would count in the mean
        return l == NULL ? false
                         : walk_refuse(w, "windows that reach further behind the image than its padding; try "
                                          "ceil_mode=False") != NULL;
    }
    if (kind_of(&v) == PAD_AMOUNT && (v.before[0] >= v.kernel[0] || v.before[0] >= v.kernel[1])) {
        return walk_refuse(w,
                           "needs padding below its windows of %" PRId64 "x%" PRId64 " pixels, had %" PRId64,
                           v.kernel[0], v.kernel[1], v.before[0]);
    }
    const int64_t shape[4] = {l->shape[0], v.out[0], v.out[1], l->shape[3]};
    layer *out = walk_emit(w, kind, l, 4, shape);
    if (out == NULL) {
        return false;
    }
    layer_pair(w, out, "size", v.kernel);
    if (memcmp(v.kernel, v.stride, sizeof v.kernel) != 0) {
        layer_pair(w, out, "stride", v.stride);
    }
    put_padding(w, out, &v);
    if (counted) {
        layer_word(w, out, "count_padding", "true");
    }
    return walk_give(w, 0, image_of(w, out));
}

bool take_max_pool(walk *w)
{
    if (w->node->output_count > 1 && w->node->outputs[1] != ONNX_NOTHING) {
        return walk_refuse(w, "gives the places of the maxima, which no layer does");
    }
    return pool(w, "max_pool", false);
}

bool take_average_pool(walk *w)
{
    return pool(w, "avg_pool", onnx_whole(w->node, "count_include_pad", 0) != 0);
}

enum { RESIZED_MOST = 65535, TIMES_MOST = 64 };

// ---- the size of an image -------------------------------------------------------------------------------------

static const char *word_of(const walk *w, const char *key, const char *otherwise)
{
    const onnx_attribute *a = onnx_find(w->node, key);
    return a == NULL ? otherwise : a->word;
}

// Height and width of the result, from `scales` or `sizes`.
static bool resized_to(walk *w, const layer *l, int64_t to[2])
{
    const numbers *scales = walk_has(w, 2) ? walk_needs_numbers(w, 2) : NULL;
    const bool by_scale = scales != NULL && numbers_count(scales) == 4;
    const numbers *sizes = by_scale || !walk_has(w, 3) ? NULL : walk_needs_numbers(w, 3);
    if (w->g->status != HR_OK) {
        return false;
    }
    if (!by_scale && (sizes == NULL || numbers_count(sizes) != 4)) {
        return walk_refuse(w, "needs the scales or sizes of four dimensions");
    }
    const char *kept = word_of(w, "keep_aspect_ratio_policy", "stretch"); // means nothing beside scales
    if (!by_scale && strcmp(kept, "stretch") != 0) {
        return walk_refuse(
            w, "a resizing whose keep_aspect_ratio_policy is %.20s, where our layer has stretch", kept);
    }
    const double batch = by_scale ? numbers_at(scales, 0) : numbers_at(sizes, 0),
                 channels = by_scale ? numbers_at(scales, 1) : numbers_at(sizes, 1);
    const bool same = by_scale ? batch == 1 && channels == 1
                               : (batch == ONNX_BATCH || batch == (double)w->fixed_batch) &&
                                     channels == (double)l->shape[3];
    if (!same) {
        return walk_refuse(w, "an image of another size in the batch or the channels");
    }
    for (int k = 0; k < 2; k++) {
        const double have = (double)l->shape[1 + k];
        const double want = by_scale ? numbers_at(scales, 2 + k) * have : numbers_at(sizes, 2 + k);
        to[k] = numbers_whole(want);
        if (have < 1 || (double)to[k] != want || to[k] < 1 || to[k] > RESIZED_MOST) {
            return walk_refuse(w,
                               "an image of %g pixels resized to %g, where a whole number up to %d is needed",
                               have, want, RESIZED_MOST);
        }
    }
    return true;
}

static bool is_half(const char *grid)
{
    return strcmp(grid, "half_pixel") == 0 || strcmp(grid, "pytorch_half_pixel") == 0 ||
           strcmp(grid, "half_pixel_symmetric") == 0;
}

// Our layer repeats each place. By a whole multiple that is also what the nearest of half pixels is, and what is below the
// place of a grid that begins at the same corner.
static bool repeats_places(walk *w, const layer *l, const int64_t to[2])
{
    const char *grid = word_of(w, "coordinate_transformation_mode", "half_pixel");
    const char *by = word_of(w, "nearest_mode", "round_prefer_floor");
    const bool nearest = strcmp(by, "round_prefer_floor") == 0 || strcmp(by, "round_prefer_ceil") == 0;
    if (!(is_half(grid) && nearest) && !(strcmp(grid, "asymmetric") == 0 && strcmp(by, "floor") == 0)) {
        return walk_refuse(
            w, "an upsampling over the grid %.30s rounded by %.30s, where our layer repeats each place", grid,
            by);
    }
    for (int k = 0; k < 2; k++) {
        const int64_t have = l->shape[1 + k];
        if (to[k] % have != 0 || to[k] / have > TIMES_MOST) {
            return walk_refuse(w, "an upsampling by %g, which is no whole multiple up to %d",
                               (double)to[k] / (double)have, TIMES_MOST);
        }
    }
    return true;
}

// Our layer's grid is of half pixels, or one whose corners lie on one another. PyTorch's exporter writes pytorch_half_pixel
// for the first, which is something else where one pixel is left.
static bool mixes_places(walk *w, const layer *l, const int64_t to[2])
{
    const char *grid = word_of(w, "coordinate_transformation_mode", "half_pixel");
    const bool one = (to[0] == 1 && l->shape[1] > 1) || (to[1] == 1 && l->shape[2] > 1);
    if (onnx_whole(w->node, "antialias", 0) != 0) {
        return walk_refuse(w, "a resizing with antialias");
    }
    return (is_half(grid) && !(one && strcmp(grid, "pytorch_half_pixel") == 0)) ||
           strcmp(grid, "align_corners") == 0 ||
           walk_refuse(w,
                       "a bilinear resizing over the grid %.30s%s, where our layer has half pixels or "
                       "aligned corners",
                       grid, one ? " to one pixel" : "") != NULL;
}

static void say_bilinear(walk *w, layer *out, const layer *l, const int64_t to[2])
{
    const bool whole = to[0] % l->shape[1] == 0 && to[1] % l->shape[2] == 0;
    const int64_t times[2] = {to[0] / l->shape[1], to[1] / l->shape[2]};
    layer_pair(w, out, whole ? "size" : "to", whole ? times : to);
    layer_word(w, out, "mode", "bilinear");
    if (strcmp(word_of(w, "coordinate_transformation_mode", ""), "align_corners") == 0) {
        layer_word(w, out, "align_corners", "true");
    }
}

bool take_resize(walk *w)
{
    const char *mode = word_of(w, "mode", "nearest");
    const bool nearest = strcmp(mode, "nearest") == 0;
    tensor *x = walk_tensor(w, 0);
    layer *l = x == NULL ? NULL : walk_image(w, x);
    int64_t to[2];
    if (l == NULL) {
        return false;
    }
    if (!nearest && strcmp(mode, "linear") != 0) {
        return walk_refuse(w, "a resizing in mode %.20s, where our layer has nearest and linear", mode);
    }
    if (onnx_find(w->node, "axes") != NULL) {
        return walk_refuse(w, "a resizing of some axes, where all four are needed");
    }
    if (!resized_to(w, l, to) || !(nearest ? repeats_places(w, l, to) : mixes_places(w, l, to))) {
        return false;
    }
    const int64_t shape[4] = {l->shape[0], to[0], to[1], l->shape[3]};
    layer *out = walk_emit(w, "upsample", l, 4, shape);
    if (out != NULL && nearest) {
        layer_pair(w, out, "size", (const int64_t[]){to[0] / l->shape[1], to[1] / l->shape[2]});
    } else if (out != NULL) {
        say_bilinear(w, out, l, to);
    }
    return walk_give(w, 0, image_of(w, out));
}

bool take_pad(walk *w)
{
    const onnx_attribute *mode = onnx_find(w->node, "mode");
    tensor *x = walk_tensor(w, 0);
    const numbers *n = x == NULL ? NULL : walk_needs_numbers(w, 1);
    const value fill = walk_value(w, 2);
    double zero = 0;
    int64_t pads[2 * ONNX_RANK], all = 0;
    if (n == NULL) {
        return false;
    }
    if ((walk_has(w, 2) && !walk_number(w, &fill, &zero)) || zero != 0 ||
        (mode != NULL && strcmp(mode->word, "constant") != 0) || numbers_count(n) != 2 * (int64_t)x->rank ||
        walk_has(w, 3)) {
        return walk_refuse(w, "a padding other than zeros around an image");
    }
    for (uint32_t k = 0; k < 2 * x->rank; k++) {
        pads[k] = numbers_whole(numbers_at(n, k));
        if (pads[k] < 0 || pads[k] > 65535 || (pads[k] > 0 && (x->rank != 4 || k % 4 < 2))) {
            return walk_refuse(w, "a padding other than zeros around an image");
        }
        all += pads[k];
    }
    if (all == 0) {
        return walk_give(w, 0, x);
    }
    layer *l = walk_image(w, x);
    return l != NULL && walk_give(w, 0, image_of(w, zero_pad(w, l, pads + 2, pads + 6)));
}

// ---- batch norm -----------------------------------------------------------------------------------------------

bool take_batch_norm(walk *w)
{
    axes head;
    const tensor *x = walk_tensor(w, 0);
    const onnx_tensor *gain = x == NULL ? NULL : conv_weight(w, 1, 1);
    const onnx_tensor *shift = gain == NULL ? NULL : conv_weight(w, 2, 1);
    if (shift == NULL) {
        return false;
    }
    if (x->rank < 2) {
        return walk_refuse(w, "needs channels, had %u dimensions", x->rank);
    }
    layer *l = walk_rows(w, &x, &x->dims[1], &head);
    if (l == NULL || gain->dims[0] != dim_size(x, 1) || shift->dims[0] != gain->dims[0]) {
        return l == NULL ? false : walk_refuse(w, "has weights of another size than its channels") != NULL;
    }
    l = conv_as_image(w, l);
    layer *out = l == NULL ? NULL : walk_emit(w, "batch_norm", l, l->rank, l->shape);
    tensor *t = out == NULL ? NULL : tensor_again(w, x);
    if (t == NULL) {
        return false;
    }
    const double momentum = 1 - onnx_real(w->node, "momentum", 0.9);
    layer_real(w, out, "epsilon", onnx_real(w->node, "epsilon", 1e-5));
    layer_real(w, out, "momentum", (double)(int64_t)(momentum * 1e6 + 0.5) / 1e6); // 1 - 0.9 of float32
    layer_param(w, out, gain);
    layer_param(w, out, shift);
    t->layer = out;
    return walk_give(w, 0, t);
}
