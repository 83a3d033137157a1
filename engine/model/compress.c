// SPDX-License-Identifier: Apache-2.0
#include "model/compress.h"

#include "model/compress_lora.h"
#include "model/compress_low_rank.h"

static hr_status compress(compressor *c, hr_err *err)
{
    const bool adapts = c->lora.rank > 0;
    if (!compressor_begin(c)) {
        return HR_FAIL(err, NOMEM, "no host memory to compress model %.64s", c->model);
    }
    HR_TRY((adapts ? compress_lora_begin : compress_low_rank_begin)(c, err));
    compressor_rewrite(c, adapts ? compress_lora_node : compress_low_rank_node);
    return c->b->broken ? HR_FAIL(err, NOMEM, "no host memory to compress model %.64s", c->model) : HR_OK;
}

hr_status model_compress(model_builder *b, const hr_knobs *knobs, const char *model, hr_err *err)
{
    compressor c = {.b = b, .knobs = knobs, .model = model};
    const bool known = lora_of(knobs, &c.lora) && low_rank_of(knobs, &c.low_rank);
    if (!known || (c.lora.rank == 0 && c.low_rank.rank == 0 && c.low_rank.ratio == 0)) {
        return HR_OK; // what is not known was refused
    }
    const hr_status status = compress(&c, err);
    compressor_end(&c);
    return status;
}
