// SPDX-License-Identifier: Apache-2.0
// The model part of a preset as it was written, for who shows it or writes it anew.
#include "headroom/model.h"

#include "knobs/preset_model.h"

static bool set_piece(hr_written *out, const yaml_node *node)
{
    static const hr_written_kind kinds[] = {[YAML_SCALAR] = HR_WRITTEN_WORD,
                                            [YAML_SEQUENCE] = HR_WRITTEN_LIST,
                                            [YAML_MAPPING] = HR_WRITTEN_MAPPING};
    if (node == NULL) {
        return false;
    }
    *out = (hr_written){.kind = kinds[node->kind],
                        .quoted = node->quoted,
                        .key = node->key,
                        .text = node->text,
                        .node = node};
    return true;
}

bool hr_preset_written(const hr_preset *preset, hr_written *out)
{
    yaml_file *file = NULL;
    return set_piece(out, hr_preset_is_trace(preset) ? NULL : preset_model(preset, &file));
}

bool hr_preset_written_widths(const hr_preset *preset, uint32_t k, hr_written *out)
{
    uint32_t count = 0;
    const preset_widths *widths = preset_model_widths(preset, &count);
    return set_piece(out, k < count ? widths[k].node : NULL);
}

bool hr_written_first(const hr_written *of, hr_written *out)
{
    return set_piece(out, ((const yaml_node *)of->node)->child);
}

bool hr_written_next(hr_written *piece)
{
    return set_piece(piece, ((const yaml_node *)piece->node)->next);
}
