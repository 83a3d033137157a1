// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "headroom/weights.h"

#include "base/file_name.h"
#include "families.h"
#include "gguf.h"
#include "safetensors.h"
#include "weights.h"

static void take(const tensors *t, hr_weights *out)
{
    out->tensors = t->places.count;
    out->parameters = t->parameters;
    out->bytes = t->bytes;
    out->data_bytes = t->data_bytes;
    out->held_bytes = t->held_bytes;
    out->type_count = t->sum_count;
    for (uint32_t k = 0; k < t->sum_count; k++) {
        const tensor_sum *sum = &t->sums[k];
        out->types[k] = (hr_weights_type){sum->type->name, sum->tensors, sum->elements, sum->bytes};
    }
}

_Static_assert((int)HR_WEIGHTS_TYPES >= (int)TENSOR_TYPES, "types of a file");

static hr_status read_gguf(const char *path, hr_weights *out, hr_err *err)
{
    gguf g = {0};
    const hr_status status = gguf_read(path, &g, err);
    if (status == HR_OK) {
        (void)text_copy(out->architecture, sizeof out->architecture, gguf_word(&g, "general.architecture"));
        out->names_network = family_knows_gguf(out->architecture, gguf_expert_count(&g) > 0);
        out->files = (uint64_t)gguf_split_count(&g);
        take(&g.list, out);
    }
    gguf_close(&g);
    return status;
}

static hr_status read_safetensors(const char *path, hr_weights *out, hr_err *err)
{
    tensors t = {0};
    char beside[WEIGHTS_PATH_BYTES];
    const hr_status status = safetensors_read(path, &t, err);
    out->names_network = weights_config_beside(path, beside);
    out->files = weights_shards(path);
    take(&t, out);
    tensors_deinit(&t);
    return status;
}

hr_status hr_weights_read(const char *path, hr_weights *out, hr_err *err)
{
    const bool is_gguf = file_kind_named(path) == HR_FILE_GGUF;
    *out = (hr_weights){.format = is_gguf ? "GGUF" : "safetensors", .files = 1};
    return is_gguf ? read_gguf(path, out, err) : read_safetensors(path, out, err);
}
