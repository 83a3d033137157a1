// SPDX-License-Identifier: Apache-2.0
#include "knobs/loss_scale.h"

#include <string.h>

#include "base/text.h"

bool loss_scale_of(const hr_knobs *knobs, loss_scale_choice *out)
{
    const char *word = hr_knob_text(knobs, HR_KNOB_PRECISION_LOSS_SCALE);
    *out = (loss_scale_choice){.fixed = 1};
    if (word[0] == '\0') {
        out->dynamic = hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, "mixed_float16");
        return true;
    }
    if (strcmp(word, "dynamic") == 0) {
        out->dynamic = true;
        return true;
    }
    return strcmp(word, "none") == 0 ||
           (text_to_real(word, &out->fixed) && out->fixed >= 1 && out->fixed <= 1e30);
}
