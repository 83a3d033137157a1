// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/step/step.h"

void step_view_init(step_view *v)
{
    *v = (step_view){.feed = v->feed,
                     .tables = v->tables,
                     .glyphs = v->glyphs,
                     .marked = HR_NO_ID,
                     .alive_at = HR_NO_ID,
                     .jumped = HR_NO_ID,
                     .layer = HR_NO_ID};
    v->window.columns = 1;
}

static void forget_tables(step_view *v)
{
    free(v->height);
    free(v->by_size);
    free(v->alive);
    free(v->of_layer);
    v->height = NULL;
    v->by_size = v->alive = v->of_layer = NULL;
    v->alive_count = v->layer_tensors = v->layer_instrs = 0;
    v->alive_at = v->layer = v->jumped = HR_NO_ID;
    v->highest = v->largest = v->largest_layer = 0;
    v->has_ranks = v->has_masks = false;
}

void step_view_deinit(step_view *v)
{
    forget_tables(v);
    hr_step_plan_deinit(&v->before);
    free(v->changes.rows);
    free(v->changes.text);
    free(v->changes.line_at);
    step_view_init(v);
}

// ---- taking ---------------------------------------------------------------------------------------------------

static int larger_first(const void *left, const void *right, void *context)
{
    const hr_step_plan *p = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    uint64_t one = p->tensors[a].bytes, other = p->tensors[b].bytes;
    return one != other ? (one < other ? 1 : -1) : a < b ? -1 : a > b;
}

static void sort_tensors(step_view *v, hr_step_plan *p)
{
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        v->by_size[k] = k;
    }
    qsort_r(v->by_size, p->tensor_count, sizeof *v->by_size, larger_first, p);
    v->largest = p->tensor_count > 0 ? p->tensors[v->by_size[0]].bytes : 0;
}

static bool make_tables(step_view *v, hr_step_plan *p)
{
    v->by_size = calloc(p->tensor_count + 1, sizeof *v->by_size);
    v->height = calloc(p->instr_count + 1, sizeof *v->height);
    v->alive = calloc(p->tensor_count + 1, sizeof *v->alive);
    v->of_layer = calloc(p->tensor_count + p->instr_count + 1, sizeof *v->of_layer);
    if (v->by_size == NULL || v->height == NULL || v->alive == NULL || v->of_layer == NULL) {
        return false;
    }
    for (size_t i = 0; i < p->instr_count; i++) {
        const hr_step_plan_instr *instr = &p->instrs[i];
        v->height[i] = instr->in_use_bytes > 0 ? instr->in_use_bytes : instr->requested_bytes;
        v->highest = v->height[i] > v->highest ? v->height[i] : v->highest;
    }
    sort_tensors(v, p);
    for (size_t k = 0; k < p->layer_count; k++) {
        const uint64_t bytes = step_layer_bytes(&p->layers[k]);
        v->largest_layer = bytes > v->largest_layer ? bytes : v->largest_layer;
        v->has_ranks = v->has_ranks || p->layers[k].rank_in > 0;
        v->has_masks = v->has_masks || !isnan(p->layers[k].sparsity);
    }
    return true;
}

// The most telling moment.
static uint32_t begin_at(const hr_step_plan *p)
{
    return p->refused_instr != HR_NO_ID ? p->refused_instr : p->peak_instr != HR_NO_ID ? p->peak_instr : 0;
}

// Which knobs were turned between two step plans, as a title says it.
static void say_turn(step_changes *c, const hr_knobs *before, const hr_knobs *now)
{
    size_t rows, used = 0;
    const hr_knob_row *row = hr_knob_rows(&rows);
    c->what[0] = '\0';
    for (size_t k = 0; k < rows && used + 1 < sizeof c->what; k++) {
        char then[HR_KNOB_TEXT_MAX], value[HR_KNOB_TEXT_MAX];
        hr_knob_format(before, (hr_knob_id)k, then);
        hr_knob_format(now, (hr_knob_id)k, value);
        if (strcmp(then, value) != 0) {
            int length = snprintf(c->what + used, sizeof c->what - used, "%s%s %s", used > 0 ? ", " : "",
                                  row[k].key, value);
            used += length > 0 ? (size_t)length : 0;
        }
    }
}

static void keep_before(step_view *step, feed *f)
{
    hr_step_plan_deinit(&step->before);
    if (f->has_step_plan) {
        hr_step_plan events = {.events = f->step_plan.events}; // half of its bytes, and they are not compared
        step->before = f->step_plan;
        step->before.events = NULL;
        step->before.event_count = step->before.build_events = 0;
        f->step_plan = (hr_step_plan){0};
        hr_step_plan_deinit(&events);
        f->has_step_plan = false;
    }
}

void step_take(step_view *step, feed *f, hr_step_plan *taken)
{
    uint32_t at = step->cursor, marked = step->marked;
    bool first = !f->has_step_plan;
    step_check(taken);
    if (!first && step_is_same(&f->step_plan, taken)) {
        hr_step_plan_deinit(taken);
        return;
    }
    bool was_telling = !first && at == begin_at(&f->step_plan);
    keep_before(step, f);
    forget_tables(step);
    f->step_plan = *taken;
    *taken = (hr_step_plan){0};
    f->step_plan_version++;
    step->changes.version++;
    f->has_step_plan = make_tables(step, &f->step_plan);
    if (!f->has_step_plan) {
        forget_tables(step);
        hr_step_plan_deinit(&f->step_plan);
        return;
    }
    if (!first) {
        step_compare(&step->before, &f->step_plan, &step->changes, &at);
        say_turn(&step->changes, &step->knobs, &f->knobs);
    }
    step->knobs = f->knobs;
    step->marked = marked < f->step_plan.instr_count && !step->changes.compared ? marked : HR_NO_ID;
    step_go(step, first || was_telling ? begin_at(&f->step_plan) : at);
}

void step_forget(step_view *step, feed *f)
{
    uint64_t version = step->changes.version + 1;
    step_view_deinit(step);
    step->changes.version = version;
    if (f->has_step_plan) {
        hr_step_plan_deinit(&f->step_plan);
        f->has_step_plan = false;
    }
    f->step_plan_version++;
}

// ---- reading --------------------------------------------------------------------------------------------------

const hr_step_plan_instr *step_cursor_instr(const step_view *step)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    return p != NULL && step->cursor < p->instr_count ? &p->instrs[step->cursor] : NULL;
}

// Whether a tensor's bytes are on the device after that instruction.
static bool is_alive(const hr_step_plan *p, uint32_t tensor, uint32_t instr)
{
    const hr_step_plan_tensor *t = &p->tensors[tensor];
    // What a build that was refused did not come to is asked for all the same; otherwise what has no bytes lies on
    // the host.
    bool unbuilt = !p->fits && p->refused_instr == HR_NO_ID;
    if (t->owner != tensor || (t->persistent && t->allocated_bytes == 0 && !unbuilt)) {
        return false;
    }
    bool begun = t->born == HR_NO_ID ? t->persistent : t->born <= instr;
    return begun && (t->died == HR_NO_ID || instr < t->died);
}

// 's' where the device of the step plan simulates its clock, 'e' where times come from the cost model.
static char time_letter(const step_view *step)
{
    return hr_knob_is(&step->knobs, HR_KNOB_DEVICE_KIND, "plan") ? 's' : 'e';
}

const char *step_time(const step_view *step, double seconds, char text[FORMAT_MAX])
{
    char number[FORMAT_MAX];
    if (isnan(seconds)) {
        snprintf(text, FORMAT_MAX, "not timed");
    } else {
        snprintf(text, FORMAT_MAX, "%.20s %c", format_seconds(seconds, number), time_letter(step));
    }
    return text;
}

// ---- what lives at the cursor ---------------------------------------------------------------------------------

void step_settle_alive(step_view *step)
{
    if (!step->feed->has_step_plan || step->alive_at == step->cursor) {
        return;
    }
    step->alive_count = 0;
    for (uint32_t k = 0; k < step->feed->step_plan.tensor_count && step->feed->step_plan.instr_count > 0;
         k++) {
        if (is_alive(&step->feed->step_plan, step->by_size[k], step->cursor)) {
            step->alive[step->alive_count++] = step->by_size[k];
        }
    }
    step->alive_at = step->cursor;
}

void step_settle_layer(step_view *step, uint32_t layer)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    if (p == NULL || step->layer == layer) {
        return;
    }
    step->layer = layer;
    step->layer_tensors = step->layer_instrs = 0;
    for (uint32_t k = 0; k < p->tensor_count && layer != HR_NO_ID; k++) {
        if (p->tensors[step->by_size[k]].layer == layer) {
            step->of_layer[step->layer_tensors++] = step->by_size[k];
        }
    }
    for (uint32_t i = 0; i < p->instr_count && layer != HR_NO_ID; i++) {
        if (p->instrs[i].layer == layer && !p->instrs[i].is_alloc && !p->instrs[i].is_free) {
            step->of_layer[step->layer_tensors + step->layer_instrs++] = i;
        }
    }
}

// ---- texts ----------------------------------------------------------------------------------------------------

uint64_t step_layer_bytes(const hr_step_plan_layer *layer)
{
    uint64_t bytes = layer->activation_bytes;
    if (layer->parameter_bytes != HR_NONE) {
        (void)hr_add_bytes(layer->parameter_bytes, layer->activation_bytes, &bytes);
    }
    return bytes;
}

double step_number(uint64_t number)
{
    return number == HR_NONE ? (double)NAN : (double)number;
}

const char *step_count(double value, char *text, size_t size)
{
    static const char letters[] = " kMGTPE";
    size_t at = 0;
    while (value >= 999.5 && at + 2 < sizeof letters) {
        value /= 1000;
        at++;
    }
    if (isnan(value)) {
        snprintf(text, size, "—");
    } else if (at == 0) {
        snprintf(text, size, "%.0f", value);
    } else {
        snprintf(text, size,
                 value < 9.995   ? "%.2f%c"
                 : value < 99.95 ? "%.1f%c"
                                 : "%.0f%c",
                 value, letters[at]);
    }
    return text;
}
