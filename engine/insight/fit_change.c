// SPDX-License-Identifier: Apache-2.0
#include "insight/fit_change.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// Of Adam's moments.
#define CODES   "keeps its moments in 8 bits"
#define FACTORS "keeps row and column means of a matrix"
#define SIGNS   "keeps one moment and takes its sign"
// Lion's paper (arXiv 2302.06675, section 5) has 3 to 10 times; Adafactor's (arXiv 1804.04235, section 8) multiplies by
// the root mean square of the weights; a velocity adds 1 / (1 - momentum) gradients up.
#define OF_LION      "; its learning rate is usually 3 to 10 times smaller"
#define OF_ADAFACTOR "; its learning rate is a share of the weights' size"
#define OF_SGD       "; its learning rate is usually 1 / (1 - momentum) times larger"
#define NO_DECAY     "; weights decay only by optimizer.weight_decay"

// Optimizers that do the same job with less state.
static const struct {
    const char *from, *to, *change;
} lighter[] = {
    {"adam", "adam8bit", CODES},
    {"adam", "adafactor", FACTORS OF_ADAFACTOR},
    {"adam", "lion", SIGNS OF_LION},
    {"adamw", "adam8bit", CODES NO_DECAY},
    {"adamw", "adafactor", FACTORS OF_ADAFACTOR NO_DECAY},
    {"adamw", "lion", SIGNS OF_LION NO_DECAY},
    {"adam8bit", "adafactor", FACTORS OF_ADAFACTOR},
    {"rmsprop", "adafactor", FACTORS OF_ADAFACTOR},
    {"momentum", "sgd", "keeps no velocity" OF_SGD},
};
enum { LIGHTER = sizeof lighter / sizeof *lighter };

const char *fit_lighter_optimizer(const hr_knobs *knobs, int at)
{
    for (int k = 0; k < LIGHTER; k++) {
        if (hr_knob_is(knobs, HR_KNOB_OPTIMIZER_KIND, lighter[k].from) && at-- == 0) {
            return lighter[k].to;
        }
    }
    return NULL;
}

static const char *change_of_optimizer(const hr_knobs *from, const hr_knobs *to)
{
    for (int k = 0; k < LIGHTER; k++) {
        if (hr_knob_is(from, HR_KNOB_OPTIMIZER_KIND, lighter[k].from) &&
            hr_knob_is(to, HR_KNOB_OPTIMIZER_KIND, lighter[k].to)) {
            return lighter[k].change;
        }
    }
    return "updates otherwise";
}

static const char *change_of_policy(const hr_knobs *from, const hr_knobs *to)
{
    static const struct {
        const char *policy, *change;
    } rows[] = {{"mixed_float16", "rounds activations, not weights"},
                {"mixed_bfloat16", "rounds activations, not weights"},
                {"float16", "rounds weights too: small updates are lost"},
                {"bfloat16", "rounds weights too: small updates are lost"}};
    (void)from;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (hr_knob_is(to, HR_KNOB_PRECISION_POLICY, rows[k].policy)) {
            return rows[k].change;
        }
    }
    return "rounds less";
}

static const char *change_of_tf32(const hr_knobs *from, const hr_knobs *to)
{
    (void)from;
    return hr_knob_is(to, HR_KNOB_PRECISION_TF32, "on") ? "rounds what is multiplied" : "rounds less";
}

// The knobs that a permission adds.
static const struct {
    hr_knob_id id;
    hr_fit_permission needs;
    const char *name; // before the value, where that alone says little
    const char *(*change)(const hr_knobs *from, const hr_knobs *to);
} learning[] = {
    {HR_KNOB_PRECISION_POLICY, HR_PERMIT_PRECISION, "", change_of_policy},
    {HR_KNOB_PRECISION_TF32, HR_PERMIT_PRECISION, "TF32 ", change_of_tf32},
    {HR_KNOB_OPTIMIZER_KIND, HR_PERMIT_OPTIMIZER, "", change_of_optimizer},
};
enum { LEARNING = sizeof learning / sizeof *learning };

hr_fit_permission hr_fit_permission_for(hr_knob_id knob)
{
    for (int k = 0; k < LEARNING; k++) {
        if (learning[k].id == knob) {
            return learning[k].needs;
        }
    }
    return HR_PERMIT_NOTHING;
}

static void note_batches(const hr_knobs *from, const hr_knobs *to, char text[HR_FIT_CHANGE_MAX])
{
    const size_t used = strlen(text);
    const int64_t samples = hr_knob_int(to, HR_KNOB_BATCH_SIZE);
    if (samples != hr_knob_int(from, HR_KNOB_BATCH_SIZE)) {
        (void)snprintf(text + used, HR_FIT_CHANGE_MAX - used,
                       "%sbatch normalisation sees %" PRId64 " sample%s at a time", used > 0 ? "; " : "",
                       samples, samples == 1 ? "" : "s");
    }
}

const char *hr_fit_change(const hr_knobs *from, const hr_knobs *to, bool normalises_batches,
                          char text[HR_FIT_CHANGE_MAX])
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < LEARNING && used < HR_FIT_CHANGE_MAX; k++) {
        const char *word = hr_knob_text(to, learning[k].id);
        if (strcmp(hr_knob_text(from, learning[k].id), word) != 0) {
            used += (size_t)snprintf(text + used, HR_FIT_CHANGE_MAX - used, "%s%s%s %s", used > 0 ? "; " : "",
                                     learning[k].name, word, learning[k].change(from, to));
        }
    }
    if (normalises_batches) {
        note_batches(from, to, text);
    }
    return text;
}

// ---- what a turn costs -------------------------------------------------------------------------------------------

// These leave the weights as they are, bit for bit, under every value.
static const hr_knob_id harmless[] = {HR_KNOB_ALLOCATOR_KIND,
                                      HR_KNOB_ALLOCATOR_GROWTH,
                                      HR_KNOB_ALLOCATOR_GARBAGE_COLLECTION,
                                      HR_KNOB_ALLOCATOR_RELEASE_THRESHOLD,
                                      HR_KNOB_ALLOCATOR_MAX_SPLIT,
                                      HR_KNOB_ALLOCATOR_MAX_NON_SPLIT_ROUNDING,
                                      HR_KNOB_ALLOCATOR_LARGE_SEGMENT,
                                      HR_KNOB_ALLOCATOR_GC_THRESHOLD,
                                      HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS,
                                      HR_KNOB_ALLOCATOR_ROUNDUP,
                                      HR_KNOB_ALLOCATOR_VERSION,
                                      HR_KNOB_PRECISION_HEALTH,
                                      HR_KNOB_CHECKPOINT_STRATEGY,
                                      HR_KNOB_OFFLOAD_ACTIVATIONS,
                                      HR_KNOB_OFFLOAD_OPTIMIZER,
                                      HR_KNOB_OFFLOAD_PREFETCH,
                                      HR_KNOB_EXECUTION_ANSWER,
                                      HR_KNOB_EXECUTION_MEMORY_FORMAT,
                                      HR_KNOB_EXECUTION_CUDNN_TF32,
                                      HR_KNOB_EXECUTION_MODE,
                                      HR_KNOB_EXECUTION_INPLACE,
                                      HR_KNOB_EXECUTION_CUDA_GRAPH,
                                      HR_KNOB_EXECUTION_RETAIN,
                                      HR_KNOB_OPTIMIZER_IMPLEMENTATION,
                                      HR_KNOB_OPTIMIZER_FUSED_BACKWARD,
                                      HR_KNOB_PIPELINE_MODE,
                                      HR_KNOB_PIPELINE_CACHE_PATH,
                                      HR_KNOB_PIPELINE_SHUFFLE_OF,
                                      HR_KNOB_PIPELINE_MAP_THREADS,
                                      HR_KNOB_PIPELINE_NORMALISE,
                                      HR_KNOB_PIPELINE_PREFETCH,
                                      HR_KNOB_PIPELINE_AUTOTUNE,
                                      HR_KNOB_PIPELINE_PINNED,
                                      HR_KNOB_PIPELINE_DEVICE_PREFETCH,
                                      HR_KNOB_COMPRESS_DISTILL_CACHE,
                                      HR_KNOB_TRAIN_SAVE,
                                      HR_KNOB_TRAIN_SAVE_EVERY};

// What neither names makes the model or the training another.
static const struct {
    hr_knob_id id;
    hr_turn_cost cost;
} costs[] = {
    {HR_KNOB_WORKSPACE_LIMIT, HR_TURN_COST_DIGITS},
    {HR_KNOB_WORKSPACE_SEARCH, HR_TURN_COST_DIGITS},
    {HR_KNOB_THREADS_COUNT, HR_TURN_COST_DIGITS},
    {HR_KNOB_PIPELINE_SHUFFLE, HR_TURN_COST_ORDER},
    {HR_KNOB_PIPELINE_INTERLEAVE, HR_TURN_COST_ORDER},
    {HR_KNOB_PIPELINE_INTERLEAVE_BLOCK, HR_TURN_COST_ORDER},
    {HR_KNOB_PRECISION_POLICY, HR_TURN_COST_PRECISION},
    {HR_KNOB_PRECISION_LOSS_SCALE, HR_TURN_COST_PRECISION},
    {HR_KNOB_PRECISION_LOSS_SCALE_FLOOR, HR_TURN_COST_PRECISION},
    {HR_KNOB_PRECISION_TF32, HR_TURN_COST_PRECISION},
    {HR_KNOB_OPTIMIZER_KIND, HR_TURN_COST_OPTIMIZER},
    {HR_KNOB_DEVICE_KIND, HR_TURN_COST_LIMIT},
    {HR_KNOB_DEVICE_CARD, HR_TURN_COST_LIMIT},
    {HR_KNOB_DEVICE_VRAM, HR_TURN_COST_LIMIT},
    {HR_KNOB_DEVICE_LOGICAL, HR_TURN_COST_LIMIT},
    {HR_KNOB_ALLOCATOR_FRACTION, HR_TURN_COST_LIMIT},
    {HR_KNOB_ALLOCATOR_CONF, HR_TURN_COST_LIMIT},
    {HR_KNOB_PIPELINE_RAM_LIMIT, HR_TURN_COST_LIMIT},
};

static const char *const cost_words[] = {
#define X(id, name, words) [HR_TURN_COST_##id] = words,
    HR_TURN_COST_MAP(X)
#undef X
};

static hr_turn_cost cost_of_batches(const hr_knobs *from, const hr_knobs *to, bool normalises_batches)
{
    const int64_t size = hr_knob_int(to, HR_KNOB_BATCH_SIZE);
    const int64_t before =
        hr_knob_int(from, HR_KNOB_BATCH_SIZE) * hr_knob_int(from, HR_KNOB_BATCH_ACCUMULATE);
    const int64_t now = size * hr_knob_int(to, HR_KNOB_BATCH_ACCUMULATE);
    if (now != before) {
        return now < before ? HR_TURN_COST_SAMPLES : HR_TURN_COST_MODEL;
    }
    if (size == hr_knob_int(from, HR_KNOB_BATCH_SIZE)) {
        return HR_TURN_COST_NOTHING;
    }
    return normalises_batches ? HR_TURN_COST_SPLIT : HR_TURN_COST_DIGITS;
}

static hr_turn_cost cost_of_knob(hr_knob_id id)
{
    for (size_t k = 0; k < sizeof harmless / sizeof *harmless; k++) {
        if (harmless[k] == id) {
            return HR_TURN_COST_NOTHING;
        }
    }
    for (size_t k = 0; k < sizeof costs / sizeof *costs; k++) {
        if (costs[k].id == id) {
            return costs[k].cost;
        }
    }
    return HR_TURN_COST_MODEL;
}

// What depends on the values, or on other knobs.
static hr_turn_cost cost_of_turn(const hr_knobs *from, const hr_knobs *to, hr_knob_id id)
{
    const bool is_double = hr_knob_is(to, HR_KNOB_PRECISION_POLICY, "float64");
    const bool is_whole = is_double || hr_knob_is(to, HR_KNOB_PRECISION_POLICY, "float32");
    if (id == HR_KNOB_EXECUTION_TAPE) { // without one no weight moves
        return hr_knob_is(from, id, "none") || hr_knob_is(to, id, "none") ? HR_TURN_COST_MODEL
                                                                          : HR_TURN_COST_NOTHING;
    }
    if (id == HR_KNOB_EXECUTION_FUSE) { // of two bytes it rounds less often
        return is_whole ? HR_TURN_COST_NOTHING : HR_TURN_COST_DIGITS;
    }
    if (id == HR_KNOB_PIPELINE_CACHE) { // may keep the first epoch's images for all
        return hr_knob_is(to, HR_KNOB_PIPELINE_AUGMENT, "none") ? HR_TURN_COST_NOTHING : HR_TURN_COST_MODEL;
    }
    if (id == HR_KNOB_PIPELINE_ARRAY || id == HR_KNOB_PIPELINE_TRANSFER) { // divided by 255 in float32
        return is_double ? HR_TURN_COST_DIGITS : HR_TURN_COST_NOTHING;
    }
    return cost_of_knob(id);
}

static bool is_turned(const hr_knobs *from, const hr_knobs *to, hr_knob_id id)
{
    char before[HR_KNOB_TEXT_MAX], now[HR_KNOB_TEXT_MAX];
    return strcmp(hr_knob_format(from, id, before), hr_knob_format(to, id, now)) != 0;
}

hr_turn_cost hr_turn_cost_of(const hr_knobs *from, const hr_knobs *to, bool normalises_batches)
{
    hr_turn_cost most = cost_of_batches(from, to, normalises_batches);
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        const hr_knob_id id = (hr_knob_id)k;
        if (id != HR_KNOB_BATCH_SIZE && id != HR_KNOB_BATCH_ACCUMULATE && is_turned(from, to, id)) {
            const hr_turn_cost cost = cost_of_turn(from, to, id);
            most = cost > most ? cost : most;
        }
    }
    return most;
}

bool hr_turn_helps(const hr_knobs *knobs, hr_knob_id id)
{
    const bool offloads = strncmp(hr_knob_rows(NULL)[id].key, "offload.", strlen("offload.")) == 0;
    const bool is_host =
        hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cpu") || hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "reference");
    return !offloads || !is_host || hr_knob_is_set(knobs, HR_KNOB_DEVICE_CARD);
}

const char *hr_turn_words(hr_turn_cost cost, double seconds_before, double seconds,
                          char text[HR_TURN_WORDS_MAX])
{
    const double percent = 100 * (seconds / seconds_before - 1);
    const int used = snprintf(text, HR_TURN_WORDS_MAX, "%s", cost_words[cost]);
    if (isfinite(percent) && fabs(percent) >= 0.5) {
        (void)snprintf(text + used, HR_TURN_WORDS_MAX - (size_t)used, ", %+.0f %% step time", percent);
    }
    return text;
}

bool hr_turn_goes_before(hr_turn_cost a, double a_seconds, hr_turn_cost b, double b_seconds)
{
    return a != b ? a < b : isfinite(a_seconds) && !(b_seconds <= a_seconds);
}

void fit_rank_fixes(const hr_knobs *knobs, bool normalises_batches, double seconds, hr_report_oom *oom)
{
    hr_turn_cost ranked[HR_FIXES_MAX];
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        hr_report_fix fix = oom->fixes[k];
        hr_knobs turned = *knobs;
        const hr_status status = hr_knobs_set_pairs(&turned, fix.knobs, NULL);
        const hr_turn_cost cost =
            status == HR_OK ? hr_turn_cost_of(knobs, &turned, normalises_batches) : HR_TURN_COST_MODEL;
        uint32_t at = k;
        (void)hr_turn_words(cost, seconds, fix.seconds, fix.cost);
        for (; at > 0 && hr_turn_goes_before(cost, fix.seconds, ranked[at - 1], oom->fixes[at - 1].seconds);
             at--) {
            ranked[at] = ranked[at - 1];
            oom->fixes[at] = oom->fixes[at - 1];
        }
        ranked[at] = cost;
        oom->fixes[at] = fix;
    }
}

static bool is_slower(const hr_whatif *a, const hr_whatif *b)
{
    return a->step_seconds > b->step_seconds;
}

bool hr_fit_beats(const hr_whatif *a, const hr_whatif *b, bool comes_first)
{
    const bool is_better = a->peak_in_use_bytes < b->peak_in_use_bytes || is_slower(b, a);
    return a->fits >= b->fits && a->peak_in_use_bytes <= b->peak_in_use_bytes && !is_slower(a, b) &&
           (is_better || comes_first);
}
