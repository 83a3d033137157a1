// SPDX-License-Identifier: Apache-2.0
#include "knobs/compress_rules.h"

#include <string.h>

#include "knobs/lora.h"
#include "knobs/low_rank.h"
#include "knobs/prune.h"

bool pytorch_prunes(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "pytorch") && prune_is_on(knobs);
}

bool hr_knobs_compress(const hr_knobs *knobs)
{
    static const hr_knob_id techniques[] = {HR_KNOB_COMPRESS_PRUNE, HR_KNOB_COMPRESS_LORA,
                                            HR_KNOB_COMPRESS_DISTILL, HR_KNOB_COMPRESS_LOW_RANK,
                                            HR_KNOB_COMPRESS_QUANTIZE};
    char value[HR_KNOB_TEXT_MAX];
    bool any = false;
    for (size_t k = 0; k < sizeof techniques / sizeof *techniques; k++) {
        any = any || strcmp(hr_knob_format(knobs, techniques[k], value), "none") != 0;
    }
    return any;
}

static bool quantized(const hr_knobs *knobs)
{
    return !hr_knob_is(knobs, HR_KNOB_COMPRESS_QUANTIZE, "none");
}

bool hr_knobs_quantize(const hr_knobs *knobs)
{
    return quantized(knobs) && !hr_knob_is(knobs, HR_KNOB_COMPRESS_QUANTIZE, "qat");
}

bool quantized_as_a_framework(const hr_knobs *knobs)
{
    return quantized(knobs) && !hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "headroom");
}

static bool holds_base(const hr_knobs *knobs)
{
    return hr_knob_is_set(knobs, HR_KNOB_COMPRESS_LORA) &&
           !hr_knob_is(knobs, HR_KNOB_COMPRESS_LORA_BASE, "none");
}

bool held_and_quantized(const hr_knobs *knobs)
{
    return holds_base(knobs) && quantized(knobs);
}

bool strange_lora_targets(const hr_knobs *knobs)
{
    lora_choice lora;
    return !lora_of(knobs, &lora);
}

bool strange_low_rank(const hr_knobs *knobs)
{
    low_rank_choice low_rank;
    return !low_rank_of(knobs, &low_rank);
}

bool adapts_factors(const hr_knobs *knobs)
{
    return hr_knob_is_set(knobs, HR_KNOB_COMPRESS_LORA) &&
           strcmp(hr_knob_text(knobs, HR_KNOB_COMPRESS_LOW_RANK), "none") != 0;
}

bool adapts_as_another(const hr_knobs *knobs)
{
    return hr_knob_is_set(knobs, HR_KNOB_COMPRESS_LORA) &&
           !hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "headroom");
}

bool empty_teacher(const hr_knobs *knobs)
{
    return hr_knob_text(knobs, HR_KNOB_COMPRESS_DISTILL)[0] == '\0';
}

static bool distils(const hr_knobs *knobs)
{
    const char *teacher = hr_knob_text(knobs, HR_KNOB_COMPRESS_DISTILL);
    return teacher[0] != '\0' && strcmp(teacher, "none") != 0;
}

bool distils_by_rules(const hr_knobs *knobs)
{
    return distils(knobs) && !hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, "headroom");
}

static bool caches_answers(const hr_knobs *knobs)
{
    return distils(knobs) && hr_knob_is(knobs, HR_KNOB_COMPRESS_DISTILL_CACHE, "on");
}

bool caches_answers_to_changing_images(const hr_knobs *knobs)
{
    return caches_answers(knobs) && !hr_knob_is(knobs, HR_KNOB_PIPELINE_AUGMENT, "none");
}

bool caches_wide_answers_for_another_type(const hr_knobs *knobs)
{
    return caches_answers(knobs) && (hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "float64") ||
                                     hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "float16") ||
                                     hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "bfloat16"));
}
