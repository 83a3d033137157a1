// SPDX-License-Identifier: Apache-2.0
// The rows of layer_kind.h as a person reads them.
#include <stdio.h>

#include "headroom/layers.h"

#include "base/text.h"
#include "model/layer_kind.h"

bool hr_layer_kind_at(size_t index, hr_layer_kind *kind)
{
    if (index >= LAYER_KIND_COUNT) {
        return false;
    }
    const layer_kind *row = layer_kind_at((layer_kind_id)index);
    size_t count = 0;
    while (row->attrs[count] != ATTR_NONE) {
        count++;
    }
    *kind = (hr_layer_kind){row->name, count, row->min_inputs, row->max_inputs};
    return true;
}

static void choices_of(const attr_row *row, char out[HR_LAYER_VALUES_MAX])
{
    size_t length = 0;
    out[0] = '\0';
    for (int k = 0; row->choices[k] != NULL && length < HR_LAYER_VALUES_MAX; k++) {
        length += (size_t)snprintf(out + length, HR_LAYER_VALUES_MAX - length, "%s%s", k > 0 ? ", " : "",
                                   row->choices[k]);
    }
}

static void values_of(const attr_row *row, char out[HR_LAYER_VALUES_MAX])
{
    static const char *const written[] = {
        [ATTR_TYPE_INT] = "N",
        [ATTR_TYPE_PAIR] = "N or [height, width]",
        [ATTR_TYPE_REAL] = "a number",
        [ATTR_TYPE_CHOICE] = "",
        [ATTR_TYPE_PADDING] = "same, valid or N",
        [ATTR_TYPE_EDGES] = "N, [height, width] or [top, bottom, left, right]",
        [ATTR_TYPE_SHAPE] = "[a, b, …] of one sample",
    };
    if (row->type == ATTR_TYPE_CHOICE) {
        choices_of(row, out);
    } else if (row->type == ATTR_TYPE_PADDING && row->choices[0] != NULL) {
        (void)snprintf(out, HR_LAYER_VALUES_MAX, "same, valid, %s or N, %.10g to %.10g", row->choices[0],
                       row->min, row->max);
    } else {
        (void)snprintf(out, HR_LAYER_VALUES_MAX, "%s, %.10g to %.10g", written[row->type], row->min,
                       row->max);
    }
}

// A fallback below the range stands for another size or for all there is: no number to write.
static void fallback_of(const attr_row *row, char out[HR_LAYER_VALUES_MAX])
{
    const bool is_number =
        row->type == ATTR_TYPE_INT || row->type == ATTR_TYPE_PAIR || row->type == ATTR_TYPE_REAL;
    out[0] = '\0';
    if (row->required) {
        return;
    }
    if (row->type == ATTR_TYPE_CHOICE) {
        text_copy(out, HR_LAYER_VALUES_MAX, row->choices[(int)row->fallback]);
    } else if (row->type == ATTR_TYPE_PADDING) {
        text_copy(out, HR_LAYER_VALUES_MAX, "valid");
    } else if (is_number && row->fallback >= row->min) {
        (void)snprintf(out, HR_LAYER_VALUES_MAX, "%.10g", row->fallback);
    }
}

bool hr_layer_attribute_at(size_t kind, size_t index, hr_layer_attribute *attribute)
{
    hr_layer_kind about;
    if (!hr_layer_kind_at(kind, &about) || index >= about.attribute_count) {
        return false;
    }
    const attr_row *row = attr_row_of(layer_kind_at((layer_kind_id)kind)->attrs[index]);
    attribute->name = row->name;
    attribute->required = row->required;
    values_of(row, attribute->values);
    fallback_of(row, attribute->otherwise);
    return true;
}
