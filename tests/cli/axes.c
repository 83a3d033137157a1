// SPDX-License-Identifier: Apache-2.0
#include "axes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/preset.h"

static const double memory_bytes = 4.0 * 1024 * 1024 * 1024; // of the tests' device

static const axis_left_out left_out[] = {
    {HR_KNOB_DEVICE_KIND, NULL, "a test is of one device"},
    {HR_KNOB_DEVICE_CARD, NULL, "a test gives the limit itself"},
    {HR_KNOB_DEVICE_VRAM, NULL, "a test gives the limit itself: what does not fit has no peak to compare"},
    {HR_KNOB_ALLOCATOR_FRACTION, NULL, "a share of a card's memory, which tests do not have"},
    {HR_KNOB_ALLOCATOR_KIND, "async_driver", "the pool of a real driver, outside the promise"},
    {HR_KNOB_PRECISION_POLICY, "float64", "on device.kind reference and plan only"},
    {HR_KNOB_PIPELINE_SOURCE, "cifar10", "needs files: tests/unit/test_sources.c"},
    {HR_KNOB_PIPELINE_SOURCE, "mnist", "needs files: tests/unit/test_sources.c"},
    {HR_KNOB_PIPELINE_SOURCE, "images", "needs files: tests/unit/test_sources_images.c"},
    {HR_KNOB_PIPELINE_SOURCE, "tokens", "needs files: tests/unit/test_sources_tokens.c"},
    {HR_KNOB_PIPELINE_SOURCE, "text", "needs files: tests/unit/test_sources_tokens.c"},
    {HR_KNOB_PIPELINE_SOURCE, "csv", "needs files: tests/unit/test_sources_table.c"},
    {HR_KNOB_PIPELINE_SOURCE, "npy", "needs files: tests/unit/test_sources_arrays.c"},
    {HR_KNOB_PIPELINE_SOURCE, "tfrecord", "needs files: tests/unit/test_sources_tfrecord.c"},
    {HR_KNOB_PIPELINE_PATH, NULL, "needs files: tests/unit/test_sources.c"},
    {HR_KNOB_PIPELINE_FILTER, NULL, "of images only: tests/unit/test_interleave.c"},
    {HR_KNOB_PIPELINE_INTERLEAVE, NULL, "needs several files: tests/unit/test_interleave.c"},
    {HR_KNOB_PIPELINE_INTERLEAVE_BLOCK, NULL, "needs several files: tests/unit/test_interleave.c"},
    {HR_KNOB_PIPELINE_CACHE_PATH, NULL, "writes files: tests/unit/test_keep.c"},
    {HR_KNOB_PIPELINE_RAM_LIMIT, NULL,
     "a limit that is crossed leaves nothing to compare: test_host_ledger.c"},
    {HR_KNOB_COMPRESS_DISTILL_WEIGHTS, NULL, "needs files: tests/unit/test_teacher_run.c"},
    {HR_KNOB_MODEL_SEQUENCE, NULL, "a size is a model's own: tests/cli/test_model_sizes.c"},
    {HR_KNOB_MODEL_RESOLUTION, NULL, "a size is a model's own: tests/cli/test_model_sizes.c"},
    {HR_KNOB_MODEL_WIDTH, NULL, "a size is a model's own: tests/cli/test_model_sizes.c"},
    {HR_KNOB_MODEL_DEPTH, NULL, "a size is a model's own: tests/cli/test_model_sizes.c"},
    {HR_KNOB_TRAIN_STEPS, NULL, "a test says how many steps it takes"},
    {HR_KNOB_TRAIN_SAVE, NULL, "writes files: tests/unit/test_engine_recovery.c"},
    {HR_KNOB_TRAIN_SAVE_EVERY, NULL, "writes files: tests/unit/test_engine_recovery.c"},
    {HR_KNOB_TRAIN_RESUME, NULL, "needs files: tests/unit/test_engine_recovery.c"},
};
enum { LEFT_OUT = sizeof left_out / sizeof *left_out };

// What holds, copies, writes or asks a teacher of all of a data set, which generated ones are too large for in so many runs.
static const axis_left_out whole_sets[] = {
    {HR_KNOB_PIPELINE_ARRAY, "uint8", "tests/cli/test_host_ledger.c"},
    {HR_KNOB_PIPELINE_ARRAY, "float32", "tests/cli/test_host_ledger.c"},
    {HR_KNOB_PIPELINE_ARRAY, "float64", "tests/cli/test_host_ledger.c"},
    {HR_KNOB_PIPELINE_STAGES, "slices,map,shuffle,cache,batch", "tests/cli/test_host_ledger.c"},
    {HR_KNOB_PIPELINE_SHUFFLE_OF, "elements", "tests/cli/test_host_ledger.c"},
    {HR_KNOB_PIPELINE_CACHE, "file", "tests/cli/test_host_ledger.c"},
    {HR_KNOB_PIPELINE_AUGMENT_COPIES, "2", "tests/cli/test_host_ledger.c"},
    {HR_KNOB_COMPRESS_DISTILL_CACHE, "on", "tests/unit/test_teacher_run.c"},
};
enum { WHOLE_SETS = sizeof whole_sets / sizeof *whole_sets };

bool axes_have_whole_sets;

typedef struct own_values {
    hr_knob_id id;
    const char *why;
    const char *values[8];
} own_values;

static const own_values own[] = {
    {HR_KNOB_DEVICE_LOGICAL, "a text", {"none", "3GiB,1GiB"}},
    {HR_KNOB_ALLOCATOR_ROUNDUP, "a text", {"", "4"}},
    {HR_KNOB_ALLOCATOR_CONF, "a text", {"", "large_segment_size_mb:12,max_non_split_rounding_mb:12"}},
    {HR_KNOB_PRECISION_LOSS_SCALE, "a text", {"", "dynamic", "none", "128"}},
    {HR_KNOB_COMPRESS_DISTILL, "a teacher takes and gives the same as its student", {"none", "self"}},
    {HR_KNOB_CHECKPOINT_STRATEGY,
     "a text",
     {"none", "every:2", "sqrt", "blocks", "selective", "budget:3MiB"}},
    {HR_KNOB_BATCH_SIZE, "a step stays in milliseconds", {"4", "1", "7"}},
    {HR_KNOB_PIPELINE_SAMPLES, "an epoch needs whole batches", {"all", "24"}},
    {HR_KNOB_PIPELINE_STAGES,
     "a text",
     {"interleave,cache,shuffle,map,batch,prefetch", "map,cache,shuffle,batch",
      "slices,map,shuffle,cache,batch", "shuffle,map,cache,batch,prefetch",
      "cache,repeat,shuffle,map,batch,prefetch", "shuffle,map,cache,repeat,batch"}},
    {HR_KNOB_PIPELINE_AUGMENT, "a text", {"none", "flip,crop:4,colour:0.4,rotate:10,erase"}},
    {HR_KNOB_PIPELINE_AUGMENT_COPIES, "each holds a whole set", {"0", "2"}},
    {HR_KNOB_COMPRESS_PRUNE, "a text", {"none", "constant:0.5", "polynomial:0.2:0.8:1:3:1"}},
    {HR_KNOB_COMPRESS_PRUNE_STRUCTURE, "a text", {"element", "block:2x1", "2:4", "filter"}},
    {HR_KNOB_COMPRESS_LORA, "ranks of tiny layers", {"none", "3"}},
    {HR_KNOB_COMPRESS_LORA_ALPHA, "one factor is like another", {"rank", "16"}},
    {HR_KNOB_COMPRESS_LORA_TARGETS, "a text, of which every model has these", {"auto", "all"}},
    {HR_KNOB_COMPRESS_LOW_RANK, "a text", {"none", "2", "ratio:0.6"}},
    {HR_KNOB_THREADS_COUNT, "the default is the machine's", {"1", "2"}},
    {HR_KNOB_WORKSPACE_LIMIT, "kernels of tiny models want 1 KiB to 1 MiB", {"none", "4MiB", "160KiB", "0B"}},
};
enum { OWN = sizeof own / sizeof *own };

const axis_left_out *axes_left_out(size_t *count)
{
    *count = LEFT_OUT;
    return left_out;
}

static bool names(const axis_left_out *rows, size_t count, hr_knob_id id, const char *value)
{
    for (size_t k = 0; k < count; k++) {
        const char *out = rows[k].value;
        if (rows[k].id == id && (value == NULL ? out == NULL : out != NULL && strcmp(out, value) == 0)) {
            return true;
        }
    }
    return false;
}

static bool is_left_out(hr_knob_id id, const char *value)
{
    return names(left_out, LEFT_OUT, id, value) ||
           (!axes_have_whole_sets && names(whole_sets, WHOLE_SETS, id, value));
}

bool axis_is_left_out(hr_knob_id id)
{
    return is_left_out(id, NULL);
}

bool axis_takes_whole_sets(hr_knob_id id)
{
    bool takes = false;
    for (size_t k = 0; k < WHOLE_SETS; k++) {
        takes = takes || whole_sets[k].id == id;
    }
    return takes;
}

size_t axis_value_count(const axis *a)
{
    size_t count = 0;
    while (a->values[count] != NULL) {
        count++;
    }
    return count;
}

static void add(axis *a, const char *value)
{
    size_t at = axis_value_count(a);
    for (size_t k = 0; k < at; k++) {
        if (strcmp(a->values[k], value) == 0) {
            return;
        }
    }
    if (at == AXIS_VALUES_MAX || strlen(value) >= AXIS_TEXT_MAX * 2) {
        fprintf(stderr, "axes: no room for %s of %s\n", value, a->key);
        exit(2);
    }
    a->values[at] = value;
}

// As it would be typed; what the table does not take is a mistake of this file.
static void add_number(axis *a, double value)
{
    const hr_knob_row *row = &hr_knob_rows(NULL)[a->id];
    const size_t at = axis_value_count(a);
    char text[HR_KNOB_TEXT_MAX];
    hr_knobs knobs;
    if (value < row->min || value > row->max) {
        return;
    }
    hr_knobs_init(&knobs);
    snprintf(a->text[at], AXIS_TEXT_MAX, row->type == HR_KNOB_REAL ? "%.9g" : "%.0f%s", value,
             row->type == HR_KNOB_BYTES ? "B" : "");
    if (hr_knobs_set(&knobs, a->id, a->text[at], NULL) != HR_OK) {
        fprintf(stderr, "axes: %s does not take %s\n", row->key, a->text[at]);
        exit(2);
    }
    snprintf(a->text[at], AXIS_TEXT_MAX, "%.47s", hr_knob_format(&knobs, a->id, text));
    add(a, a->text[at]);
}

// Of orders of magnitude the middle one.
static double middle(double min, double max)
{
    return min > 0.0 ? sqrt(min * max) : max / 2.0;
}

static void add_numbers(axis *a, const hr_knob_row *row)
{
    hr_knobs knobs;
    char text[HR_KNOB_TEXT_MAX];
    hr_knobs_init(&knobs);
    snprintf(a->text[0], AXIS_TEXT_MAX, "%.47s", hr_knob_format(&knobs, row->id, text));
    add(a, a->text[0]);
    add_number(a, row->min);
    if (row->type == HR_KNOB_INT) {
        add_number(a, row->min + 2);
    } else if (row->type == HR_KNOB_REAL) {
        add_number(a, middle(row->min, row->max));
    } else {
        add_number(a, floor(middle(fmax(row->min, 1.0), fmin(row->max, memory_bytes))));
    }
}

static void add_choices(axis *a, const hr_knob_row *row)
{
    add(a, row->preset_default);
    for (size_t k = 0; row->choices[k] != NULL; k++) {
        if (!is_left_out(row->id, row->choices[k])) {
            add(a, row->choices[k]);
        }
    }
}

static void fill(axis *a, const hr_knob_row *row)
{
    *a = (axis){.id = row->id, .key = row->key};
    for (size_t k = 0; k < OWN; k++) {
        for (size_t v = 0; own[k].id == row->id && own[k].values[v] != NULL; v++) {
            if (!is_left_out(row->id, own[k].values[v])) {
                add(a, own[k].values[v]);
            }
        }
    }
    if (a->values[0] != NULL) {
        return;
    }
    if (row->type == HR_KNOB_CHOICE) {
        add_choices(a, row);
    } else if (row->type != HR_KNOB_TEXT) {
        add_numbers(a, row);
    }
}

// Every shipped model that is tiny.
static void fill_models(axis *a)
{
    static const char end[] = "_tiny";
    hr_preset_entry *entries = NULL;
    size_t count = 0;
    hr_err err = {0};
    *a = (axis){.id = HR_KNOB_COUNT, .key = "model"};
    if (hr_preset_list("models", &entries, &count, &err) != HR_OK) {
        fprintf(stderr, "axes: %s\n", err.sentence);
        exit(2);
    }
    for (size_t k = 0; k < count; k++) {
        const size_t length = strlen(entries[k].name);
        if (length > sizeof end && strcmp(entries[k].name + length - (sizeof end - 1), end) == 0) {
            const size_t at = axis_value_count(a);
            snprintf(a->text[at], AXIS_TEXT_MAX, "%.47s", entries[k].name);
            add(a, a->text[at]);
        }
    }
    hr_preset_list_free(entries);
}

// Two rows of one knob are a mistake of this file.
static void check_own(void)
{
    for (size_t k = 0; k < OWN; k++) {
        for (size_t other = 0; other < k; other++) {
            if (own[other].id == own[k].id) {
                fprintf(stderr, "axes: %s has two rows\n", hr_knob_rows(NULL)[own[k].id].key);
                exit(2);
            }
        }
    }
}

size_t axes_of_knobs(const axis **axes)
{
    static axis all[AXES_MAX];
    static size_t count;
    size_t knobs = 0;
    const hr_knob_row *rows = hr_knob_rows(&knobs);
    *axes = all;
    if (count > 0) {
        return count;
    }
    check_own();
    fill_models(&all[count++]);
    for (size_t k = 0; k < knobs; k++) {
        if (!is_left_out(rows[k].id, NULL) && count < AXES_MAX) {
            fill(&all[count++], &rows[k]);
        }
    }
    return count;
}
