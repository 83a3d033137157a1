// SPDX-License-Identifier: Apache-2.0
// A report as a Lua table: the names are those of "headroom.report/1", null is nil, sizes are hr.bytes. Beside them
// stands `fits`: whether it did not run out of memory.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "headroom/category.h"
#include "headroom/report.h"

#include "app/lua/fields.h"
#include "app/lua/script.h"

static const script_field top_fields[] = {FIELD_IN(hr_report, preset, "preset", FIELD_TEXT), FIELD_END};
static const script_field device_fields[] = {
    FIELD_IN(hr_report, device.kind, "kind", FIELD_TEXT),
    FIELD_IN(hr_report, device.card, "card", FIELD_TEXT),
    FIELD_IN(hr_report, device.isa, "isa", FIELD_TEXT),
    FIELD_IN(hr_report, device.threads, "threads", FIELD_COUNT32),
    FIELD_IN(hr_report, device.simulated, "simulated", FIELD_FLAG),
    FIELD_END,
};
static const script_field model_fields[] = {
    FIELD_IN(hr_report, model.parameters, "parameters", FIELD_COUNT),
    FIELD_IN(hr_report, model.trainable_parameters, "trainable_parameters", FIELD_COUNT),
    FIELD_END,
};
static const script_field step_fields[] = {
    FIELD_IN(hr_report, step.instructions, "instructions", FIELD_COUNT32),
    FIELD_IN(hr_report, step.effective_batch, "effective_batch", FIELD_COUNT),
    FIELD_IN(hr_report, step.flops, "flops", FIELD_COUNT),
    FIELD_IN(hr_report, step.seconds, "seconds", FIELD_REAL),
    FIELD_IN(hr_report, step.seconds_low, "seconds_low", FIELD_REAL),
    FIELD_IN(hr_report, step.seconds_high, "seconds_high", FIELD_REAL),
    FIELD_END,
};
static const script_field memory_fields[] = {
    FIELD_IN(hr_report, memory.limit_bytes, "limit_bytes", FIELD_BYTES),
    FIELD_IN(hr_report, memory.peak_pool_bytes, "peak_pool_bytes", FIELD_BYTES),
    FIELD_IN(hr_report, memory.peak_in_use_bytes, "peak_in_use_bytes", FIELD_BYTES),
    FIELD_IN(hr_report, memory.peak_requested_bytes, "peak_requested_bytes", FIELD_BYTES),
    FIELD_IN(hr_report, memory.waste_bytes, "waste_bytes", FIELD_BYTES),
    FIELD_IN(hr_report, memory.saved_for_backward_bytes, "saved_for_backward_bytes", FIELD_BYTES),
    FIELD_IN(hr_report, memory.library_saved_bytes, "library_saved_bytes", FIELD_BYTES),
    FIELD_IN(hr_report, memory.static_bytes, "static_bytes", FIELD_BYTES),
    FIELD_IN(hr_report, memory.largest_free_bytes, "largest_free_bytes", FIELD_BYTES),
    FIELD_IN(hr_report, memory.fragmentation, "fragmentation", FIELD_REAL),
    FIELD_END,
};
static const script_field evaluation_fields[] = {
    FIELD_IN(hr_report, evaluation.peak_in_use_bytes, "peak_in_use_bytes", FIELD_BYTES),
    FIELD_END,
};
static const script_field driver_fields[] = {
    FIELD_IN(hr_report, driver.outside_bytes, "outside_bytes", FIELD_BYTES),
    FIELD_IN(hr_report, driver.process_bytes, "process_bytes", FIELD_BYTES),
    FIELD_IN(hr_report, driver.others_bytes, "others_bytes", FIELD_BYTES),
    FIELD_END,
};
static const script_field transfer_fields[] = {
    FIELD_IN(hr_report, h2d_bytes_per_step, "h2d_bytes_per_step", FIELD_BYTES),
    FIELD_END,
};
static const script_field host_fields[] = {FIELD_IN(hr_report, host.peak_bytes, "peak_bytes", FIELD_BYTES),
                                           FIELD_END};
static const script_field train_fields[] = {
    FIELD_IN(hr_report, train.steps, "steps", FIELD_COUNT),
    FIELD_IN(hr_report, train.updates, "updates", FIELD_COUNT),
    FIELD_IN(hr_report, train.skipped_steps, "skipped_steps", FIELD_COUNT),
    FIELD_IN(hr_report, train.loss_scale, "loss_scale", FIELD_REAL),
    FIELD_IN(hr_report, train.examples_per_second, "examples_per_second", FIELD_REAL),
    FIELD_IN(hr_report, train.loss_first, "loss_first", FIELD_REAL),
    FIELD_IN(hr_report, train.loss_last, "loss_last", FIELD_REAL),
    FIELD_IN(hr_report, train.eval_accuracy, "eval_accuracy", FIELD_REAL),
    FIELD_IN(hr_report, train.weights_sha256, "weights_sha256", FIELD_TEXT),
    FIELD_IN(hr_report, train.data, "data", FIELD_TEXT),
    FIELD_END,
};
static const script_field layer_fields[] = {
    FIELD_IN(hr_report_layer, name, "name", FIELD_TEXT),
    FIELD_IN(hr_report_layer, kind, "kind", FIELD_TEXT),
    FIELD_IN(hr_report_layer, output_shape, "output_shape", FIELD_TEXT),
    FIELD_IN(hr_report_layer, parameters, "parameters", FIELD_COUNT),
    FIELD_END,
};
static const script_field tensor_fields[] = {
    FIELD_IN(hr_report_tensor, name, "name", FIELD_TEXT),
    FIELD_IN(hr_report_tensor, category, "category", FIELD_CATEGORY),
    FIELD_IN(hr_report_tensor, dtype, "dtype", FIELD_TEXT),
    FIELD_IN(hr_report_tensor, shape, "shape", FIELD_TEXT),
    FIELD_IN(hr_report_tensor, bytes, "bytes", FIELD_BYTES),
    FIELD_END,
};
static const script_field oom_fields[] = {
    FIELD_IN(hr_report_oom, tensor, "tensor", FIELD_TEXT),
    FIELD_IN(hr_report_oom, instruction, "instruction", FIELD_COUNT32),
    FIELD_IN(hr_report_oom, instruction_name, "name", FIELD_TEXT),
    FIELD_IN(hr_report_oom, requested_bytes, "requested_bytes", FIELD_BYTES),
    FIELD_IN(hr_report_oom, free_bytes, "free_bytes", FIELD_BYTES),
    FIELD_IN(hr_report_oom, largest_free_bytes, "largest_free_bytes", FIELD_BYTES),
    FIELD_IN(hr_report_oom, in_use_bytes, "in_use_bytes", FIELD_BYTES),
    FIELD_IN(hr_report_oom, pool_bytes, "pool_bytes", FIELD_BYTES),
    FIELD_IN(hr_report_oom, limit_bytes, "limit_bytes", FIELD_BYTES),
    FIELD_IN(hr_report_oom, sentence, "sentence", FIELD_TEXT),
    FIELD_IN(hr_report_oom, hint, "try", FIELD_TEXT),
    FIELD_END,
};
static const script_field fix_fields[] = {
    FIELD_IN(hr_report_fix, peak_bytes, "peak_bytes", FIELD_BYTES),
    FIELD_IN(hr_report_fix, limit_bytes, "limit_bytes", FIELD_BYTES),
    FIELD_IN(hr_report_fix, seconds, "seconds", FIELD_REAL),
    FIELD_END,
};

// The parts of a report, each a table of its own. Some say nothing before a program was built.
static const struct {
    const char *name;
    const script_field *fields;
    bool needs_build;
} sections[] = {
    {"device", device_fields, false},
    {"model", model_fields, false},
    {"step", step_fields, true},
    {"memory", memory_fields, true},
    {"driver", driver_fields, false},
    {"transfer", transfer_fields, true},
    {"evaluation", evaluation_fields, false},
    {"host", host_fields, false},
    {"train", train_fields, false},
};

static void set_by_category(lua_State *L, const uint64_t by_category[HR_CATEGORY_COUNT])
{
    lua_newtable(L);
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        script_push_bytes(L, (int64_t)by_category[k]);
        lua_setfield(L, -2, hr_category_name((hr_category)k));
    }
    lua_setfield(L, -2, "by_category");
}

// Into the `memory` table on top of the stack.
static void set_at_peak(lua_State *L, const hr_report_memory *m)
{
    lua_newtable(L);
    if (m->at_peak.phase != HR_PHASE_BUILD) {
        lua_pushinteger(L, m->at_peak.instruction);
        lua_setfield(L, -2, "instruction");
    }
    lua_pushstring(L, m->at_peak.name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, hr_phase_name(m->at_peak.phase));
    lua_setfield(L, -2, "phase");
    set_by_category(L, m->at_peak.by_category);
    script_set_list(L, "tensors", tensor_fields, m->at_peak.tensors, sizeof *m->at_peak.tensors,
                    m->at_peak.tensor_count);
    lua_setfield(L, -2, "at_peak");
}

// "a.b=1 c.d=2" as a list, field `knobs` of the table on top of the stack.
static void set_pairs(lua_State *L, const char *pairs)
{
    lua_newtable(L);
    for (lua_Integer k = 1; *pairs != '\0'; k++) {
        size_t length = strcspn(pairs, " ");
        (void)lua_pushlstring(L, pairs, length);
        lua_rawseti(L, -2, k);
        pairs += length + (pairs[length] == ' ');
    }
    lua_setfield(L, -2, "knobs");
}

static void set_fixes(lua_State *L, const hr_report_oom *oom)
{
    lua_createtable(L, (int)oom->fix_count, 0);
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        lua_newtable(L);
        set_pairs(L, oom->fixes[k].knobs);
        script_set_fields(L, fix_fields, &oom->fixes[k]);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, "fixes");
}

void script_push_oom(lua_State *L, const hr_report_oom *oom)
{
    lua_newtable(L);
    script_set_fields(L, oom_fields, oom);
    set_by_category(L, oom->by_category);
    lua_pushstring(L, hr_oom_cause_name(oom->cause));
    lua_setfield(L, -2, "cause");
    set_fixes(L, oom);
}

// What only a built program can say: the memory's peak, its hash, and where the seconds come from.
static void set_built(lua_State *L, const hr_report *r)
{
    lua_getfield(L, -1, "memory");
    set_at_peak(L, &r->memory);
    char hash[20];
    (void)snprintf(hash, sizeof hash, "%016" PRIx64, r->memory.heap_hash);
    lua_pushstring(L, hash);
    lua_setfield(L, -2, "heap_hash");
    lua_pop(L, 1);
    if (isfinite(r->step.seconds)) {
        lua_getfield(L, -1, "step");
        lua_pushstring(L, r->step.measured ? "measured" : "simulated");
        lua_setfield(L, -2, "seconds_source");
        lua_pop(L, 1);
    }
}

// The lists of the model's layers and of the pipeline's stages.
static void set_lists(lua_State *L, const hr_report *r)
{
    static const script_field stage_fields[] = {
        {"name", FIELD_TEXT, 0}, {"peak_bytes", FIELD_BYTES, 32}, FIELD_END};
    _Static_assert(sizeof r->host.stages[0].name == 32, "a stage's peak stands behind its name");
    lua_getfield(L, -1, "model");
    script_set_list(L, "layers", layer_fields, r->model.layers, sizeof *r->model.layers,
                    r->model.layer_count);
    lua_pop(L, 1);
    lua_getfield(L, -1, "host");
    script_set_list(L, "stages", stage_fields, r->host.stages, sizeof r->host.stages[0], r->host.stage_count);
    lua_pop(L, 1);
}

// The limit is known even when nothing could be built under it.
static void set_limit(lua_State *L, uint64_t limit_bytes)
{
    (void)lua_getfield(L, -1, "memory");
    script_push_field(L, FIELD_BYTES, &limit_bytes);
    lua_setfield(L, -2, "limit_bytes");
    lua_pop(L, 1);
}

void script_push_report(lua_State *L, const hr_report *r)
{
    bool built = r->step.instructions > 0;
    lua_newtable(L);
    script_set_fields(L, top_fields, r);
    for (size_t k = 0; k < sizeof sections / sizeof *sections; k++) {
        lua_newtable(L);
        if (built || !sections[k].needs_build) {
            script_set_fields(L, sections[k].fields, r);
        }
        lua_setfield(L, -2, sections[k].name);
    }
    set_lists(L, r);
    if (built) {
        set_built(L, r);
    }
    lua_pushboolean(L, r->oom.cause == HR_OOM_NONE);
    lua_setfield(L, -2, "fits");
    if (r->oom.cause != HR_OOM_NONE) {
        set_limit(L, r->oom.limit_bytes);
        script_push_oom(L, &r->oom);
        lua_setfield(L, -2, "oom");
    }
}
