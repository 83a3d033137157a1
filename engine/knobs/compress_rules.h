// SPDX-License-Identifier: Apache-2.0
// When settings of compress.* may not stand as they do, alone or beside others: the conditions of their rows in constraints.c.
#ifndef KNOBS_COMPRESS_RULES_H
#define KNOBS_COMPRESS_RULES_H

#include <stdbool.h>

#include "headroom/knobs.h"

bool pytorch_prunes(const hr_knobs *knobs);
bool quantized_as_a_framework(const hr_knobs *knobs);
// compress.lora_base beside what makes whole numbers of real weights.
bool held_and_quantized(const hr_knobs *knobs);
bool empty_teacher(const hr_knobs *knobs);
bool strange_lora_targets(const hr_knobs *knobs);
bool strange_low_rank(const hr_knobs *knobs);
bool adapts_factors(const hr_knobs *knobs);
bool adapts_as_another(const hr_knobs *knobs);
bool distils_by_rules(const hr_knobs *knobs);
bool caches_answers_to_changing_images(const hr_knobs *knobs);
bool caches_wide_answers_for_another_type(const hr_knobs *knobs);

#endif
