// SPDX-License-Identifier: Apache-2.0
// A report as a Lua table: the names are those of "headroom.report/1", null is nil, sizes are hr.bytes. Beside them
// stands `fits`: whether it did not run out of memory.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "headroom/category.h"
#include "headroom/report.h"

#include "app/lua/script.h"

typedef enum field_kind {
    BYTES,    // uint64_t
    COUNT,    // uint64_t
    COUNT32,  // uint32_t, HR_NO_ID is nil
    REAL,     // double
    TEXT,     // char[], "" is nil
    FLAG,     // bool
    CATEGORY, // hr_category
} field_kind;

typedef struct field {
    const char *name;
    field_kind kind;
    size_t offset;
} field;

#define IN(type, member, name, kind)                                                                         \
    {                                                                                                        \
        name, kind, offsetof(type, member)                                                                   \
    }
#define END                                                                                                  \
    {                                                                                                        \
        NULL, COUNT, 0                                                                                       \
    }

static const field top_fields[] = {IN(hr_report, preset, "preset", TEXT), END};
static const field device_fields[] = {
    IN(hr_report, device.kind, "kind", TEXT),
    IN(hr_report, device.card, "card", TEXT),
    IN(hr_report, device.isa, "isa", TEXT),
    IN(hr_report, device.threads, "threads", COUNT32),
    IN(hr_report, device.simulated, "simulated", FLAG),
    END,
};
static const field model_fields[] = {
    IN(hr_report, model.parameters, "parameters", COUNT),
    IN(hr_report, model.trainable_parameters, "trainable_parameters", COUNT),
    END,
};
static const field step_fields[] = {
    IN(hr_report, step.instructions, "instructions", COUNT32),
    IN(hr_report, step.effective_batch, "effective_batch", COUNT),
    IN(hr_report, step.flops, "flops", COUNT),
    IN(hr_report, step.seconds, "seconds", REAL),
    END,
};
static const field memory_fields[] = {
    IN(hr_report, memory.limit_bytes, "limit_bytes", BYTES),
    IN(hr_report, memory.peak_pool_bytes, "peak_pool_bytes", BYTES),
    IN(hr_report, memory.peak_in_use_bytes, "peak_in_use_bytes", BYTES),
    IN(hr_report, memory.peak_requested_bytes, "peak_requested_bytes", BYTES),
    IN(hr_report, memory.waste_bytes, "waste_bytes", BYTES),
    IN(hr_report, memory.saved_for_backward_bytes, "saved_for_backward_bytes", BYTES),
    IN(hr_report, memory.library_saved_bytes, "library_saved_bytes", BYTES),
    IN(hr_report, memory.static_bytes, "static_bytes", BYTES),
    IN(hr_report, memory.largest_free_bytes, "largest_free_bytes", BYTES),
    IN(hr_report, memory.fragmentation, "fragmentation", REAL),
    END,
};
static const field evaluation_fields[] = {
    IN(hr_report, evaluation.peak_in_use_bytes, "peak_in_use_bytes", BYTES),
    END,
};
static const field driver_fields[] = {
    IN(hr_report, driver.process_bytes, "process_bytes", BYTES),
    IN(hr_report, driver.others_bytes, "others_bytes", BYTES),
    END,
};
static const field transfer_fields[] = {
    IN(hr_report, h2d_bytes_per_step, "h2d_bytes_per_step", BYTES),
    END,
};
static const field host_fields[] = {IN(hr_report, host.peak_bytes, "peak_bytes", BYTES), END};
static const field train_fields[] = {
    IN(hr_report, train.steps, "steps", COUNT),
    IN(hr_report, train.updates, "updates", COUNT),
    IN(hr_report, train.skipped_steps, "skipped_steps", COUNT),
    IN(hr_report, train.loss_scale, "loss_scale", REAL),
    IN(hr_report, train.examples_per_second, "examples_per_second", REAL),
    IN(hr_report, train.loss_first, "loss_first", REAL),
    IN(hr_report, train.loss_last, "loss_last", REAL),
    IN(hr_report, train.eval_accuracy, "eval_accuracy", REAL),
    IN(hr_report, train.weights_sha256, "weights_sha256", TEXT),
    IN(hr_report, train.data, "data", TEXT),
    END,
};
static const field layer_fields[] = {
    IN(hr_report_layer, name, "name", TEXT),
    IN(hr_report_layer, kind, "kind", TEXT),
    IN(hr_report_layer, output_shape, "output_shape", TEXT),
    IN(hr_report_layer, parameters, "parameters", COUNT),
    END,
};
static const field tensor_fields[] = {
    IN(hr_report_tensor, name, "name", TEXT),    IN(hr_report_tensor, category, "category", CATEGORY),
    IN(hr_report_tensor, dtype, "dtype", TEXT),  IN(hr_report_tensor, shape, "shape", TEXT),
    IN(hr_report_tensor, bytes, "bytes", BYTES), END,
};
static const field oom_fields[] = {
    IN(hr_report_oom, tensor, "tensor", TEXT),
    IN(hr_report_oom, instruction, "instruction", COUNT32),
    IN(hr_report_oom, instruction_name, "name", TEXT),
    IN(hr_report_oom, requested_bytes, "requested_bytes", BYTES),
    IN(hr_report_oom, free_bytes, "free_bytes", BYTES),
    IN(hr_report_oom, largest_free_bytes, "largest_free_bytes", BYTES),
    IN(hr_report_oom, in_use_bytes, "in_use_bytes", BYTES),
    IN(hr_report_oom, pool_bytes, "pool_bytes", BYTES),
    IN(hr_report_oom, limit_bytes, "limit_bytes", BYTES),
    IN(hr_report_oom, sentence, "sentence", TEXT),
    IN(hr_report_oom, attempt, "try", TEXT),
    END,
};
static const field fix_fields[] = {
    IN(hr_report_fix, peak_bytes, "peak_bytes", BYTES),
    IN(hr_report_fix, seconds, "seconds", REAL),
    END,
};

// The parts of a report, each a table of its own. Some say nothing before a program was built.
static const struct {
    const char *name;
    const field *fields;
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

static void push_count(lua_State *L, uint64_t count)
{
    if (count <= INT64_MAX) {
        lua_pushinteger(L, (lua_Integer)count);
    } else {
        lua_pushnil(L); // HR_NONE
    }
}

static void push_field(lua_State *L, field_kind kind, const void *at)
{
    switch (kind) {
    case BYTES:
        if (*(const uint64_t *)at <= INT64_MAX) {
            script_push_bytes(L, (int64_t) * (const uint64_t *)at);
        } else {
            lua_pushnil(L);
        }
        break;
    case COUNT:
        push_count(L, *(const uint64_t *)at);
        break;
    case COUNT32:
        push_count(L, *(const uint32_t *)at == HR_NO_ID ? HR_NONE : *(const uint32_t *)at);
        break;
    case REAL:
        if (isfinite(*(const double *)at)) {
            lua_pushnumber(L, *(const double *)at);
        } else {
            lua_pushnil(L);
        }
        break;
    case TEXT:
        if (*(const char *)at != '\0') {
            lua_pushstring(L, at);
        } else {
            lua_pushnil(L);
        }
        break;
    case FLAG:
        lua_pushboolean(L, *(const bool *)at);
        break;
    case CATEGORY:
        lua_pushstring(L, hr_category_name(*(const hr_category *)at));
        break;
    }
}

// Into the table on top of the stack.
static void set_fields(lua_State *L, const field *fields, const void *from)
{
    for (const field *f = fields; f->name != NULL; f++) {
        push_field(L, f->kind, (const char *)from + f->offset);
        lua_setfield(L, -2, f->name);
    }
}

// A list of `count` records of `stride` bytes, as field `name` of the table on top of the stack.
static void set_list(lua_State *L, const char *name, const field *fields, const void *first, size_t stride,
                     size_t count)
{
    lua_createtable(L, (int)count, 0);
    for (size_t k = 0; k < count; k++) {
        lua_newtable(L);
        set_fields(L, fields, (const char *)first + k * stride);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, name);
}

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
    set_list(L, "tensors", tensor_fields, m->at_peak.tensors, sizeof *m->at_peak.tensors,
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
        set_fields(L, fix_fields, &oom->fixes[k]);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, "fixes");
}

void script_push_oom(lua_State *L, const hr_report_oom *oom)
{
    lua_newtable(L);
    set_fields(L, oom_fields, oom);
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
    static const field stage_fields[] = {{"name", TEXT, 0}, {"peak_bytes", BYTES, 32}, END};
    _Static_assert(sizeof r->host.stages[0].name == 32, "a stage's peak stands behind its name");
    lua_getfield(L, -1, "model");
    set_list(L, "layers", layer_fields, r->model.layers, sizeof *r->model.layers, r->model.layer_count);
    lua_pop(L, 1);
    lua_getfield(L, -1, "host");
    set_list(L, "stages", stage_fields, r->host.stages, sizeof r->host.stages[0], r->host.stage_count);
    lua_pop(L, 1);
}

// The limit is known even when nothing could be built under it.
static void set_limit(lua_State *L, uint64_t limit_bytes)
{
    (void)lua_getfield(L, -1, "memory");
    push_field(L, BYTES, &limit_bytes);
    lua_setfield(L, -2, "limit_bytes");
    lua_pop(L, 1);
}

void script_push_report(lua_State *L, const hr_report *r)
{
    bool built = r->step.instructions > 0;
    lua_newtable(L);
    set_fields(L, top_fields, r);
    for (size_t k = 0; k < sizeof sections / sizeof *sections; k++) {
        lua_newtable(L);
        if (built || !sections[k].needs_build) {
            set_fields(L, sections[k].fields, r);
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
