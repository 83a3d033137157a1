// SPDX-License-Identifier: Apache-2.0
#include "knobs/torch_settings.h"

#include <string.h>

// What was checked when it was set; defaults where a command brought something else.
static torch_conf conf_of(const hr_knobs *knobs)
{
    torch_conf c;
    return torch_conf_parse(hr_knob_text(knobs, HR_KNOB_ALLOCATOR_CONF), &c, NULL) == HR_OK
               ? c
               : torch_conf_default();
}

// The knobs that are set, over a configuration; `said` gets the options that they stand for.
static torch_conf with_knobs(const hr_knobs *knobs, torch_conf c)
{
    const bool follows = !torch_conf_says(&c, TORCH_MAX_NON_SPLIT_ROUNDING);
    c.said = 0;
    if (hr_knob_is_set(knobs, HR_KNOB_ALLOCATOR_MAX_SPLIT)) {
        c.max_split_bytes = hr_knob_bytes(knobs, HR_KNOB_ALLOCATOR_MAX_SPLIT, 0);
        c.said |= 1u << TORCH_MAX_SPLIT_SIZE;
    }
    if (hr_knob_is_set(knobs, HR_KNOB_ALLOCATOR_LARGE_SEGMENT)) {
        c.large_segment_bytes = hr_knob_bytes(knobs, HR_KNOB_ALLOCATOR_LARGE_SEGMENT, 0);
        c.max_non_split_rounding_bytes = follows ? c.large_segment_bytes : c.max_non_split_rounding_bytes;
        c.said |= 1u << TORCH_LARGE_SEGMENT_SIZE;
    }
    if (hr_knob_is_set(knobs, HR_KNOB_ALLOCATOR_MAX_NON_SPLIT_ROUNDING)) {
        c.max_non_split_rounding_bytes = hr_knob_bytes(knobs, HR_KNOB_ALLOCATOR_MAX_NON_SPLIT_ROUNDING, 0);
        c.said |= 1u << TORCH_MAX_NON_SPLIT_ROUNDING;
    }
    if (hr_knob_is_set(knobs, HR_KNOB_ALLOCATOR_GC_THRESHOLD)) {
        c.gc_threshold = hr_knob_real(knobs, HR_KNOB_ALLOCATOR_GC_THRESHOLD);
        c.said |= 1u << TORCH_GARBAGE_COLLECTION_THRESHOLD;
    }
    if (hr_knob_is_set(knobs, HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS)) {
        c.expandable_segments = hr_knob_is(knobs, HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS, "on");
        c.said |= 1u << TORCH_EXPANDABLE_SEGMENTS;
    }
    if (hr_knob_is_set(knobs, HR_KNOB_ALLOCATOR_ROUNDUP)) {
        const char *typed = hr_knob_text(knobs, HR_KNOB_ALLOCATOR_ROUNDUP);
        bool known = torch_conf_parse_divisions(typed, c.divisions, NULL) == HR_OK;
        c.said |= known ? 1u << TORCH_ROUNDUP_POWER2_DIVISIONS : 0;
    }
    if (hr_knob_real(knobs, HR_KNOB_ALLOCATOR_FRACTION) > 0) {
        c.fraction = hr_knob_real(knobs, HR_KNOB_ALLOCATOR_FRACTION);
        c.said |= 1u << TORCH_PER_PROCESS_MEMORY_FRACTION;
    }
    return c;
}

torch_conf torch_settings_of(const hr_knobs *knobs)
{
    const torch_conf conf = conf_of(knobs);
    torch_conf c = with_knobs(knobs, conf);
    c.said |= conf.said;
    return c;
}

bool torch_settings_differ(const hr_knobs *knobs)
{
    const torch_conf conf = conf_of(knobs), c = with_knobs(knobs, conf);
    const bool differs[TORCH_OPTIONS] = {
        [TORCH_MAX_SPLIT_SIZE] = c.max_split_bytes != conf.max_split_bytes,
        [TORCH_LARGE_SEGMENT_SIZE] = c.large_segment_bytes != conf.large_segment_bytes,
        [TORCH_MAX_NON_SPLIT_ROUNDING] = c.max_non_split_rounding_bytes != conf.max_non_split_rounding_bytes,
        [TORCH_GARBAGE_COLLECTION_THRESHOLD] = c.gc_threshold != conf.gc_threshold,
        [TORCH_EXPANDABLE_SEGMENTS] = c.expandable_segments != conf.expandable_segments,
        [TORCH_ROUNDUP_POWER2_DIVISIONS] = memcmp(c.divisions, conf.divisions, sizeof c.divisions) != 0,
        [TORCH_PER_PROCESS_MEMORY_FRACTION] = c.fraction != conf.fraction,
    };
    for (int k = 0; k < TORCH_OPTIONS; k++) {
        const torch_option option = (torch_option)k;
        if (differs[k] && torch_conf_says(&conf, option) && torch_conf_says(&c, option)) {
            return true;
        }
    }
    return false;
}

double torch_settings_fraction(const hr_knobs *knobs)
{
    const double asked = hr_knob_real(knobs, HR_KNOB_ALLOCATOR_FRACTION);
    if (asked > 0 || !hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "caching")) {
        return asked;
    }
    const double fraction = conf_of(knobs).fraction;
    return fraction < 1 ? fraction : 0;
}
