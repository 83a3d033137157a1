// SPDX-License-Identifier: Apache-2.0
#include "tests/tui/fake_engine.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "headroom/units.h"

#include "base/host_mem.h"

enum {
    QUEUE = 64,
    RING = 8192,
    TENSORS = 64,
    STEPS_PER_EPOCH = 100,
    STEP_NS = 40000000, // at batch 128
    REPORT_EVERY = 6,   // steps
};

// ---- the network ----------------------------------------------------------------------------------------------

typedef struct layer {
    const char *name;
    uint64_t weights_bytes;           // weights and bias
    uint64_t output_bytes_per_sample; // 0: a reshape
    uint64_t scratch_bytes_per_sample;
    bool graph_drops; // graph mode frees its output after the next layer has used it
    const char *shape;
} layer;

static const layer layers[] = {
    {"separable_conv2d", 620, 86400, 24000, false, "30x30x24"},
    {"relu", 0, 86400, 0, true, "30x30x24"},
    {"max_pooling2d", 0, 21600, 0, false, "15x15x24"},
    {"separable_conv2d_1", 9600, 43264, 18000, false, "13x13x64"},
    {"relu_1", 0, 43264, 0, true, "13x13x64"},
    {"dense", 2769152, 256, 0, false, "64"},
    {"dense_1", 2600, 40, 0, false, "10"},
};

enum { LAYERS = sizeof layers / sizeof *layers };

typedef struct tensor {
    char name[48];
    hr_category category;
    uint64_t requested_bytes;
    const char *shape;
    bool alive;
} tensor;

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

// ---- the engine -----------------------------------------------------------------------------------------------

struct hr_session {
    hr_knobs knobs;
    pthread_t thread;
    bool threaded;
    int fd;
    bool read_only;
    hr_session_life life; // the workbench's thread
    hr_session_end end;

    pthread_mutex_t lock; // of everything below
    hr_command queue[QUEUE];
    size_t queue_count;
    bool quits;
    unsigned looks_left; // until its end, once that is asked for
    hr_event ring[RING];
    uint64_t put, taken; // events ever
    hr_report report;    // with tensors of its own
    uint64_t report_version, error_version;
    hr_err error, refusal; // of the next knob, where its status is not OK

    // of the engine
    hr_engine_state state;
    bool built, dry; // dry: nothing is emitted
    uint64_t time_ns, tick_ns;
    uint32_t step;
    tensor tensors[TENSORS];
    size_t tensor_count;
    uint64_t in_use, pool, requested, limit;
    uint64_t peak, floor, peak_requested;
    hr_phase phase;
    hr_phase peak_phase;
    char peak_name[48];
    tensor at_peak[TENSORS];
    size_t at_peak_count;
    uint64_t next_address;
    bool failed;
    tensor failing;
    const fake_watcher *watcher; // NULL: nobody watches
};

static bool is_manual;

void fake_engine_set_manual(bool manual)
{
    is_manual = manual;
}

static void put(hr_session *h, hr_event event)
{
    event.version = HR_EVENT_VERSION;
    event.step = h->step;
    event.seq = h->put;
    event.time_ns = h->time_ns;
    event.phase = (uint8_t)h->phase;
    h->ring[h->put++ % RING] = event;
    uint64_t one = 1;
    (void)!write(h->fd, &one, sizeof one);
}

void fake_engine_refuse(hr_session *session, const hr_err *err)
{
    session->refusal = *err;
}

void fake_engine_say(hr_session *host, const hr_event *event)
{
    pthread_mutex_lock(&host->lock);
    put(host, *event);
    pthread_mutex_unlock(&host->lock);
}

static void put_note(hr_session *h, hr_event_kind kind, uint64_t count, const char *text)
{
    hr_event e = {.kind = (uint8_t)kind, .instr = HR_NO_ID};
    e.u.note.count = count;
    snprintf(e.u.note.text, sizeof e.u.note.text, "%.*s", (int)sizeof e.u.note.text - 1, text);
    put(h, e);
}

// As if the weights' singular values were all the same.
static void put_ranks(hr_session *h, const char *name)
{
    static const uint32_t ranks[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 63, 64};
    const uint32_t count = sizeof ranks / sizeof *ranks, full = ranks[count - 1];
    for (uint32_t i = 0; i < LAYERS; i++) {
        for (uint32_t k = 0; k < count && strcmp(layers[i].name, name) == 0; k++) {
            const uint64_t bytes = layers[i].weights_bytes * ranks[k] / full;
            hr_event e = {.kind = HR_EVENT_RANK, .instr = HR_NO_ID};
            e.u.rank =
                (hr_event_rank){.bytes = bytes,
                                .dense_bytes = layers[i].weights_bytes,
                                .error = sqrt(1 - (double)ranks[k] / full),
                                .break_even = 63.6,
                                .zeros = hr_knob_is(&h->knobs, HR_KNOB_COMPRESS_PRUNE, "none") ? 0 : 0.4375,
                                .layer = i,
                                .rank = ranks[k],
                                .full = full,
                                .point = k,
                                .points = count};
            put(h, e);
        }
    }
}

static void put_memory(hr_session *h, hr_event_kind kind, const tensor *t, uint64_t allocated)
{
    hr_event e = {.kind = (uint8_t)kind, .category = (uint8_t)t->category};
    h->time_ns += h->tick_ns;
    e.u.memory.address = h->next_address;
    e.u.memory.requested_bytes = t->requested_bytes;
    e.u.memory.allocated_bytes = allocated;
    e.u.memory.in_use_bytes = h->in_use;
    e.u.memory.pool_bytes = h->pool;
    if (!h->dry) {
        put(h, e);
    }
}

static void tell(const hr_session *h, fake_move_kind kind, const tensor *t)
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
    tensor t = {.shape = operation};
    snprintf(t.name, sizeof t.name, "%s", layer_name);
    tell(h, FAKE_WORKED, &t);
}

static void grow_pool(hr_session *h, const tensor *t)
{
    bool grows = hr_knob_is(&h->knobs, HR_KNOB_ALLOCATOR_GROWTH, "on");
    while (h->pool < h->in_use) {
        uint64_t next = !grows ? h->limit : h->pool == 0 ? 2 * HR_MIB : 2 * h->pool;
        h->pool = next < h->limit ? next : h->limit;
        put_memory(h, HR_EVENT_GROW, t, h->pool);
    }
}

static void note_peak(hr_session *h, const tensor *t)
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
    tensor *t = &h->tensors[h->tensor_count];
    if (bytes == 0 || h->failed) {
        return;
    }
    *t = (tensor){.category = category, .requested_bytes = bytes, .shape = shape, .alive = true};
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
        tensor *t = &h->tensors[i];
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

static void allocate_weights(hr_session *h)
{
    char name[48];
    h->phase = HR_PHASE_BUILD;
    for (size_t i = 0; i < LAYERS; i++) {
        take(h, HR_CATEGORY_WEIGHTS, layers[i].weights_bytes, "weights",
             named(name, layers[i].name, "/weights"));
    }
    for (size_t i = 0; i < LAYERS; i++) {
        bool adam = hr_knob_is(&h->knobs, HR_KNOB_OPTIMIZER_KIND, "adam") ||
                    hr_knob_is(&h->knobs, HR_KNOB_OPTIMIZER_KIND, "adamw");
        if (!hr_knob_is(&h->knobs, HR_KNOB_OPTIMIZER_KIND, "sgd")) {
            take(h, HR_CATEGORY_OPTIMIZER, layers[i].weights_bytes, "slots",
                 named(name, layers[i].name, "/m"));
        }
        if (adam) {
            take(h, HR_CATEGORY_OPTIMIZER, layers[i].weights_bytes, "slots",
                 named(name, layers[i].name, "/v"));
        }
    }
    take(h, HR_CATEGORY_INPUT, 12288 * (uint64_t)hr_knob_int(&h->knobs, HR_KNOB_BATCH_SIZE), "32x32x3",
         "images");
}

static void run_forward(hr_session *h, uint64_t batch, bool graph)
{
    char name[48];
    h->phase = HR_PHASE_FORWARD;
    for (size_t i = 0; i < LAYERS; i++) {
        take(h, HR_CATEGORY_TEMPORARIES, layers[i].scratch_bytes_per_sample * batch, "workspace",
             "forward scratch");
        take(h, HR_CATEGORY_ACTIVATIONS, layers[i].output_bytes_per_sample * batch, layers[i].shape,
             named(name, layers[i].name, ":output"));
        work(h, layers[i].name, "forward");
        release(h, "forward scratch");
        if (graph && i > 0 && layers[i - 1].graph_drops) {
            release(h, named(name, layers[i - 1].name, ":output"));
        }
    }
}

static void run_backward(hr_session *h, uint64_t batch)
{
    char name[48];
    h->phase = HR_PHASE_BACKWARD;
    for (size_t i = LAYERS; i-- > 0;) {
        take(h, HR_CATEGORY_TEMPORARIES, layers[i].output_bytes_per_sample * batch, layers[i].shape,
             named(name, layers[i].name, ":output:grad"));
        take(h, HR_CATEGORY_TEMPORARIES, layers[i].scratch_bytes_per_sample * batch, "workspace",
             "backward scratch");
        take(h, HR_CATEGORY_GRADIENTS, layers[i].weights_bytes, "weights",
             named(name, layers[i].name, ":grad"));
        work(h, layers[i].name, "backward");
        release(h, "backward scratch");
        if (i + 1 < LAYERS) {
            release(h, named(name, layers[i + 1].name, ":output:grad"));
            release(h, named(name, layers[i + 1].name, ":output"));
        }
    }
    release(h, named(name, layers[0].name, ":output:grad"));
    release(h, named(name, layers[0].name, ":output"));
}

static void run_update(hr_session *h)
{
    char name[48];
    h->phase = HR_PHASE_UPDATE;
    for (size_t i = 0; i < LAYERS; i++) {
        if (layers[i].weights_bytes > 0) {
            work(h, layers[i].name, hr_knob_text(&h->knobs, HR_KNOB_OPTIMIZER_KIND));
        }
        release(h, named(name, layers[i].name, ":grad"));
    }
}

static void run_program(hr_session *h)
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

static void empty_heap(hr_session *h)
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

static void set_limit(hr_session *h)
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
    allocate_weights(h);
    run_program(h);
    hr_free(h);
}

bool fake_engine_layer(size_t index, fake_layer *out)
{
    if (index >= LAYERS) {
        return false;
    }
    const layer *from = &layers[index];
    *out = (fake_layer){from->name, from->shape, from->weights_bytes / 4, from->output_bytes_per_sample};
    return true;
}

// ---- report ---------------------------------------------------------------------------------------------------

static int by_bytes(const void *a, const void *b)
{
    const hr_report_tensor *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : strcmp(x->name, y->name);
}

static void report_memory(const hr_session *h, hr_report_memory *m)
{
    *m = (hr_report_memory){.limit_bytes = h->limit,
                            .peak_pool_bytes = h->pool,
                            .peak_in_use_bytes = h->peak,
                            .peak_requested_bytes = h->peak_requested,
                            .waste_bytes = h->peak - h->peak_requested,
                            .saved_for_backward_bytes =
                                232320 * (uint64_t)hr_knob_int(&h->knobs, HR_KNOB_BATCH_SIZE),
                            .static_bytes = 11127888,
                            .largest_free_bytes = h->pool - h->peak};
    m->at_peak.phase = h->peak_phase;
    snprintf(m->at_peak.name, sizeof m->at_peak.name, "%s", h->peak_name);
    m->at_peak.tensors = hr_calloc(h->at_peak_count + 1, sizeof *m->at_peak.tensors);
    for (size_t i = 0; m->at_peak.tensors != NULL && i < h->at_peak_count; i++) {
        hr_report_tensor *t = &m->at_peak.tensors[m->at_peak.tensor_count++];
        snprintf(t->name, sizeof t->name, "%s", h->at_peak[i].name);
        snprintf(t->dtype, sizeof t->dtype, "float32");
        snprintf(t->shape, sizeof t->shape, "%s", h->at_peak[i].shape);
        t->category = h->at_peak[i].category;
        t->bytes = h->at_peak[i].requested_bytes;
        m->at_peak.by_category[t->category] += t->bytes;
    }
    if (m->at_peak.tensors != NULL) {
        qsort(m->at_peak.tensors, m->at_peak.tensor_count, sizeof *m->at_peak.tensors, by_bytes);
    }
}

static void report_oom(const hr_session *h, hr_report_oom *oom)
{
    char asked[HR_BYTES_TEXT_MAX], free_text[HR_BYTES_TEXT_MAX], limit[HR_BYTES_TEXT_MAX];
    *oom = (hr_report_oom){.cause = HR_OOM_CAPACITY,
                           .requested_bytes = h->failing.requested_bytes,
                           .free_bytes = h->limit - h->in_use,
                           .largest_free_bytes = h->limit - h->in_use,
                           .in_use_bytes = h->in_use,
                           .pool_bytes = h->pool,
                           .limit_bytes = h->limit};
    snprintf(oom->tensor, sizeof oom->tensor, "%s", h->failing.name);
    for (size_t i = 0; i < h->tensor_count; i++) {
        oom->by_category[h->tensors[i].category] += h->tensors[i].alive ? h->tensors[i].requested_bytes : 0;
    }
    snprintf(oom->sentence, sizeof oom->sentence,
             "%s asked for %s, but %s of %s are free: all of it together is not enough.", oom->tensor,
             hr_bytes_human(oom->requested_bytes, asked), hr_bytes_human(oom->free_bytes, free_text),
             hr_bytes_human(oom->limit_bytes, limit));
    const long long half = (long long)hr_knob_int(&h->knobs, HR_KNOB_BATCH_SIZE) / 2;
    oom->fix_count = 2;
    oom->fixes[0] = (hr_report_fix){
        .peak_bytes = oom->limit_bytes / 8 * 5, .limit_bytes = oom->limit_bytes, .seconds = 0.0124};
    oom->fixes[1] = (hr_report_fix){
        .peak_bytes = oom->limit_bytes / 2, .limit_bytes = oom->limit_bytes, .seconds = (double)NAN};
    snprintf(oom->fixes[0].knobs, sizeof oom->fixes[0].knobs, "execution.mode=graph");
    snprintf(oom->fixes[1].knobs, sizeof oom->fixes[1].knobs, "batch.size=%lld batch.accumulate=2", half);
    snprintf(oom->fixes[0].cost, sizeof oom->fixes[0].cost, "same numbers, +8 %% step time");
    snprintf(oom->fixes[1].cost, sizeof oom->fixes[1].cost, "other last digits");
    snprintf(oom->hint, sizeof oom->hint, "-s execution.mode=graph");
}

static void report_deploy(const hr_session *h, hr_report *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        bytes += layers[i].weights_bytes;
    }
    r->deploy.stripped_bytes = bytes;
    r->deploy.deployed_bytes = hr_knob_is(&h->knobs, HR_KNOB_COMPRESS_QUANTIZE, "none") ? bytes : bytes / 4;
    r->train.sparsity = hr_knob_is(&h->knobs, HR_KNOB_COMPRESS_PRUNE, "none") ? (double)NAN : 0.625;
}

static void publish_report(hr_session *h)
{
    hr_report *r = &h->report;
    hr_report_deinit(r);
    snprintf(r->device.kind, sizeof r->device.kind, "cpu");
    snprintf(r->device.isa, sizeof r->device.isa, "avx2");
    snprintf(r->train.data, sizeof r->train.data, "generated");
    r->device.threads = 2;
    report_memory(h, &r->memory);
    report_deploy(h, r);
    if (h->state == HR_ENGINE_OOM) {
        report_oom(h, &r->oom);
    }
    h->report_version++;
}

// ---- pieces of work -------------------------------------------------------------------------------------------

static void set_state(hr_session *h, hr_engine_state state, const char *why)
{
    if (h->state != state) {
        h->state = state;
        put_note(h, HR_EVENT_STATE, state, why);
    }
}

// One step that says nothing. When it does not fit, the heap stands as it stood at the failure.
static bool try_step(hr_session *h)
{
    hr_session *tried = hr_calloc(1, sizeof *tried);
    if (tried == NULL) {
        return false;
    }
    *tried = *h;
    tried->dry = true;
    run_program(tried);
    bool fits = !tried->failed;
    if (!fits) {
        h->failing = tried->failing;
        h->in_use = tried->in_use;
        h->tensor_count = tried->tensor_count;
        memcpy(h->tensors, tried->tensors, sizeof h->tensors);
    }
    hr_free(tried);
    return fits;
}

static void build(hr_session *h)
{
    empty_heap(h);
    set_limit(h);
    h->phase = HR_PHASE_BUILD;
    put_note(h, HR_EVENT_BUILD, 0, h->step == 0 ? "start" : "a knob was turned");
    allocate_weights(h);
    h->built = try_step(h);
    if (h->built) {
        return;
    }
    hr_event e = {.kind = HR_EVENT_OOM, .category = (uint8_t)h->failing.category};
    e.u.memory.requested_bytes = h->failing.requested_bytes;
    e.u.memory.largest_free_bytes = h->limit - h->in_use;
    put(h, e);
    set_state(h, HR_ENGINE_OOM, "the step does not fit");
    snprintf(h->error.sentence, sizeof h->error.sentence, "the step does not fit");
    h->error.status = HR_OOM;
    h->error_version++;
    publish_report(h);
}

static void finish_epoch(hr_session *h)
{
    put_note(h, HR_EVENT_EPOCH, h->step / STEPS_PER_EPOCH, "");
    hr_event e = {.kind = HR_EVENT_EVAL};
    e.u.step.loss = 0.1 + 2.2 * exp(-(double)h->step / 300);
    e.u.step.accuracy = 1 - 0.9 * exp(-(double)h->step / 250);
    put(h, e);
}

static void run_step(hr_session *h)
{
    uint64_t batch = (uint64_t)hr_knob_int(&h->knobs, HR_KNOB_BATCH_SIZE), duration = STEP_NS * batch / 128;
    uint32_t noise = (h->step + 1) * 2654435761u;
    h->tick_ns = duration / 64;
    uint64_t start = h->time_ns;
    run_program(h);
    h->step++;
    h->time_ns = start + duration;
    hr_event e = {.kind = HR_EVENT_STEP};
    e.u.step = (hr_event_step){.loss = 0.08 + 2.2 * exp(-(double)h->step / 300) + (noise >> 24) * 0.0004,
                               .accuracy = (double)NAN,
                               .duration_ns = duration,
                               .samples = batch,
                               .peak_in_use_bytes = h->peak,
                               .floor_in_use_bytes = h->floor};
    put(h, e);
    hr_event stage = {.kind = HR_EVENT_PIPELINE};
    stage.u.stage = (hr_event_stage){.host_bytes = 3 * 12288 * batch, .queue_length = 2, .queue_capacity = 2};
    snprintf(stage.u.stage.name, sizeof stage.u.stage.name, "prefetch");
    put(h, stage);
    if (h->step % STEPS_PER_EPOCH == 0) {
        finish_epoch(h);
    }
    if (h->step % REPORT_EVERY == 1) {
        publish_report(h);
    }
}

static void take_knob(hr_session *h, const hr_command *c)
{
    hr_err err = h->refusal;
    h->refusal.status = HR_OK;
    if (err.status != HR_OK || hr_knobs_set(&h->knobs, (hr_knob_id)c->knob, c->text, &err) != HR_OK) {
        h->error = err;
        h->error_version++;
        return;
    }
    size_t count;
    put_note(h, HR_EVENT_KNOB, c->knob, c->text);
    h->built = h->built && hr_knob_rows(&count)[c->knob].hot;
    if (h->state == HR_ENGINE_OOM || h->state == HR_ENGINE_FAILED) {
        set_state(h, HR_ENGINE_RUNNING, "");
    }
}

static void take_commands(hr_session *h)
{
    for (size_t i = 0; i < h->queue_count; i++) {
        const hr_command *c = &h->queue[i];
        switch ((hr_command_kind)c->kind) {
        case HR_COMMAND_RUN:
            set_state(h, HR_ENGINE_RUNNING, "");
            break;
        case HR_COMMAND_PAUSE:
        case HR_COMMAND_STOP:
            set_state(h, HR_ENGINE_PAUSED, "");
            break;
        case HR_COMMAND_KNOB:
            take_knob(h, c);
            break;
        case HR_COMMAND_SAVE:
            put_note(h, HR_EVENT_SAVED, 0, c->text);
            break;
        case HR_COMMAND_KEEP:
        case HR_COMMAND_COUNT:
            break;
        case HR_COMMAND_RANKS:
            put_ranks(h, c->text);
            break;
        case HR_COMMAND_QUIT:
            h->quits = true;
            break;
        }
    }
    h->queue_count = 0;
}

static void do_piece(hr_session *h)
{
    take_commands(h);
    if (h->state != HR_ENGINE_RUNNING) {
        return;
    }
    if (!h->built) {
        build(h);
    } else {
        run_step(h);
    }
}

void fake_engine_advance(hr_session *host, unsigned pieces)
{
    pthread_mutex_lock(&host->lock);
    take_commands(host);
    for (unsigned i = 0; i < pieces; i++) {
        do_piece(host);
    }
    pthread_mutex_unlock(&host->lock);
}

static void *run_thread(void *context)
{
    hr_session *h = context;
    for (bool quits = false; !quits;) {
        struct timespec now, pause = {0, 0};
        pthread_mutex_lock(&h->lock);
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t clock_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        h->time_ns = clock_ns > h->time_ns ? clock_ns : h->time_ns;
        do_piece(h);
        pause.tv_nsec = h->time_ns > clock_ns ? (long)((h->time_ns - clock_ns) % 1000000000u) : 2000000;
        quits = h->quits;
        pthread_mutex_unlock(&h->lock);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

// ---- hr_session_* -----------------------------------------------------------------------------------------

hr_status hr_session_start(const hr_session_options *options, hr_session **out, hr_err *err)
{
    *out = NULL;
    hr_session *h = hr_calloc(1, sizeof *h);
    if (h == NULL) {
        return HR_FAIL(err, NOMEM, "no memory for the scripted engine");
    }
    h->knobs = *options->knobs;
    h->time_ns = 1000000000;
    h->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&h->lock, NULL);
    set_limit(h);
    h->threaded = !is_manual;
    if (h->threaded && pthread_create(&h->thread, NULL, run_thread, h) != 0) {
        hr_free(h);
        return HR_FAIL(err, STATE, "no thread for the scripted engine");
    }
    *out = h;
    return HR_OK;
}

bool hr_session_try_stop(hr_session *host)
{
    host->looks_left -= host->looks_left > 0;
    return host->looks_left == 0 || host->life == HR_SESSION_ENDED;
}

void fake_engine_save_long(hr_session *host, unsigned looks)
{
    host->looks_left = looks;
}

hr_status hr_session_stop(hr_session *host, hr_err *err)
{
    (void)err;
    if (host == NULL) {
        return HR_OK;
    }
    pthread_mutex_lock(&host->lock);
    host->quits = true;
    pthread_mutex_unlock(&host->lock);
    if (host->threaded) {
        pthread_join(host->thread, NULL);
    }
    pthread_mutex_destroy(&host->lock);
    close(host->fd);
    hr_report_deinit(&host->report);
    hr_free(host);
    return HR_OK;
}

bool hr_session_send(hr_session *host, const hr_command *command)
{
    if (host->read_only) {
        return false;
    }
    pthread_mutex_lock(&host->lock);
    bool room = host->queue_count < QUEUE;
    if (room) {
        host->queue[host->queue_count++] = *command;
    }
    pthread_mutex_unlock(&host->lock);
    return room;
}

size_t hr_session_events(hr_session *host, hr_event *out, size_t max, uint64_t *lost)
{
    size_t count = 0;
    pthread_mutex_lock(&host->lock);
    *lost = host->put - host->taken > RING ? host->put - host->taken - RING : 0;
    host->taken += *lost;
    while (count < max && host->taken < host->put) {
        out[count++] = host->ring[host->taken++ % RING];
    }
    uint64_t wakes;
    if (host->taken == host->put) {
        (void)!read(host->fd, &wakes, sizeof wakes);
    }
    pthread_mutex_unlock(&host->lock);
    return count;
}

int hr_session_fd(const hr_session *host)
{
    return host->fd;
}

bool hr_session_report(hr_session *host, uint64_t *version, hr_report *report)
{
    pthread_mutex_lock(&host->lock);
    bool newer = host->report_version > *version;
    if (newer) {
        *version = host->report_version;
        *report = host->report;
        host->report = (hr_report){0}; // its tensors are the caller's now
    }
    pthread_mutex_unlock(&host->lock);
    return newer;
}

// Its addresses are made up: there is no heap to take a snapshot of.
void hr_session_ask_heap(hr_session *session)
{
    (void)session;
}

bool hr_session_heap_now(hr_session *session, uint64_t *version, hr_session_heap *heap)
{
    (void)session, (void)version, (void)heap;
    return false;
}

void hr_session_heap_deinit(hr_session_heap *heap)
{
    *heap = (hr_session_heap){0};
}

bool hr_session_error(hr_session *host, uint64_t *version, hr_err *err)
{
    pthread_mutex_lock(&host->lock);
    bool newer = host->error_version > *version;
    if (newer) {
        *version = host->error_version;
        *err = host->error;
    }
    pthread_mutex_unlock(&host->lock);
    return newer;
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
    set_limit(h);
    uint64_t limit = h->limit;
    h->limit = UINT64_MAX / 2; // to see how much would be missing
    allocate_weights(h);
    run_program(h);
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

hr_status hr_session_start_inline(const hr_session_options *options, hr_session **out, hr_err *err)
{
    return hr_session_start(options, out, err);
}

// Whatever the path: the demo, as somebody else trains it.
hr_status hr_session_attach(const char *path, hr_session **out, hr_err *err)
{
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN};
    const hr_session_options options = {.preset = path, .knobs = hr_preset_knobs(fake_preset())};
    HR_TRY(hr_session_start(&options, out, err));
    (void)hr_session_send(*out, &run);
    (*out)->read_only = true;
    return HR_OK;
}

bool hr_session_about(const hr_session *host, char preset[HR_KNOB_TEXT_MAX], hr_knobs *knobs)
{
    preset[0] = '\0';
    *knobs = host->knobs;
    return !host->read_only;
}

bool hr_session_is_read_only(const hr_session *host)
{
    return host->read_only;
}

hr_session_life hr_session_get_life(hr_session *host, hr_session_end *end)
{
    if (host->life != HR_SESSION_LIVE) {
        *end = host->end;
    }
    return host->life;
}

void hr_session_kill(hr_session *host)
{
    fake_engine_end(host, HR_SESSION_ENDED,
                    &(hr_session_end){.signal = 9, .exit_code = -1, .saved_step = HR_NONE});
}

void fake_engine_end(hr_session *host, hr_session_life life, const hr_session_end *end)
{
    host->life = life;
    host->end = *end;
}

void hr_session_suspend(hr_session *host, bool suspend)
{
    (void)host, (void)suspend;
}
