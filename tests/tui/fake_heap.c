// SPDX-License-Identifier: Apache-2.0
// The network, and what building it and a step of it take and release.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "tests/tui/fake_engine_inside.h"

const fake_network_layer fake_layers[FAKE_LAYERS] = {
    {"separable_conv2d", 620, 86400, 24000, false, "30x30x24"},
    {"relu", 0, 86400, 0, true, "30x30x24"},
    {"max_pooling2d", 0, 21600, 0, false, "15x15x24"},
    {"separable_conv2d_1", 9600, 43264, 18000, false, "13x13x64"},
    {"relu_1", 0, 43264, 0, true, "13x13x64"},
    {"dense", 2769152, 256, 0, false, "64"},
    {"dense_1", 2600, 40, 0, false, "10"},
};

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static void put_memory(hr_session *h, hr_event_kind kind, const fake_tensor *t, uint64_t allocated)
{
    hr_event e = {.kind = (uint8_t)kind, .category = (uint8_t)t->category};
    h->time_ns += h->tick_ns;
    e.u.memory.address = h->next_address;
    e.u.memory.requested_bytes = t->requested_bytes;
    e.u.memory.allocated_bytes = allocated;
    e.u.memory.in_use_bytes = h->in_use;
    e.u.memory.pool_bytes = h->pool;
    if (!h->dry) {
        fake_put(h, e);
    }
}

static void tell(const hr_session *h, fake_move_kind kind, const fake_tensor *t)
{
    if (h->watcher != NULL) {
        uint64_t limit = fake_engine_limit(&h->knobs), pool = h->pool < limit ? h->pool : limit;
        fake_move move = {kind,      h->phase, t->name,     t->shape, t->category, t->requested_bytes,
                          h->in_use, pool,     h->requested};
        h->watcher->seen(h->watcher->context, &move);
    }
}

static void work(const hr_session *h, const char *layer_name, const char *operation)
{
    fake_tensor t = {.shape = operation};
    snprintf(t.name, sizeof t.name, "%s", layer_name);
    tell(h, FAKE_WORKED, &t);
}

static void grow_pool(hr_session *h, const fake_tensor *t)
{
    bool grows = hr_knob_is(&h->knobs, HR_KNOB_ALLOCATOR_GROWTH, "on");
    while (h->pool < h->in_use) {
        uint64_t next = !grows ? h->limit : h->pool == 0 ? 2 * HR_MIB : 2 * h->pool;
        h->pool = next < h->limit ? next : h->limit;
        put_memory(h, HR_EVENT_GROW, t, h->pool);
    }
}

static void note_peak(hr_session *h, const fake_tensor *t)
{
    if (h->in_use <= h->peak) {
        return;
    }
    h->peak = h->in_use;
    h->peak_requested = h->requested;
    h->peak_phase = h->phase;
    snprintf(h->peak_name, sizeof h->peak_name, "%s", t->name);
    h->at_peak_count = 0;
    for (size_t i = 0; i < h->tensor_count; i++) {
        if (h->tensors[i].alive) {
            h->at_peak[h->at_peak_count++] = h->tensors[i];
        }
    }
}

static void take(hr_session *h, hr_category category, uint64_t bytes, const char *shape, const char *name)
{
    fake_tensor *t = &h->tensors[h->tensor_count];
    if (bytes == 0 || h->failed) {
        return;
    }
    *t = (fake_tensor){.category = category, .requested_bytes = bytes, .shape = shape, .alive = true};
    snprintf(t->name, sizeof t->name, "%s", name);
    if (h->in_use + rounded(bytes) > h->limit) {
        h->failed = true;
        h->failing = *t;
        return;
    }
    h->tensor_count++;
    h->in_use += rounded(bytes);
    h->requested += bytes;
    h->next_address += rounded(bytes);
    grow_pool(h, t);
    put_memory(h, HR_EVENT_ALLOC, t, rounded(bytes));
    tell(h, FAKE_TAKEN, t);
    note_peak(h, t);
}

static void release(hr_session *h, const char *name)
{
    for (size_t i = 0; i < h->tensor_count && !h->failed; i++) {
        fake_tensor *t = &h->tensors[i];
        if (t->alive && strcmp(t->name, name) == 0) {
            t->alive = false;
            h->in_use -= rounded(t->requested_bytes);
            h->requested -= t->requested_bytes;
            h->floor = h->in_use < h->floor ? h->in_use : h->floor;
            put_memory(h, HR_EVENT_FREE, t, rounded(t->requested_bytes));
            tell(h, FAKE_RELEASED, t);
        }
    }
}

// Drops what is dead from the list, so that a step can run for ever.
static void forget_dead(hr_session *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->tensor_count; i++) {
        if (h->tensors[i].alive) {
            h->tensors[kept++] = h->tensors[i];
        }
    }
    h->tensor_count = kept;
}

static const char *named(char text[48], const char *layer_name, const char *suffix)
{
    snprintf(text, 48, "%s%s", layer_name, suffix);
    return text;
}

void fake_allocate_weights(hr_session *h)
{
    char name[48];
    h->phase = HR_PHASE_BUILD;
    for (size_t i = 0; i < FAKE_LAYERS; i++) {
        take(h, HR_CATEGORY_WEIGHTS, fake_layers[i].weights_bytes, "weights",
             named(name, fake_layers[i].name, "/weights"));
    }
    for (size_t i = 0; i < FAKE_LAYERS; i++) {
        bool adam = hr_knob_is(&h->knobs, HR_KNOB_OPTIMIZER_KIND, "adam") ||
                    hr_knob_is(&h->knobs, HR_KNOB_OPTIMIZER_KIND, "adamw");
        if (!hr_knob_is(&h->knobs, HR_KNOB_OPTIMIZER_KIND, "sgd")) {
            take(h, HR_CATEGORY_OPTIMIZER, fake_layers[i].weights_bytes, "slots",
                 named(name, fake_layers[i].name, "/m"));
        }
        if (adam) {
            take(h, HR_CATEGORY_OPTIMIZER, fake_layers[i].weights_bytes, "slots",
                 named(name, fake_layers[i].name, "/v"));
        }
    }
    take(h, HR_CATEGORY_INPUT, 12288 * (uint64_t)hr_knob_int(&h->knobs, HR_KNOB_BATCH_SIZE), "32x32x3",
         "images");
}

static void run_forward(hr_session *h, uint64_t batch, bool graph)
{
    char name[48];
    h->phase = HR_PHASE_FORWARD;
    for (size_t i = 0; i < FAKE_LAYERS; i++) {
        take(h, HR_CATEGORY_TEMPORARIES, fake_layers[i].scratch_bytes_per_sample * batch, "workspace",
             "forward scratch");
        take(h, HR_CATEGORY_ACTIVATIONS, fake_layers[i].output_bytes_per_sample * batch, fake_layers[i].shape,
             named(name, fake_layers[i].name, ":output"));
        work(h, fake_layers[i].name, "forward");
        release(h, "forward scratch");
        if (graph && i > 0 && fake_layers[i - 1].graph_drops) {
            release(h, named(name, fake_layers[i - 1].name, ":output"));
        }
    }
}

static void run_backward(hr_session *h, uint64_t batch)
{
    char name[48];
    h->phase = HR_PHASE_BACKWARD;
    for (size_t i = FAKE_LAYERS; i-- > 0;) {
        take(h, HR_CATEGORY_TEMPORARIES, fake_layers[i].output_bytes_per_sample * batch, fake_layers[i].shape,
             named(name, fake_layers[i].name, ":output:grad"));
        take(h, HR_CATEGORY_TEMPORARIES, fake_layers[i].scratch_bytes_per_sample * batch, "workspace",
             "backward scratch");
        take(h, HR_CATEGORY_GRADIENTS, fake_layers[i].weights_bytes, "weights",
             named(name, fake_layers[i].name, ":grad"));
        work(h, fake_layers[i].name, "backward");
        release(h, "backward scratch");
        if (i + 1 < FAKE_LAYERS) {
            release(h, named(name, fake_layers[i + 1].name, ":output:grad"));
            release(h, named(name, fake_layers[i + 1].name, ":output"));
        }
    }
    release(h, named(name, fake_layers[0].name, ":output:grad"));
    release(h, named(name, fake_layers[0].name, ":output"));
}

static void run_update(hr_session *h)
{
    char name[48];
    h->phase = HR_PHASE_UPDATE;
    for (size_t i = 0; i < FAKE_LAYERS; i++) {
        if (fake_layers[i].weights_bytes > 0) {
            work(h, fake_layers[i].name, hr_knob_text(&h->knobs, HR_KNOB_OPTIMIZER_KIND));
        }
        release(h, named(name, fake_layers[i].name, ":grad"));
    }
}

void fake_run_program(hr_session *h)
{
    uint64_t batch = (uint64_t)hr_knob_int(&h->knobs, HR_KNOB_BATCH_SIZE);
    h->floor = h->in_use;
    h->peak = h->in_use;
    h->phase = HR_PHASE_INPUT;
    work(h, "step", "input");
    run_forward(h, batch, hr_knob_is(&h->knobs, HR_KNOB_EXECUTION_MODE, "graph"));
    run_backward(h, batch);
    run_update(h);
    forget_dead(h);
}

void fake_empty_heap(hr_session *h)
{
    for (size_t i = 0; i < h->tensor_count; i++) {
        if (h->tensors[i].alive) {
            release(h, h->tensors[i].name);
        }
    }
    h->tensor_count = 0;
    h->in_use = h->requested = h->pool = 0;
    h->failed = false;
}

uint64_t fake_engine_limit(const hr_knobs *knobs)
{
    return hr_knob_bytes(knobs, HR_KNOB_DEVICE_VRAM, HR_GIB);
}

void fake_set_limit(hr_session *h)
{
    h->limit = fake_engine_limit(&h->knobs);
}

void fake_engine_watch(const hr_knobs *knobs, const fake_watcher *watcher)
{
    hr_session *h = hr_calloc(1, sizeof *h);
    if (h == NULL) {
        abort();
    }
    h->knobs = *knobs;
    h->dry = true;
    h->watcher = watcher;
    h->limit = UINT64_MAX / 2;
    fake_allocate_weights(h);
    fake_run_program(h);
    hr_free(h);
}

bool fake_engine_plan(const hr_knobs *knobs, hr_whatif *out)
{
    hr_session *h = hr_calloc(1, sizeof *h);
    *out = (hr_whatif){0};
    if (h == NULL) {
        return false;
    }
    h->knobs = *knobs;
    h->dry = true;
    fake_set_limit(h);
    uint64_t limit = h->limit;
    h->limit = UINT64_MAX / 2; // to see how much would be missing
    fake_allocate_weights(h);
    fake_run_program(h);
    *out = (hr_whatif){.fits = h->peak <= limit, .limit_bytes = limit, .peak_in_use_bytes = h->peak};
    out->step_seconds = 40e-3 / 128 * (double)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE);
    out->missing_bytes = out->fits ? 0 : h->peak - limit;
    out->h2d_bytes = 12292 * (uint64_t)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE);
    const uint64_t prefetch = hr_knob_is_set(knobs, HR_KNOB_PIPELINE_PREFETCH)
                                  ? (uint64_t)hr_knob_int(knobs, HR_KNOB_PIPELINE_PREFETCH)
                                  : 2;
    out->host_bytes = 40000 + out->h2d_bytes * (2 + prefetch);
    out->input_seconds = 10e-3 / 128 * (double)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE);
    out->stall = prefetch > 0 ? 0 : 0.2;
    hr_free(h);
    return true;
}

bool fake_engine_layer(size_t index, fake_layer *out)
{
    if (index >= FAKE_LAYERS) {
        return false;
    }
    const fake_network_layer *from = &fake_layers[index];
    *out = (fake_layer){from->name, from->shape, from->weights_bytes / 4, from->output_bytes_per_sample};
    return true;
}
