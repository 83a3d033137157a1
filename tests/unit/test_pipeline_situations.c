// SPDX-License-Identifier: Apache-2.0
// What the situations of the input pipeline (presets/articles) say happens when a knob is turned: the difference in host memory, in
// what a step copies to the device, and in the device's peak, to the byte.
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "headroom/engine.h"
#include "headroom/preset.h"

// One image of 224 x 224 x 3 float32 with its label, and the same as a batch of 32 lies on the card.
#define IMAGE_BYTES 602112
#define BATCH_BYTES (32 * (IMAGE_BYTES + 4))
#define ON_CARD     (32 * IMAGE_BYTES + 256)
#define ARRAY_BYTES (50000 * 12288)
#define CACHE_ENTRY 5
// Float32 samples as a cache keeps them, and the scratch in which one is packed for it.
#define CACHE_BYTES (50000 * (12288 + 8 + CACHE_ENTRY) + 12352)

static const struct claim {
    const char *preset, *turn;
    int64_t host_bytes, h2d_bytes, peak_bytes; // more than without the turn
    bool lacks_host;                           // without the turn
} claims[] = {
    {"000_decode_and_stack", "pipeline.samples=2000", INT64_C(1000) * (2 * IMAGE_BYTES + 4 + 8), 0, 0, false},
    {"000_decode_in_a_pipeline", "pipeline.samples=2000", 0, 0, 0, false},
    {"000_from_tensor_slices", "pipeline.stages=map,batch,prefetch", -(ARRAY_BYTES + 50000 * CACHE_ENTRY), 0,
     0, false},
    {"000_parallel_map", "pipeline.map_threads=1", -15 * 401472, 0, 0, false},
    {"001_prefetched_batches", "pipeline.prefetch=2", INT64_C(-14) * BATCH_BYTES, 0, 0, false},
    {"002_dataset_on_the_host", "pipeline.cache=none", -CACHE_BYTES, 0, 0, false},
    {"003_cache_behind_the_array", "pipeline.cache=none", -CACHE_BYTES, 0, 0, false},
    {"003_prefetch_to_device", "pipeline.device_prefetch=1", 0, 0, -3 * ON_CARD, false},
    {"003_shuffle_of_float64", "pipeline.shuffle_of=indices", -(1000 * (24576 + 20 + 4) + 16 * 4), 0, 0,
     false},
    {"001_augmented_copies", "pipeline.augment_copies=0", INT64_C(-2) * 50000 * (3072 + CACHE_ENTRY), 0, 0,
     false},
    {"001_autotune", "pipeline.autotune=headroom", -(64 - 8) * 128 * (12288 + 4), 0, 0, false},
    // Bytes travel: three batches of training and one of evaluation, and the card holds them beside the floats.
    {"001_normalised_on_the_host", "pipeline.normalise=device",
     INT64_C(-4) * 32 * (IMAGE_BYTES - IMAGE_BYTES / 4), -32 * (IMAGE_BYTES - IMAGE_BYTES / 4),
     32 * IMAGE_BYTES / 4, false},
    // Array and slices, and the scratch in which a sample of float64 is fetched and read.
    {"002_host_out_of_memory", "pipeline.array=uint8", INT64_C(-2) * 7 * 50000 * 3072 - 36864, 0, 0, true},
    // The host: four batches, and the scratch in which a sample of either chain is widened. The card: its chunk was not split.
    {"003_float64_to_the_card", "pipeline.transfer=float32", INT64_C(-4) * 16 * 12288 - 2 * 12288,
     -16 * 12288, 0, false},
};
enum { CLAIMS = sizeof claims / sizeof *claims };

static hr_whatif answer_of(const hr_planner *planner, const hr_knobs *knobs)
{
    hr_whatif answer;
    hr_err err = {0};
    ck_assert_msg(hr_planner_plan(planner, knobs, &answer, &err) == HR_OK, "%s", err.sentence);
    return answer;
}

START_TEST(a_turn_does_what_the_situation_says)
{
    const struct claim *c = &claims[_i];
    char path[128];
    hr_preset *preset = NULL;
    hr_planner *planner = NULL;
    hr_err err = {0};
    (void)snprintf(path, sizeof path, "presets/articles/%s.yaml", c->preset);
    ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(hr_planner_open(preset, &planner, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    const hr_whatif before = answer_of(planner, &knobs);
    ck_assert_int_eq(hr_whatif_lacks_host(&before), c->lacks_host);
    ck_assert_msg(hr_knobs_set_pair(&knobs, c->turn, &err) == HR_OK, "%s", err.sentence);
    const hr_whatif after = answer_of(planner, &knobs);
    ck_assert(after.fits);
    ck_assert_int_eq((int64_t)(after.host_bytes - before.host_bytes), c->host_bytes);
    ck_assert_int_eq((int64_t)(after.h2d_bytes - before.h2d_bytes), c->h2d_bytes);
    ck_assert_int_eq((int64_t)(after.peak_in_use_bytes - before.peak_in_use_bytes), c->peak_bytes);
    hr_planner_close(planner);
    hr_preset_close(preset);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("pipeline situations");
    TCase *cases = tcase_create("pipeline situations");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, a_turn_does_what_the_situation_says, 0, CLAIMS);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
