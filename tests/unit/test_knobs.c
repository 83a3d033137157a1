// SPDX-License-Identifier: Apache-2.0
// Promises of headroom/knobs.h: whole rows, strict values, errors that name what is allowed, and constraints that
// can each be broken and mended by what they advise.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/knobs.h"

#include "knobs/torch_settings.h"

static hr_knobs knobs;
static hr_err err;

static void setup(void)
{
    hr_knobs_init(&knobs);
    memset(&err, 0, sizeof err);
}

static const hr_knob_row *row_of(int id)
{
    return &hr_knob_rows(NULL)[id];
}

// ---- the table ------------------------------------------------------------------------------------------------

START_TEST(every_row_is_whole)
{
    static const char *const keys[] = {
#define X(id, key) key,
        HR_KNOB_MAP(X)
#undef X
    };
    const hr_knob_row *row = row_of(_i);
    ck_assert_int_eq(row->id, _i);
    ck_assert_str_eq(row->key, keys[_i]);
    ck_assert_ptr_nonnull(row->unit);
    ck_assert_ptr_nonnull(row->preset_default);
    ck_assert_uint_gt(strlen(row->line), 10);
    ck_assert_uint_le(strlen(row->line), 80);
    ck_assert_uint_gt(strlen(row->explanation), strlen(row->line));
    ck_assert(row->explanation[strlen(row->explanation) - 1] == '.');
    if (row->type == HR_KNOB_CHOICE) {
        ck_assert_ptr_nonnull(row->choices[0]);
    } else if (row->type != HR_KNOB_TEXT) {
        ck_assert_double_lt(row->min, row->max);
    }
}
END_TEST

START_TEST(every_default_is_a_legal_value)
{
    ck_assert(!hr_knob_is_set(&knobs, (hr_knob_id)_i));
    ck_assert_int_eq(hr_knobs_set(&knobs, (hr_knob_id)_i, row_of(_i)->preset_default, &err), HR_OK);
}
END_TEST

START_TEST(what_is_printed_reads_back)
{
    char before[HR_KNOB_TEXT_MAX], after[HR_KNOB_TEXT_MAX];
    const hr_knob_row *row = row_of(_i);
    char bound[64];
    snprintf(bound, sizeof bound, row->type == HR_KNOB_REAL ? "%.17g" : "%.0f", row->max);
    const char *other = row->id == HR_KNOB_ALLOCATOR_CONF      ? "max_split_size_mb:64"
                        : row->id == HR_KNOB_ALLOCATOR_ROUNDUP ? "[1:2,>:4]"
                        : row->type == HR_KNOB_TEXT            ? "a file"
                        : row->type == HR_KNOB_CHOICE          ? row->choices[0]
                                                               : bound;
    ck_assert_int_eq(hr_knobs_set(&knobs, row->id, other, &err), HR_OK);
    hr_knob_format(&knobs, row->id, before);
    ck_assert_int_eq(hr_knobs_set(&knobs, row->id, before, &err), HR_OK);
    ck_assert_str_eq(hr_knob_format(&knobs, row->id, after), before);
    hr_knobs_init(&knobs);
    hr_knob_format(&knobs, row->id, before);
    ck_assert_int_eq(hr_knobs_set(&knobs, row->id, before, &err), HR_OK);
    ck_assert_str_eq(hr_knob_format(&knobs, row->id, after), before);
}
END_TEST

START_TEST(a_key_is_found_and_a_near_one_suggested)
{
    static const struct {
        const char *typed, *meant;
    } rows[] = {
        {"batch.sise", "batch.size"},
        {"growth", "allocator.growth"},
        {"optimiser.kind", "optimizer.kind"},
        {"learning_rat", "optimizer.learning_rate"},
        {"device.vrma", "device.vram"},
        {"memory.vram", "device.vram"},
        {"completely unlike any of them", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *suggestion = "unchanged";
        ck_assert_ptr_null(hr_knob_find(rows[i].typed, &suggestion));
        ck_assert_pstr_eq(suggestion, rows[i].meant);
    }
    ck_assert_int_eq(hr_knob_find("batch.size", NULL)->id, HR_KNOB_BATCH_SIZE);
}
END_TEST

// ---- values ---------------------------------------------------------------------------------------------------

static const struct {
    const char *pair;
    const char *sentence; // NULL: accepted
} pairs[] = {
    {"batch.size=64", NULL},
    {"batch.size=32abc", "batch.size: needs a whole number from 1 to 1048576 (samples), had '32abc'"},
    {"batch.size=0", "batch.size: needs a whole number from 1 to 1048576 (samples), had '0'"},
    {"batch.size=1048577", "batch.size: needs a whole number from 1 to 1048576 (samples), had '1048577'"},
    {"batch.size= 64", "batch.size: needs a whole number from 1 to 1048576 (samples), had ' 64'"},
    {"batch.size=0x40", "batch.size: needs a whole number from 1 to 1048576 (samples), had '0x40'"},
    {"batch.size=6.4e1", "batch.size: needs a whole number from 1 to 1048576 (samples), had '6.4e1'"},
    {"batch.size=", "batch.size: needs a whole number from 1 to 1048576 (samples), had ''"},
    {"batch.size=none", "batch.size: needs a whole number from 1 to 1048576 (samples), had 'none'"},
    {"optimizer.learning_rate=1e-3", NULL},
    {"optimizer.learning_rate=nan", "optimizer.learning_rate: needs a number from 0 to 1000, had 'nan'"},
    {"optimizer.learning_rate=inf", "optimizer.learning_rate: needs a number from 0 to 1000, had 'inf'"},
    {"optimizer.learning_rate=-0.1", "optimizer.learning_rate: needs a number from 0 to 1000, had '-0.1'"},
    {"optimizer.momentum=1", "optimizer.momentum: needs a number from 0 to 0.999999, had '1'"},
    {"device.vram=64MiB", NULL},
    {"device.vram=none", NULL},
    {"device.vram=1.6GiB", NULL},
    {"device.vram=8gib", NULL},
    {"device.vram=12Gi", "device.vram: needs a size such as 64MiB from 256B to 1024TiB, or none, had '12Gi'"},
    {"device.vram=255", "device.vram: needs a size such as 64MiB from 256B to 1024TiB, or none, had '255'"},
    {"allocator.fraction=0.5", NULL},
    {"allocator.fraction=1.1",
     "allocator.fraction: needs a number from 0 to 1 (of the card), or none, had '1.1'"},
    {"allocator.growth=on", NULL},
    {"allocator.growth=maybe", "allocator.growth: needs one of off, on, had 'maybe'"},
    {"optimizer.kind=AdamW", "optimizer.kind: needs one of sgd, momentum, rmsprop, adam, adamw, adafactor, "
                             "adafactor_keras, lion, adam8bit, had 'AdamW' — did you mean 'adamw'?"},
    {"execution.mode=true", "execution.mode: needs one of eager, graph, had 'true'"},
    {"precision.policy=fp16", "precision.policy: needs one of float32, mixed_float16, mixed_bfloat16, "
                              "float16, bfloat16, float64, had 'fp16' — did "
                              "you mean 'mixed_float16'?"},
    {"precision.policy=bf16", "precision.policy: needs one of float32, mixed_float16, mixed_bfloat16, "
                              "float16, bfloat16, float64, had 'bf16' — did "
                              "you mean 'mixed_bfloat16'?"},
    {"precision.policy=amp", "precision.policy: needs one of float32, mixed_float16, mixed_bfloat16, "
                             "float16, bfloat16, float64, had 'amp' — did "
                             "you mean 'mixed_float16'?"},
    {"device.kind=refrence",
     "device.kind: needs one of cpu, cuda, plan, reference, had 'refrence' — did you mean 'reference'?"},
    {"device.kind=", "device.kind: needs one of cpu, cuda, plan, reference, had ''"},
    {"allocator.kind=asynchronous", "allocator.kind: needs one of bfc, caching, async, direct, static, "
                                    "async_driver, had 'asynchronous' — did you mean 'async'?"},
    {"allocator.max_split=none", NULL},
    {"pipeline.device_prefetch=auto", NULL},
    {"pipeline.device_prefetch=none",
     "pipeline.device_prefetch: needs a whole number from 0 to 64 (batches), or auto, had 'none'"},
    {"allocator.gc_threshold=0",
     "allocator.gc_threshold: needs a number from 1e-06 to 0.999999 (of the limit), or none, had '0'"},
    {"allocator.roundup=[256:1,>:8]", NULL},
    {"allocator.roundup=3",
     "allocator.roundup: roundup_power2_divisions: the number of divisions must be a power of two, had 3"},
    {"allocator.conf=expandable_segments:True,max_split_size_mb:128", NULL},
    {"allocator.conf=expandable_segments:true",
     "allocator.conf: expandable_segments: needed True or False, spelt like that, had 'true'"},
    {"allocator.conf=max_split_size:128",
     "allocator.conf: PyTorch has no option 'max_split_size' — did you mean 'max_split_size_mb'?"},
    {"allocator.conf=", NULL},
    {"allocator.release_threshold=0B", NULL},
    {"train.save=weights.safetensors", NULL},
    {"train.save=", NULL},
    {"train.save=a\nb", "train.save: needs one line of text, 255 bytes at most, had 'a\nb'"},
    {"batch.sise=3", "no knob is called 'batch.sise' — did you mean 'batch.size'?"},
    {"batch.size", "batch.size: needs a value behind '=', had none"},
    {"=3", "no knob is called ''"},
};

// What a row needs is what its sentence says, in words that the other knob takes; and asking finds it.
START_TEST(what_a_knob_needs_is_what_its_sentence_says)
{
    size_t count, rows_with = 0;
    const hr_knob_row *rows = hr_knob_rows(&count);
    for (size_t k = 0; k < count; k++) {
        hr_knobs met = knobs;
        for (int n = 0; n < HR_KNOB_NEEDS_MAX && rows[k].needs[n].words != NULL; n++) {
            const hr_knob_row *other = &rows[rows[k].needs[n].knob];
            const bool each_but = rows[k].needs[n].words[0] == '!';
            char words[128], *rest = NULL;
            snprintf(words, sizeof words, "%s", each_but ? "" : rows[k].needs[n].words);
            ck_assert_msg(rows[k].applies != NULL && strstr(rows[k].applies, other->key) != NULL, "%s",
                          rows[k].key);
            for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
                ck_assert_msg(strstr(rows[k].applies, word) != NULL, "%s %s", rows[k].key, word);
                ck_assert_int_eq(hr_knobs_set(&met, other->id, word, &err), HR_OK);
            }
            if (each_but) { // a value that is none of them
                ck_assert_msg(!hr_knob_acts(&met, rows[k].id), "%s", rows[k].key);
                const char *value = other->steps[0] == NULL ? "self" : other->steps[1];
                ck_assert_int_eq(hr_knobs_set(&met, other->id, value, &err), HR_OK);
            }
            for (int c = 0; other->choices[c] != NULL; c++) { // a word that it takes beside these
                hr_knobs to = met;
                ck_assert_int_eq(hr_knobs_set(&to, other->id, other->choices[c], &err), HR_OK);
                char all[160], one[64];
                snprintf(all, sizeof all, " %s ", rows[k].needs[n].words);
                snprintf(one, sizeof one, " %s ", other->choices[c]);
                ck_assert_msg(strstr(all, one) != NULL || !hr_knob_acts(&to, rows[k].id), "%s %s",
                              rows[k].key, one);
            }
        }
        if (hr_knob_is_size(rows[k].id)) { // acts where the model has it: then it is set
            ck_assert_msg(!hr_knob_acts(&met, rows[k].id), "%s", rows[k].key);
            ck_assert_int_eq(hr_knobs_set(&met, rows[k].id, "8", &err), HR_OK);
        }
        ck_assert_msg(hr_knob_acts(&met, rows[k].id), "%s", rows[k].key);
        rows_with += rows[k].needs[0].words != NULL;
    }
    ck_assert_uint_gt(rows_with, 20);
}
END_TEST

// Of words that other tools have, and of groups without their knob: what is to be tried can be set.
START_TEST(what_is_suggested_for_a_key_can_be_set)
{
    static const char *const rows[][2] = {{"precision=fp16", "-s precision.policy=mixed_float16"},
                                          {"fp16=1", "-s precision.policy=float32"},
                                          {"batch=64", "-s batch.size=64"},
                                          {"optimizer=sgd", "-s optimizer.kind=sgd"},
                                          {"allocator=pytorch", "-s allocator.kind=caching"},
                                          {"LR=0.1", "-s optimizer.learning_rate=0.1"},
                                          {"memory=8GiB", "-s device.vram=8GiB"},
                                          {"gradient_checkpointing=on", "-s checkpoint.strategy="},
                                          {"vram", "-s device.vram="}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hr_knobs to = knobs;
        ck_assert_int_eq(hr_knobs_set_pair(&to, rows[i][0], &err), HR_KNOB);
        ck_assert_msg(strncmp(err.hint, rows[i][1], strlen(rows[i][1])) == 0, "%s: %s", rows[i][0], err.hint);
        ck_assert_msg(hr_knobs_set_pair(&to, err.hint + 3, NULL) == HR_OK, "%s", err.hint);
    }
}
END_TEST

START_TEST(switches_take_booleans_and_print_on_or_off)
{
    static const char *const words[][2] = {
        {"off", "on"}, {"false", "true"}, {"no", "yes"}, {"False", "True"}};
    char text[HR_KNOB_TEXT_MAX];
    size_t count, switches = 0;
    const hr_knob_row *rows = hr_knob_rows(&count);
    for (size_t k = 0; k < count; k++) {
        for (size_t w = 0; hr_knob_is_switch(&rows[k]) && w < sizeof words / sizeof *words; w++) {
            for (size_t on = 0; on < 2; on++) {
                ck_assert_int_eq(hr_knobs_set(&knobs, rows[k].id, words[w][on], &err), HR_OK);
                ck_assert_str_eq(hr_knob_format(&knobs, rows[k].id, text), on ? "on" : "off");
            }
        }
        switches += hr_knob_is_switch(&rows[k]);
    }
    ck_assert_uint_gt(switches, 0);
}
END_TEST

START_TEST(values_are_strict_and_errors_say_what_is_allowed)
{
    hr_knobs before = knobs;
    hr_status status = hr_knobs_set_pair(&knobs, pairs[_i].pair, &err);
    if (pairs[_i].sentence == NULL) {
        ck_assert_int_eq(status, HR_OK);
        return;
    }
    ck_assert_int_eq(status, HR_KNOB);
    ck_assert_str_eq(err.sentence, pairs[_i].sentence);
    ck_assert_mem_eq(&knobs, &before, sizeof knobs);
}
END_TEST

START_TEST(what_a_refusal_advises_is_accepted)
{
    static const char *const wrong[] = {"batch.size=x",
                                        "device.kind=x",
                                        "allocator.growth=x",
                                        "device.vram=x",
                                        "allocator.fraction=x",
                                        "optimizer.momentum=x",
                                        "batch.sise=64",
                                        "train.seed=-1",
                                        "train.save=\n",
                                        "precision.policy=amp",
                                        "allocator.conf=backend:cudaMallocAsync",
                                        "allocator.conf=x",
                                        "allocator.roundup=x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, wrong[i], &err), HR_KNOB);
        ck_assert(strncmp(err.hint, "-s ", 3) == 0);
        ck_assert_msg(hr_knobs_set_pair(&knobs, err.hint + 3, NULL) == HR_OK, "%s", err.hint);
    }
}
END_TEST

START_TEST(a_text_that_is_too_long_is_refused)
{
    char words[HR_KNOB_TEXT_MAX + 1];
    memset(words, 'x', sizeof words);
    words[HR_KNOB_TEXT_MAX] = '\0';
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_TRAIN_SAVE, words, &err), HR_KNOB);
    words[HR_KNOB_TEXT_MAX - 1] = '\0';
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_TRAIN_SAVE, words, &err), HR_OK);
    ck_assert_str_eq(hr_knob_text(&knobs, HR_KNOB_TRAIN_SAVE), words);
}
END_TEST

// A card's copies run beside its kernels.
START_TEST(the_device_holds_a_batch_ahead_where_nobody_said)
{
    ck_assert_uint_eq(hr_knob_batches_ahead(&knobs), 0);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.kind=cuda", &err), HR_OK);
    ck_assert_uint_eq(hr_knob_batches_ahead(&knobs), 1);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "pipeline.device_prefetch=0", &err), HR_OK);
    ck_assert_uint_eq(hr_knob_batches_ahead(&knobs), 0);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "pipeline.device_prefetch=3", &err), HR_OK);
    ck_assert_uint_eq(hr_knob_batches_ahead(&knobs), 3);
}
END_TEST

START_TEST(values_come_back_typed)
{
    ck_assert_int_eq(hr_knob_int(&knobs, HR_KNOB_BATCH_SIZE), 32);
    ck_assert_double_eq(hr_knob_real(&knobs, HR_KNOB_OPTIMIZER_LEARNING_RATE), 0.001);
    ck_assert(hr_knob_is(&knobs, HR_KNOB_EXECUTION_MODE, "eager"));
    ck_assert_uint_eq(hr_knob_bytes(&knobs, HR_KNOB_DEVICE_VRAM, 7), 7);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=64MiB", &err), HR_OK);
    ck_assert(hr_knob_is_set(&knobs, HR_KNOB_DEVICE_VRAM));
    ck_assert_uint_eq(hr_knob_bytes(&knobs, HR_KNOB_DEVICE_VRAM, 7), 64 << 20);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=none", &err), HR_OK);
    ck_assert(!hr_knob_is_set(&knobs, HR_KNOB_DEVICE_VRAM));
    ck_assert_str_eq(hr_knob_text(&knobs, HR_KNOB_TRAIN_SAVE), "");
}
END_TEST

static bool are_equal(const torch_conf *a, const torch_conf *b)
{
    return a->large_segment_bytes == b->large_segment_bytes && a->max_split_bytes == b->max_split_bytes &&
           a->max_non_split_rounding_bytes == b->max_non_split_rounding_bytes &&
           a->gc_threshold == b->gc_threshold && a->fraction == b->fraction &&
           memcmp(a->divisions, b->divisions, sizeof a->divisions) == 0 &&
           a->expandable_segments == b->expandable_segments && a->throws_early == b->throws_early;
}

START_TEST(the_string_and_the_knobs_mean_the_same)
{
    static const struct {
        const char *beside, *knob, *conf;
    } same[] = {
        {NULL, "allocator.max_split=40MiB", "max_split_size_mb:40"},
        {NULL, "allocator.large_segment=32MiB", "large_segment_size_mb:32"},
        {NULL, "allocator.expandable_segments=on", "expandable_segments:True"},
        {NULL, "allocator.roundup=[1:2,>:8]", "roundup_power2_divisions:[1:2,>:8]"},
        {"allocator.max_split=64MiB", "allocator.max_non_split_rounding=40MiB",
         "max_non_split_rounding_mb:40"},
        {"allocator.fraction=0.5", "allocator.gc_threshold=0.8", "garbage_collection_threshold:0.8"},
    };
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.card=rtx3070-8g", &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "allocator.kind=caching", &err), HR_OK);
    for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
        hr_knobs by_knob = knobs;
        if (same[k].beside != NULL) {
            ck_assert_int_eq(hr_knobs_set_pair(&by_knob, same[k].beside, &err), HR_OK);
        }
        hr_knobs by_string = by_knob;
        torch_conf neither = torch_settings_of(&by_knob);
        ck_assert_int_eq(hr_knobs_set_pair(&by_knob, same[k].knob, &err), HR_OK);
        ck_assert_int_eq(hr_knobs_set(&by_string, HR_KNOB_ALLOCATOR_CONF, same[k].conf, &err), HR_OK);
        torch_conf a = torch_settings_of(&by_knob), b = torch_settings_of(&by_string);
        ck_assert(are_equal(&a, &b) && !are_equal(&a, &neither));
        ck_assert_int_eq(hr_knobs_set(&by_knob, HR_KNOB_ALLOCATOR_CONF, same[k].conf, &err), HR_OK);
        ck_assert_msg(hr_knobs_validate(&by_knob, &err) == HR_OK, "%s", err.sentence);
    }
}
END_TEST

START_TEST(a_fraction_may_stand_in_the_string)
{
    const char *const pairs_of[] = {"device.card=rtx3070-8g", "allocator.kind=caching",
                                    "allocator.conf=per_process_memory_fraction:0.5"};
    for (size_t k = 0; k < 3; k++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, pairs_of[k], &err), HR_OK);
    }
    ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_OK);
    ck_assert_double_eq(torch_settings_fraction(&knobs), 0.5);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "allocator.kind=bfc", &err), HR_OK);
    ck_assert_double_eq(torch_settings_fraction(&knobs), 0);
}
END_TEST

// ---- constraints ----------------------------------------------------------------------------------------------

// For each row of the list, in its order, a set of knobs that breaks it and no row before it.
enum { BREAKERS_MAX = 6 };
static const char *const breakers[][BREAKERS_MAX] = {
    {"compress.prune=linear:0.5", "device.vram=64MiB"},
    {"compress.prune=constant", "device.vram=64MiB"},
    {"compress.prune=polynomial:0.5", "device.vram=64MiB"},
    {"compress.prune=constant:1.5", "device.vram=64MiB"},
    {"compress.prune=polynomial:0.5:1:0:9", "device.vram=64MiB"},
    {"compress.prune=constant:0.5:100:99", "device.vram=64MiB"},
    {"compress.prune=polynomial:0.5:0.8:100:99", "device.vram=64MiB"},
    {"compress.prune=constant:0.5:0:-1:0", "device.vram=64MiB"},
    {"compress.prune=polynomial:0.5:0.8:0:9:0", "device.vram=64MiB"},
    {"compress.prune=polynomial:0.5:0.8:0:9:1:0", "device.vram=64MiB"},
    {"compress.prune=constant:0.5", "device.vram=64MiB", "execution.as=pytorch"},
    {"compress.prune_structure=column", "device.vram=64MiB"},
    {"compress.prune_structure=4:4", "device.vram=64MiB"},
    {"precision.policy=float64", "device.vram=64MiB"},
    {"precision.policy=float64", "device.vram=64MiB", "device.kind=cuda"},
    {"precision.loss_scale=lots", "device.vram=64MiB"},
    {"precision.loss_scale=dynamic", "device.vram=64MiB"},
    {"allocator.fraction=0.5", "device.vram=64MiB", "device.card=rtx3070-8g"},
    {"allocator.fraction=0.5"},
    {"device.vram=64MiB", "device.logical=32MiB,half"},
    {"device.vram=64MiB", "device.logical=32MiB", "allocator.kind=async"},
    {"device.vram=64MiB", "device.logical=32MiB", "allocator.growth=on"},
    {"device.logical=1GiB", "allocator.fraction=0.5", "device.card=rtx3070-8g"},
    {"allocator.kind=static", "device.vram=64MiB"},
    {"allocator.kind=async_driver", "device.vram=64MiB"},
    {"allocator.kind=async_driver", "device.vram=64MiB", "device.kind=cuda", "execution.cuda_graph=on"},
    {"allocator.kind=async", "allocator.growth=on", "device.vram=64MiB"},
    {"device.vram=64MiB", "allocator.kind=caching", "allocator.conf=max_split_size_mb:40",
     "allocator.max_split=50MiB"},
    {"device.vram=64MiB", "allocator.kind=caching", "allocator.max_split=16MiB"},
    {"device.vram=64MiB", "allocator.kind=caching", "allocator.max_split=40MiB",
     "allocator.max_non_split_rounding=16MiB"},
    {"device.vram=64MiB", "allocator.kind=caching", "allocator.max_non_split_rounding=40MiB"},
    {"device.vram=64MiB", "allocator.kind=caching", "allocator.gc_threshold=0.8"},
    {"device.card=rtx3070-8g", "allocator.kind=caching", "allocator.fraction=0.5",
     "allocator.gc_threshold=0.8", "allocator.expandable_segments=on"},
    {"device.vram=64MiB", "allocator.kind=caching", "allocator.expandable_segments=on",
     "allocator.large_segment=21MiB"},
    {"device.vram=64MiB", "allocator.kind=caching", "allocator.conf=per_process_memory_fraction:0.5"},
    {"device.kind=cuda"},
    {"device.vram=64MiB", "train.save_every=10"},
    {"device.vram=64MiB", "checkpoint.strategy=every"},
    {"device.vram=64MiB", "offload.activations=on", "execution.tape=none"},
    {"device.vram=64MiB", "allocator.kind=static", "execution.mode=graph", "execution.retain=losses"},
    {"device.vram=64MiB", "pipeline.source=cifar10"},
    {"device.vram=64MiB", "pipeline.stages=map"},
    {"device.vram=64MiB", "pipeline.stages=map,batch", "pipeline.cache=ram"},
    {"device.vram=64MiB", "pipeline.augment=flip,flip"},
    {"device.vram=64MiB", "pipeline.augment=flip", "pipeline.array=float64"},
    {"device.vram=64MiB", "pipeline.augment_copies=2"},
    {"device.vram=64MiB", "pipeline.augment=flip", "pipeline.augment_copies=2", "pipeline.cache=ram",
     "pipeline.stages=map,cache,batch"},
    {"device.vram=64MiB", "pipeline.stages=map,batch", "pipeline.interleave=2"},
    {"device.vram=64MiB", "pipeline.filter=0,1"},
    {"device.vram=64MiB", "pipeline.autotune=headroom", "pipeline.map_threads=2", "pipeline.prefetch=1"},
    {"device.vram=64MiB", "pipeline.resident=on", "pipeline.device_prefetch=1"},
    {"device.vram=64MiB", "execution.mode=graph", "execution.tape=persistent"},
    {"device.vram=64MiB", "execution.mode=graph", "execution.retain=variables"},
    {"device.vram=64MiB", "batch.accumulate=2", "execution.tape=none"},
    {"device.vram=64MiB", "batch.accumulate=2", "batch.remainder=keep"},
    {"device.vram=64MiB", "batch.accumulate=2", "optimizer.fused_backward=on"},
    {"device.vram=64MiB", "precision.policy=mixed_float16", "optimizer.fused_backward=on"},
    {"device.vram=64MiB", "execution.tape=none", "optimizer.fused_backward=on"},
    {"device.vram=64MiB", "optimizer.clip_norm=1", "optimizer.fused_backward=on"},
    {"device.vram=64MiB", "optimizer.schedule=cosine"},
    {"device.vram=64MiB", "execution.as=pytorch", "execution.mode=graph"},
    {"device.vram=64MiB", "execution.as=pytorch", "precision.policy=bfloat16"},
    {"device.vram=64MiB", "execution.as=pytorch", "checkpoint.strategy=selective"},
    {"device.vram=64MiB", "execution.as=pytorch", "compress.quantize=int4_weights"},
    {"device.vram=64MiB", "execution.as=pytorch", "offload.activations=on"},
    {"device.vram=64MiB", "execution.as=pytorch", "offload.optimizer=on"},
    {"device.vram=64MiB", "execution.as=pytorch", "optimizer.fused_backward=on"},
    {"device.vram=64MiB", "execution.as=pytorch", "optimizer.ema=0.9"},
    {"device.vram=64MiB", "execution.as=pytorch", "optimizer.kind=lion"},
    {"device.vram=64MiB", "execution.as=tensorflow", "execution.mode=graph"},
    {"device.vram=64MiB", "execution.as=tensorflow", "precision.policy=mixed_bfloat16"},
    {"device.vram=64MiB", "execution.as=tensorflow", "checkpoint.strategy=sqrt"},
    {"device.vram=64MiB", "execution.as=tensorflow", "batch.accumulate=2"},
    {"device.vram=64MiB", "execution.as=tensorflow", "offload.activations=on"},
    {"device.vram=64MiB", "execution.as=tensorflow", "offload.optimizer=on"},
    {"device.vram=64MiB", "execution.as=tensorflow", "optimizer.fused_backward=on"},
    {"device.vram=64MiB", "execution.as=tensorflow", "optimizer.ema=0.9"},
    {"device.vram=64MiB", "execution.as=tensorflow", "optimizer.clip_norm=1"},
    {"device.vram=64MiB", "execution.as=tensorflow", "optimizer.kind=adam8bit"},
    {"device.vram=64MiB", "optimizer.implementation=fused", "optimizer.kind=rmsprop"},
    {"device.vram=64MiB", "compress.lora=4", "compress.lora_targets=nose"},
    {"device.vram=64MiB", "compress.lora=4", "compress.lora_base=nf4", "compress.quantize=int8"},
    {"device.vram=64MiB", "compress.low_rank=ratio:1"},
    {"device.vram=64MiB", "compress.lora=4", "compress.low_rank=4"},
    {"device.vram=64MiB", "compress.lora=4", "execution.as=pytorch"},
    {"device.vram=64MiB", "compress.distill="},
    {"device.vram=64MiB", "compress.distill=self", "execution.as=pytorch"},
    {"device.vram=64MiB", "compress.distill=self", "compress.distill_cache=on", "pipeline.augment=flip"},
    {"device.vram=64MiB", "compress.distill=self", "compress.distill_cache=on", "precision.policy=bfloat16"},
    {"device.vram=64MiB", "compress.lora=4", "compress.prune=constant:0.5"},
};

// err's sentence is the reason, and every value that it gives is the knob's own.
static void check_reason(const hr_constraint *row)
{
    const char *said = err.sentence;
    char general[HR_ERR_TEXT_MAX], key[64], value[HR_KNOB_TEXT_MAX];
    for (const char *at = row->reason; *at != '\0';) {
        if (*at != '{') {
            ck_assert_msg(*at++ == *said++, "%s\n%s", err.sentence, row->reason);
            continue;
        }
        ck_assert_int_eq(sscanf(at, "{%63[a-z0-9_.]}", key), 1);
        const hr_knob_row *knob = hr_knob_find(key, NULL);
        ck_assert_ptr_nonnull(knob);
        const char *had = hr_knob_format(&knobs, knob->id, value);
        had = had[0] == '\0' ? "nothing" : had;
        ck_assert_msg(strncmp(said, had, strlen(had)) == 0, "%s: %s", err.sentence, had);
        said += strlen(had);
        at += strlen(key) + 2;
    }
    ck_assert_str_eq(said, "");
    hr_constraint_say(row, NULL, general, sizeof general);
    ck_assert_ptr_null(strpbrk(general, "{}"));
    ck_assert_ptr_null(strstr(row->reason, "had another"));
}

START_TEST(a_reason_ends_where_its_room_does)
{
    const hr_constraint row = {.reason = "needed batch.size=1, had {batch.size} and {train.save}"};
    static const char whole[] = "needed batch.size=1, had 128 and nothing";
    char text[sizeof whole + 1];
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "batch.size=128", &err), HR_OK);
    for (size_t size = 1; size <= sizeof text; size++) {
        memset(text, 'x', sizeof text);
        hr_constraint_say(&row, &knobs, text, size);
        ck_assert_uint_eq(strlen(text), size <= sizeof whole - 1 ? size - 1 : sizeof whole - 1);
        ck_assert(strncmp(text, whole, strlen(text)) == 0);
        ck_assert(size == sizeof text || text[size] == 'x');
    }
}
END_TEST

START_TEST(every_constraint_can_be_broken_and_its_advice_mends_it)
{
    size_t count;
    const hr_constraint *rows = hr_constraints(&count);
    ck_assert_uint_eq(count, sizeof breakers / sizeof *breakers);
    for (size_t k = 0; k < BREAKERS_MAX && breakers[_i][k] != NULL; k++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, breakers[_i][k], &err), HR_OK);
    }
    ck_assert(rows[_i].broken(&knobs));
    ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_CONSTRAINT);
    check_reason(&rows[_i]);
    ck_assert_str_eq(err.hint, rows[_i].hint);
    ck_assert(strncmp(err.hint, "-s ", 3) == 0);
    const char *key = row_of((int)rows[_i].turn)->key;
    ck_assert_msg(strncmp(err.hint + 3, key, strlen(key)) == 0, "%s turns another knob than %s", err.hint,
                  key);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, err.hint + 3, &err), HR_OK);
    ck_assert(!rows[_i].broken(&knobs));
    ck_assert_msg(hr_knobs_validate(&knobs, &err) == HR_OK, "%s", err.sentence);
}
END_TEST

// What helps is of the schedule that was meant, and the sentence says its form.
START_TEST(a_schedule_that_is_none_is_told_its_form)
{
    static const struct {
        const char *had, *form, *mends;
    } cases[] = {
        {"constant", "needs constant:S,", "constant:0.5"},
        {"constant:half", "needs constant:S,", "constant:0.5"},
        {"constant:0.5:0:9:1:7", "needs constant:S,", "constant:0.5"},
        {"constant:1.5", "S of constant:S from 0 to below 1", "constant:0.5"},
        {"constant:0.5:9:3", "needed constant:S:BEGIN:END", "constant:0.5:0:-1"},
        {"polynomial", "needs polynomial:S0:S1:BEGIN:END,", "polynomial:0.5:0.8:0:1000"},
        {"polynomial:0.5", "needs polynomial:S0:S1:BEGIN:END,", "polynomial:0.5:0.8:0:1000"},
        {"polynomial:0.5:0.8", "needs polynomial:S0:S1:BEGIN:END,", "polynomial:0.5:0.8:0:1000"},
        {"polynomial:0.5:0.8:0:9:1:3:2", "needs polynomial:S0:S1:BEGIN:END,", "polynomial:0.5:0.8:0:1000"},
        {"polynomial:0.5:0.8:0:-1", "needed polynomial:S0:S1:BEGIN:END", "polynomial:0.5:0.8:0:1000"},
        {"0.5", "is none, constant:S or polynomial:S0:S1:BEGIN:END,", "constant:0.5"},
    };
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=64MiB", &err), HR_OK);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char hint[128];
        (void)snprintf(hint, sizeof hint, "-s compress.prune=%s", cases[k].mends);
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_COMPRESS_PRUNE, cases[k].had, &err), HR_OK);
        ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_CONSTRAINT);
        ck_assert_msg(strstr(err.sentence, cases[k].form) != NULL, "%s: %s", cases[k].had, err.sentence);
        ck_assert_str_eq(err.hint, hint);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("knobs");
    TCase *tc = tcase_create("table, values, constraints");
    int breaker_count = (int)(sizeof breakers / sizeof *breakers),
        pair_count = (int)(sizeof pairs / sizeof *pairs);
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, switches_take_booleans_and_print_on_or_off);
    tcase_add_test(tc, what_is_suggested_for_a_key_can_be_set);
    tcase_add_test(tc, what_a_knob_needs_is_what_its_sentence_says);
    tcase_add_loop_test(tc, every_row_is_whole, 0, HR_KNOB_COUNT);
    tcase_add_loop_test(tc, every_default_is_a_legal_value, 0, HR_KNOB_COUNT);
    tcase_add_loop_test(tc, what_is_printed_reads_back, 0, HR_KNOB_COUNT);
    tcase_add_test(tc, a_key_is_found_and_a_near_one_suggested);
    tcase_add_loop_test(tc, values_are_strict_and_errors_say_what_is_allowed, 0, pair_count);
    tcase_add_test(tc, what_a_refusal_advises_is_accepted);
    tcase_add_test(tc, a_text_that_is_too_long_is_refused);
    tcase_add_test(tc, values_come_back_typed);
    tcase_add_test(tc, the_device_holds_a_batch_ahead_where_nobody_said);
    tcase_add_test(tc, the_string_and_the_knobs_mean_the_same);
    tcase_add_test(tc, a_fraction_may_stand_in_the_string);
    tcase_add_test(tc, a_reason_ends_where_its_room_does);
    tcase_add_test(tc, a_schedule_that_is_none_is_told_its_form);
    tcase_add_loop_test(tc, every_constraint_can_be_broken_and_its_advice_mends_it, 0, breaker_count);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
