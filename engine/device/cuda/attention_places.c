// SPDX-License-Identifier: Apache-2.0
#include "attention_places.h"

attention_places attention_places_of(const op_query *q, const CUdeviceptr *in, const CUdeviceptr *out)
{
    const op_attention a = op_attention_of(q);
    const CUdeviceptr step = (CUdeviceptr)a.width * dtype_bytes((hr_dtype)q->in[0].dtype);
    attention_places at = {
        .q = in[0], .k = a.joined ? in[0] + step : in[1], .v = a.joined ? in[0] + 2 * step : in[2]};
    if (q->op == HR_OP_ATTENTION_BWD) {
        at.y = in[a.y];
        at.dy = in[a.dy];
        at.lse = in[a.lse];
        at.dq = out[0];
        at.dk = a.joined ? out[0] + step : out[1];
        at.dv = a.joined ? out[0] + 2 * step : out[2];
    }
    return at;
}
