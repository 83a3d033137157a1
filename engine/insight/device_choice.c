// SPDX-License-Identifier: Apache-2.0
#include "insight/device_choice.h"

#include <string.h>

// Knobs that a device is opened with; a card's file is read anew with it.
static const hr_knob_id asked[] = {HR_KNOB_DEVICE_KIND,
                                   HR_KNOB_DEVICE_CARD,
                                   HR_KNOB_THREADS_COUNT,
                                   HR_KNOB_PRECISION_TF32,
                                   HR_KNOB_EXECUTION_DETERMINISTIC,
                                   HR_KNOB_EXECUTION_CUDA_GRAPH,
                                   HR_KNOB_WORKSPACE_SEARCH};

static bool is_on(const hr_knobs *knobs, hr_knob_id id)
{
    return hr_knob_is(knobs, id, "on");
}

hr_status device_choice_open(const hr_knobs *knobs, bool plan_only, device_choice *out, hr_err *err)
{
    device_choice d = {0};
    const char *card = hr_card_of(knobs);
    *out = d;
    d.has_card = card[0] != '\0';
    if (d.has_card) {
        HR_TRY(hr_card_load(card, &d.card, err));
    }
    HR_TRY(device_find(hr_knob_text(knobs, HR_KNOB_DEVICE_KIND), &d.ops, err));
    const device_options options = {.card = d.has_card ? &d.card : NULL,
                                    .threads = (uint32_t)hr_knob_int(knobs, HR_KNOB_THREADS_COUNT),
                                    .plan_only = plan_only,
                                    .tf32 = is_on(knobs, HR_KNOB_PRECISION_TF32),
                                    .deterministic = is_on(knobs, HR_KNOB_EXECUTION_DETERMINISTIC),
                                    .capture = is_on(knobs, HR_KNOB_EXECUTION_CUDA_GRAPH),
                                    .search = is_on(knobs, HR_KNOB_WORKSPACE_SEARCH)};
    HR_TRY(d.ops->open(&options, &d.context, err));
    *out = d;
    return HR_OK;
}

void device_choice_close(device_choice *d)
{
    if (d->ops != NULL) {
        d->ops->close(d->context);
    }
    *d = (device_choice){0};
}

// A card that dresses another device counts as one; `unlimited` is none.
void device_choice_target(const device_choice *d, hr_target *out)
{
    d->ops->target(d->context, out);
    if (d->has_card && strcmp(d->card.name, HR_CARD_UNLIMITED) != 0) {
        out->compute_major = d->card.compute_major;
        out->compute_minor = d->card.compute_minor;
        out->multiprocessors = d->card.multiprocessors;
    }
}

hr_status device_choice_limit_bytes(const device_choice *d, const hr_knobs *knobs, uint64_t *limit_bytes,
                                    hr_err *err)
{
    return hr_device_limit_bytes(knobs, d->has_card ? &d->card : NULL, limit_bytes, err);
}

bool device_choice_same(const hr_knobs *a, const hr_knobs *b)
{
    char mine[HR_KNOB_TEXT_MAX], yours[HR_KNOB_TEXT_MAX];
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        if (strcmp(hr_knob_format(a, asked[k], mine), hr_knob_format(b, asked[k], yours)) != 0) {
            return false;
        }
    }
    return strcmp(hr_card_of(a), hr_card_of(b)) == 0;
}
