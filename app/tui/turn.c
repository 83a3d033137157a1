// SPDX-License-Identifier: Apache-2.0
#include "app/tui/turn.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

static const hr_knob_id wanted[] = {
    HR_KNOB_BATCH_SIZE,         HR_KNOB_OPTIMIZER_KIND,    HR_KNOB_EXECUTION_MODE,
    HR_KNOB_DEVICE_VRAM,        HR_KNOB_ALLOCATOR_GROWTH,  HR_KNOB_OPTIMIZER_LEARNING_RATE,
    HR_KNOB_THREADS_COUNT,      HR_KNOB_EXECUTION_LAYOUT,  HR_KNOB_WORKSPACE_LIMIT,
    HR_KNOB_OPTIMIZER_MOMENTUM, HR_KNOB_BATCH_REMAINDER,   HR_KNOB_PRECISION_POLICY,
    HR_KNOB_ALLOCATOR_KIND,     HR_KNOB_PIPELINE_PREFETCH, HR_KNOB_PIPELINE_SHUFFLE,
};

static const hr_knob_row *row_of(hr_knob_id id)
{
    size_t count;
    return &hr_knob_rows(&count)[id];
}

const hr_knob_id *turn_panel(size_t *count)
{
    static hr_knob_id panel[sizeof wanted / sizeof *wanted];
    static size_t panel_count;
    if (panel_count == 0) {
        size_t found = 0;
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            const hr_knob_row *row = row_of(wanted[i]);
            if (row->type != HR_KNOB_CHOICE || row->choices[1] != NULL) {
                panel[found++] = wanted[i];
            }
        }
        panel_count = found;
    }
    *count = panel_count;
    return panel;
}

// ---- neighbours -----------------------------------------------------------------------------------------------

static bool next_choice(const hr_knob_row *row, const char *now, int direction, char *text)
{
    int at = 0;
    while (row->choices[at] != NULL && strcmp(row->choices[at], now) != 0) {
        at++;
    }
    at += direction;
    if (at < 0 || row->choices[at] == NULL) {
        return false;
    }
    snprintf(text, HR_KNOB_TEXT_MAX, "%s", row->choices[at]);
    return true;
}

// Wide ranges double and halve over the powers of two, small counts go one by one.
static bool next_integer(const hr_knob_row *row, int64_t now, int direction, char *text)
{
    bool wide = row->max > 256;
    int64_t next = now + direction;
    if (wide && direction > 0) {
        next = now < 1 ? 1 : now * 2;
    } else if (wide) {
        next = now / 2;
    }
    if (next == now || (double)next < row->min || (double)next > row->max) {
        return false;
    }
    snprintf(text, HR_KNOB_TEXT_MAX, "%" PRId64, next);
    return true;
}

// The neighbour of a positive number in the row 1, 2, 5, 10, 20 … of every power of ten.
static double next_125(double now, int direction)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(now) + 1e-9)), lead = now / power;
    if (direction > 0) {
        for (size_t i = 0; i < 4; i++) {
            if (steps[i] > lead * (1 + 1e-9)) {
                return steps[i] * power;
            }
        }
        return 20 * power;
    }
    for (size_t i = 3; i-- > 0;) {
        if (steps[i] < lead * (1 - 1e-9)) {
            return steps[i] * power;
        }
    }
    return power / 2;
}

static bool next_real(const hr_knob_row *row, double now, int direction, char *text)
{
    bool share = row->max <= 1;
    double next = share           ? (round(now * 20) + direction) / 20
                  : now > 0       ? next_125(now, direction)
                  : direction > 0 ? 1e-5
                                  : -1;
    next = share && next > row->max ? row->max : next;
    if (!(next >= row->min) || next > row->max || next == now) {
        return false;
    }
    snprintf(text, HR_KNOB_TEXT_MAX, "%.6g", next);
    return true;
}

// An eighth of the power of two below: 4 GiB goes to 3.75 and 4.5 GiB, and whole MiB stay whole.
static bool next_bytes(const hr_knob_row *row, uint64_t now, int direction, char *text)
{
    uint64_t below = HR_MIB;
    uint64_t reach = direction < 0 ? now - (now > 0) : now;
    while (below * 2 <= reach && below * 2 < (uint64_t)row->max) {
        below *= 2;
    }
    uint64_t step = below / 8 > HR_MIB ? below / 8 : HR_MIB;
    if (direction < 0 && (now < step + HR_MIB || (double)(now - step) < row->min)) {
        return false;
    }
    uint64_t next = direction < 0 ? now - step : now + step;
    if ((double)next > row->max) {
        return false;
    }
    hr_bytes_exact(next, text);
    return true;
}

bool turn_neighbour(const hr_knobs *knobs, hr_knob_id id, int direction, uint64_t when_unset_bytes,
                    char text[HR_KNOB_TEXT_MAX])
{
    const hr_knob_row *row = row_of(id);
    text[0] = '\0';
    switch (row->type) {
    case HR_KNOB_CHOICE:
        return next_choice(row, hr_knob_text(knobs, id), direction, text);
    case HR_KNOB_INT:
        return next_integer(row, hr_knob_int(knobs, id), direction, text);
    case HR_KNOB_REAL:
        return next_real(row, hr_knob_real(knobs, id), direction, text);
    case HR_KNOB_BYTES:
        if (!hr_knob_is_set(knobs, id) && when_unset_bytes == 0) {
            return false;
        }
        return next_bytes(row, hr_knob_bytes(knobs, id, when_unset_bytes), direction, text);
    case HR_KNOB_TEXT:
        break;
    }
    return false;
}

hr_status turn_set(hr_knobs *knobs, hr_knob_id id, const char *text, hr_err *err)
{
    hr_knobs turned = *knobs;
    HR_TRY(hr_knobs_set(&turned, id, text, err));
    HR_TRY(hr_knobs_validate(&turned, err));
    *knobs = turned;
    return HR_OK;
}

// ---- the way back ---------------------------------------------------------------------------------------------

void turn_log_add(turn_log *log, hr_knob_id id, const hr_knob_value *before, const hr_knob_value *after)
{
    if (log->done == TURN_UNDO_MAX) {
        memmove(log->step, log->step + 1, sizeof log->step - sizeof *log->step);
        log->done--;
    }
    log->step[log->done++] = (turn_step){id, *before, *after};
    log->count = log->done;
}

const turn_step *turn_log_undo(turn_log *log)
{
    return log->done == 0 ? NULL : &log->step[--log->done];
}

const turn_step *turn_log_redo(turn_log *log)
{
    return log->done == log->count ? NULL : &log->step[log->done++];
}
