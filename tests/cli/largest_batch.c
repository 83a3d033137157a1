// SPDX-License-Identifier: Apache-2.0
#include "largest_batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static hr_status set_bytes(hr_knobs *knobs, uint64_t bytes, hr_err *err)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, bytes);
    return hr_knobs_set(knobs, HR_KNOB_DEVICE_VRAM, text, err);
}

static hr_status set_batch(hr_knobs *knobs, uint64_t batch, hr_err *err)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, batch);
    return hr_knobs_set(knobs, HR_KNOB_BATCH_SIZE, text, err);
}

// ---- limits ---------------------------------------------------------------------------------------------------

// The smallest limit that holds a batch, as an allocator has room at its end that no batch uses.
static hr_status needed_for(const hr_planner *planner, hr_knobs knobs, uint64_t batch, uint64_t *bytes,
                            hr_err *err)
{
    hr_whatif plan;
    HR_TRY(hr_knobs_set(&knobs, HR_KNOB_DEVICE_VRAM, "1KiB", err));
    HR_TRY(set_batch(&knobs, batch, err));
    HR_TRY(hr_planner_plan(planner, &knobs, &plan, err));
    *bytes = plan.peak_in_use_bytes;
    return HR_OK;
}

static uint64_t between(uint64_t low_bytes, uint64_t high_bytes)
{
    return low_bytes + (high_bytes - low_bytes) / 100 * 37 + 1;
}

bool largest_batch_limits(const hr_preset *preset, const hr_knobs *knobs, uint64_t samples,
                          uint64_t most_bytes, uint64_t limits[LARGEST_BATCH_LIMITS], char *why, size_t size)
{
    hr_planner *planner = NULL;
    hr_err err = {0};
    uint64_t first_bytes = 0;
    hr_status status = hr_planner_open(preset, &planner, &err);
    status = status == HR_OK ? needed_for(planner, *knobs, 1, &first_bytes, &err) : status;
    for (int k = 0; k < LARGEST_BATCH_LIMITS && status == HR_OK; k++, samples *= 2) {
        uint64_t low_bytes = 0, high_bytes = 0;
        status = needed_for(planner, *knobs, samples, &low_bytes, &err);
        status = status == HR_OK ? needed_for(planner, *knobs, samples + 1, &high_bytes, &err) : status;
        limits[k] = between(low_bytes, high_bytes > low_bytes ? high_bytes : low_bytes);
    }
    hr_planner_close(planner);
    (void)snprintf(why, size, "%s", err.sentence);
    if (status == HR_OK && first_bytes > most_bytes) {
        (void)snprintf(why, size, "one sample needs %" PRIu64 " bytes", first_bytes);
        return false;
    }
    return status == HR_OK;
}

// ---- the promise ----------------------------------------------------------------------------------------------

// HR_OK with the peak that was counted, or what the run ended with.
static hr_status count_peak(const hr_preset *preset, const hr_knobs *knobs, uint64_t *bytes, hr_err *err)
{
    hr_engine *engine = NULL;
    hr_report report = {0};
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = LARGEST_BATCH_STEPS};
    HR_TRY(hr_engine_create(preset, knobs, NULL, &engine, err));
    hr_status status = hr_engine_command(engine, &run, err);
    for (bool idle = status != HR_OK; !idle;) {
        hr_engine_advance(engine, &idle);
    }
    if (status == HR_OK && hr_engine_steps(engine) < LARGEST_BATCH_STEPS) {
        *err = *hr_engine_error(engine);
        status = err->status != HR_OK ? err->status : HR_STATE;
    }
    status = status == HR_OK ? hr_engine_report(engine, &report, err) : status;
    *bytes = status == HR_OK ? report.memory.peak_in_use_bytes : 0;
    hr_report_deinit(&report);
    hr_engine_destroy(engine);
    return status;
}

static bool fits_to_the_byte(const hr_preset *preset, hr_knobs knobs, largest_batch *out, char *why,
                             size_t size)
{
    hr_err err = {0};
    hr_status status = set_batch(&knobs, out->batch, &err);
    status = status == HR_OK ? count_peak(preset, &knobs, &out->counted_bytes, &err) : status;
    if (status != HR_OK) {
        (void)snprintf(why, size, "batch %" PRIu64 ": %s", out->batch, err.sentence);
    } else if (out->counted_bytes != out->planned_bytes) {
        (void)snprintf(why, size, "batch %" PRIu64 ": planned %" PRIu64 ", counted %" PRIu64, out->batch,
                       out->planned_bytes, out->counted_bytes);
    }
    return status == HR_OK && out->counted_bytes == out->planned_bytes &&
           out->counted_bytes <= out->limit_bytes;
}

static bool one_more_runs_out(const hr_preset *preset, hr_knobs knobs, largest_batch *out, char *why,
                              size_t size)
{
    hr_err err = {0}, none = {0};
    uint64_t bytes = 0;
    hr_status status = set_batch(&knobs, out->batch + 1, &none);
    const hr_status limited = count_peak(preset, &knobs, &bytes, &err);
    status = status == HR_OK ? hr_knobs_set(&knobs, HR_KNOB_DEVICE_VRAM, "1TiB", &none) : status;
    status = status == HR_OK ? count_peak(preset, &knobs, &out->beyond_bytes, &none) : status;
    out->by_cuts = status == HR_OK && out->beyond_bytes <= out->limit_bytes;
    if (out->by_host) {
        return status == limited && limited != HR_OK && strcmp(err.sentence, none.sentence) == 0;
    }
    if (limited != HR_OOM || status != HR_OK) {
        (void)snprintf(why, size, "batch %" PRIu64 ": %s", out->batch + 1,
                       limited == HR_OK    ? "it fits"
                       : limited == HR_OOM ? none.sentence
                                           : err.sentence);
    }
    return limited == HR_OOM && status == HR_OK;
}

bool largest_batch_holds(const hr_preset *preset, const hr_knobs *knobs, uint64_t limit_bytes,
                         largest_batch *out, char *why, size_t size)
{
    hr_planner *planner = NULL;
    hr_largest found = {0};
    hr_err err = {0};
    hr_knobs limited = *knobs;
    hr_status status = set_bytes(&limited, limit_bytes, &err);
    status = status == HR_OK ? hr_planner_open(preset, &planner, &err) : status;
    status =
        status == HR_OK ? hr_planner_largest(planner, &limited, HR_KNOB_BATCH_SIZE, &found, &err) : status;
    hr_planner_close(planner);
    *out = (largest_batch){.limit_bytes = limit_bytes,
                           .batch = found.value,
                           .is_last = found.is_last,
                           .by_host = found.value == 0 && hr_whatif_lacks_host(&found.plan),
                           .planned_bytes = found.plan.peak_in_use_bytes};
    if (status != HR_OK) {
        (void)snprintf(why, size, "%s", err.sentence);
        return false;
    }
    return (found.value == 0 || fits_to_the_byte(preset, limited, out, why, size)) &&
           (out->is_last || one_more_runs_out(preset, limited, out, why, size));
}
