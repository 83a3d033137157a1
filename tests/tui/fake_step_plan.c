// SPDX-License-Identifier: Apache-2.0
#include "tests/tui/fake_step_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "tests/tui/fake_engine.h"

enum { INSTRS = 256, TENSORS = 128, EVENTS = 512, LAYERS = 16, TEXTS = 1 << 16, GRAIN = 256 };

static const uint64_t heap_begin = UINT64_C(1) << 28;

typedef struct drawing {
    hr_step_plan *out;
    fake_move before; // the latest move of memory
    uint64_t by_category[HR_CATEGORY_COUNT];
    uint64_t limit;
    bool refused;
} drawing;

static void *room(size_t count, size_t size)
{
    void *data = hr_calloc(count, size);
    if (data == NULL) {
        abort();
    }
    return data;
}

static uint32_t text(drawing *d, const char *words)
{
    hr_step_plan *p = d->out;
    size_t length = strlen(words) + 1;
    for (uint32_t at = 0; at < p->texts_bytes; at += (uint32_t)strlen(p->texts + at) + 1) {
        if (strcmp(p->texts + at, words) == 0) {
            return at;
        }
    }
    if (p->texts_bytes + length > TEXTS) {
        abort();
    }
    memcpy(p->texts + p->texts_bytes, words, length);
    p->texts_bytes += length;
    return (uint32_t)(p->texts_bytes - length);
}

static const char *word(const drawing *d, uint32_t at)
{
    return hr_step_plan_text(d->out, at);
}

// ---- tensors ----------------------------------------------------------------------------------------------------

// The layer that a tensor's or a piece of work's name begins with.
static uint32_t layer_of(const drawing *d, const char *name)
{
    for (uint32_t k = 0; k < d->out->layer_count; k++) {
        const char *layer = word(d, d->out->layers[k].name);
        size_t length = strlen(layer);
        if (strncmp(name, layer, length) == 0 && strchr("/:", name[length]) != NULL) {
            return k;
        }
    }
    return HR_NO_ID;
}

static uint32_t alive(const drawing *d, const char *name)
{
    for (uint32_t k = (uint32_t)d->out->tensor_count; k-- > 0;) {
        const hr_step_plan_tensor *t = &d->out->tensors[k];
        if (t->died == HR_NO_ID && strcmp(word(d, t->name), name) == 0) {
            return k;
        }
    }
    abort();
}

static bool is_free(const drawing *d, uint64_t begin, uint64_t end, uint64_t *next)
{
    for (size_t k = 0; k < d->out->tensor_count; k++) {
        const hr_step_plan_tensor *t = &d->out->tensors[k];
        if (t->died == HR_NO_ID && t->allocated_bytes > 0 && t->address < end &&
            t->address + t->allocated_bytes > begin) {
            *next = t->address + t->allocated_bytes;
            return false;
        }
    }
    return true;
}

static uint64_t first_fit(const drawing *d, uint64_t bytes)
{
    uint64_t at = heap_begin;
    while (!is_free(d, at, at + bytes, &at)) {
    }
    return at;
}

static uint32_t add_tensor(drawing *d, const fake_move *move, bool placed)
{
    hr_step_plan *p = d->out;
    uint64_t rounded = (move->bytes + GRAIN - 1) / GRAIN * GRAIN;
    uint32_t id = (uint32_t)p->tensor_count, number = (uint32_t)p->instr_count;
    bool persistent = move->phase == HR_PHASE_BUILD;
    hr_step_plan_tensor t = {.category = (uint8_t)move->category,
                             .persistent = persistent,
                             .saved =
                                 move->phase == HR_PHASE_FORWARD && move->category == HR_CATEGORY_ACTIVATIONS,
                             .layer = layer_of(d, move->name),
                             .owner = id,
                             .born = persistent ? HR_NO_ID : number,
                             .died = HR_NO_ID,
                             .bytes = move->bytes,
                             .allocated_bytes = placed ? rounded : 0,
                             .address = placed ? first_fit(d, rounded) : 0};
    t.name = text(d, move->name);
    t.dtype = text(d, move->category == HR_CATEGORY_TEMPORARIES ? "uint8" : "float32");
    t.shape = text(d, move->shape);
    if (id >= TENSORS) {
        abort();
    }
    p->tensors[p->tensor_count++] = t;
    return id;
}

// ---- events -----------------------------------------------------------------------------------------------------

static void add_event(drawing *d, hr_event_kind kind, const fake_move *move, uint32_t tensor)
{
    hr_step_plan *p = d->out;
    hr_event e = {.version = HR_EVENT_VERSION,
                  .kind = (uint8_t)kind,
                  .category = (uint8_t)move->category,
                  .phase = (uint8_t)move->phase,
                  .seq = p->event_count};
    e.instr = move->phase == HR_PHASE_BUILD ? HR_NO_ID : (uint32_t)p->instr_count;
    e.u.memory.tensor = tensor;
    e.u.memory.requested_bytes = move->bytes;
    e.u.memory.in_use_bytes = move->in_use_bytes;
    e.u.memory.pool_bytes = move->pool_bytes;
    if (tensor != HR_NO_ID) {
        e.u.memory.address = p->tensors[tensor].address;
        e.u.memory.allocated_bytes = p->tensors[tensor].allocated_bytes;
    }
    if (p->event_count >= EVENTS) {
        abort();
    }
    p->build_events += move->phase == HR_PHASE_BUILD;
    p->events[p->event_count++] = e;
}

static void add_growth(drawing *d, const fake_move *move)
{
    fake_move growth = *move;
    growth.bytes = move->pool_bytes - d->before.pool_bytes;
    growth.in_use_bytes = d->before.in_use_bytes;
    add_event(d, HR_EVENT_GROW, &growth, HR_NO_ID);
    hr_event_memory *m = &d->out->events[d->out->event_count - 1].u.memory;
    m->address = heap_begin + d->before.pool_bytes;
    m->allocated_bytes = growth.bytes;
}

// ---- instructions -----------------------------------------------------------------------------------------------

// The heap as the latest move of memory left it.
static void add_instr(drawing *d, hr_step_plan_instr i, const fake_move *move)
{
    hr_step_plan *p = d->out;
    i.phase = (uint8_t)move->phase;
    i.requested_bytes = d->before.requested_bytes;
    i.in_use_bytes = d->refused ? 0 : d->before.in_use_bytes;
    i.pool_bytes = d->refused ? 0 : d->before.pool_bytes;
    memcpy(i.by_category, d->by_category, sizeof i.by_category);
    if (p->instr_count >= INSTRS) {
        abort();
    }
    p->instrs[p->instr_count++] = i;
}

static void add_memory_instr(drawing *d, const fake_move *move, uint32_t tensor, size_t event)
{
    char line[192];
    bool comes = move->kind == FAKE_TAKEN;
    const hr_step_plan_tensor *t = &d->out->tensors[tensor];
    snprintf(line, sizeof line, "  %5s  %c %12" PRIu64 " B  %s[%s %s]", comes ? "alloc" : "free",
             hr_category_letter(move->category), move->bytes, move->name, word(d, t->dtype),
             word(d, t->shape));
    hr_step_plan_instr i = {
        .layer = t->layer, .tensor = tensor, .is_alloc = comes, .is_free = !comes, .event = (uint32_t)event};
    i.line = text(d, line);
    snprintf(line, sizeof line, "%s/%s",
             t->layer == HR_NO_ID ? "step" : word(d, d->out->layers[t->layer].name),
             comes ? "alloc" : "free");
    i.name = text(d, line);
    add_instr(d, i, move);
}

static void work(drawing *d, const fake_move *move)
{
    char line[192];
    fake_layer from;
    hr_step_plan_instr i = {.layer = HR_NO_ID, .tensor = HR_NO_ID, .event = (uint32_t)d->out->event_count};
    for (uint32_t k = 0; k < d->out->layer_count; k++) {
        hr_step_plan_layer *layer = &d->out->layers[k];
        if (strcmp(word(d, layer->name), move->name) == 0 && fake_engine_layer(k, &from)) {
            uint64_t elements = layer->activation_bytes / 4;
            i.layer = k;
            i.flops = elements * (from.parameters > 0 ? 54 : 1);
            i.bytes_moved = 3 * layer->activation_bytes + layer->parameter_bytes;
            i.seconds = (double)i.bytes_moved * 1e-10;
            layer->flops += i.flops;
            layer->seconds += i.seconds;
        }
    }
    snprintf(line, sizeof line, "%s/%s", move->name, move->shape);
    i.name = text(d, line);
    snprintf(line, sizeof line, "%s/%s  %s:output", move->name, move->shape, move->name);
    i.line = text(d, i.layer == HR_NO_ID ? word(d, i.name) : line);
    i.impl = text(d, i.flops > 0 ? "own tiles" : "");
    d->out->step_seconds += i.seconds;
    add_instr(d, i, move);
}

// ---- moves ------------------------------------------------------------------------------------------------------

static void refuse(drawing *d, const fake_move *move)
{
    hr_step_plan *p = d->out;
    bool building = move->phase == HR_PHASE_BUILD;
    d->refused = true;
    p->fits = false;
    p->refused_instr = building ? HR_NO_ID : (uint32_t)p->instr_count;
    fake_move asked = *move;
    asked.in_use_bytes = d->before.in_use_bytes;
    asked.pool_bytes = d->before.pool_bytes;
    add_event(d, HR_EVENT_OOM, &asked, HR_NO_ID);
    hr_event_memory *m = &p->events[p->event_count - 1].u.memory;
    m->tensor = (uint32_t)p->tensor_count;
    m->largest_free_bytes = d->limit - d->before.in_use_bytes;
}

static void take(drawing *d, const fake_move *move)
{
    hr_step_plan *p = d->out;
    size_t event = p->event_count;
    if (!d->refused && move->in_use_bytes > d->limit) {
        refuse(d, move);
    }
    if (!d->refused && move->pool_bytes > d->before.pool_bytes) {
        add_growth(d, move);
    }
    uint32_t id = add_tensor(d, move, !d->refused);
    if (!d->refused) {
        add_event(d, HR_EVENT_ALLOC, move, id);
        if (move->in_use_bytes > p->peak_in_use_bytes) {
            p->peak_in_use_bytes = move->in_use_bytes;
            p->peak_instr = move->phase == HR_PHASE_BUILD ? HR_NO_ID : (uint32_t)p->instr_count;
        }
    }
    p->missing_bytes = move->in_use_bytes > d->limit && move->in_use_bytes - d->limit > p->missing_bytes
                           ? move->in_use_bytes - d->limit
                           : p->missing_bytes;
    d->by_category[move->category] += move->bytes;
    d->before = *move;
    if (move->phase != HR_PHASE_BUILD) {
        add_memory_instr(d, move, id, event);
    }
}

static void release(drawing *d, const fake_move *move)
{
    size_t event = d->out->event_count;
    uint32_t id = alive(d, move->name);
    if (!d->refused) {
        add_event(d, HR_EVENT_FREE, move, id);
    }
    d->out->tensors[id].died = (uint32_t)d->out->instr_count;
    d->by_category[move->category] -= move->bytes;
    d->before = *move;
    add_memory_instr(d, move, id, event);
}

static void see(void *context, const fake_move *move)
{
    drawing *d = context;
    if (move->kind == FAKE_WORKED) {
        work(d, move);
    } else if (move->kind == FAKE_TAKEN) {
        take(d, move);
    } else {
        release(d, move);
    }
}

// ---- the step plan ------------------------------------------------------------------------------------------------

static void compress(const hr_knobs *knobs, const fake_layer *from, hr_step_plan_layer *to)
{
    const char *dim = strrchr(from->shape, 'x');
    const bool has_weights = from->parameters > 0;
    to->width = has_weights ? strtoul(dim == NULL ? from->shape : dim + 1, NULL, 10) : 0;
    to->sparsity = !has_weights || hr_knob_is(knobs, HR_KNOB_COMPRESS_PRUNE, "none") ? (double)NAN : 0.8;
    const uint32_t rank = (uint32_t)strtoul(hr_knob_text(knobs, HR_KNOB_COMPRESS_LOW_RANK), NULL, 10);
    to->rank_out = has_weights && rank < to->width ? rank : 0; // "none" is 0
    to->rank_in = to->rank_out > 0 && dim != NULL ? rank / 2 : to->rank_out;
}

static void add_layers(drawing *d, const hr_knobs *knobs)
{
    const uint64_t batch = (uint64_t)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE);
    fake_layer from;
    for (size_t k = 0; k < LAYERS && fake_engine_layer(k, &from); k++) {
        hr_step_plan_layer *to = &d->out->layers[d->out->layer_count++];
        char kind[48];
        snprintf(kind, sizeof kind, "%s", from.name);
        size_t length = strlen(kind);
        kind[kind[length - 2] == '_' ? length - 2 : length] = '\0'; // dense_1 is another dense
        to->name = text(d, from.name);
        to->kind = text(d, kind);
        to->output_shape = text(d, from.shape);
        to->parameters = from.parameters;
        to->parameter_bytes = 4 * from.parameters;
        to->activation_bytes = to->saved_bytes = batch * from.output_bytes_per_sample;
        compress(knobs, &from, to);
    }
}

void fake_step_plan_make(const hr_knobs *knobs, hr_step_plan *out)
{
    drawing d = {.out = out, .limit = fake_engine_limit(knobs)};
    fake_watcher watcher = {see, &d};
    *out = (hr_step_plan){.instrs = room(INSTRS, sizeof *out->instrs),
                          .tensors = room(TENSORS, sizeof *out->tensors),
                          .layers = room(LAYERS, sizeof *out->layers),
                          .events = room(EVENTS, sizeof *out->events),
                          .texts = room(TEXTS, 1),
                          .texts_bytes = 1,
                          .fits = true,
                          .limit_bytes = d.limit,
                          .peak_instr = HR_NO_ID,
                          .refused_instr = HR_NO_ID,
                          .rounds = 1};
    add_layers(&d, knobs);
    fake_engine_watch(knobs, &watcher);
}

void fake_step_plan_show(app *a)
{
    hr_step_plan step_plan;
    fake_step_plan_make(&a->feed.knobs, &step_plan);
    step_take(&a->step, &a->feed, &step_plan);
}
