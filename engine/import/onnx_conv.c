// SPDX-License-Identifier: Apache-2.0
// What convolutions over images and over sequences share: their weights, and a batch norm that an exporter multiplied into them.
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "onnx_layers.h"

// An exporter that computes for inference multiplies a batch norm into the convolution before it. Of PyTorch's, the one by
// TorchScript writes such weights under numbers, and the one by torch.export the norm's result in the place of its own.
bool conv_has_folded_norm(walk *w, const onnx_tensor *weight)
{
    const char *out = w->node->output_count > 0 ? intern_text(&w->g->values, w->node->outputs[0]) : NULL;
    return strcmp(w->g->producer, "pytorch") == 0 &&
           ((strncmp(weight->name, "onnx::Conv_", 11) == 0 && walk_has(w, 2)) ||
            (out != NULL && strncmp(out, "getitem", 7) == 0));
}

// The newer exporter keeps the name of a bias that the convolution had beside its norm; one that the norm brought is
// "conv.weight_bias". The older numbers both.
bool conv_has_own_bias(const onnx_tensor *bias)
{
    return text_ends_in(bias->name, ".bias");
}

layer *conv_as_image(walk *w, layer *l)
{
    const int64_t row[4] = {ONNX_BATCH, 1, l == NULL ? 0 : l->shape[1], l == NULL ? 0 : l->shape[2]};
    return l != NULL && l->rank == 3 ? walk_reshaped(w, l, 4, row) : l;
}

layer *conv_unfolded_norm(walk *w, layer *conv)
{
    layer *image = conv_as_image(w, conv);
    layer *norm = image == NULL ? NULL : walk_emit(w, "batch_norm", image, image->rank, image->shape);
    if (norm == NULL) {
        return NULL;
    }
    norm->path = conv->path[0] != '\0' ? onnx_print(w->g, "%.150s_bn", conv->path) : "";
    norm->name = conv->name[0] != '\0' ? onnx_print(w->g, "%.150s_bn", conv->name) : "";
    layer_real(w, norm, "epsilon", 1e-5);
    layer_real(w, norm, "momentum", 0.1);
    norm->count = 2 * conv->shape[conv->rank - 1];
    w->folded_norms++;
    return w->g->status == HR_OK ? norm : NULL;
}

const onnx_tensor *conv_weight(walk *w, uint32_t k, uint32_t rank)
{
    const value v = walk_value(w, k);
    if (v.weight == NULL || v.weight->rank != rank) {
        return walk_refuse(w, "needs weights of %u dimensions, as they are in the file", rank);
    }
    for (uint32_t d = 0; d < rank; d++) {
        if (v.weight->dims[d] < 1) {
            return walk_refuse(w, "the weight '%.60s' has no elements", v.weight->name);
        }
    }
    return v.weight;
}
