// SPDX-License-Identifier: Apache-2.0
// What is named after an out-of-memory fits: judged by the planner, by the engine that goes on with it, and by what
// it promises to leave as it was.
#include <inttypes.h>
#include <math.h>

#include "headroom/fit.h"

#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: conv2d, filters: 8, kernel: 3, activation: relu}\n"                                        \
    "    - {kind: conv2d, filters: 8, kernel: 3, stride: 2, activation: relu}\n"                             \
    "    - {kind: conv2d, filters: 8, kernel: 3, activation: relu}\n"                                        \
    "    - {kind: flatten}\n"                                                                                \
    "    - {kind: dense, units: 10}\n"
#include "train/remedy_proof.h"
#include "unit/small_engine.h"

// Applies every pair of a fix to `knobs`; in keys[] what it turns.
static size_t apply(const hr_report_fix *fix, hr_knobs *knobs, char keys[][64])
{
    char pairs[sizeof fix->knobs];
    char *rest = NULL;
    hr_err err = {0};
    size_t count = 0;
    (void)strcpy(pairs, fix->knobs);
    for (char *pair = strtok_r(pairs, " ", &rest); pair != NULL; pair = strtok_r(NULL, " ", &rest)) {
        ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s: %s", pair, err.sentence);
        (void)snprintf(keys[count++], 64, "%.*s", (int)strcspn(pair, "="), pair);
    }
    ck_assert_uint_ge(count, 1);
    ck_assert_msg(hr_knobs_validate(knobs, &err) == HR_OK, "%s: %s", fix->knobs, err.sentence);
    return count;
}

static int64_t effective(const hr_knobs *knobs)
{
    return hr_knob_int(knobs, HR_KNOB_BATCH_SIZE) * hr_knob_int(knobs, HR_KNOB_BATCH_ACCUMULATE);
}

// The options of the first fix, and all fixes in the error.
static void same_words(const hr_engine *e, const hr_report_oom *oom)
{
    char options[256] = "";
    for (const char *c = oom->fixes[0].knobs; *c != '\0'; c++) {
        bool begins = c == oom->fixes[0].knobs || c[-1] == ' ';
        size_t length = strlen(options);
        (void)snprintf(options + length, sizeof options - length, "%s%c", begins ? "-s " : "", *c);
    }
    ck_assert_str_eq(oom->hint, options);
    ck_assert_int_eq(strncmp(hr_engine_error(e)->hint, options, strlen(options)), 0);
    for (uint32_t k = 1; k < oom->fix_count; k++) {
        char pair[sizeof oom->fixes[k].knobs];
        (void)snprintf(pair, sizeof pair, "%.*s", (int)strcspn(oom->fixes[k].knobs, " "),
                       oom->fixes[k].knobs);
        ck_assert_ptr_nonnull(strstr(hr_engine_error(e)->hint, ", or -s "));
        ck_assert_ptr_nonnull(strstr(hr_engine_error(e)->hint, pair));
    }
}

static hr_whatif planned(const hr_knobs *knobs)
{
    hr_planner *planner = NULL;
    hr_whatif w;
    hr_err err = {0};
    ck_assert_int_eq(hr_planner_open(preset, &planner, NULL), HR_OK);
    ck_assert_msg(hr_planner_plan(planner, knobs, &w, &err) == HR_OK, "%s", err.sentence);
    hr_planner_close(planner);
    return w;
}

// What costs least of what is learned comes first, of that what is fastest; and says it.
static void judge_order(const hr_engine *e, const hr_report_oom *oom)
{
    hr_turn_cost before = HR_TURN_COST_NOTHING;
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        char keys[4][64], words[HR_TURN_WORDS_MAX];
        hr_knobs knobs = *hr_engine_knobs(e);
        (void)apply(&oom->fixes[k], &knobs, keys);
        const hr_turn_cost cost = hr_turn_cost_of(hr_engine_knobs(e), &knobs, false);
        (void)hr_turn_words(cost, (double)NAN, (double)NAN, words);
        ck_assert_msg(strncmp(oom->fixes[k].cost, words, strlen(words)) == 0, "%s: %s", oom->fixes[k].knobs,
                      oom->fixes[k].cost);
        ck_assert_msg(cost >= before, "%s stands behind what costs more", oom->fixes[k].knobs);
        ck_assert(k == 0 || cost > before || isnan(oom->fixes[k].seconds) ||
                  oom->fixes[k].seconds >= oom->fixes[k - 1].seconds);
        before = cost;
    }
}

START_TEST(a_turn_says_what_it_costs)
{
    static const struct {
        const char *pairs, *same, *normalised;
    } rows[] = {
        {"", "same numbers", "same numbers"},
        {"allocator.kind=caching", "same numbers", "same numbers"},
        {"checkpoint.strategy=sqrt execution.mode=graph", "same numbers", "same numbers"},
        {"workspace.limit=0B", "other last digits", "other last digits"},
        {"batch.size=4 batch.accumulate=2", "other last digits",
         "batch split: batch norm sees fewer samples"},
        {"batch.size=4 batch.accumulate=2 precision.policy=mixed_bfloat16", "lower precision",
         "lower precision"},
        {"optimizer.kind=lion precision.policy=mixed_bfloat16", "another optimizer", "another optimizer"},
        {"batch.size=4 optimizer.kind=lion", "fewer samples an update", "fewer samples an update"},
        {"batch.size=9", "another model or training", "another model or training"},
        {"train.seed=5", "another model or training", "another model or training"},
        {"batch.size=4 device.vram=9GiB", "another limit or card", "another limit or card"},
        {"execution.tape=none", "another model or training", "another model or training"},
        {"pipeline.cache=ram pipeline.augment=flip", "another model or training",
         "another model or training"},
        {"execution.fuse=off precision.policy=float64 pipeline.transfer=float64", "lower precision",
         "lower precision"},
    };
    hr_engine_options options = {.plan_only = true};
    hr_engine *e = create((const char *[]){"batch.size=8", NULL}, &options);
    char words[HR_TURN_WORDS_MAX];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hr_knobs turned = *hr_engine_knobs(e);
        hr_err err = {0};
        ck_assert_msg(hr_knobs_set_pairs(&turned, rows[k].pairs, &err) == HR_OK, "%s", err.sentence);
        ck_assert_str_eq(hr_turn_words(hr_turn_cost_of(hr_engine_knobs(e), &turned, false), 1, 1, words),
                         rows[k].same);
        (void)hr_turn_words(hr_turn_cost_of(hr_engine_knobs(e), &turned, true), 1, 1.08, words);
        ck_assert_msg(strncmp(words, rows[k].normalised, strlen(rows[k].normalised)) == 0 &&
                          strcmp(words + strlen(rows[k].normalised), ", +8 % step time") == 0,
                      "%s", words);
    }
    hr_engine_destroy(e);
}
END_TEST

// Every knob is judged by its explanation: what says "same" promises the weights bit for bit.
static const struct {
    const char *pair, *cost;
} turns[] = {
    {"device.kind=cpu", "limit"},
    {"device.card=rtx3070-8g", "limit"},
    {"device.vram=9GiB", "limit"},
    {"device.logical=1GiB", "limit"},
    {"allocator.kind=async", "same"},
    {"allocator.growth=on", "same"},
    {"allocator.fraction=0.5", "limit"},
    {"allocator.garbage_collection=off", "same"},
    {"allocator.release_threshold=1MiB", "same"},
    {"allocator.max_split=32MiB", "same"},
    {"allocator.max_non_split_rounding=32MiB", "same"},
    {"allocator.large_segment=40MiB", "same"},
    {"allocator.gc_threshold=0.5", "same"},
    {"allocator.expandable_segments=on", "same"},
    {"allocator.roundup=4", "same"},
    {"allocator.conf=backend:native", "limit"},
    {"allocator.version=2.12", "same"},
    {"batch.size=4", "samples"},
    {"batch.accumulate=2", "model"},
    {"batch.remainder=keep", "model"},
    {"precision.policy=mixed_bfloat16", "precision"},
    {"precision.loss_scale=8", "precision"},
    {"precision.loss_scale_floor=one", "precision"},
    {"precision.tf32=on", "precision"},
    {"precision.health=on", "same"},
    {"checkpoint.strategy=sqrt", "same"},
    {"offload.activations=on", "same"},
    {"offload.optimizer=on", "same"},
    {"offload.prefetch=2", "same"},
    {"execution.as=pytorch", "model"},
    {"execution.answer=dropped", "same"},
    {"execution.memory_format=channels_last", "same"},
    {"execution.cudnn_tf32=off", "same"},
    {"execution.mode=graph", "same"},
    {"execution.fuse=off", "same"},
    {"execution.inplace=off", "same"},
    {"execution.deterministic=on", "model"},
    {"execution.cuda_graph=on", "same"},
    {"execution.tape=persistent", "same"},
    {"execution.retain=losses", "same"},
    {"optimizer.kind=lion", "optimizer"},
    {"optimizer.learning_rate=0.5", "model"},
    {"optimizer.momentum=0.5", "model"},
    {"optimizer.form=torch", "model"},
    {"optimizer.implementation=loop", "same"},
    {"optimizer.beta1=0.5", "model"},
    {"optimizer.beta2=0.5", "model"},
    {"optimizer.epsilon=0.5", "model"},
    {"optimizer.fused_backward=on", "same"},
    {"optimizer.weight_decay=0.5", "model"},
    {"optimizer.clip_norm=0.5", "model"},
    {"optimizer.ema=0.5", "model"},
    {"optimizer.schedule=cosine", "model"},
    {"optimizer.schedule_updates=7", "model"},
    {"optimizer.schedule_factor=0.5", "model"},
    {"optimizer.warmup=5", "model"},
    {"workspace.limit=0B", "digits"},
    {"workspace.search=on", "digits"},
    {"threads.count=3", "digits"},
    {"pipeline.source=generated", "model"},
    {"pipeline.path=a", "model"},
    {"pipeline.resize=nearest", "model"},
    {"pipeline.bad=skip", "model"},
    {"pipeline.filter=label:0", "model"},
    {"pipeline.samples=100", "model"},
    {"pipeline.array=uint8", "same"},
    {"pipeline.mode=eager_stack", "same"},
    {"pipeline.stages=map,batch", "model"},
    {"pipeline.interleave=2", "order"},
    {"pipeline.interleave_block=4", "order"},
    {"pipeline.augment=flip", "model"},
    {"pipeline.augment_copies=1", "model"},
    {"pipeline.cache=ram", "same"},
    {"pipeline.cache_path=/tmp", "same"},
    {"pipeline.shuffle=9", "order"},
    {"pipeline.shuffle_of=elements", "same"},
    {"pipeline.map_threads=2", "same"},
    {"pipeline.normalise=device", "same"},
    {"pipeline.transfer=float64", "same"},
    {"pipeline.prefetch=4", "same"},
    {"pipeline.autotune=headroom", "same"},
    {"pipeline.pinned=off", "same"},
    {"pipeline.device_prefetch=2", "same"},
    {"pipeline.resident=on", "model"},
    {"pipeline.ram_limit=1GiB", "limit"},
    {"compress.prune=constant:0.5", "model"},
    {"compress.prune_structure=2:4", "model"},
    {"compress.lora=4", "model"},
    {"compress.lora_alpha=8", "model"},
    {"compress.lora_targets=a", "model"},
    {"compress.lora_base=nf4", "model"},
    {"compress.low_rank=ratio:0.5", "model"},
    {"compress.distill=self", "model"},
    {"compress.distill_alpha=0.25", "model"},
    {"compress.distill_temperature=2", "model"},
    {"compress.distill_weights=a", "model"},
    {"compress.distill_cache=on", "same"},
    {"compress.quantize=int8", "model"},
    {"model.sequence=8", "model"},
    {"model.resolution=8", "model"},
    {"model.width=8", "model"},
    {"model.depth=8", "model"},
    {"train.steps=9", "model"},
    {"train.seed=5", "model"},
    {"train.save=a", "same"},
    {"train.save_every=5", "same"},
    {"train.resume=a", "model"},
};

START_TEST(every_knob_says_what_a_turn_of_it_costs)
{
    hr_engine_options options = {.plan_only = true};
    hr_engine *e = create((const char *[]){"batch.size=8", NULL}, &options);
    bool judged[HR_KNOB_COUNT] = {false};
    for (size_t k = 0; k < sizeof turns / sizeof *turns; k++) {
        hr_knobs turned = *hr_engine_knobs(e);
        hr_err err = {0};
        ck_assert_msg(hr_knobs_set_pair(&turned, turns[k].pair, &err) == HR_OK, "%s", err.sentence);
        const char *cost = hr_turn_cost_name(hr_turn_cost_of(hr_engine_knobs(e), &turned, false));
        ck_assert_msg(strcmp(cost, turns[k].cost) == 0, "%s costs %s", turns[k].pair, cost);
        for (int id = 0; id < HR_KNOB_COUNT; id++) {
            const char *key = hr_knob_rows(NULL)[id].key;
            const size_t length = strlen(key);
            judged[id] =
                judged[id] || (strncmp(turns[k].pair, key, length) == 0 && turns[k].pair[length] == '=');
        }
    }
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        ck_assert_msg(judged[id], "%s is not judged", hr_knob_rows(NULL)[id].key);
    }
    hr_engine_destroy(e);
}
END_TEST

static void judge(const hr_engine *e, const hr_report_oom *oom)
{
    judge_order(e, oom);
    char keys[HR_FIXES_MAX][4][64];
    size_t counts[HR_FIXES_MAX];
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        hr_knobs knobs = *hr_engine_knobs(e);
        const int64_t before = effective(&knobs);
        counts[k] = apply(&oom->fixes[k], &knobs, keys[k]);
        hr_whatif w = planned(&knobs);
        ck_assert_msg(w.fits, "%s does not fit", oom->fixes[k].knobs);
        ck_assert_uint_eq(w.peak_in_use_bytes, oom->fixes[k].peak_bytes);
        ck_assert(w.step_seconds == oom->fixes[k].seconds ||
                  (isnan(w.step_seconds) && isnan(oom->fixes[k].seconds)));
        ck_assert_msg(effective(&knobs) == before || (k == 0 && oom->fix_count <= 2), "%s",
                      oom->fixes[k].knobs);
        for (uint32_t j = 0; j < k; j++) {
            for (size_t n = 0; n < counts[k] * counts[j]; n++) {
                ck_assert_str_ne(keys[k][n / counts[j]], keys[j][n % counts[j]]);
            }
        }
    }
}

// Limits from hardly too little down to nothing at all, on three devices' minds.
START_TEST(what_is_named_fits_as_it_says_and_no_two_turn_the_same_knob)
{
    static const char *const bases[][3] = {
        {"device.kind=reference", "optimizer.kind=adam", "batch.size=8"},
        {"device.kind=plan", "execution.mode=graph", "batch.size=30"},
        {"device.kind=reference", "allocator.growth=on", "batch.size=17"},
        {"device.kind=plan", "execution.tape=persistent", "optimizer.clip_norm=1"},
        {"device.kind=reference", "batch.accumulate=3", "execution.mode=graph"},
    };
    const char *const *base = bases[_i];
    hr_engine_options options = {.plan_only = true};
    hr_engine *e = create((const char *[]){base[0], base[1], base[2], "device.vram=1GiB", NULL}, &options);
    run_steps(e, 2);
    hr_report r = report_of(e);
    const uint64_t peak = r.memory.peak_in_use_bytes;
    unsigned named = 0;
    hr_report_deinit(&r);
    hr_engine_destroy(e);
    for (uint64_t percent = 95; percent > 0; percent = percent > 30 ? percent - 13 : percent / 2) {
        char vram[64];
        (void)snprintf(vram, sizeof vram, "device.vram=%" PRIu64 "B", peak / 100 * percent);
        e = create((const char *[]){base[0], base[1], base[2], vram, NULL}, &options);
        run_steps(e, 1);
        r = report_of(e);
        if (hr_engine_get_state(e) == HR_ENGINE_IDLE) { // a pool that grows may do with less
            ck_assert_str_eq(base[1], "allocator.growth=on");
            hr_report_deinit(&r);
            hr_engine_destroy(e);
            continue;
        }
        ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
        ck_assert_uint_ge(r.oom.fix_count, 1); // a larger card always helps
        ck_assert_uint_le(r.oom.fix_count, HR_FIXES_MAX);
        named += r.oom.fix_count;
        same_words(e, &r.oom);
        judge(e, &r.oom);
        hr_report_deinit(&r);
        hr_engine_destroy(e);
    }
    ck_assert_uint_ge(named, 8);
}
END_TEST

// Where the device's memory is the host's, nothing is gained by moving it there; a card that is named is another's.
START_TEST(offloading_is_advised_where_it_leaves_the_device)
{
    static const struct {
        const char *pairs;
        bool helps;
    } rows[] = {{"device.kind=reference", false},
                {"device.kind=cpu", false},
                {"device.kind=cpu device.card=rtx3060-8g", true},
                {"device.kind=plan", true}};
    const hr_engine_options options = {.plan_only = true};
    hr_preset *demo = NULL;
    unsigned named = 0;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open("demo", false, &demo, NULL, &err) == HR_OK, "%s", err.sentence);
    for (uint64_t mib = 36; mib <= 40; mib++) {
        hr_engine *e = NULL;
        char vram[64];
        hr_knobs knobs = *hr_preset_knobs(demo);
        (void)snprintf(vram, sizeof vram, "device.vram=%" PRIu64 "MiB execution.mode=graph", mib);
        ck_assert_int_eq(hr_knobs_set_pairs(&knobs, rows[_i].pairs, &err), HR_OK);
        ck_assert_int_eq(hr_knobs_set_pairs(&knobs, vram, &err), HR_OK);
        ck_assert(hr_turn_helps(&knobs, HR_KNOB_OFFLOAD_ACTIVATIONS) == rows[_i].helps);
        ck_assert_msg(hr_engine_create(demo, &knobs, &options, &e, &err) == HR_OK, "%s", err.sentence);
        run_steps(e, 1);
        hr_report r = report_of(e);
        for (uint32_t k = 0; k < r.oom.fix_count; k++) {
            named += strstr(r.oom.fixes[k].knobs, "offload.") != NULL;
        }
        hr_report_deinit(&r);
        hr_engine_destroy(e);
    }
    hr_preset_close(demo);
    ck_assert_msg((named > 0) == rows[_i].helps, "named %u times", named);
}
END_TEST

START_TEST(a_card_that_was_divided_too_small_is_put_together_again)
{
    hr_engine_options options = {.plan_only = true};
    hr_engine *e = create((const char *[]){"device.vram=1GiB", "device.logical=300KiB,2MiB", NULL}, &options);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
    hr_report r = report_of(e);
    ck_assert_uint_eq(r.oom.limit_bytes, 300 << 10);
    ck_assert_uint_ge(r.oom.fix_count, 1);
    ck_assert_str_eq(r.oom.fixes[r.oom.fix_count - 1].knobs, "device.logical=none");
    same_words(e, &r.oom);
    judge(e, &r.oom);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

// Where checkpoints fit, no more is computed again than the limit asks for; the time says so.
START_TEST(recomputation_is_named_under_the_limit_as_a_budget)
{
    static const char *const pairs[] = {"device.kind=plan", "device.card=rtx3090-24g", "device.vram=4MiB",
                                        "execution.mode=graph"};
    hr_preset *gpt = NULL;
    hr_engine *e = NULL;
    ck_assert_int_eq(hr_preset_open("gpt2_124m_tiny", false, &gpt, NULL, NULL), HR_OK);
    hr_knobs knobs = *hr_preset_knobs(gpt);
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, pairs[k], NULL), HR_OK);
    }
    hr_engine_options options = {.plan_only = true};
    ck_assert_int_eq(hr_engine_create(gpt, &knobs, &options, &e, NULL), HR_OK);
    run_steps(e, 1);
    hr_report r = report_of(e);
    ck_assert_uint_ge(r.oom.fix_count, 1);
    ck_assert_str_eq(r.oom.fixes[0].knobs, "checkpoint.strategy=budget:4MiB");
    same_words(e, &r.oom);
    hr_planner *planner = NULL;
    hr_whatif budget, blocks;
    ck_assert_int_eq(hr_planner_open(gpt, &planner, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, r.oom.fixes[0].knobs, NULL), HR_OK);
    ck_assert_int_eq(hr_planner_plan(planner, &knobs, &budget, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "checkpoint.strategy=blocks", NULL), HR_OK);
    ck_assert_int_eq(hr_planner_plan(planner, &knobs, &blocks, NULL), HR_OK);
    ck_assert(budget.fits && budget.step_seconds < blocks.step_seconds);
    hr_planner_close(planner);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
    hr_preset_close(gpt);
}
END_TEST

// A fix that keeps the batch together keeps the weights, bit for bit; one that takes it apart keeps the update.
START_TEST(training_goes_on_with_what_was_named)
{
    hr_engine *whole = create((const char *[]){NULL}, NULL);
    run_steps(whole, 3);
    char wanted[HR_SHA256_TEXT_MAX];
    weights_of(whole, wanted);
    hr_report r = report_of(whole);
    char vram[64];
    (void)snprintf(vram, sizeof vram, "device.vram=%" PRIu64 "B", r.memory.peak_in_use_bytes / 100 * 95);
    hr_report_deinit(&r);
    hr_engine_destroy(whole);
    hr_engine *e = create((const char *[]){vram, NULL}, NULL);
    run_steps(e, 3);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
    r = report_of(e);
    ck_assert_uint_ge(r.oom.fix_count, 2);
    unsigned kept = 0;
    for (uint32_t k = 0; k < r.oom.fix_count; k++) {
        char keys[4][64];
        hr_knobs knobs = *hr_engine_knobs(e);
        (void)apply(&r.oom.fixes[k], &knobs, keys);
        hr_engine *fixed = NULL;
        ck_assert_int_eq(hr_engine_create(preset, &knobs, NULL, &fixed, NULL), HR_OK);
        run_steps(fixed, 3);
        ck_assert_msg(hr_engine_get_state(fixed) == HR_ENGINE_IDLE, "%s", r.oom.fixes[k].knobs);
        hr_report ran = report_of(fixed);
        ck_assert_uint_eq(ran.memory.peak_in_use_bytes, r.oom.fixes[k].peak_bytes);
        ck_assert_uint_eq(ran.train.updates, 3);
        if (strncmp(keys[0], "batch.", 6) != 0 && strncmp(keys[0], "precision.", 10) != 0) {
            ck_assert_str_eq(ran.train.weights_sha256, wanted);
            kept++;
        }
        hr_report_deinit(&ran);
        hr_engine_destroy(fixed);
    }
    ck_assert_uint_ge(kept, 1);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_budget_that_no_way_keeps_is_charged_for_its_ways)
{
    hr_report_fix fix;
    hr_engine *e = create((const char *[]){NULL}, NULL);
    remedy_proof p = remedy_proof_of(e, NULL);
    hr_knobs knobs = e->knobs;
    const int64_t before = p.ways_left;
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "checkpoint.strategy=budget:1KiB", NULL), HR_OK);
    ck_assert(!remedy_fits(&p, &knobs, &fix));
    ck_assert_int_lt(p.ways_left, before);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("remedy");
    TCase *cases = tcase_create("remedy");
    tcase_add_checked_fixture(cases, open_preset, close_preset);
    tcase_add_loop_test(cases, what_is_named_fits_as_it_says_and_no_two_turn_the_same_knob, 0, 5);
    tcase_add_test(cases, a_turn_says_what_it_costs);
    tcase_add_test(cases, every_knob_says_what_a_turn_of_it_costs);
    tcase_add_loop_test(cases, offloading_is_advised_where_it_leaves_the_device, 0, 4);
    tcase_add_test(cases, recomputation_is_named_under_the_limit_as_a_budget);
    tcase_add_test(cases, a_card_that_was_divided_too_small_is_put_together_again);
    tcase_add_test(cases, training_goes_on_with_what_was_named);
    tcase_add_test(cases, a_budget_that_no_way_keeps_is_charged_for_its_ways);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
