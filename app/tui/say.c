// SPDX-License-Identifier: Apache-2.0
// "." — the focused pane in a sentence, for those who do not see the screen.
#include "app/tui/say.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "headroom/units.h"

#include "app/tui/feed/measures.h"

void say_memory(app *a)
{
    const run_state *m = feed_run_state(&a->feed);
    char in_use[HR_BYTES_TEXT_MAX], peak[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX], share[FORMAT_MAX];
    unsigned largest = 0;
    for (unsigned i = 1; i < HR_CATEGORY_COUNT; i++) {
        largest = m->heap.band_bytes[i] > m->heap.band_bytes[largest] ? i : largest;
    }
    hr_bytes_human(m->heap.in_use_bytes, in_use);
    hr_bytes_human(m->epoch_peak_bytes, peak);
    hr_bytes_human(m->limit_bytes, limit);
    format_percent((double)m->epoch_peak_bytes / (double)m->limit_bytes, share);
    feed_say(&a->feed, MESSAGE_NOTE,
             "Memory in use is %s and has peaked at %s of %s, which is %s; the largest part now is %s.",
             in_use, peak, limit, share, hr_category_name((hr_category)largest));
}

void say_knob(app *a)
{
    size_t count;
    char text[HR_KNOB_TEXT_MAX], less[HR_KNOB_TEXT_MAX], more[HR_KNOB_TEXT_MAX];
    hr_knob_id id = feed_knob(&a->feed);
    const hr_knob_row *row = &hr_knob_rows(&count)[id];
    const bool idle = row->applies != NULL && !hr_knob_acts(&a->feed.knobs, id);
    bool has_less = knob_edit_neighbour(&a->feed.knobs, id, KNOB_EDIT_LESS, a->feed.live.limit_bytes, less);
    bool has_more = knob_edit_neighbour(&a->feed.knobs, id, KNOB_EDIT_MORE, a->feed.live.limit_bytes, more);
    feed_say(&a->feed, MESSAGE_NOTE, "Knob %s, %s, is %s; left of it is %s, right of it %s.%s%s%s", row->key,
             row->line, hr_knob_format(&a->feed.knobs, id, text), has_less ? less : "nothing",
             has_more ? more : "nothing", idle ? " It has no effect now: it applies " : "",
             idle ? row->applies : "", idle ? "." : "");
}

static void say_scaling(const run_state *m, char *text, size_t size)
{
    char flushed[FORMAT_MAX], overflowing[FORMAT_MAX];
    int length = 0;
    text[0] = '\0';
    if (m->loss_scale > 0) {
        length = snprintf(text, size, " The loss scale is %g, %" PRIu64 " steps were skipped.", m->loss_scale,
                          m->skipped);
    }
    if (m->worst.layer[0] != '\0') {
        snprintf(text + length, size - (size_t)length,
                 " In %s float16 would flush %s of the gradients and overflow in %s.", m->worst.layer,
                 format_percent((double)m->worst.flushed, flushed),
                 format_percent((double)m->worst.overflowing, overflowing));
    }
}

void say_loss(app *a)
{
    const run_state *m = feed_run_state(&a->feed);
    char loss[FORMAT_MAX], rate[FORMAT_MAX], accuracy[FORMAT_MAX], scaling[160];
    double slope = run_state_loss_per_second(m);
    say_scaling(m, scaling, sizeof scaling);
    feed_say(&a->feed, MESSAGE_NOTE,
             "After %" PRIu64 " steps the loss is %s and %s, at %s; held-out accuracy is %s.%s", m->steps,
             format_loss(m->loss, loss),
             isnan(slope) ? "its slope is not known yet"
             : slope < 0  ? "falling"
                          : "not falling",
             format_rate(run_state_steps_per_second(m), "it/s", rate),
             isnan(m->eval_accuracy) ? "not known yet" : format_percent(m->eval_accuracy, accuracy), scaling);
}

void say_log(app *a)
{
    const run_state *m = feed_run_state(&a->feed);
    feed_say(&a->feed, MESSAGE_NOTE, "%" PRIu64 " lines; the last: %s", m->log_count,
             m->log_count == 0 ? "none" : m->log[(m->log_count - 1) % LOG_LENGTH].text);
}

void say_counter(app *a)
{
    char text[FORMAT_MAX];
    byte_unit unit = feed_unit(&a->feed);
    double value = app_counter(a, (counter_id)a->bench.counter);
    const char *label = app_counter_label((counter_id)a->bench.counter);
    if (a->bench.counter == COUNTER_FRAGMENTATION && !isnan(value) &&
        measures_little_is_free(&a->feed.report.memory)) {
        feed_say(&a->feed, MESSAGE_NOTE,
                 "%s is %s, of so little that is free at the peak that it does not matter.", label,
                 format_percent(value, text));
    } else if (a->bench.counter == COUNTER_FRAGMENTATION || isnan(value)) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s is %s.", label,
                 isnan(value) ? "not known yet" : format_percent(value, text));
    } else {
        feed_say(&a->feed, MESSAGE_NOTE, "%s is %s %s.", label, format_bytes((uint64_t)value, unit, text),
                 unit.name);
    }
}
