// SPDX-License-Identifier: Apache-2.0
// From a recipe to a trace: programs are compiled as for a plan, and their lists are written down.
#include "insight/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "base/vec.h"
#include "device/device.h"
#include "insight/scenario_recipe.h"
#include "model/model.h"
#include "program/compile.h"
#include "program/program.h"

#define SCENARIO_CARD "a100-80g" // by whose published rates time goes

// What a block is called in the making is any number but 0.
typedef struct made_program {
    program *p;
    uint64_t *address; // [tensor_count] of what lives
    bool lacks_slots;  // the optimizer's tensors are still to come
} made_program;

typedef struct maker {
    const recipe *r;
    trace_builder *builder;
    void *device; // without a card: whose memory the programs are compiled for
    void *clock;  // with one: says how long instructions take
    uint64_t now_ns;
    made_program programs[RECIPE_PROGRAMS];
    uint64_t next_address;
    VEC(uint64_t) built;
    uint16_t stream;
    uint32_t row;
} maker;

// ---- programs -------------------------------------------------------------------------------------------------

static hr_status knobs_of(const recipe_program *r, const hr_preset *preset, hr_knobs *knobs, hr_err *err)
{
    *knobs = *hr_preset_knobs(preset);
    HR_TRY(hr_knobs_set(knobs, HR_KNOB_DEVICE_KIND, "plan", err));
    for (int k = 0; k < RECIPE_KNOBS && r->knobs[k] != NULL; k++) {
        HR_TRY(hr_knobs_set_pair(knobs, r->knobs[k], err));
    }
    return hr_knobs_validate(knobs, err);
}

static hr_status compile_for(const maker *m, const recipe_program *r, const hr_preset *preset, program **out,
                             hr_err *err)
{
    hr_knobs knobs;
    hr_model *model = NULL;
    hr_target target;
    HR_TRY(knobs_of(r, preset, &knobs, err));
    HR_TRY(model_create(preset, &knobs, &model, NULL, err));
    device_plan.target(m->device, &target);
    const uint32_t batch = r->batch != 0 ? r->batch : (uint32_t)hr_knob_int(&knobs, HR_KNOB_BATCH_SIZE);
    hr_status status = program_compile(model, &knobs, r->evaluates ? PROGRAM_EVALUATE : PROGRAM_TRAIN, batch,
                                       &target, out, err);
    model_destroy(model);
    return status;
}

static hr_status make_program(const maker *m, const recipe_program *r, made_program *out, hr_err *err)
{
    hr_preset *preset = NULL;
    HR_TRY(hr_preset_open(r->preset, false, &preset, NULL, err));
    hr_status status = compile_for(m, r, preset, &out->p, err);
    hr_preset_close(preset);
    HR_TRY(status);
    out->address = hr_calloc(out->p->tensor_count, sizeof *out->address);
    return out->address != NULL ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for a scenario's tensors");
}

static hr_status make_programs(maker *m, hr_err *err)
{
    for (int k = 0; k < RECIPE_PROGRAMS && m->r->programs[k].preset != NULL; k++) {
        HR_TRY(make_program(m, &m->r->programs[k], &m->programs[k], err));
    }
    return HR_OK;
}

// ---- events ---------------------------------------------------------------------------------------------------

static hr_status add(maker *m, trace_kind kind, uint64_t bytes, const char *name, uint64_t address,
                     hr_err *err)
{
    trace_event event = {.kind = (uint8_t)kind,
                         .time_ns = m->now_ns,
                         .bytes = bytes,
                         .block = HR_NO_ID,
                         .name = HR_NO_ID,
                         .row = m->row++,
                         .stream = m->stream};
    if (name != NULL) {
        event.name = intern_add(&m->builder->t->names, name, strlen(name));
        if (event.name == INTERN_NONE) {
            return HR_FAIL(err, NOMEM, "no host memory for the names of a scenario");
        }
    }
    return trace_add(m->builder, event, address, err);
}

static hr_status take(maker *m, const tensor *t, uint64_t *address, hr_err *err)
{
    *address = ++m->next_address;
    return add(m, TRACE_ALLOC, t->bytes, t->name, *address, err);
}

static hr_status release(maker *m, uint64_t *address, hr_err *err)
{
    const uint64_t gone = *address;
    *address = 0;
    return add(m, TRACE_FREE, 0, NULL, gone, err);
}

static hr_status take_for_good(maker *m, const tensor *t, hr_err *err)
{
    uint64_t *place = vec_push(&m->built);
    if (place == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a scenario's build");
    }
    return take(m, t, place, err);
}

// ---- phases ---------------------------------------------------------------------------------------------------

static hr_status assign(maker *m, const tensor *t, hr_err *err)
{
    tensor initial = *t;
    text name = {0};
    uint64_t address = 0;
    text_append(&name, "%s:initial", t->name);
    initial.name = name.data;
    hr_status status = name.failed ? HR_FAIL(err, NOMEM, "no host memory for the names of a scenario")
                                   : take(m, &initial, &address, err);
    text_deinit(&name);
    HR_TRY(status);
    HR_TRY(take_for_good(m, t, err));
    return release(m, &address, err);
}

static hr_status build_tensors(maker *m, const made_program *made, recipe_act act, bool slots, hr_err *err)
{
    for (uint32_t k = 0; k < made->p->persistent_count; k++) {
        const tensor *t = &made->p->tensors[k];
        const bool is_slot = t->category == HR_CATEGORY_OPTIMIZER;
        if (tensor_on_host(t) || (act == RECIPE_LAZY && is_slot != slots)) {
            continue;
        }
        HR_TRY(act == RECIPE_ASSIGN ? assign(m, t, err) : take_for_good(m, t, err));
    }
    return HR_OK;
}

static hr_status build_program(maker *m, made_program *made, recipe_act act, hr_err *err)
{
    made->lacks_slots = act == RECIPE_LAZY;
    return build_tensors(m, made, act, false, err);
}

// The first update makes what the optimizer keeps.
static hr_status make_slots(maker *m, made_program *made, hr_err *err)
{
    made->lacks_slots = false;
    return build_tensors(m, made, RECIPE_LAZY, true, err);
}

static uint32_t owner_of(const program *p, uint32_t id)
{
    while (p->tensors[id].storage != id) {
        id = p->tensors[id].storage;
    }
    return id;
}

static hr_status play_instr(maker *m, made_program *made, const instr *i, hr_err *err)
{
    const program *p = made->p;
    if (made->lacks_slots && i->phase == HR_PHASE_UPDATE) {
        HR_TRY(make_slots(m, made, err));
    }
    if (i->op == HR_OP_ALLOC) {
        return take(m, &p->tensors[i->out[0]], &made->address[i->out[0]], err);
    }
    if (i->op == HR_OP_FREE) {
        return release(m, &made->address[i->in[0]], err);
    }
    if (i->op == HR_OP_RETAIN) {
        made->address[owner_of(p, i->in[0])] = 0; // lives on, and has no owner any more
        return HR_OK;
    }
    m->now_ns += i->lane == HR_LANE_COMPUTE ? device_plan.duration_ns(m->clock, p, i) : 0;
    return HR_OK;
}

static hr_status play_step(maker *m, made_program *made, hr_err *err)
{
    const program *p = made->p;
    uint32_t begin = 0, rounds_left = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        HR_TRY(play_instr(m, made, i, err));
        if (i->op == HR_OP_REPEAT) {
            begin = n;
            rounds_left = (uint32_t)i->attr.count - 1;
        } else if (i->op == HR_OP_END && rounds_left > 0) {
            rounds_left--;
            n = begin;
        }
    }
    return p->mode == PROGRAM_TRAIN ? add(m, TRACE_STEP, 0, NULL, 0, err) : HR_OK;
}

static hr_status let_go(maker *m, hr_err *err)
{
    while (m->built.count > 0) {
        HR_TRY(release(m, &m->built.data[m->built.count - 1], err));
        m->built.count--;
    }
    return add(m, TRACE_STEP, 0, NULL, 0, err);
}

static hr_status play_phase(maker *m, const recipe_phase *phase, hr_err *err)
{
    made_program *made = &m->programs[phase->program];
    m->stream = phase->stream;
    switch (phase->act) {
    case RECIPE_END:
        break;
    case RECIPE_BUILD:
    case RECIPE_ASSIGN:
    case RECIPE_LAZY:
        return build_program(m, made, phase->act, err);
    case RECIPE_STEPS:
        for (uint32_t k = 0; k < phase->count; k++) {
            HR_TRY(play_step(m, made, err));
        }
        break;
    case RECIPE_LET_GO:
        return let_go(m, err);
    }
    return HR_OK;
}

static hr_status play_recipe(maker *m, hr_err *err)
{
    const recipe *r = m->r;
    const uint32_t times = r->times == 0 ? 1 : r->times;
    for (uint32_t n = 0; n < times; n++) {
        for (uint32_t k = n == 0 ? 0 : r->loop_from; k < RECIPE_PHASES && r->phases[k].act != RECIPE_END;
             k++) {
            HR_TRY(play_phase(m, &r->phases[k], err));
        }
    }
    return HR_OK;
}

// ---- the whole ------------------------------------------------------------------------------------------------

static hr_status play_by_the_clock(maker *m, hr_err *err)
{
    hr_card card;
    HR_TRY(hr_card_load(SCENARIO_CARD, &card, err));
    HR_TRY(device_plan.open(&(device_options){.card = &card, .threads = 1}, &m->clock, err));
    hr_status status = play_recipe(m, err);
    device_plan.close(m->clock);
    return status;
}

static hr_status make(maker *m, hr_err *err)
{
    HR_TRY(device_plan.open(&(device_options){.threads = 1}, &m->device, err));
    hr_status status = make_programs(m, err);
    if (status == HR_OK) {
        status = play_by_the_clock(m, err);
    }
    for (int k = 0; k < RECIPE_PROGRAMS; k++) {
        program_destroy(m->programs[k].p);
        hr_free(m->programs[k].address);
    }
    vec_deinit(&m->built);
    device_plan.close(m->device);
    return status;
}

hr_status recipe_trace(const recipe *r, trace *t, hr_err *err)
{
    trace_builder builder;
    *t = (trace){.format = "scenario"};
    trace_builder_init(&builder, t);
    maker m = {.r = r, .builder = &builder};
    hr_status status = make(&m, err);
    trace_builder_deinit(&builder);
    t->rows = m.row;
    if (status != HR_OK) {
        trace_deinit(t);
    }
    return status;
}

hr_status scenario_trace(const hr_scenario *scenario, trace *t, hr_err *err)
{
    return recipe_trace(scenario_recipe(scenario), t, err);
}
