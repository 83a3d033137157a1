// SPDX-License-Identifier: Apache-2.0
// Rotary positions as they are written out: x * cos + turned(x) * sin, with tables of numbers.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "onnx_layers.h"

// Of a table that is the same for all samples, one.
static numbers once(const numbers *n)
{
    numbers out = *n;
    for (uint32_t k = 0; k < n->rank; k++) {
        out.dims[k] = n->strides[k] == 0 ? 1 : n->dims[k];
    }
    return out;
}

// The base of rotary positions is known by their tables: cos and sin of place * base ** (-2i / features).
static bool find_base(walk *w, const numbers *cosines, const numbers *sines, int64_t features, double *base)
{
    const int64_t half = features / 2, count = numbers_count(cosines);
    if (count != numbers_count(sines) || features < 4 || count < 2 * features || count % features != 0 ||
        cosines->dims[cosines->rank - 1] != features) {
        return walk_refuse(w, "rotary positions of a head of %lld features in tables of other sizes",
                           (long long)features);
    }
    if (cosines->missing != NULL || sines->missing != NULL) {
        walk_note(w, "The tables of the rotary positions are in another file: their base is written as "
                     "10000, which changes no size.");
        *base = 10000;
        return true;
    }
    const double angle = atan2(numbers_at(sines, features + 1), numbers_at(cosines, features + 1));
    const double exact = angle > 0 ? pow(angle, -(double)half) : 0;
    for (int digits = 2; digits <= 6; digits++) { // 10000, not 9999.98: the tables are float32
        char words[32];
        bool all = numbers_work(w->g, count);
        (void)snprintf(words, sizeof words, "%.*g", digits, exact);
        if (!text_to_real(words, base) || *base <= 1) {
            continue;
        }
        for (int64_t k = 0; all && k < count; k++) {
            const int64_t place = k / features;
            const double turn = (double)place * pow(*base, -(double)(k % features % half) / (double)half);
            all = fabs(cos(turn) - numbers_at(cosines, k)) < 1e-2 &&
                  fabs(sin(turn) - numbers_at(sines, k)) < 1e-2;
        }
        if (all || w->g->status != HR_OK) {
            return all;
        }
    }
    return walk_refuse(w, "rotary positions other than place * base ** (-2i / features)");
}

tensor *rotary_sum(walk *w, const tensor *a, const tensor *b)
{
    double base = 0;
    if (a->layer->open != OPEN_TABLE || b->layer->open != OPEN_TABLE ||
        b->layer->inputs[0]->open != OPEN_TURNED) {
        return NULL;
    }
    const numbers cosines = once(a->layer->table), sines = once(b->layer->table);
    layer *source = a->layer->inputs[0];
    const layer *turned = b->layer->inputs[0]->inputs[0];
    if (source != turned && !(strcmp(turned->kind, "reshape") == 0 && turned->inputs[0] == source)) {
        return NULL;
    }
    if (!find_base(w, &cosines, &sines, dim_size(a, a->rank - 1), &base)) {
        return NULL;
    }
    tensor *x = tensor_again(w, a);
    if (x == NULL) {
        return NULL;
    }
    x->layer = source;
    tensor *out = walk_open(w, x, OPEN_ROTARY, x);
    if (out != NULL) {
        out->layer->factor = base;
    }
    return out;
}
