// SPDX-License-Identifier: Apache-2.0
#include "knobs/low_rank.h"

#include <string.h>

#include "base/text.h"

enum { RANK_MAX = 65536 };

bool low_rank_of(const hr_knobs *knobs, low_rank_choice *out)
{
    static const char ratio[] = "ratio:";
    const char *word = hr_knob_text(knobs, HR_KNOB_COMPRESS_LOW_RANK);
    *out = (low_rank_choice){.rank = 0};
    if (strcmp(word, "none") == 0) {
        return true;
    }
    if (strncmp(word, ratio, sizeof ratio - 1) == 0) {
        return text_to_real(word + sizeof ratio - 1, &out->ratio) && out->ratio > 0 && out->ratio < 1;
    }
    return text_to_int(word, &out->rank) && out->rank >= 1 && out->rank <= RANK_MAX;
}
