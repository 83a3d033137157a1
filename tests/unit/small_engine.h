// SPDX-License-Identifier: Apache-2.0
// A small network on the reference device, in a folder of its own, for tests of the engine: include it once.
#ifndef TESTS_SMALL_ENGINE_H
#define TESTS_SMALL_ENGINE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/engine.h"

#ifndef SMALL_ENGINE_LAYERS
#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: separable_conv2d, filters: 4, kernel: 3, stride: 2, activation: relu}\n"                   \
    "    - {kind: max_pool, size: 3}\n"                                                                      \
    "    - {kind: batch_norm, activation: relu}\n"                                                           \
    "    - {kind: flatten}\n"                                                                                \
    "    - {kind: dense, units: 10}\n"
#endif

#ifndef SMALL_ENGINE_LABELS
#define SMALL_ENGINE_LABELS "  classes: 10\n"
#endif

static const char preset_text[] =
    "device: {kind: reference, vram: 8MiB}\n"
    "batch: {size: 8}\n"
    "pipeline: {shuffle: 64}\n"
    "model:\n"
    "  name: small\n"
    "  input: {shape: [32, 32, 3]}\n" SMALL_ENGINE_LABELS "  loss: softmax_cross_entropy\n"
    "  layers:\n" SMALL_ENGINE_LAYERS;

static char folder[] = "/tmp/headroom-engine-XXXXXX";
static hr_preset *preset;

static inline void open_preset(void)
{
    char path[128];
    hr_err err = {0};
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/small.yaml", folder);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(preset_text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
}

static inline void close_preset(void)
{
    char command[160];
    hr_preset_close(preset);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static inline const char *file_in(const char *name, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

// Writes `train` and `held_out` images in CIFAR-10's binary form, so that an epoch is short. Returns the pair that
// reads them.
static inline const char *write_images(int train, int held_out, char pair[160])
{
    static const char *const names[] = {"data_batch_1.bin", "test_batch.bin"};
    const int counts[] = {train, held_out};
    for (int k = 0; k < 2; k++) {
        char path[128];
        FILE *f = fopen(file_in(names[k], path), "wb");
        ck_assert_ptr_nonnull(f);
        for (int n = 0; n < counts[k]; n++) {
            unsigned char record[3073] = {(unsigned char)(n % 10)};
            for (int i = 1; i < 3073; i++) {
                record[i] = (unsigned char)(n * 31 + i * 7);
            }
            ck_assert_uint_eq(fwrite(record, 1, sizeof record, f), sizeof record);
        }
        ck_assert_int_eq(fclose(f), 0);
    }
    (void)snprintf(pair, 160, "pipeline.path=%s", folder);
    return pair;
}

static inline hr_engine *create(const char *const *pairs, const hr_engine_options *options)
{
    hr_err err = {0};
    hr_engine *e = NULL;
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_msg(hr_engine_create(preset, &knobs, options, &e, &err) == HR_OK, "%s", err.sentence);
    return e;
}

static inline void run_steps(hr_engine *e, uint64_t count)
{
    bool idle = false;
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = count};
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    while (!idle) {
        hr_engine_advance(e, &idle);
    }
}

static inline hr_status turn(hr_engine *e, hr_knob_id id, const char *value)
{
    hr_command knob = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = id};
    (void)snprintf(knob.text, sizeof knob.text, "%s", value);
    return hr_engine_command(e, &knob, NULL);
}

static inline hr_report report_of(hr_engine *e)
{
    hr_err err = {0};
    hr_report r;
    ck_assert_msg(hr_engine_report(e, &r, &err) == HR_OK, "%s", err.sentence);
    return r;
}

static inline void weights_of(hr_engine *e, char sha[HR_SHA256_TEXT_MAX])
{
    hr_report r = report_of(e);
    memcpy(sha, r.train.weights_sha256, HR_SHA256_TEXT_MAX);
    ck_assert_uint_eq(strlen(sha), 64);
    hr_report_deinit(&r);
}

#endif
