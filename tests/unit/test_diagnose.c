// SPDX-License-Identifier: Apache-2.0
// Causes of an out-of-memory, told from snapshots of heaps and from what a step asks for: each cause once, with the
// numbers of its sentence.
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/preset.h"
#include "headroom/units.h"

#include "insight/diagnose.h"
#include "insight/diagnose_evidence.h"
#include "unit/small_engine.h"

typedef struct piece {
    int64_t mib; // negative: free
    const char *name;
    uint32_t stream;
} piece;

// One region of whole MiB, and a refusal. `waste_mib` of what is in use was not asked for.
static heap_snapshot snapshot_of(const piece *pieces, uint32_t count, uint64_t asked_mib, uint64_t waste_mib,
                                 uint64_t limit_mib, heap_region_kind kind)
{
    heap_snapshot p = {.source = "hand", .counters = {.limit_bytes = limit_mib * HR_MIB}};
    uint64_t at = HR_GIB, bytes = 0;
    for (uint32_t k = 0; k < count; k++) {
        bytes += (uint64_t)llabs(pieces[k].mib) * HR_MIB;
    }
    for (uint32_t k = 0; k < count; k++) {
        heap_chunk *c = vec_push(&p.chunks);
        ck_assert_ptr_nonnull(c);
        bool in_use = pieces[k].mib > 0;
        *c = (heap_chunk){.address = at,
                          .size_bytes = (uint64_t)llabs(pieces[k].mib) * HR_MIB,
                          .region_address = HR_GIB,
                          .region_bytes = bytes,
                          .allocation_id = in_use ? k + 1 : 0,
                          .stream = pieces[k].stream,
                          .region_kind = (uint8_t)kind,
                          .tensor = HR_NO_ID,
                          .in_use = in_use};
        if (in_use) {
            uint64_t waste_bytes =
                waste_mib * HR_MIB < c->size_bytes ? waste_mib * HR_MIB : c->size_bytes - 1;
            c->requested_bytes = c->size_bytes - waste_bytes;
            waste_mib -= waste_bytes / HR_MIB;
            c->tensor = intern_add(&p.names, pieces[k].name, strlen(pieces[k].name));
        }
        at += c->size_bytes;
    }
    heap_snapshot_count(&p);
    p.refusal = (heap_refusal){.any = true,
                               .requested_bytes = asked_mib * HR_MIB,
                               .rounded_bytes = asked_mib * HR_MIB,
                               .tensor = intern_add(&p.names, "late", 4)};
    return p;
}

static const struct {
    piece pieces[5];
    uint64_t asked, waste, limit;
    heap_region_kind kind;
    hr_oom_cause cause;
    const char *sentence;
} heaps[] = {
    {{{7, "a", 0}, {-3, "", 0}},
     4,
     0,
     10,
     HEAP_REGION_PLAIN,
     HR_OOM_CAPACITY,
     "capacity: late needs 4.00 MiB, and 3.00 MiB of 10.00 MiB are free"},
    {{{7, "a", 0}, {-3, "", 0}},
     4,
     2,
     10,
     HEAP_REGION_PLAIN,
     HR_OOM_ROUNDING,
     "rounding: late needs 4.00 MiB and would fit, but 2.00 MiB inside handed-out chunks are waste"},
    {{{-3, "", 0}, {1, "pin", 0}, {-3, "", 0}, {3, "big", 0}},
     5,
     0,
     10,
     HEAP_REGION_PLAIN,
     HR_OOM_FRAGMENTATION,
     "fragmentation: 6.00 MiB are free, but the largest piece is 3.00 MiB and late needs 5.00 MiB in one; "
     "pin, "
     "1.00 MiB, stands between 6.00 MiB"},
    {{{-3, "", 0}, {1, "pin", 0}, {-1, "", 0}, {2, "big", 0}, {-3, "", 0}},
     7,
     0,
     10,
     HEAP_REGION_PLAIN,
     HR_OOM_FRAGMENTATION,
     "fragmentation: 7.00 MiB are free, but the largest piece is 3.00 MiB and late needs 7.00 MiB in one; at "
     "least 2 "
     "tensors, 3.00 MiB, stand between 4.00 MiB, the largest big"},
    {{{-6, "", 2}, {1, "a", 2}, {-3, "", 0}},
     5,
     0,
     10,
     HEAP_REGION_LARGE,
     HR_OOM_OTHER_STREAM,
     "other_stream: late needs 5.00 MiB in one piece and has 3.00 MiB; a piece of 6.00 MiB that nothing uses "
     "belongs "
     "to stream 2 or waits for it"},
};

START_TEST(a_heap_tells_its_cause)
{
    uint32_t count = 0;
    hr_report_oom oom;
    while (count < 5 && heaps[_i].pieces[count].mib != 0) {
        count++;
    }
    heap_snapshot p = snapshot_of(heaps[_i].pieces, count, heaps[_i].asked, heaps[_i].waste, heaps[_i].limit,
                                  heaps[_i].kind);
    diagnose_record(&p, &(oom_evidence){0}, &oom);
    ck_assert_int_eq(oom.cause, heaps[_i].cause);
    ck_assert_str_eq(oom.sentence, heaps[_i].sentence);
    p.refusal.any = false;
    diagnose_record(&p, &(oom_evidence){0}, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_NONE);
    ck_assert_str_eq(oom.sentence, "");
    heap_snapshot_deinit(&p);
}
END_TEST

// Both are of the size of what is there; only one of them is the same thing once more.
START_TEST(a_copy_of_what_is_there_is_told_from_its_gradient)
{
    static const piece pieces[] = {{7, "fc/kernel", 0}, {-3, "", 0}};
    static const char *const asked[] = {"fc/kernel:initial", "fc/kernel:grad"};
    hr_report_oom oom;
    oom_evidence shown;
    heap_snapshot p = snapshot_of(pieces, 2, 7, 0, 10, HEAP_REGION_PLAIN);
    p.refusal.tensor = intern_add(&p.names, asked[_i], strlen(asked[_i]));
    ck_assert_int_eq(evidence_of(NULL, 0, 0, &p, &shown, NULL), HR_OK);
    diagnose_record(&p, &shown, &oom);
    ck_assert_msg(oom.cause == (_i == 0 ? HR_OOM_DOUBLE_COPY : HR_OOM_CAPACITY), "%s", oom.sentence);
    heap_snapshot_deinit(&p);
}
END_TEST

// ---- steps ----------------------------------------------------------------------------------------------------

static const struct {
    piece pieces[6];
    hr_oom_cause cause;
    const char *sentence; // begins so
} queues[] = {
    // Images and labels of the batch that is used wait for nobody.
    {{{4, "IteratorGetNext", 0}, {2, "IteratorGetNext", 0}, {1, "w", 0}, {-3, "", 0}}, HR_OOM_CAPACITY, ""},
    {{{4, "IteratorGetNext", 0}, {4, "IteratorGetNext", 0}, {-2, "", 0}},
     HR_OOM_PIPELINE,
     "pipeline: 1 batch waits on the device, 4.00 MiB, 4.00 MiB each for IteratorGetNext; without it late "},
    {{{3, "prefetch", 0},
      {3, "prefetch", 0},
      {3, "prefetch", 0},
      {1, "prefetch:label", 0},
      {1, "prefetch:label", 0},
      {-2, "", 0}},
     HR_OOM_PIPELINE,
     "pipeline: 2 batches wait on the device, 7.00 MiB, 3.00 MiB each for prefetch; without them late "},
};

START_TEST(the_batch_that_is_used_does_not_wait)
{
    uint32_t count = 0;
    int64_t bytes = 0;
    hr_report_oom oom;
    oom_evidence shown;
    for (; count < 6 && queues[_i].pieces[count].mib != 0; count++) {
        bytes += llabs(queues[_i].pieces[count].mib);
    }
    heap_snapshot p = snapshot_of(queues[_i].pieces, count, 4, 0, (uint64_t)bytes, HEAP_REGION_PLAIN);
    ck_assert_int_eq(evidence_of(NULL, 0, 0, &p, &shown, NULL), HR_OK);
    diagnose_record(&p, &shown, &oom);
    ck_assert_msg(oom.cause == queues[_i].cause, "%s", oom.sentence);
    ck_assert_msg(strncmp(oom.sentence, queues[_i].sentence, strlen(queues[_i].sentence)) == 0, "%s",
                  oom.sentence);
    heap_snapshot_deinit(&p);
}
END_TEST

START_TEST(everything_that_shows_it_has_a_line)
{
    const oom_part part = {.without.held_bytes = HR_MIB, .blocks = 2, .step_bytes = HR_MIB};
    const oom_evidence shown = {.leak = part, .queue = part, .twin = part, .steps = 4, .retries = 3};
    hr_report_oom oom = {.by_category[HR_CATEGORY_WEIGHTS] = HR_MIB};
    diagnose_lines(&shown, &(heap_room){.any = true}, &oom);
    diagnose_categories(&oom);
    ck_assert_uint_eq(oom.evidence_count, 8);
    ck_assert_str_eq(oom.evidence[7].line, "held: weights 1.00 MiB");
}
END_TEST

// Blocks by their size, and around the holes what would make them one.
START_TEST(a_heap_shows_who_holds_it_and_what_pins_its_holes)
{
    static const piece pieces[] = {{4, "low", 0}, {-16, "", 0}, {2, "pin", 0}, {-12, "", 0}, {9, "top", 0}};
    heap_snapshot p = snapshot_of(pieces, 5, 20, 0, 43, HEAP_REGION_PLAIN);
    hr_report_oom oom;
    diagnose_record(&p, &(oom_evidence){0}, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_FRAGMENTATION);
    ck_assert_uint_eq(oom.evidence_count, 5);
    ck_assert_str_eq(oom.evidence[2].line,
                     "the largest of 3 in use: top 9.00 MiB, low 4.00 MiB, pin 2.00 MiB");
    ck_assert_str_eq(
        oom.evidence[3].line,
        "16.00 MiB free between low (4.00 MiB) and pin (2.00 MiB); without the second 30.00 MiB");
    ck_assert_str_eq(oom.evidence[4].line,
                     "12.00 MiB free between pin (2.00 MiB) and top (9.00 MiB); without the first 30.00 MiB");
    heap_snapshot_deinit(&p);
}
END_TEST

static hr_report_oom refusal_of(uint64_t requested_mib, uint64_t free_mib, uint64_t largest_mib)
{
    hr_report_oom oom = {.tensor = "conv/out",
                         .requested_bytes = requested_mib * HR_MIB,
                         .free_bytes = free_mib * HR_MIB,
                         .largest_free_bytes = largest_mib * HR_MIB,
                         .limit_bytes = 64 * HR_MIB};
    oom.by_category[HR_CATEGORY_ACTIVATIONS] = 40 * HR_MIB;
    return oom;
}

START_TEST(a_step_that_asks_for_more_than_the_limit_is_capacity)
{
    hr_report_oom oom = refusal_of(5, 1, 1);
    heap_room room = {.any = false};
    diagnose_oom(&(step_needs){.asked_bytes = 70 * HR_MIB, .limit_bytes = 72 * HR_MIB}, &room, NULL, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_CAPACITY);
    ck_assert_str_eq(
        oom.sentence,
        "capacity: the step asks for 70.00 MiB at its peak, the limit is 64.00 MiB (72.00 MiB would hold "
        "it); when conv/out was asked for, activations held 40.00 MiB");
    diagnose_oom(&(step_needs){.asked_bytes = 70 * HR_MIB, .limit_bytes = 72 * HR_MIB + 1024}, &room, NULL,
                 &oom);
    ck_assert_ptr_nonnull(strstr(oom.sentence, " (73729KiB would hold it);"));
}
END_TEST

START_TEST(a_knob_that_sets_the_limit_is_named)
{
    hr_report_oom oom = refusal_of(5, 1, 1);
    const step_needs needs = {.asked_bytes = 70 * HR_MIB,
                              .limit_bytes = 72 * HR_MIB,
                              .limit_key = "device.vram",
                              .without_bytes = 6 * HR_GIB};
    diagnose_oom(&needs, &(heap_room){.any = false}, NULL, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_LIMIT);
    ck_assert_str_eq(oom.sentence,
                     "limit: the step asks for 70.00 MiB at its peak (72.00 MiB would hold it), "
                     "device.vram leaves 64.00 MiB; without it there would be 6.00 GiB");
}
END_TEST

START_TEST(a_step_that_would_fit_is_told_by_its_heap)
{
    hr_report_oom oom = refusal_of(5, 6, 3);
    heap_room room = {.any = true, .needed_bytes = 5 * HR_MIB, .free_bytes = 6 * HR_MIB};
    const step_needs needs = {.asked_bytes = 60 * HR_MIB, .waste_bytes = HR_MIB};
    room.window =
        (heap_window){.found = true, .count = 3, .bytes = 5 * HR_MIB, .used_bytes = HR_MIB, .used_chunks = 1};
    diagnose_oom(&needs, &room, "pool/out", &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_FRAGMENTATION);
    ck_assert_ptr_nonnull(strstr(oom.sentence, "; pool/out, 1.00 MiB, stands between 4.00 MiB"));
    room.elsewhere_bytes = 5 * HR_MIB;
    diagnose_oom(&needs, &room, NULL, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_OTHER_STREAM);
    room.elsewhere_bytes = 0;
    room.ungrown_bytes = 6 * HR_MIB;
    room.hole_bytes = 3 * HR_MIB;
    room.driver_bytes = 20 * HR_MIB;
    diagnose_oom(&needs, &room, NULL, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_ROUNDING);
    ck_assert_str_eq(
        oom.sentence,
        "rounding: conv/out needs 5.00 MiB, the largest hole that it may use is 3.00 MiB, and of the "
        "6.00 MiB left to take from the device 20.00 MiB at once would be too much");
    room.hole_bytes = 0; // the piece of 3 MiB is another pool's
    diagnose_oom(&needs, &room, NULL, &oom);
    ck_assert_str_eq(oom.sentence,
                     "rounding: conv/out needs 5.00 MiB, no hole is one that it may use, and of the 6.00 MiB "
                     "left to take from the device 20.00 MiB at once would be too much");
    room.ungrown_bytes = 0;
    oom = refusal_of(5, 4, 4);
    diagnose_oom(&needs, &room, NULL, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_ROUNDING);
    oom.by_category[HR_CATEGORY_RETAINED] = 8;
    diagnose_oom(&needs, &room, NULL, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_ROUNDING);
    oom.by_category[HR_CATEGORY_RETAINED] = 2 * HR_MIB;
    diagnose_oom(&needs, &room, NULL, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_LEAK);
    ck_assert_str_eq(
        oom.sentence,
        "leak: one step asks for 60.00 MiB and would fit into 64.00 MiB, but 2.00 MiB are retained by the "
        "steps so far and never freed; there was no room for conv/out");
    oom.by_category[HR_CATEGORY_RETAINED] = 4096; // as losses: 256 bytes hold four
    room.retained = (heap_without){.held_bytes = 512 * 1024, .waste_bytes = 508 * 1024};
    diagnose_oom(&needs, &room, NULL, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_ROUNDING);
    room.retained = (heap_without){.held_bytes = 600 * 1024, .waste_bytes = 596 * 1024};
    diagnose_oom(&needs, &room, NULL, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_LEAK);
    ck_assert_ptr_nonnull(strstr(oom.sentence, "but 600.0 KiB are retained by the steps so far"));
    oom = refusal_of(5, 6, 3);
    oom.by_category[HR_CATEGORY_RETAINED] = HR_MIB;
    room.retained.hole_bytes = 4 * HR_MIB;
    diagnose_oom(&needs, &room, NULL, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_FRAGMENTATION);
    room.retained.hole_bytes = 7 * HR_MIB;
    diagnose_oom(&needs, &room, NULL, &oom);
    ck_assert_int_eq(oom.cause, HR_OOM_LEAK);
    ck_assert_str_eq(
        oom.sentence,
        "leak: 6.00 MiB are free, but the largest piece is 3.00 MiB and conv/out needs 5.00 MiB in one; "
        "without the 1.00 MiB that earlier steps retain there would be a piece of 7.00 MiB");
}
END_TEST

static uint64_t drawn(uint64_t *seed, uint64_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % below;
}

// A heap of a random step in which everything that is held is named: what the step holds itself, what is retained, what
// is waste. Whatever is said to be the cause must be enough, or nothing else is more of one.
START_TEST(a_cause_explains_what_was_missing)
{
    uint64_t seed = 10;
    uint32_t met[32] = {0};
    for (int k = 0; k < 200000; k++) {
        const uint64_t limit = 1000 + drawn(&seed, 1000), own = drawn(&seed, limit),
                       asked = own + drawn(&seed, limit);
        const uint64_t retained = drawn(&seed, 3) == 0 ? 0 : drawn(&seed, 400), waste = drawn(&seed, 400);
        const uint64_t held = own + retained + waste, requested = 1 + drawn(&seed, asked - own + 1);
        if (held > limit || own + requested > asked) {
            continue;
        }
        const uint64_t free_bytes = limit - held,
                       largest = drawn(&seed, (free_bytes < requested ? free_bytes : requested) + 1);
        if (largest >= requested) {
            continue; // it would have been served
        }
        const uint64_t without =
            largest + drawn(&seed, retained + 1) + (retained > 0 ? drawn(&seed, 300) : 0);
        const heap_room room = {.any = true,
                                .needed_bytes = requested,
                                .free_bytes = free_bytes,
                                .largest_bytes = largest,
                                .retained = {.hole_bytes = retained > 0 ? without : 0}};
        hr_report_oom oom = {.tensor = "late",
                             .requested_bytes = requested,
                             .free_bytes = free_bytes,
                             .largest_free_bytes = largest,
                             .limit_bytes = limit};
        oom.by_category[HR_CATEGORY_RETAINED] = retained;
        diagnose_oom(&(step_needs){.asked_bytes = asked, .waste_bytes = waste}, &room, NULL, &oom);
        met[oom.cause]++;
        const uint64_t missing = requested > free_bytes ? requested - free_bytes : 0;
        if (oom.cause == HR_OOM_CAPACITY) {
            ck_assert(asked > limit);
        } else if (oom.cause == HR_OOM_LEAK && missing == 0) {
            ck_assert(without >= requested);
        } else if (oom.cause == HR_OOM_LEAK) {
            ck_assert(retained >= missing || retained > waste);
            ck_assert(retained > waste);
        } else if (oom.cause == HR_OOM_ROUNDING) {
            ck_assert(missing > 0 && waste >= retained && (waste >= missing || waste + retained >= missing));
        } else {
            ck_assert_int_eq(oom.cause, HR_OOM_FRAGMENTATION);
            ck_assert(missing == 0 && (retained == 0 || without < requested));
        }
    }
    ck_assert(met[HR_OOM_CAPACITY] > 0 && met[HR_OOM_LEAK] > 0 && met[HR_OOM_ROUNDING] > 0 &&
              met[HR_OOM_FRAGMENTATION] > 0);
}
END_TEST

// The cause of a run's out-of-memory, HR_OOM_NONE where it went through.
static hr_oom_cause cause_after(const char *const *pairs, uint64_t steps, hr_report *report)
{
    hr_engine_options options = {.plan_only = true};
    hr_engine *e = create(pairs, &options);
    run_steps(e, steps);
    *report = report_of(e);
    hr_engine_destroy(e);
    return report->oom.cause;
}

// Whatever a step keeps, and however much the limit leaves for it: without what is said to leak, the run goes through.
START_TEST(a_leak_is_named_where_its_end_is_the_remedy)
{
    static const char *const kinds[] = {"losses", "predictions", "variables"};
    uint32_t leaks = 0, others = 0;
    for (uint64_t kib = 190; kib <= 340; kib += 5) {
        char vram[48], retain[48];
        hr_report report;
        (void)snprintf(vram, sizeof vram, "device.vram=%lluKiB", (unsigned long long)kib);
        (void)snprintf(retain, sizeof retain, "execution.retain=%s", kinds[kib / 5 % 3]);
        const hr_oom_cause cause = cause_after((const char *[]){vram, retain, NULL}, 60, &report);
        hr_report_deinit(&report);
        if (cause != HR_OOM_LEAK) {
            others += cause != HR_OOM_NONE ? 1 : 0;
            continue;
        }
        leaks++;
        ck_assert_msg(cause_after((const char *[]){vram, "execution.retain=none", NULL}, 60, &report) ==
                          HR_OOM_NONE,
                      "%s, %s: a leak, and without it %s", vram, retain, report.oom.sentence);
        hr_report_deinit(&report);
    }
    ck_assert(leaks > 0 && others > 0);
}
END_TEST

START_TEST(bytes_that_are_next_to_nothing_are_no_leak)
{
    static const char *const kept[] = {"execution.retain=losses", "execution.retain=variables"};
    hr_preset *losses = NULL;
    hr_err err = {0};
    hr_knobs knobs;
    hr_engine *e = NULL;
    hr_engine_options options = {.plan_only = true};
    ck_assert_int_eq(hr_preset_open("000_losses_in_a_list", false, &losses, NULL, &err), HR_OK);
    knobs = *hr_preset_knobs(losses);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.kind=plan", &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=40MiB", &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, kept[_i], &err), HR_OK);
    ck_assert_int_eq(hr_engine_create(losses, &knobs, &options, &e, &err), HR_OK);
    run_steps(e, 20);
    hr_report report = report_of(e);
    ck_assert_msg(report.oom.cause == HR_OOM_ROUNDING, "%s", report.oom.sentence);
    hr_report_deinit(&report);
    hr_engine_destroy(e);
    hr_preset_close(losses);
}
END_TEST

// The limit that the sentence names, as it stands there.
static void limit_in(const hr_report_oom *oom, char pair[64])
{
    const char *at = strchr(oom->sentence, '('), *end = strstr(oom->sentence, " would hold it)");
    ck_assert_msg(at != NULL && end != NULL, "%s", oom->sentence);
    (void)snprintf(pair, 64, "device.vram=%.*s", (int)(end - at - 1), at + 1);
}

START_TEST(the_limit_that_is_named_holds_the_step)
{
    static const char *const kinds[] = {"allocator.kind=bfc", "allocator.kind=async",
                                        "allocator.kind=direct"};
    hr_engine_options options = {.plan_only = true};
    char pair[64];
    hr_engine *e = create((const char *[]){"device.vram=64KiB", kinds[_i], NULL}, &options);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
    hr_report r = report_of(e);
    ck_assert_int_eq(r.oom.cause, HR_OOM_CAPACITY);
    limit_in(&r.oom, pair);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
    e = create((const char *[]){pair, kinds[_i], NULL}, &options);
    run_steps(e, 2);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_IDLE);
    hr_engine_destroy(e);
}
END_TEST

// On a card of 8 GiB, whose share of 64 KiB or so is too small for the network.
START_TEST(what_lifts_an_own_limit_is_the_last_remedy)
{
    static const struct {
        const char *set, *lifted;
        const char *more[2]; // knobs, NULL where there is none
    } rows[] = {
        {"device.vram=64KiB", "device.vram=none", {NULL}},
        {"allocator.fraction=0.00001", "allocator.fraction=none", {NULL}},
        {"device.logical=64KiB,1MiB", "device.logical=none", {NULL}},
        {"allocator.conf=per_process_memory_fraction:0.00001", "allocator.conf=", {"allocator.kind=caching"}},
        {"allocator.fraction=0.00001",
         "allocator.fraction=none",
         {"allocator.kind=caching", "allocator.expandable_segments=on"}},
        {"allocator.fraction=0.00001",
         "allocator.fraction=none",
         {"execution.mode=graph", "allocator.kind=static"}},
    };
    hr_engine_options options = {.plan_only = true};
    hr_engine *e = create((const char *[]){"device.kind=plan", "device.card=rtx3070-8g", "device.vram=none",
                                           rows[_i].set, rows[_i].more[0], rows[_i].more[1], NULL},
                          &options);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
    hr_report r = report_of(e);
    ck_assert_int_eq(r.oom.cause, HR_OOM_LIMIT);
    ck_assert_uint_ge(r.oom.fix_count, 1);
    ck_assert_str_eq(r.oom.fixes[r.oom.fix_count - 1].knobs, rows[_i].lifted);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

// Who says how much there may be wants to fit into it.
START_TEST(what_fits_into_an_own_limit_is_named_before_what_lifts_it)
{
    static const char *const rows[][2] = {
        {"device.vram=160KiB", "device.vram=none"},
        {"device.logical=160KiB,1MiB", "device.logical=none"},
        {"allocator.fraction=0.00002", "allocator.fraction=none"},
    };
    hr_engine_options options = {.plan_only = true};
    hr_engine *e = create(
        (const char *[]){"device.kind=plan", "device.card=rtx3070-8g", "device.vram=none", rows[_i][0], NULL},
        &options);
    run_steps(e, 1);
    hr_report r = report_of(e);
    const hr_report_oom *oom = &r.oom;
    ck_assert_int_eq(oom->cause, HR_OOM_LIMIT);
    ck_assert_uint_ge(oom->fix_count, 2);
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        const bool last = k + 1 == oom->fix_count;
        ck_assert_msg((strcmp(oom->fixes[k].knobs, rows[_i][1]) == 0) == last, "%" PRIu32 ": %s", k,
                      oom->fixes[k].knobs);
        ck_assert_msg((oom->fixes[k].limit_bytes > oom->limit_bytes) == last, "%s", oom->fixes[k].knobs);
        ck_assert_uint_le(oom->fixes[k].peak_bytes, oom->fixes[k].limit_bytes);
    }
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("diagnose");
    TCase *cases = tcase_create("diagnose");
    tcase_add_loop_test(cases, a_heap_tells_its_cause, 0, sizeof heaps / sizeof *heaps);
    tcase_add_loop_test(cases, the_batch_that_is_used_does_not_wait, 0, sizeof queues / sizeof *queues);
    tcase_add_loop_test(cases, a_copy_of_what_is_there_is_told_from_its_gradient, 0, 2);
    tcase_add_test(cases, everything_that_shows_it_has_a_line);
    tcase_add_test(cases, a_heap_shows_who_holds_it_and_what_pins_its_holes);
    tcase_add_test(cases, a_step_that_asks_for_more_than_the_limit_is_capacity);
    tcase_add_test(cases, a_knob_that_sets_the_limit_is_named);
    tcase_add_test(cases, a_step_that_would_fit_is_told_by_its_heap);
    tcase_add_test(cases, a_cause_explains_what_was_missing);
    tcase_add_loop_test(cases, bytes_that_are_next_to_nothing_are_no_leak, 0, 2);
    suite_add_tcase(suite, cases);
    TCase *engines = tcase_create("engines");
    tcase_add_checked_fixture(engines, open_preset, close_preset);
    tcase_add_loop_test(engines, the_limit_that_is_named_holds_the_step, 0, 3);
    tcase_add_test(engines, a_leak_is_named_where_its_end_is_the_remedy);
    tcase_add_loop_test(engines, what_fits_into_an_own_limit_is_named_before_what_lifts_it, 0, 3);
    tcase_add_loop_test(engines, what_lifts_an_own_limit_is_the_last_remedy, 0, 6);
    suite_add_tcase(suite, engines);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
