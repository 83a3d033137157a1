// SPDX-License-Identifier: Apache-2.0
// The heap at an out-of-memory: the one that was refused, whether a dry run found it or a step, a plan or a run; and
// what a framework would have said of it.
#include <inttypes.h>
#include <math.h>

#include "headroom/replay.h"

#include "insight/replay.h"
#include "unit/small_engine.h"

// What the snapshot holds is what the verdict says.
static const hr_heap *heap_that_ran_out(hr_engine *e)
{
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_OOM, "%s", hr_engine_error(e)->sentence);
    const hr_heap *heap = hr_engine_failure_heap(e);
    hr_report r = report_of(e);
    ck_assert_ptr_nonnull(heap);
    heap_snapshot recount = heap->snapshot;
    heap_snapshot_count(&recount);
    ck_assert_uint_eq(recount.counters.in_use_bytes, r.oom.in_use_bytes);
    ck_assert_uint_eq(recount.counters.pool_bytes, r.oom.pool_bytes);
    ck_assert_uint_eq(heap->snapshot.counters.limit_bytes, r.oom.limit_bytes);
    ck_assert_uint_eq(hr_heap_refused_bytes(heap), r.oom.requested_bytes);
    hr_report_deinit(&r);
    return heap;
}

static char *written(const hr_heap *heap, const char *style)
{
    char *words = NULL;
    size_t size = 0;
    hr_err err;
    FILE *out = open_memstream(&words, &size);
    ck_assert_ptr_nonnull(out);
    ck_assert_msg(hr_heap_write(heap, style, out, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_eq(fclose(out), 0);
    return words;
}

static hr_engine *refused_by_a_dry_run(const char *vram, bool plan_only)
{
    hr_engine_options options = {.plan_only = plan_only, .keeps_failure_heap = true};
    hr_engine *e = create((const char *[]){vram, "batch.size=64", NULL}, &options);
    run_steps(e, 1);
    return e;
}

START_TEST(a_dry_run_that_does_not_fit_shows_its_heap)
{
    hr_engine *plan = refused_by_a_dry_run("device.vram=1MiB", true);
    hr_engine *run = refused_by_a_dry_run("device.vram=1MiB", false);
    const hr_heap *of_plan = heap_that_ran_out(plan), *of_run = heap_that_ran_out(run);
    ck_assert_uint_gt(of_plan->snapshot.chunks.count, 5);
    ck_assert_uint_eq(of_plan->snapshot.chunks.count, of_run->snapshot.chunks.count);
    ck_assert_int_eq(memcmp(of_plan->snapshot.chunks.data, of_run->snapshot.chunks.data,
                            of_plan->snapshot.chunks.count * sizeof(heap_chunk)),
                     0); // numbers both times, before anything is taken for real
    hr_engine_destroy(plan);
    hr_engine_destroy(run);
}
END_TEST

START_TEST(a_request_has_its_operation_and_its_shape)
{
    hr_engine *e = refused_by_a_dry_run("device.vram=1MiB", true);
    const hr_heap *heap = heap_that_ran_out(e);
    hr_report r = report_of(e);
    char *words = written(heap, "tensorflow");
    char name[160];
    ck_assert_ptr_nonnull(heap->facts.op);
    ck_assert_ptr_nonnull(heap->facts.shape);
    (void)snprintf(name, sizeof name, ")requested by op %s\n", heap->facts.op);
    ck_assert_ptr_nonnull(strstr(words, "Allocator (GPU_0_bfc) ran out of memory trying to allocate "));
    ck_assert_ptr_nonnull(strstr(words, name));
    (void)snprintf(name, sizeof name, "OOM when allocating tensor with shape[%s] and type %s on ",
                   heap->facts.shape, heap->facts.type);
    ck_assert_ptr_nonnull(strstr(words, name));
    uint64_t elements = 1; // of the shape that was written
    for (const char *at = heap->facts.shape; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        elements *= strtoull(at, NULL, 10);
    }
    ck_assert_uint_eq(elements * (strcmp(heap->facts.type, "uint8") == 0 ? 1 : 4), r.oom.requested_bytes);
    free(words);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

// A leak runs out in a later step: the heap is the run's own.
START_TEST(a_step_that_runs_out_shows_its_heap)
{
    hr_engine *whole = create((const char *[]){NULL}, &(hr_engine_options){.plan_only = true});
    run_steps(whole, 2);
    hr_report r = report_of(whole);
    char vram[64];
    (void)snprintf(vram, sizeof vram, "device.vram=%" PRIu64 "B", r.memory.peak_in_use_bytes + 65536);
    hr_report_deinit(&r);
    hr_engine_destroy(whole);
    for (int k = 0; k < 2; k++) {
        hr_engine_options options = {.plan_only = k == 1, .keeps_failure_heap = true};
        hr_engine *e = create((const char *[]){"execution.retain=predictions", vram, NULL}, &options);
        run_steps(e, 400);
        const hr_heap *heap = heap_that_ran_out(e);
        ck_assert_uint_gt(hr_engine_steps(e), 10);
        ck_assert_uint_gt(heap->snapshot.chunks.count, hr_engine_steps(e)); // one a step at least
        char *words = written(heap, "pytorch");
        ck_assert_int_eq(strncmp(words, "CUDA out of memory. Tried to allocate ", 38), 0);
        free(words);
        hr_engine_destroy(e);
    }
}
END_TEST

START_TEST(a_block_that_was_planned_has_no_shape)
{
    hr_engine_options options = {.plan_only = true, .keeps_failure_heap = true};
    hr_engine *e = create((const char *[]){"device.vram=256KiB", "execution.mode=graph",
                                           "allocator.kind=static", "batch.size=64", NULL},
                          &options);
    run_steps(e, 1);
    const hr_heap *heap = heap_that_ran_out(e);
    ck_assert_ptr_null(heap->facts.shape);
    ck_assert_uint_eq(heap->snapshot.chunks.count, 0);
    char *words = written(heap, "tensorflow");
    ck_assert_ptr_nonnull(strstr(words, "<allocator contains no memory>"));
    free(words);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(the_card_is_what_pytorch_is_told_of)
{
    hr_engine_options options = {.plan_only = true, .keeps_failure_heap = true};
    hr_preset_search_beside(".");
    hr_engine *e = create((const char *[]){"device.vram=1MiB", "device.card=rtx3070-8g", "device.kind=plan",
                                           "batch.size=64", NULL},
                          &options);
    run_steps(e, 1);
    char *words = written(heap_that_ran_out(e), "pytorch");
    ck_assert_ptr_nonnull(strstr(words, "GPU 0 has a total capacity of 8.00 GiB of which "));
    free(words);
    hr_engine_destroy(e);
}
END_TEST

// A fraction is told of, whoever asked for it: the knob or PyTorch's own configuration.
START_TEST(a_share_of_the_card_is_what_is_allowed)
{
    static const char *const settings[] = {"allocator.fraction=0.0001",
                                           "allocator.conf=per_process_memory_fraction:0.0001"};
    hr_engine_options options = {.plan_only = true, .keeps_failure_heap = true};
    hr_preset_search_beside(".");
    hr_engine *e = create((const char *[]){"device.kind=plan", "device.card=rtx3070-8g", "device.vram=none",
                                           "allocator.kind=caching", "batch.size=64", settings[_i], NULL},
                          &options);
    run_steps(e, 1);
    char *words = written(heap_that_ran_out(e), "pytorch");
    ck_assert_msg(strstr(words, " is free. 838.86 KiB allowed; Of the allocated memory ") != NULL, "%s",
                  words);
    free(words);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(there_is_no_heap_where_none_ran_out_or_none_is_kept)
{
    hr_engine_options keeps = {.plan_only = true, .keeps_failure_heap = true}, plain = {.plan_only = true};
    hr_engine *e = create((const char *[]){"device.vram=1MiB", "batch.size=64", NULL}, &plain);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
    ck_assert_ptr_null(hr_engine_failure_heap(e));
    hr_engine_destroy(e);
    e = create((const char *[]){NULL}, &keeps);
    run_steps(e, 1);
    ck_assert_ptr_null(hr_engine_failure_heap(e));
    hr_engine_destroy(e);
    e = refused_by_a_dry_run("device.vram=1MiB", true);
    hr_command turn = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = HR_KNOB_DEVICE_VRAM};
    (void)strcpy(turn.text, "64MiB");
    ck_assert_int_eq(hr_engine_command(e, &turn, NULL), HR_OK);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_IDLE);
    ck_assert_ptr_null(hr_engine_failure_heap(e)); // it fits now
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("failure heap");
    TCase *cases = tcase_create("failure heap");
    tcase_add_checked_fixture(cases, open_preset, close_preset);
    tcase_add_test(cases, a_dry_run_that_does_not_fit_shows_its_heap);
    tcase_add_test(cases, a_request_has_its_operation_and_its_shape);
    tcase_add_test(cases, a_step_that_runs_out_shows_its_heap);
    tcase_add_test(cases, a_block_that_was_planned_has_no_shape);
    tcase_add_test(cases, the_card_is_what_pytorch_is_told_of);
    tcase_add_loop_test(cases, a_share_of_the_card_is_what_is_allowed, 0, 2);
    tcase_add_test(cases, there_is_no_heap_where_none_ran_out_or_none_is_kept);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
