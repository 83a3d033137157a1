// SPDX-License-Identifier: Apache-2.0
#include "train/own_limit.h"

#include "headroom/card.h"

own_limit own_limit_of(const hr_knobs *knobs, uint64_t needed_bytes)
{
    static const struct {
        hr_knob_id id;
        const char *nothing; // what takes it away again
    } setters[] = {{HR_KNOB_DEVICE_LOGICAL, "none"},
                   {HR_KNOB_ALLOCATOR_FRACTION, "none"},
                   {HR_KNOB_ALLOCATOR_CONF, ""},
                   {HR_KNOB_DEVICE_VRAM, "none"}};
    hr_card card;
    bool has_card = hr_knob_is_set(knobs, HR_KNOB_DEVICE_CARD) &&
                    hr_card_load(hr_knob_text(knobs, HR_KNOB_DEVICE_CARD), &card, NULL) == HR_OK;
    for (size_t k = 0; needed_bytes > 0 && k < sizeof setters / sizeof *setters; k++) {
        hr_knobs without = *knobs;
        uint64_t bytes = 0;
        const bool is_only_size = setters[k].id == HR_KNOB_DEVICE_VRAM && !has_card;
        if (hr_knob_is_set(knobs, setters[k].id) && !is_only_size &&
            hr_knobs_set(&without, setters[k].id, setters[k].nothing, NULL) == HR_OK &&
            hr_device_limit_bytes(&without, has_card ? &card : NULL, &bytes, NULL) == HR_OK &&
            bytes >= needed_bytes) {
            return (own_limit){hr_knob_rows(NULL)[setters[k].id].key, bytes};
        }
    }
    return (own_limit){.key = NULL};
}
