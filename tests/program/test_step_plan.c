// SPDX-License-Identifier: Apache-2.0
// A step's step plan against everybody else who knows the step: sums over births and deaths, its events replayed naively,
// the plan, the engine's report and the listing. Every tiny model, every way of executing it.
#include <check.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/planning.h"
#include "headroom/preset.h"

#include "base/host_mem.h"

// For what is asked a million times: Check writes to a file whenever it is asked.
#define MUST(claim)                                                                                          \
    do {                                                                                                     \
        if (!(claim)) {                                                                                      \
            ck_abort_msg("%s", #claim);                                                                      \
        }                                                                                                    \
    } while (0)

enum { PAIRS_MAX = 5 };

static const char *const ways[][PAIRS_MAX] = {
    {"execution.mode=eager"},
    {"execution.mode=graph"},
    {"execution.mode=eager", "batch.accumulate=3"},
    {"execution.mode=graph", "batch.accumulate=2", "allocator.growth=on"},
    {"execution.mode=graph", "checkpoint.strategy=sqrt"},
    {"execution.mode=graph", "allocator.kind=static", "batch.accumulate=2"},
    {"allocator.growth=on"},
    {"allocator.kind=caching", "batch.accumulate=3"},
    {"allocator.kind=async"},
    {"allocator.kind=direct", "batch.accumulate=2"},
    {"execution.mode=graph", "offload.activations=on", "offload.optimizer=on"},
    {"optimizer.fused_backward=on"},
    {"execution.retain=predictions", "batch.accumulate=3"},
};
enum { WAYS = sizeof ways / sizeof *ways };

static glob_t models;

typedef struct scene {
    hr_preset *preset;
    hr_planner *planner;
    hr_knobs knobs;
    hr_step_plan step_plan;
    hr_whatif plan;
    const char *name, *const *pairs;
} scene;

static void set(hr_knobs *knobs, const char *pair)
{
    hr_err err = {0};
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

// False where the combination is refused: the step plan is, too.
static bool open_scene(scene *s, const char *path, const char *const *pairs, const char *vram)
{
    hr_err err = {0}, again = {0};
    *s = (scene){.name = path, .pairs = pairs};
    ck_assert_msg(hr_preset_open(path, false, &s->preset, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(hr_planner_open(s->preset, &s->planner, &err) == HR_OK, "%s", err.sentence);
    s->knobs = *hr_preset_knobs(s->preset);
    set(&s->knobs, "device.kind=plan");
    set(&s->knobs, "device.card=rtx3070-8g");
    set(&s->knobs, vram);
    for (int k = 0; k < PAIRS_MAX && pairs[k] != NULL; k++) {
        set(&s->knobs, pairs[k]);
    }
    hr_status status = hr_planner_plan(s->planner, &s->knobs, &s->plan, &err);
    ck_assert_int_eq(hr_planner_step_plan(s->planner, &s->knobs, &s->step_plan, &again), status);
    ck_assert_str_eq(again.sentence, err.sentence);
    return status == HR_OK;
}

static void close_scene(scene *s)
{
    hr_step_plan_deinit(&s->step_plan);
    hr_planner_close(s->planner);
    hr_preset_close(s->preset);
}

static bool has_pair(const scene *s, const char *begin)
{
    for (int k = 0; k < PAIRS_MAX && s->pairs[k] != NULL; k++) {
        if (strncmp(s->pairs[k], begin, strlen(begin)) == 0) {
            return true;
        }
    }
    return false;
}

static void each_scene(void (*look)(const scene *s), int way)
{
    unsigned seen = 0;
    for (size_t k = 0; k < models.gl_pathc; k++) {
        scene s;
        if (open_scene(&s, models.gl_pathv[k], ways[way], "device.vram=4GiB")) {
            look(&s);
            seen++;
        }
        close_scene(&s);
    }
    ck_assert_uint_gt(seen, 10);
}

// ---- births and deaths ----------------------------------------------------------------------------------------

static bool lives_after(const hr_step_plan_tensor *t, uint32_t n)
{
    return t->allocated_bytes > 0 && (t->born == HR_NO_ID ? t->persistent : t->born <= n) &&
           (t->died == HR_NO_ID || t->died > n);
}

// Of what a round retains the next ones add more, which no tensor of the step plan stands for.
static uint32_t last_without_leftovers(const scene *s)
{
    const hr_step_plan *p = &s->step_plan;
    uint32_t n = 0;
    if (!has_pair(s, "execution.retain")) {
        return (uint32_t)p->instr_count;
    }
    while (strcmp(hr_step_plan_text(p, p->instrs[n].line), "end") != 0) {
        n++;
    }
    return n;
}

static void check_lives(const scene *s, uint32_t end)
{
    const hr_step_plan *p = &s->step_plan;
    const uint32_t step = (uint32_t)p->instr_count / 97 + 1; // the sum is quadratic
    for (uint32_t n = 0; n < end; n += step) {
        uint64_t in_use = 0, requested = 0, by_category[HR_CATEGORY_COUNT] = {0};
        for (uint32_t k = 0; k < p->tensor_count; k++) {
            const hr_step_plan_tensor *t = &p->tensors[k];
            if (lives_after(t, n)) {
                MUST(t->owner == k);
                in_use += t->allocated_bytes;
                requested += t->bytes;
                by_category[t->category] += t->bytes;
            }
        }
        MUST(p->instrs[n].in_use_bytes == in_use);
        MUST(p->instrs[n].requested_bytes == requested);
        MUST(memcmp(p->instrs[n].by_category, by_category, sizeof by_category) == 0);
    }
}

static void look_at_lives(const scene *s)
{
    check_lives(s, last_without_leftovers(s));
}

static void look_at_owners(const scene *s)
{
    const hr_step_plan *p = &s->step_plan;
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        const hr_step_plan_tensor *t = &p->tensors[k];
        MUST(t->owner < p->tensor_count);
        MUST(p->tensors[t->owner].owner == t->owner);
        MUST(t->address == p->tensors[t->owner].address);
        MUST(p->tensors[t->owner].bytes >= t->bytes);
        MUST(t->owner == k || (t->born == HR_NO_ID && t->allocated_bytes == 0));
        MUST(t->allocated_bytes == 0 || t->allocated_bytes >= t->bytes);
    }
}

// ---- events ---------------------------------------------------------------------------------------------------

typedef struct naive {
    uint64_t in_use, pool;
} naive;

static void replay(naive *now, const hr_event *e)
{
    const uint64_t bytes = e->u.memory.allocated_bytes;
    now->in_use += e->kind == HR_EVENT_ALLOC ? bytes : 0;
    now->in_use -= e->kind == HR_EVENT_FREE ? bytes : 0;
    now->pool += e->kind == HR_EVENT_GROW ? bytes : 0;
    now->pool -= e->kind == HR_EVENT_SHRINK ? bytes : 0;
}

// Its tensor is the step plan's; a later round may retain another one of that name elsewhere.
static bool is_named(const hr_step_plan *p, const hr_event *e)
{
    const uint32_t id = e->u.memory.tensor;
    if (id == HR_NO_ID) {
        return e->kind != HR_EVENT_ALLOC && e->kind != HR_EVENT_FREE;
    }
    return id < p->tensor_count &&
           (p->tensors[id].address == e->u.memory.address ||
            (p->tensors[id].died == HR_NO_ID && p->tensors[id].born == e->instr && p->rounds > 1));
}

// A heap's pool is what its regions hold; in the static block regions are no concern of single events.
static void look_at_events(const scene *s)
{
    const hr_step_plan *p = &s->step_plan;
    const uint32_t whole = last_without_leftovers(s);
    naive now = {0};
    size_t k = 0;
    for (; k < p->build_events; k++) {
        replay(&now, &p->events[k]);
        MUST(p->events[k].instr == HR_NO_ID);
    }
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const size_t end = n + 1 < p->instr_count ? p->instrs[n + 1].event : p->event_count;
        MUST(p->instrs[n].event == k);
        for (; k < end; k++) {
            const hr_event *e = &p->events[k];
            replay(&now, e);
            MUST(e->u.memory.in_use_bytes == now.in_use);
            MUST(e->u.memory.pool_bytes == now.pool);
            MUST(is_named(p, e));
        }
        if (n < whole) {
            MUST(p->instrs[n].in_use_bytes == now.in_use);
        }
        MUST(p->instrs[n].in_use_bytes <= p->instrs[n].pool_bytes);
    }
    ck_assert_uint_eq(k, p->event_count);
}

// ---- what others say ------------------------------------------------------------------------------------------

static void look_at_plan(const scene *s)
{
    const hr_step_plan *p = &s->step_plan;
    ck_assert(p->fits == s->plan.fits && p->fits);
    ck_assert_uint_eq(p->limit_bytes, s->plan.limit_bytes);
    ck_assert_uint_eq(p->peak_in_use_bytes, s->plan.peak_in_use_bytes);
    ck_assert_uint_eq(p->missing_bytes, 0);
    ck_assert_uint_eq(p->refused_instr, HR_NO_ID);
    ck_assert_double_eq(p->step_seconds, s->plan.step_seconds);
    uint64_t most = 0;
    uint32_t at = HR_NO_ID;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        if (p->instrs[n].in_use_bytes > most) {
            most = p->instrs[n].in_use_bytes;
            at = n;
        }
    }
    if (!has_pair(s, "execution.retain")) { // its peak is the second step's
        MUST(most == p->peak_in_use_bytes);
        MUST(at == p->peak_instr);
    }
}

static void look_at_step_plan(const scene *s)
{
    look_at_lives(s);
    look_at_owners(s);
    look_at_events(s);
    look_at_plan(s);
}

// Bytes are the sum of what lives, and what its events leave in use; its peak is the plan's.
START_TEST(a_step_plan_adds_up)
{
    each_scene(look_at_step_plan, _i);
}
END_TEST

static hr_engine *planned(const scene *s)
{
    hr_engine *e = NULL;
    hr_err err = {0};
    bool idle = false;
    const hr_engine_options options = {.plan_only = true};
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 2};
    ck_assert_msg(hr_engine_create(s->preset, &s->knobs, &options, &e, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_eq(hr_engine_command(e, &run, &err), HR_OK);
    while (!idle) {
        hr_engine_advance(e, &idle);
    }
    return e;
}

static void compare_layers(const hr_step_plan *p, const hr_report *r)
{
    uint64_t parameter_bytes = 0;
    ck_assert_uint_eq(p->layer_count, r->model.layer_count);
    for (size_t k = 0; k < p->layer_count; k++) {
        MUST(strcmp(hr_step_plan_text(p, p->layers[k].name), r->model.layers[k].name) == 0);
        MUST(strcmp(hr_step_plan_text(p, p->layers[k].kind), r->model.layers[k].kind) == 0);
        MUST(strcmp(hr_step_plan_text(p, p->layers[k].output_shape), r->model.layers[k].output_shape) == 0);
        MUST(p->layers[k].parameters == r->model.layers[k].parameters);
        parameter_bytes += p->layers[k].parameter_bytes;
    }
    ck_assert_uint_eq(parameter_bytes, r->model.parameters * sizeof(float));
}

// x, and what stands between two layers: each storage once.
static uint64_t saved_of_no_layer(const hr_step_plan *p)
{
    uint64_t sum = 0;
    bool *counted = calloc(p->tensor_count, sizeof *counted);
    ck_assert_ptr_nonnull(counted);
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        const hr_step_plan_tensor *t = &p->tensors[k];
        const bool counts = t->category == HR_CATEGORY_INPUT || t->category == HR_CATEGORY_ACTIVATIONS;
        const bool real = strncmp(hr_step_plan_text(p, t->dtype), "float", 5) == 0;
        if (t->saved && counts && real && p->tensors[t->owner].layer == HR_NO_ID && !counted[t->owner]) {
            counted[t->owner] = true;
            sum += p->tensors[t->owner].bytes;
        }
    }
    free(counted);
    return sum;
}

static void compare_sums(const hr_step_plan *p, const hr_report *r)
{
    uint64_t flops = 0, saved = 0, layered = 0, times = 1;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const hr_step_plan_instr *i = &p->instrs[n];
        const char *line = hr_step_plan_text(p, i->line);
        times = strncmp(line, "repeat ", 7) == 0 ? p->rounds : strcmp(line, "end") == 0 ? 1 : times;
        flops += i->layer == HR_NO_ID ? times * i->flops : 0;
        layered += i->layer == HR_NO_ID ? 0 : times * i->flops;
    }
    for (size_t k = 0; k < p->layer_count; k++) {
        flops += p->layers[k].flops;
        layered -= p->layers[k].flops;
        saved += p->layers[k].saved_bytes;
    }
    ck_assert_uint_eq(flops, r->step.flops);
    ck_assert_uint_eq(layered, 0);
    ck_assert_uint_le(saved, r->memory.saved_for_backward_bytes);
    ck_assert_uint_eq(saved + saved_of_no_layer(p), r->memory.saved_for_backward_bytes);
}

static void look_at_report(const scene *s, hr_engine *e)
{
    const hr_step_plan *p = &s->step_plan;
    hr_report r;
    hr_err err = {0};
    ck_assert_msg(hr_engine_report(e, &r, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(p->instr_count, r.step.instructions);
    ck_assert_uint_eq(p->peak_in_use_bytes, r.memory.peak_in_use_bytes);
    ck_assert_uint_eq(p->peak_instr, r.memory.at_peak.instruction);
    if (!has_pair(s, "execution.retain")) {
        MUST(memcmp(p->instrs[p->peak_instr].by_category, r.memory.at_peak.by_category,
                    sizeof r.memory.at_peak.by_category) == 0);
    }
    compare_layers(p, &r);
    compare_sums(p, &r);
    hr_report_deinit(&r);
}

static void look_at_listing(const scene *s, hr_engine *e)
{
    char *listing = NULL;
    size_t bytes = 0;
    hr_err err = {0};
    FILE *f = open_memstream(&listing, &bytes);
    ck_assert_int_eq(hr_engine_listing(e, f, &err), HR_OK);
    ck_assert_int_eq(fclose(f), 0);
    uint32_t n = 0, named = 0;
    for (char *line = strtok(listing, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (line[0] == ';') {
            continue;
        }
        const char *text = hr_step_plan_text(&s->step_plan, s->step_plan.instrs[n].line);
        MUST(strlen(line) >= strlen(text));
        MUST(strcmp(line + strlen(line) - strlen(text), text) == 0);
        MUST(strtoul(line, NULL, 10) == n);
        const char *impl = hr_step_plan_text(&s->step_plan, s->step_plan.instrs[n].impl);
        char column[96];
        snprintf(column, sizeof column, " %-25s  ", impl);
        MUST(impl[0] == '\0' ||
             strncmp(line + strlen(line) - strlen(text) - strlen(column), column, strlen(column)) == 0);
        named += impl[0] != '\0';
        n++;
    }
    ck_assert_uint_eq(n, s->step_plan.instr_count);
    MUST(named > 0);
    free(listing);
}

static void look_at_engine(const scene *s)
{
    hr_engine *e = planned(s);
    look_at_report(s, e);
    look_at_listing(s, e);
    hr_engine_destroy(e);
}

START_TEST(report_and_listing_say_the_same)
{
    each_scene(look_at_engine, _i);
}
END_TEST

// On one lane without a loop a step takes what its instructions take.
static void look_at_seconds(const scene *s)
{
    const hr_step_plan *p = &s->step_plan;
    double instrs = 0, layers = 0, unlayered = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        MUST(p->instrs[n].seconds >= 0);
        instrs += p->instrs[n].seconds;
        unlayered += p->instrs[n].layer == HR_NO_ID ? p->instrs[n].seconds : 0;
    }
    for (size_t k = 0; k < p->layer_count; k++) {
        layers += p->layers[k].seconds;
    }
    ck_assert_double_eq_tol(instrs, p->step_seconds, 1e-9 * p->step_seconds + 1e-12);
    ck_assert_double_eq_tol(layers + unlayered, instrs, 1e-9 * instrs);
}

START_TEST(seconds_add_up)
{
    each_scene(look_at_seconds, _i); // eager and graph
}
END_TEST

// ---- what a layer costs, by hand ------------------------------------------------------------------------------

// GPT-2's head: 8 samples of 64 tokens, 64 wide, by 256 words, whose weights are the embedding's.
START_TEST(a_layer_is_as_large_as_it_is)
{
    scene s;
    ck_assert(open_scene(&s, "presets/models/gpt2_124m_tiny.yaml", ways[0], "device.vram=1GiB"));
    const hr_step_plan_layer *embedding = &s.step_plan.layers[0];
    const hr_step_plan_layer *head = &s.step_plan.layers[s.step_plan.layer_count - 1];
    ck_assert_str_eq(hr_step_plan_text(&s.step_plan, head->name), "lm_head");
    ck_assert_uint_eq(embedding->parameter_bytes, 256 * 64 * sizeof(float));
    ck_assert_uint_eq(embedding->activation_bytes, 8 * 64 * 64 * sizeof(float));
    ck_assert_uint_eq(head->parameters, 0);
    ck_assert_uint_eq(head->parameter_bytes, 0);
    ck_assert_uint_eq(head->activation_bytes, 8 * 64 * 256 * sizeof(float));
    ck_assert_uint_ge(head->flops, UINT64_C(3) * 2 * 8 * 64 * 64 * 256); // forward, and twice that backward
    close_scene(&s);
}
END_TEST

static const hr_step_plan_layer *layer_named(const hr_step_plan *p, const char *name)
{
    size_t k = 0;
    while (k < p->layer_count && strcmp(hr_step_plan_text(p, p->layers[k].name), name) != 0) {
        k++;
    }
    ck_assert_msg(k < p->layer_count, "no layer %s", name);
    return &p->layers[k];
}

// The network of the articles: 32 and 64 filters, 64 units, 10 units.
static const struct {
    const char *pair, *layer;
    uint64_t width;
    uint32_t rank;
    double sparsity; // -1: no masks
} compressions[] = {
    {"compress.low_rank=32", "dense", 64, 32, -1},
    {"compress.low_rank=32", "dense_1", 10, 0, -1},
    {"compress.lora=4", "dense", 64, 4, -1},
    {"compress.prune=polynomial:0.5:0.75:0:1000", "separable_conv2d_1", 64, 0, 0.75},
    {"compress.prune=constant:0.5", "dense", 64, 0, 0.5},
    {"compress.prune=constant:0.5", "flatten", 0, 0, -1},
    {"compress.prune=none", "dense", 64, 0, -1},
};

START_TEST(a_layer_has_the_width_the_rank_and_the_sparsity_that_compression_gives_it)
{
    const char *const pairs[PAIRS_MAX] = {compressions[_i].pair};
    scene s;
    ck_assert(open_scene(&s, "presets/models/cifar10_separable_cnn.yaml", pairs, "device.vram=1GiB"));
    const hr_step_plan_layer *l = layer_named(&s.step_plan, compressions[_i].layer);
    ck_assert_uint_eq(l->width, compressions[_i].width);
    ck_assert_uint_eq(l->rank_in, compressions[_i].rank);
    ck_assert_uint_eq(l->rank_out, compressions[_i].rank);
    ck_assert_msg(compressions[_i].sparsity < 0 ? isnan(l->sparsity)
                                                : fabs(l->sparsity - compressions[_i].sparsity) < 1e-15,
                  "%g", l->sparsity);
    close_scene(&s);
}
END_TEST

// ---- what does not fit ----------------------------------------------------------------------------------------

static void check_refusal(const scene *s)
{
    const hr_step_plan *p = &s->step_plan;
    hr_report r;
    hr_engine *e = planned(s);
    ck_assert_int_eq(hr_engine_report(e, &r, NULL), HR_OK);
    ck_assert(!p->fits && !s->plan.fits);
    ck_assert_uint_eq(p->missing_bytes, s->plan.missing_bytes);
    ck_assert_uint_gt(p->missing_bytes, 0);
    ck_assert_uint_eq(p->refused_instr, r.oom.instruction);
    ck_assert_uint_le(p->peak_in_use_bytes, p->limit_bytes);
    const hr_event *last = &p->events[p->event_count - 1];
    ck_assert_uint_eq(last->kind, HR_EVENT_OOM);
    ck_assert_uint_eq(last->instr, p->refused_instr);
    ck_assert_uint_eq(last->u.memory.requested_bytes, r.oom.requested_bytes);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}

// Behind the refusal the heap is silent; what is asked for is what is asked for with plenty.
static void compare_with_plenty(const scene *s, const scene *plenty)
{
    const hr_step_plan *p = &s->step_plan, *q = &plenty->step_plan;
    ck_assert_uint_eq(p->instr_count, q->instr_count);
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const bool behind = p->refused_instr == HR_NO_ID || n > p->refused_instr;
        MUST(!behind || (p->instrs[n].in_use_bytes == 0 && p->instrs[n].pool_bytes == 0));
        MUST(p->instrs[n].requested_bytes == q->instrs[n].requested_bytes);
        MUST(strcmp(hr_step_plan_text(p, p->instrs[n].line), hr_step_plan_text(q, q->instrs[n].line)) == 0);
    }
}

static const struct {
    const char *pairs[PAIRS_MAX], *vram;
    bool while_building;
} tight[] = {
    {{"execution.mode=eager", "allocator.growth=off"}, "device.vram=8MiB", false},
    {{"execution.mode=graph", "allocator.growth=off", "batch.accumulate=2"}, "device.vram=6MiB", false},
    {{"execution.mode=graph", "allocator.kind=static"}, "device.vram=4MiB", true},
    {{"execution.mode=eager"}, "device.vram=1MiB", true},
};

START_TEST(what_is_refused_has_a_step_plan_up_to_there)
{
    scene s, plenty;
    const char *path = "presets/models/gpt2_124m_tiny.yaml";
    ck_assert(open_scene(&s, path, tight[_i].pairs, tight[_i].vram));
    ck_assert(open_scene(&plenty, path, tight[_i].pairs, "device.vram=1GiB"));
    ck_assert((s.step_plan.refused_instr == HR_NO_ID) == tight[_i].while_building);
    check_refusal(&s);
    check_lives(&s, tight[_i].while_building ? 0 : s.step_plan.refused_instr);
    compare_with_plenty(&s, &plenty);
    close_scene(&s);
    close_scene(&plenty);
}
END_TEST

// ---- host memory ----------------------------------------------------------------------------------------------

START_TEST(without_host_memory_nothing_is_left)
{
    scene s;
    ck_assert(open_scene(&s, "presets/models/mlp_tiny.yaml", ways[2], "device.vram=64MiB"));
    hr_step_plan_deinit(&s.step_plan);
    const int64_t live = hr_host_mem_live();
    uint64_t nth = 1;
    hr_status status = HR_NOMEM;
    for (; status != HR_OK; nth++) {
        hr_err err = {0};
        (void)hr_host_mem_fail_at(nth);
        status = hr_planner_step_plan(s.planner, &s.knobs, &s.step_plan, &err);
        (void)hr_host_mem_fail_at(0);
        ck_assert_msg(status == HR_OK || status == HR_NOMEM, "%s: %s", hr_status_name(status), err.sentence);
        ck_assert(status == HR_OK || (err.sentence[0] != '\0' && hr_host_mem_live() == live));
    }
    ck_assert_uint_gt(nth, 20);
    close_scene(&s);
}
END_TEST

// ---- listings -------------------------------------------------------------------------------------------------

START_TEST(a_difference_is_the_engines)
{
    scene s;
    char *listing = NULL, *lines = NULL;
    size_t bytes = 0;
    hr_err err = {0};
    ck_assert(open_scene(&s, models.gl_pathv[_i], ways[0], "device.vram=4GiB"));
    FILE *f = open_memstream(&listing, &bytes);
    hr_engine *e = planned(&s);
    hr_knobs after = s.knobs;
    set(&after, "execution.mode=graph");
    ck_assert_int_eq(hr_engine_listing_diff(e, "execution.mode=graph", f, &err), HR_OK);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(hr_planner_diff(s.planner, &s.knobs, &after, &lines, &err), HR_OK);
    ck_assert_str_eq(lines, listing);
    hr_planner_text_free(lines);
    set(&after, "offload.prefetch=3");
    set(&after, "execution.mode=eager");
    set(&after, "allocator.kind=static");
    ck_assert_int_eq(hr_planner_diff(s.planner, &s.knobs, &after, &lines, &err), HR_CONSTRAINT);
    ck_assert_ptr_null(lines);
    hr_engine_destroy(e);
    free(listing);
    close_scene(&s);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    if (glob("presets/models/*_tiny.yaml", 0, NULL, &models) != 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("step_plan");
    TCase *tests = tcase_create("step_plan");
    tcase_add_loop_test(tests, a_step_plan_adds_up, 0, WAYS);
    tcase_add_loop_test(tests, report_and_listing_say_the_same, 0, WAYS);
    tcase_add_loop_test(tests, seconds_add_up, 0, 2);
    tcase_add_test(tests, a_layer_is_as_large_as_it_is);
    tcase_add_loop_test(tests, a_layer_has_the_width_the_rank_and_the_sparsity_that_compression_gives_it, 0,
                        sizeof compressions / sizeof *compressions);
    tcase_add_loop_test(tests, what_is_refused_has_a_step_plan_up_to_there, 0, sizeof tight / sizeof *tight);
    tcase_add_test(tests, without_host_memory_nothing_is_left);
    tcase_add_loop_test(tests, a_difference_is_the_engines, 0, (int)models.gl_pathc);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    globfree(&models);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
