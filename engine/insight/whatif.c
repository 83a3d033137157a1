// SPDX-License-Identifier: Apache-2.0
// What-if: one knob at another value, planned on a copy, nothing else touched.
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/engine.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "insight/play.h"
#include "model/model.h"
#include "program/compile.h"

// Devices are opened once per (kind, card, threads) and kept for the life of the process; one plan is made at a time.
typedef struct kept_device {
    struct kept_device *next;
    char kind[16], card_name[48];
    uint32_t threads;
    const device_ops *ops;
    void *context;
    hr_card card;
    bool has_card;
} kept_device;

static pthread_mutex_t whatif_lock = PTHREAD_MUTEX_INITIALIZER;
static kept_device *kept;

static kept_device *find_kept(const hr_knobs *knobs)
{
    kept_device *d = kept;
    while (d != NULL && (strcmp(d->kind, hr_knob_text(knobs, HR_KNOB_DEVICE_KIND)) != 0 ||
                         strcmp(d->card_name, hr_knob_text(knobs, HR_KNOB_DEVICE_CARD)) != 0 ||
                         d->threads != (uint32_t)hr_knob_int(knobs, HR_KNOB_THREADS_COUNT))) {
        d = d->next;
    }
    return d;
}

static hr_status open_device(const hr_knobs *knobs, kept_device *d, hr_err *err)
{
    d->threads = (uint32_t)hr_knob_int(knobs, HR_KNOB_THREADS_COUNT);
    (void)text_copy(d->kind, sizeof d->kind, hr_knob_text(knobs, HR_KNOB_DEVICE_KIND));
    (void)text_copy(d->card_name, sizeof d->card_name, hr_knob_text(knobs, HR_KNOB_DEVICE_CARD));
    d->has_card = d->card_name[0] != '\0';
    if (d->has_card) {
        HR_TRY(hr_card_load(d->card_name, &d->card, err));
    }
    HR_TRY(device_find(d->kind, &d->ops, err));
    device_options options = {.card = d->has_card ? &d->card : NULL, .threads = d->threads};
    return d->ops->open(&options, &d->context, err);
}

static hr_status keep_device(const hr_knobs *knobs, kept_device **out, hr_err *err)
{
    kept_device *d = hr_calloc(1, sizeof *d);
    if (d == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to open device %s",
                       hr_knob_text(knobs, HR_KNOB_DEVICE_KIND));
    }
    hr_status status = open_device(knobs, d, err);
    if (status != HR_OK) {
        hr_free(d);
        return status;
    }
    d->next = kept;
    kept = d;
    *out = d;
    return HR_OK;
}

// What is missing for a step that does not fit: to the largest sum it asks for, and at least to the request that
// failed.
static uint64_t missing_bytes(const executor_oom *oom, uint64_t limit_bytes, uint64_t step_bytes)
{
    uint64_t free_bytes = limit_bytes - oom->stats.in_use_bytes;
    uint64_t at_once = oom->requested_bytes > free_bytes
                           ? oom->requested_bytes - free_bytes
                           : oom->requested_bytes - oom->stats.largest_free_bytes;
    uint64_t in_all = step_bytes > limit_bytes ? step_bytes - limit_bytes : 0;
    return at_once > in_all ? at_once : in_all;
}

static hr_status plan_on(const kept_device *d, const hr_model *model, const hr_knobs *knobs, hr_whatif *out,
                         hr_err *err)
{
    uint64_t limit_bytes = 0;
    hr_target target;
    program *p = NULL;
    play_result played;
    HR_TRY(hr_device_limit_bytes(knobs, d->has_card ? &d->card : NULL, &limit_bytes, err));
    d->ops->target(d->context, &target);
    HR_TRY(program_compile(model, knobs, PROGRAM_TRAIN, (uint32_t)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE),
                           &target, &p, err));
    hr_status status = play_programs(d->ops, d->context, knobs, limit_bytes, (const program *const[]){p}, 1,
                                     PLAY_STEPS, &played, err);
    uint64_t step_bytes = program_peak_bytes(p);
    program_destroy(p);
    HR_TRY(status);
    out->fits = played.fits;
    out->missing_bytes = played.fits ? 0 : missing_bytes(&played.oom, limit_bytes, step_bytes);
    out->peak_in_use_bytes = played.fits ? played.peak.in_use_bytes : limit_bytes + out->missing_bytes;
    return HR_OK;
}

static hr_status plan_locked(const hr_preset *preset, const hr_knobs *knobs, hr_whatif *out, hr_err *err)
{
    hr_model *model = NULL;
    kept_device *d = find_kept(knobs);
    if (d == NULL) {
        HR_TRY(keep_device(knobs, &d, err));
    }
    HR_TRY(model_create(preset, &model, NULL, err));
    hr_status status = plan_on(d, model, knobs, out, err);
    model_destroy(model);
    return status;
}

hr_status hr_whatif_plan(const hr_preset *preset, const hr_knobs *knobs, hr_knob_id id, const char *value,
                         hr_whatif *out, hr_err *err)
{
    hr_knobs changed = *knobs;
    *out = (hr_whatif){0};
    (void)text_copy(out->value, sizeof out->value, value);
    HR_TRY(hr_knobs_set(&changed, id, value, err));
    HR_TRY(hr_knobs_validate(&changed, err));
    pthread_mutex_lock(&whatif_lock);
    hr_status status = plan_locked(preset, &changed, out, err);
    pthread_mutex_unlock(&whatif_lock);
    return status;
}
