// SPDX-License-Identifier: Apache-2.0
#include "onnx_scores.h"

#include <string.h>

tensor *scores_by_head(walk *w, const tensor *x)
{
    tensor *t = tensor_again(w, x);
    if (t == NULL || x->rank == 4) {
        return t;
    }
    if (x->rank != 3 || x->axes.count == 0 || x->dims[0].count < 1 || x->dims[0].at[0] != x->axes.at[0]) {
        return walk_refuse(w, "a product of two tensors that are not [batch, heads, places, features]");
    }
    t->rank = 4;
    t->dims[3] = x->dims[2];
    t->dims[2] = x->dims[1];
    t->dims[1] = x->dims[0];
    t->dims[1].count--;
    memmove(t->dims[1].at, t->dims[1].at + 1, t->dims[1].count * sizeof t->dims[1].at[0]);
    t->dims[0].count = 1;
    return t;
}

tensor *scores_changed(walk *w, const tensor *x, const scores *to)
{
    tensor *t = tensor_again(w, x);
    layer *l = t == NULL ? NULL : onnx_take(w->g, 1, sizeof *l);
    scores *s = l == NULL ? NULL : onnx_take(w->g, 1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    *l = *x->layer;
    *s = *to;
    l->scores = s;
    t->layer = l;
    return t;
}
