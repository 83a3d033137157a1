// SPDX-License-Identifier: Apache-2.0
// Pass layout: with execution.layout auto, runs of operations have their images in the library's blocked layout
// where that saves more time than the reorders at the ends of the run take. What a person sees is NHWC all the same.
//
// Everything that can be blocked is, at first. Then the ends move: an operation changes its layout when that makes the
// whole cheaper, as behind an upsampling, where the reorder moves to the smaller image. At last every run (operations
// that are blocked and share images) has to save more than its reorders take, or it is plain. The ends find the
// nearest good place, not the best of all.
#include "program/layout.h"

enum { MAX_SWEEPS = 32 }; // ends move along a whole chain in one; this bounds what loops of images could do

static const double out_of_the_question_seconds = 1e9; // a copy above workspace.limit

typedef struct decision {
    layout_choice c;
    uint64_t limit_bytes;
    double *gain_seconds; // [instructions]
    uint32_t *run;        // [instructions] another one of the same run, or itself
    double *run_seconds;  // [instructions] what a run saves, at its root
    uint32_t *touched;    // [tensors] a blocked instruction with this image, HR_NO_ID
} decision;

static uint32_t operand_count(const instr *i)
{
    return (uint32_t)i->in_count + i->out_count;
}

static uint32_t operand_of(const instr *i, uint32_t k)
{
    return k < i->in_count ? i->in[k] : i->out[k - i->in_count];
}

// Has an earlier place of this instruction the same tensor?
static bool is_repeated(const instr *i, uint32_t k)
{
    uint32_t first = 0;
    while (operand_of(i, first) != operand_of(i, k)) {
        first++;
    }
    return first < k;
}

// ---- what could be blocked ------------------------------------------------------------------------------------

static bool is_image(const tensor *t)
{
    const bool category = t->category == HR_CATEGORY_ACTIVATIONS || t->category == HR_CATEGORY_INPUT;
    return t->shape.rank == 4 && category && (t->dtype == HR_F32 || t->dtype == HR_U8) &&
           t->shape.dim[3] % OP_BLOCK_CHANNELS == 0;
}

static void find_images(decision *v)
{
    const draft *d = v->c.d;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->out_count; k++) {
            v->c.images[i->out[k]].writers++;
        }
    }
    for (uint32_t k = 0; k < d->tensors.count; k++) {
        v->c.images[k].may_block = is_image(&d->tensors.data[k]) && v->c.images[k].writers == 1;
    }
}

static void block_query(const decision *v, const instr *i, op_query *q)
{
    draft_query(v->c.d, i, q);
    for (uint32_t k = 0; k < i->in_count; k++) {
        q->in[k].layout = v->c.images[i->in[k]].may_block ? HR_LAYOUT_BLOCKED : q->in[k].layout;
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        q->out[k].layout = v->c.images[i->out[k]].may_block ? HR_LAYOUT_BLOCKED : q->out[k].layout;
    }
}

// A kernel that needs more scratch than workspace.limit is none.
static hr_status weigh_instruction(decision *v, uint32_t n, hr_err *err)
{
    const hr_target *target = v->c.d->target;
    const instr *i = &v->c.d->instrs.data[n];
    op_query q;
    target_answer answer;
    bool has_image = false;
    for (uint32_t k = 0; k < operand_count(i); k++) {
        has_image |= v->c.images[operand_of(i, k)].may_block;
    }
    if (!has_image || op_row_of(i->op)->view) {
        return HR_OK;
    }
    block_query(v, i, &q);
    if (!target_prefers_blocked(target, &q)) {
        return HR_OK;
    }
    const hr_status status = target_ask(target, &q, v->limit_bytes, &answer, err);
    if (status != HR_OK && status != HR_DEVICE) {
        return status;
    }
    if (status == HR_OK) {
        v->c.may_block[n] = v->c.blocked[n] = true;
        v->gain_seconds[n] = target->blocked_gain_seconds(target->context, &q, &answer);
    }
    return HR_OK;
}

// ---- what a choice costs --------------------------------------------------------------------------------------

// Enters what instruction n does with its images, or (by -1) takes it out.
static void count_uses(decision *v, uint32_t n, uint32_t by)
{
    const instr *i = &v->c.d->instrs.data[n];
    const bool blocked = v->c.blocked[n];
    for (uint32_t k = 0; k < i->in_count; k++) {
        v->c.images[i->in[k]].readers[layout_time_of(i)][blocked] += by;
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        v->c.images[i->out[k]].blocked = blocked;
    }
}

static double image_seconds(const decision *v, uint32_t id)
{
    const tensor *t = &v->c.d->tensors.data[id];
    const unsigned copies = v->c.images[id].may_block ? layout_copies_of(&v->c, id) : 0;
    if (copies == 0) {
        return 0.0;
    }
    if (t->bytes > v->limit_bytes) {
        return out_of_the_question_seconds;
    }
    return copies * v->c.d->target->reorder_seconds(v->c.d->target->context, 2 * t->bytes);
}

static double seconds_around(const decision *v, uint32_t n)
{
    const instr *i = &v->c.d->instrs.data[n];
    double sum = v->c.blocked[n] ? -v->gain_seconds[n] : 0.0;
    for (uint32_t k = 0; k < operand_count(i); k++) {
        sum += is_repeated(i, k) ? 0.0 : image_seconds(v, operand_of(i, k));
    }
    return sum;
}

static void turn(decision *v, uint32_t n)
{
    count_uses(v, n, UINT32_MAX);
    v->c.blocked[n] = !v->c.blocked[n];
    count_uses(v, n, 1);
}

static bool improve(decision *v, uint32_t n)
{
    if (!v->c.may_block[n]) {
        return false;
    }
    const double before = seconds_around(v, n);
    turn(v, n);
    const double nothing = 1e-12;
    if (seconds_around(v, n) < before - nothing) {
        return true;
    }
    turn(v, n);
    return false;
}

static void move_ends(decision *v)
{
    const uint32_t count = v->c.d->instrs.count;
    bool changed = true;
    for (int sweep = 0; changed && sweep < MAX_SWEEPS; sweep++) {
        changed = false;
        for (uint32_t k = 0; k < count; k++) {
            changed |= improve(v, sweep % 2 == 0 ? k : count - 1 - k);
        }
    }
}

// ---- runs -----------------------------------------------------------------------------------------------------

static uint32_t root_of(decision *v, uint32_t n)
{
    while (v->run[n] != n) {
        v->run[n] = v->run[v->run[n]];
        n = v->run[n];
    }
    return n;
}

static void join_runs(decision *v)
{
    const draft *d = v->c.d;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; v->c.blocked[n] && k < operand_count(i); k++) {
            const uint32_t id = operand_of(i, k);
            if (!v->c.images[id].may_block) {
                continue;
            }
            if (v->touched[id] == HR_NO_ID) {
                v->touched[id] = n;
            } else {
                v->run[root_of(v, n)] = root_of(v, v->touched[id]);
            }
        }
    }
}

// An image between two layouts has blocked users of one run only.
static void drop_runs_that_do_not_pay(decision *v)
{
    const uint32_t count = v->c.d->instrs.count;
    for (uint32_t n = 0; n < count; n++) {
        v->run_seconds[root_of(v, n)] += v->c.blocked[n] ? v->gain_seconds[n] : 0.0;
    }
    for (uint32_t id = 0; id < v->c.d->tensors.count; id++) {
        if (v->touched[id] != HR_NO_ID) {
            v->run_seconds[root_of(v, v->touched[id])] -= image_seconds(v, id);
        }
    }
    for (uint32_t n = 0; n < count; n++) {
        if (v->c.blocked[n] && v->run_seconds[root_of(v, n)] <= 0.0) {
            turn(v, n);
        }
    }
}

static hr_status decide(decision *v, hr_err *err)
{
    find_images(v);
    for (uint32_t n = 0; n < v->c.d->instrs.count; n++) {
        v->run[n] = n;
        HR_TRY(weigh_instruction(v, n, err));
        count_uses(v, n, 1);
    }
    for (uint32_t k = 0; k < v->c.d->tensors.count; k++) {
        v->touched[k] = HR_NO_ID;
    }
    move_ends(v);
    join_runs(v);
    drop_runs_that_do_not_pay(v);
    return layout_apply(&v->c, err);
}

hr_status pass_layout(draft *d, hr_err *err)
{
    if (d->target->prefers_blocked == NULL || !hr_knob_is(d->knobs, HR_KNOB_EXECUTION_LAYOUT, "auto")) {
        return HR_OK;
    }
    const uint32_t tensors = d->tensors.count, instrs = d->instrs.count;
    decision v = {.c = {.d = d,
                        .images = hr_calloc(tensors, sizeof *v.c.images),
                        .may_block = hr_calloc(instrs, sizeof *v.c.may_block),
                        .blocked = hr_calloc(instrs, sizeof *v.c.blocked)},
                  .limit_bytes = hr_knob_bytes(d->knobs, HR_KNOB_WORKSPACE_LIMIT, UINT64_MAX),
                  .gain_seconds = hr_calloc(instrs, sizeof *v.gain_seconds),
                  .run = hr_calloc(instrs, sizeof *v.run),
                  .run_seconds = hr_calloc(instrs, sizeof *v.run_seconds),
                  .touched = hr_calloc(tensors, sizeof *v.touched)};
    hr_status status = v.c.images != NULL && v.c.may_block != NULL && v.c.blocked != NULL &&
                               v.gain_seconds != NULL && v.run != NULL && v.run_seconds != NULL &&
                               v.touched != NULL
                           ? decide(&v, err)
                           : HR_FAIL(err, NOMEM, "no host memory for the layouts of %u tensors", tensors);
    hr_free(v.c.images);
    hr_free(v.c.may_block);
    hr_free(v.c.blocked);
    hr_free(v.gain_seconds);
    hr_free(v.run);
    hr_free(v.run_seconds);
    hr_free(v.touched);
    return status;
}
