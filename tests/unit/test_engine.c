// SPDX-License-Identifier: Apache-2.0
// What the engine promises: the plan is the run, a knob takes effect between two steps and keeps the weights, what
// does not fit changes nothing, a save resumes bit-identically, broken saves and foreign files are refused.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/engine.h"
#include "headroom/weight_stats.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "unit/small_engine.h"

static void assert_same_memory(const hr_report_memory *a, const hr_report_memory *b)
{
    ck_assert_uint_eq(a->limit_bytes, b->limit_bytes);
    ck_assert_uint_eq(a->peak_pool_bytes, b->peak_pool_bytes);
    ck_assert_uint_eq(a->peak_in_use_bytes, b->peak_in_use_bytes);
    ck_assert_uint_eq(a->peak_requested_bytes, b->peak_requested_bytes);
    ck_assert_uint_eq(a->waste_bytes, b->waste_bytes);
    ck_assert_uint_eq(a->largest_free_bytes, b->largest_free_bytes);
    ck_assert_uint_eq(a->heap_hash, b->heap_hash);
    ck_assert_double_eq(a->fragmentation, b->fragmentation);
    ck_assert_uint_eq(a->at_peak.instruction, b->at_peak.instruction);
    ck_assert_uint_eq(a->at_peak.tensor_count, b->at_peak.tensor_count);
    ck_assert_mem_eq(a->at_peak.by_category, b->at_peak.by_category, sizeof a->at_peak.by_category);
}

START_TEST(the_plan_is_the_run)
{
    static const char *const modes[] = {"execution.mode=eager", "execution.mode=graph"};
    static const char *const growths[] = {"allocator.growth=off", "allocator.growth=on"};
    static const char *const optimizers[] = {"optimizer.kind=sgd", "optimizer.kind=momentum",
                                             "optimizer.kind=adam"};
    const char *pairs[] = {modes[_i % 2], growths[_i / 2 % 2], optimizers[_i / 4], NULL};
    hr_engine *plan = create(pairs, &(hr_engine_options){.plan_only = true});
    hr_engine *run = create(pairs, NULL);
    run_steps(plan, 3);
    run_steps(run, 3);
    hr_report planned = report_of(plan);
    hr_report ran = report_of(run);
    assert_same_memory(&planned.memory, &ran.memory);
    ck_assert_uint_eq(ran.train.steps, 3);
    ck_assert(isfinite(ran.train.loss_last));
    hr_report_deinit(&planned);
    hr_report_deinit(&ran);
    hr_engine_destroy(plan);
    hr_engine_destroy(run);
}
END_TEST

// Evaluations and partial batches between the steps leave no trace in what is said about the steps.
START_TEST(the_plan_is_the_run_over_epochs)
{
    static const char *const modes[] = {"execution.mode=eager", "execution.mode=graph"};
    static const char *const growths[] = {"allocator.growth=off", "allocator.growth=on"};
    char data[160];
    const char *pairs[] = {modes[_i % 2], growths[_i / 2], write_images(27, 44, data), "batch.remainder=keep",
                           NULL};
    hr_engine *plan = create(pairs, &(hr_engine_options){.plan_only = true});
    hr_engine *run = create(pairs, NULL);
    run_steps(plan, 9);
    run_steps(run, 9); // 4 to an epoch
    hr_report planned = report_of(plan);
    hr_report ran = report_of(run);
    ck_assert(isfinite(ran.train.eval_accuracy));
    assert_same_memory(&planned.memory, &ran.memory);
    hr_report_deinit(&planned);
    hr_report_deinit(&ran);
    hr_engine_destroy(plan);
    hr_engine_destroy(run);
}
END_TEST

START_TEST(one_seed_gives_the_same_weights_and_another_others)
{
    char a[HR_SHA256_TEXT_MAX];
    char b[HR_SHA256_TEXT_MAX];
    for (int k = 0; k < 2; k++) {
        hr_engine *first = create((const char *[]){"train.seed=7", NULL}, NULL);
        hr_engine *second = create((const char *[]){k == 0 ? "train.seed=7" : "train.seed=8", NULL}, NULL);
        run_steps(first, 4);
        run_steps(second, 4);
        weights_of(first, a);
        weights_of(second, b);
        ck_assert_int_eq(strcmp(a, b) == 0, k == 0);
        hr_engine_destroy(first);
        hr_engine_destroy(second);
    }
}
END_TEST

START_TEST(a_rebuild_keeps_weights_and_slots)
{
    char whole[HR_SHA256_TEXT_MAX];
    char turned[HR_SHA256_TEXT_MAX];
    hr_engine *e = create((const char *[]){NULL}, NULL);
    run_steps(e, 6);
    weights_of(e, whole);
    hr_engine_destroy(e);
    e = create((const char *[]){NULL}, NULL);
    run_steps(e, 3);
    ck_assert_int_eq(turn(e, HR_KNOB_EXECUTION_MODE, "graph"), HR_OK);
    ck_assert_int_eq(turn(e, HR_KNOB_ALLOCATOR_GROWTH, "on"), HR_OK);
    run_steps(e, 3);
    weights_of(e, turned);
    ck_assert_str_eq(whole, turned);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(after_a_rebuild_the_plan_is_the_run_again)
{
    hr_engine *e = create((const char *[]){NULL}, NULL);
    hr_engine *plan = create((const char *[]){"batch.size=5", "optimizer.kind=sgd", NULL},
                             &(hr_engine_options){.plan_only = true});
    run_steps(e, 2);
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "5"), HR_OK);
    ck_assert_int_eq(turn(e, HR_KNOB_OPTIMIZER_KIND, "sgd"), HR_OK);
    run_steps(e, 3);
    run_steps(plan, 3);
    hr_report planned = report_of(plan);
    hr_report ran = report_of(e);
    assert_same_memory(&planned.memory, &ran.memory);
    hr_report_deinit(&planned);
    hr_report_deinit(&ran);
    hr_engine_destroy(plan);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(what_does_not_fit_changes_nothing_and_training_goes_on)
{
    char before[HR_SHA256_TEXT_MAX];
    char after[HR_SHA256_TEXT_MAX];
    hr_engine *e = create((const char *[]){NULL}, NULL);
    run_steps(e, 3);
    weights_of(e, before);
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "4096"), HR_OK);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
    ck_assert_uint_eq(hr_engine_steps(e), 3);
    hr_report r = report_of(e);
    ck_assert_int_eq(r.oom.cause, HR_OOM_CAPACITY);
    ck_assert_uint_gt(r.oom.requested_bytes, r.oom.free_bytes);
    ck_assert_ptr_nonnull(strstr(r.oom.sentence, "capacity"));
    ck_assert_int_eq(strncmp(r.oom.hint, "-s batch.size=", 14), 0); // what fits: see test_remedy.c
    ck_assert_ptr_nonnull(strstr(r.oom.hint, " -s batch.accumulate="));
    hr_report_deinit(&r);
    weights_of(e, after);
    ck_assert_str_eq(before, after);
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "4"), HR_OK);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_RUNNING);
    run_steps(e, 2);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_IDLE);
    ck_assert_uint_eq(hr_engine_steps(e), 5);
    hr_engine_destroy(e);
}
END_TEST

// With `keep` the last batch of the epoch depends on where the batch size was changed.
START_TEST(a_static_block_that_does_not_fit_says_the_peak_and_the_block)
{
    hr_whatif w;
    hr_planner *planner = NULL;
    const char *const pairs[] = {"execution.mode=graph", "allocator.kind=static", NULL};
    hr_engine *e = create(pairs, NULL);
    run_steps(e, 1);
    hr_report fits = report_of(e);
    uint64_t block = fits.memory.peak_pool_bytes;
    ck_assert_uint_lt(block, fits.memory.limit_bytes);
    char vram[32];
    (void)snprintf(vram, sizeof vram, "%lluB", (unsigned long long)(block - 256));
    ck_assert_int_eq(hr_planner_open(preset, &planner, NULL), HR_OK);
    ck_assert_int_eq(hr_planner_turn(planner, hr_engine_knobs(e), HR_KNOB_DEVICE_VRAM, vram, &w, NULL),
                     HR_OK);
    ck_assert(!w.fits);
    ck_assert_uint_eq(w.missing_bytes, 256);
    hr_planner_close(planner);
    ck_assert_int_eq(turn(e, HR_KNOB_DEVICE_VRAM, vram), HR_OK);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
    hr_report r = report_of(e);
    ck_assert_uint_eq(r.oom.requested_bytes, block);
    ck_assert_str_eq(r.oom.tensor, "the whole step");
    ck_assert_ptr_nonnull(strstr(r.oom.sentence, "laid out in one block"));
    hr_report_deinit(&r);
    hr_report_deinit(&fits);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_batch_size_changed_within_an_epoch_trains_every_sample)
{
    static const char *const sizes[] = {"17", "20", "9"};
    char data[160];
    hr_engine *e = create((const char *[]){write_images(200, 13, data), "batch.remainder=keep", NULL}, NULL);
    for (int k = 0; k < 3; k++) {
        run_steps(e, 4);
        ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, sizes[k]), HR_OK);
    }
    run_steps(e, 40);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_report r = report_of(e);
    ck_assert(isfinite(r.train.eval_accuracy));
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_refused_knob_changes_nothing)
{
    hr_engine *e = create((const char *[]){NULL}, NULL);
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "none"), HR_KNOB);
    ck_assert_int_eq(turn(e, HR_KNOB_COUNT, "1"), HR_KNOB);
    ck_assert_int_ne(turn(e, HR_KNOB_DEVICE_CARD, "no-such-card"), HR_OK);
    ck_assert_str_eq(hr_knob_text(hr_engine_knobs(e), HR_KNOB_DEVICE_CARD), "");
    ck_assert_int_eq(hr_knob_int(hr_engine_knobs(e), HR_KNOB_BATCH_SIZE), 8);
    hr_engine_destroy(e);
}
END_TEST

// Saves after `_i` steps, resumes in another engine, and compares with a run that was never interrupted.
START_TEST(a_save_resumes_bit_identically)
{
    char path[128];
    char save[160];
    char resume[160];
    char whole[HR_SHA256_TEXT_MAX];
    char resumed[HR_SHA256_TEXT_MAX];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("a.safetensors", path));
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    hr_engine *e = create((const char *[]){NULL}, NULL);
    run_steps(e, 9);
    weights_of(e, whole);
    hr_engine_destroy(e);
    e = create((const char *[]){save, NULL}, NULL);
    run_steps(e, (uint64_t)_i);
    hr_engine_destroy(e);
    e = create((const char *[]){resume, "train.steps=9", NULL}, NULL);
    run_steps(e, 0);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    ck_assert_uint_eq(hr_engine_steps(e), 9);
    weights_of(e, resumed);
    ck_assert_str_eq(whole, resumed);
    hr_engine_destroy(e);
}
END_TEST

static void assert_resume_refused(const char *path, const char *part)
{
    char resume[160];
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    hr_engine *e = create((const char *[]){resume, NULL}, NULL);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_msg(strstr(hr_engine_error(e)->sentence, part) != NULL, "'%s' lacks '%s'",
                  hr_engine_error(e)->sentence, part);
    hr_engine_destroy(e);
}

static void write_bytes(const char *path, const char *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(broken_saves_are_refused_with_a_sentence)
{
    char path[128];
    char broken[128];
    char save[160];
    char *data = NULL;
    size_t bytes = 0;
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("b.safetensors", path));
    hr_engine *e = create((const char *[]){save, NULL}, NULL);
    run_steps(e, 1);
    hr_engine_destroy(e);
    ck_assert_int_eq(file_read(path, UINT64_MAX, &data, &bytes, NULL), HR_OK);
    (void)file_in("broken.safetensors", broken);
    for (size_t cut = 0; cut < bytes; cut += bytes / 23) {
        write_bytes(broken, data, cut);
        assert_resume_refused(broken, broken);
    }
    data[bytes - 1000] ^= 1;
    write_bytes(broken, data, bytes);
    assert_resume_refused(broken, "damaged");
    data[bytes - 1000] ^= 1;
    char *digit = memmem(data, bytes, "[3,3,1,3]", 9);
    ck_assert_ptr_nonnull(digit);
    digit[5] = '2';
    write_bytes(broken, data, bytes);
    assert_resume_refused(broken, "depthwise_weights");
    assert_resume_refused("/nowhere/at.all", "/nowhere/at.all");
    hr_free(data);
}
END_TEST

// The header says where training stood; it is no less part of a save than the tensors.
START_TEST(a_save_with_another_header_or_a_tail_is_refused)
{
    static const char *const counters[] = {"\"steps\":\"", "\"updates\":\"", "\"epoch\":\"",
                                           "\"epoch_samples\":\"", "\"model\":\""};
    char path[128], broken[128], save[160], *data = NULL;
    size_t bytes = 0;
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("c.safetensors", path));
    hr_engine *e = create((const char *[]){save, NULL}, NULL);
    run_steps(e, 3);
    hr_engine_destroy(e);
    ck_assert_int_eq(file_read(path, UINT64_MAX, &data, &bytes, NULL), HR_OK);
    (void)file_in("broken.safetensors", broken);
    for (size_t k = 0; k < sizeof counters / sizeof *counters; k++) {
        char *value = memmem(data, bytes, counters[k], strlen(counters[k]));
        ck_assert_ptr_nonnull(value);
        value[strlen(counters[k])] ^= 1;
        write_bytes(broken, data, bytes);
        assert_resume_refused(broken, "damaged");
        value[strlen(counters[k])] ^= 1;
    }
    FILE *f = fopen(path, "ab");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite("tail", 1, 4, f), 4);
    ck_assert_int_eq(fclose(f), 0);
    assert_resume_refused(path, "damaged");
    hr_free(data);
}
END_TEST

// A stranger's file of any size costs no more memory than a save of this model could.
START_TEST(a_huge_save_is_refused_before_it_is_read)
{
    char path[128];
    static const char header[] = "\x2d\0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"headroom.save/2\"}}";
    write_bytes(file_in("huge.safetensors", path), header, sizeof header - 1);
    ck_assert_int_eq(truncate(path, INT64_C(1) << 40), 0);
    assert_resume_refused(path, "at most");
    static const char long_header[8] = {0, 0, 0, 5, 0, 0, 0, 0};
    write_bytes(path, long_header, sizeof long_header);
    ck_assert_int_eq(truncate(path, 1 << 20), 0);
    assert_resume_refused(path, "needed a save of headroom, had something else or a part of one");
}
END_TEST

START_TEST(what_a_killed_run_left_of_its_save_goes_with_the_next_start)
{
    char path[128], left[128], save[160];
    write_bytes(file_in("k.safetensors.4194305-0.headroom.tmp", left), "half", 4);
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("k.safetensors", path));
    hr_engine *e = create((const char *[]){save, NULL}, NULL);
    ck_assert_int_ne(access(left, F_OK), 0);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_preset_that_is_taken_for_a_save_is_told_so)
{
    static const char words[] = "extends: demo\n";
    char path[128], resume[160], hint[256];
    write_bytes(file_in("base.yaml", path), words, sizeof words - 1);
    assert_resume_refused(path, "needed a save of headroom, had a preset");
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    (void)snprintf(hint, sizeof hint, "headroom run %s, or -s train.resume=FILE", path);
    hr_engine *e = create((const char *[]){resume, NULL}, NULL);
    run_steps(e, 1);
    ck_assert_ptr_nonnull(strstr(hr_engine_error(e)->hint, hint));
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_save_replaces_only_a_save)
{
    char path[128];
    char command_path[160];
    hr_err err = {0};
    write_bytes(file_in("notes.txt", path), "mine", 4);
    (void)snprintf(command_path, sizeof command_path, "%s", path);
    hr_engine *e = create((const char *[]){NULL}, NULL);
    run_steps(e, 1);
    hr_command save = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_SAVE};
    (void)snprintf(save.text, sizeof save.text, "%s", path);
    ck_assert_int_eq(hr_engine_command(e, &save, &err), HR_WRITE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "needed a save of headroom"));
    ck_assert_str_eq(err.hint, ":save ANOTHER.safetensors"); // which is what was typed
    (void)snprintf(save.text, sizeof save.text, "%s", file_in("pipe", path));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(hr_engine_command(e, &save, &err), HR_WRITE); // and does not wait for its other end
    (void)snprintf(save.text, sizeof save.text, "%s", folder);
    ck_assert_int_eq(hr_engine_command(e, &save, &err), HR_WRITE);
    hr_engine_destroy(e);
}
END_TEST

typedef struct counted {
    uint64_t kinds[HR_EVENT_COUNT];
    uint64_t next_seq;
    uint64_t live_bytes;
    uint64_t peak_bytes;
} counted;

static void count_event(void *context, const hr_event *event)
{
    counted *c = context;
    ck_assert_uint_eq(event->seq, c->next_seq++);
    ck_assert_uint_lt(event->kind, HR_EVENT_COUNT);
    c->kinds[event->kind]++;
    if (event->kind == HR_EVENT_BUILD) {
        c->live_bytes = c->peak_bytes = 0;
    }
    if (event->kind == HR_EVENT_ALLOC) {
        c->live_bytes += event->u.memory.allocated_bytes;
        ck_assert_uint_eq(c->live_bytes, event->u.memory.in_use_bytes);
    } else if (event->kind == HR_EVENT_FREE) {
        c->live_bytes -= event->u.memory.allocated_bytes;
        ck_assert_uint_eq(c->live_bytes, event->u.memory.in_use_bytes);
    }
    c->peak_bytes = c->live_bytes > c->peak_bytes ? c->live_bytes : c->peak_bytes;
}

START_TEST(the_event_stream_tells_the_whole_story)
{
    counted c = {0};
    hr_engine *e =
        create((const char *[]){NULL}, &(hr_engine_options){.sink = count_event, .sink_context = &c});
    run_steps(e, 5);
    hr_report r = report_of(e);
    ck_assert_uint_eq(c.kinds[HR_EVENT_STEP], 5);
    ck_assert_uint_eq(c.kinds[HR_EVENT_BUILD], 1);
    ck_assert_uint_eq(c.peak_bytes, r.memory.peak_in_use_bytes);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(what_if_touches_nothing_and_agrees_with_a_run)
{
    hr_whatif w;
    hr_err err = {0};
    hr_knobs knobs = *hr_preset_knobs(preset);
    hr_planner *planner = NULL;
    ck_assert_int_eq(hr_planner_open(preset, &planner, NULL), HR_OK);
    ck_assert_msg(hr_planner_turn(planner, &knobs, HR_KNOB_BATCH_SIZE, "16", &w, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert(w.fits);
    hr_engine *e = create((const char *[]){"batch.size=16", NULL}, NULL);
    run_steps(e, 2);
    hr_report r = report_of(e);
    ck_assert_uint_eq(w.peak_in_use_bytes, r.memory.peak_in_use_bytes);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
    ck_assert_int_eq(hr_planner_turn(planner, &knobs, HR_KNOB_BATCH_SIZE, "100000", &w, &err), HR_OK);
    ck_assert(!w.fits);
    ck_assert_uint_gt(w.missing_bytes, 0);
    uint64_t whole = w.peak_in_use_bytes; // of the whole step, not only up to the request that failed
    ck_assert_int_eq(hr_planner_turn(planner, &knobs, HR_KNOB_BATCH_SIZE, "50000", &w, &err), HR_OK);
    ck_assert_uint_lt(w.peak_in_use_bytes, whole * 51 / 100);
    ck_assert_uint_gt(w.peak_in_use_bytes, whole * 49 / 100);
    hr_planner_close(planner);
}
END_TEST

START_TEST(every_failing_allocation_leaves_a_state_that_goes_on)
{
    hr_err err = {0};
    for (uint64_t nth = 1; nth < 400; nth += 3) {
        hr_engine *e = NULL;
        hr_knobs knobs = *hr_preset_knobs(preset);
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, "pipeline.prefetch=0", &err), HR_OK);
        ck_assert_int_eq(hr_engine_create(preset, &knobs, NULL, &e, &err), HR_OK);
        (void)hr_host_mem_fail_at(nth);
        run_steps(e, 1);
        (void)hr_host_mem_fail_at(0);
        run_steps(e, 2);
        ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%llu: %s", (unsigned long long)nth,
                      hr_engine_error(e)->sentence);
        hr_engine_destroy(e);
    }
}
END_TEST

// ---- weights that are looked at and set -------------------------------------------------------------------------------

// Each request for host memory fails once: then nothing has changed.
START_TEST(a_weight_is_set_or_stays)
{
    static const double ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    hr_engine *e = create((const char *const[]){NULL}, NULL);
    char before[HR_SHA256_TEXT_MAX], now[HR_SHA256_TEXT_MAX];
    hr_weight_values values = {NULL, 0};
    hr_err err = {0};
    ck_assert_int_eq(hr_engine_set_weight(e, "dense/bias", ones, 10, &err), HR_STATE);
    run_steps(e, 2);
    weights_of(e, before);
    bool whole = false;
    for (uint64_t nth = 1; !whole; nth++) {
        const int64_t live = hr_host_mem_live();
        hr_host_mem_fail_at(nth);
        const hr_status status = hr_engine_set_weight(e, "dense/bias", ones, 10, &err);
        whole = hr_host_mem_fail_at(0) < nth;
        ck_assert_int_eq(status, whole ? HR_OK : HR_NOMEM);
        ck_assert_int_eq(hr_host_mem_live(), live);
        weights_of(e, now);
        ck_assert_int_eq(strcmp(now, before) == 0, !whole);
    }
    for (uint64_t nth = 1; values.count == 0; nth++) {
        hr_host_mem_fail_at(nth);
        const hr_status status = hr_engine_weight_values(e, "dense/bias", &values, &err);
        ck_assert_int_eq(status, hr_host_mem_fail_at(0) < nth ? HR_OK : HR_NOMEM);
        ck_assert(status == HR_OK || (values.values == NULL && values.count == 0));
    }
    ck_assert(values.count == 10 && values.values[3] == 1);
    hr_weight_values_deinit(&values);
    ck_assert_int_eq(hr_engine_set_weight(e, "dense/bias", ones, 9, &err), HR_STATE);
    ck_assert_str_eq(err.sentence, "dense/bias needed 10 numbers (10), had 9");
    hr_engine_destroy(e);
}
END_TEST

static void ask_short_of_memory(void *context)
{
    const hr_engine *e = *(hr_engine **)context;
    double norm = 0, whole = 0;
    hr_err err = {0};
    ck_assert_int_eq(hr_engine_gradient_norm(e, &whole, &err), HR_OK);
    for (uint64_t nth = 1, seen = nth; seen >= nth; nth++) {
        const int64_t live = hr_host_mem_live();
        hr_host_mem_fail_at(nth);
        const hr_status status = hr_engine_gradient_norm(e, &norm, &err);
        seen = hr_host_mem_fail_at(0);
        ck_assert_int_eq(status, seen < nth ? HR_OK : HR_NOMEM);
        ck_assert(seen < nth ? norm == whole : isnan(norm));
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}

START_TEST(a_norm_that_lacks_memory_is_none)
{
    hr_engine *e = NULL;
    double norm = 0;
    hr_err err = {0};
    const hr_engine_options options = {.before_update = ask_short_of_memory, .before_update_context = &e};
    e = create((const char *const[]){NULL}, &options);
    run_steps(e, 1);
    ck_assert_uint_eq(hr_engine_steps(e), 1);
    ck_assert_int_eq(hr_engine_gradient_norm(e, &norm, &err), HR_OK); // not within a step
    ck_assert(isnan(norm));
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine");
    TCase *cases = tcase_create("engine");
    tcase_add_checked_fixture(cases, open_preset, close_preset);
    tcase_add_loop_test(cases, the_plan_is_the_run, 0, 12);
    tcase_add_loop_test(cases, the_plan_is_the_run_over_epochs, 0, 4);
    tcase_add_test(cases, one_seed_gives_the_same_weights_and_another_others);
    tcase_add_test(cases, a_rebuild_keeps_weights_and_slots);
    tcase_add_test(cases, after_a_rebuild_the_plan_is_the_run_again);
    tcase_add_test(cases, what_does_not_fit_changes_nothing_and_training_goes_on);
    tcase_add_test(cases, a_static_block_that_does_not_fit_says_the_peak_and_the_block);
    tcase_add_test(cases, a_batch_size_changed_within_an_epoch_trains_every_sample);
    tcase_add_test(cases, a_refused_knob_changes_nothing);
    tcase_add_loop_test(cases, a_save_resumes_bit_identically, 1, 9);
    tcase_add_test(cases, broken_saves_are_refused_with_a_sentence);
    tcase_add_test(cases, a_save_with_another_header_or_a_tail_is_refused);
    tcase_add_test(cases, a_huge_save_is_refused_before_it_is_read);
    tcase_add_test(cases, what_a_killed_run_left_of_its_save_goes_with_the_next_start);
    tcase_add_test(cases, a_preset_that_is_taken_for_a_save_is_told_so);
    tcase_add_test(cases, a_save_replaces_only_a_save);
    tcase_add_test(cases, the_event_stream_tells_the_whole_story);
    tcase_add_test(cases, what_if_touches_nothing_and_agrees_with_a_run);
    tcase_add_test(cases, every_failing_allocation_leaves_a_state_that_goes_on);
    tcase_add_test(cases, a_weight_is_set_or_stays);
    tcase_add_test(cases, a_norm_that_lacks_memory_is_none);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
