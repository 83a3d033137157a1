// SPDX-License-Identifier: Apache-2.0
// Batches on their way to a device: narrowed to the bits that narrowing a float32 batch gives, on any number of threads,
// and in the memory that a device gives for them, counted apart; in ordinary memory, with the reason, where it gives none.
#include "base/half.h"
#include "base/host_mem.h"
#include "data/data_files.h"
#include "data/pipeline.h"

enum { SIDE = 20, VALUES = SIDE * SIDE * 3, BATCH = 6 };

static const data_form image = {.count = 2,
                                .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {SIDE, SIDE, 3}},
                                         {.type = DATA_IDS, .is_label = true, .classes = 10}}};
// Two slots of floats: both are narrowed, each to a type of its own.
static const data_form regression = {.count = 2,
                                     .slot = {{.type = DATA_FLOAT, .rank = 2, .dim = {7, 5}},
                                              {.type = DATA_FLOAT, .rank = 1, .dim = {3}, .is_label = true}}};

// ---- a device's memory ------------------------------------------------------------------------------------------

static struct {
    uint64_t given, held; // pieces
    uint64_t held_bytes, fail_at;
    bool open;
} device;

typedef struct piece {
    uint64_t bytes, unused;
} piece;

static hr_status give(void *context, uint64_t bytes, void **out, hr_err *err)
{
    ck_assert_ptr_eq(context, &device);
    ck_assert(device.open);
    *out = NULL;
    if (++device.given == device.fail_at) {
        return HR_FAIL(err, NOMEM, "no page can be locked");
    }
    piece *p = calloc(1, sizeof *p + bytes);
    ck_assert_ptr_nonnull(p);
    p->bytes = bytes;
    device.held++;
    device.held_bytes += bytes;
    *out = p + 1;
    return HR_OK;
}

static void take_back(void *context, void *memory)
{
    piece *p = (piece *)memory - 1;
    ck_assert_ptr_eq(context, &device);
    ck_assert(device.open);
    device.held--;
    device.held_bytes -= p->bytes;
    free(p);
}

static void shut(void *context)
{
    ck_assert_ptr_eq(context, &device);
    ck_assert(device.open && device.held == 0);
    device.open = false;
}

static pinned_memory open_device(uint64_t fail_at)
{
    device.given = 0;
    device.fail_at = fail_at;
    device.open = true;
    return (pinned_memory){give, take_back, shut, &device};
}

// ---- pipelines --------------------------------------------------------------------------------------------------

static hr_knobs knobs_of(int prefetch, int threads)
{
    char pair[64];
    hr_knobs knobs = data_knobs("generated", "");
    (void)snprintf(pair, sizeof pair, "pipeline.prefetch=%d", prefetch);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    (void)snprintf(pair, sizeof pair, "pipeline.map_threads=%d", threads);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    (void)snprintf(pair, sizeof pair, "batch.size=%d", BATCH);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    return knobs;
}

static pipeline *open_wired(const data_form *form, int prefetch, int threads, const pipeline_wire *wire)
{
    const hr_knobs knobs = knobs_of(prefetch, threads);
    hr_err err = {0};
    pipeline *p = NULL;
    ck_assert_msg(pipeline_open(&knobs, form, wire, &p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

static data_item next_item(pipeline *p)
{
    data_item item;
    uint64_t wait_ns;
    hr_err err = {0};
    ck_assert_msg(pipeline_next(p, &item, &wait_ns, &err) == HR_OK, "%s", err.sentence);
    return item;
}

static uint64_t bytes_of(const pipeline *p, const char *name)
{
    pipeline_stage_info info[PIPELINE_MAX_STAGES];
    const uint32_t count = pipeline_stages(p, info);
    for (uint32_t k = 0; k < count; k++) {
        if (strcmp(info[k].name, name) == 0) {
            return info[k].host_bytes;
        }
    }
    return UINT64_MAX;
}

// ---- types --------------------------------------------------------------------------------------------------------

static void check_narrowed(const data_form *form, uint32_t slot, data_type type, const data_room *wide,
                           const data_room *narrow)
{
    const uint64_t count = BATCH * data_slot_values(&form->slot[slot]);
    const float *from = wide->slot[slot];
    const uint16_t *to = narrow->slot[slot];
    for (uint64_t k = 0; k < count; k++) {
        ck_assert_uint_eq(to[k], type == DATA_F16 ? f16_of_float(from[k]) : bf16_of_float(from[k]));
    }
}

START_TEST(floats_are_narrowed_to_the_nearest_on_any_number_of_threads)
{
    static const pipeline_wire plain = {.train = {DATA_FLOAT}};
    const data_type types[] = {DATA_BF16, DATA_F16};
    for (int threads = 1; threads <= 5; threads += 2) {
        const pipeline_wire wire = {.train = {types[_i % 2], DATA_F16}, .eval = {types[_i % 2], DATA_BF16}};
        const data_form *form = _i < 2 ? &image : &regression;
        pipeline *wide = open_wired(form, 0, 1, &plain);
        pipeline *narrow = open_wired(form, _i, threads, &wire);
        for (int k = 0; k < 3; k++) {
            data_item a = next_item(wide), b = next_item(narrow);
            check_narrowed(form, 0, wire.train[0], &a.room, &b.room);
            if (form == &regression) {
                check_narrowed(form, 1, wire.train[1], &a.room, &b.room);
            } else {
                ck_assert_mem_eq(a.room.slot[1], b.room.slot[1], BATCH * sizeof(int32_t));
            }
            ck_assert_int_eq(pipeline_next_eval(wide, BATCH, &a, NULL), HR_OK);
            ck_assert_int_eq(pipeline_next_eval(narrow, BATCH, &b, NULL), HR_OK);
            check_narrowed(form, 0, wire.eval[0], &a.room, &b.room);
        }
        pipeline_close(wide);
        pipeline_close(narrow);
    }
}
END_TEST

// ---- memory -------------------------------------------------------------------------------------------------------

#define BATCH_BYTES (BATCH * (VALUES * (uint64_t)sizeof(uint16_t) + sizeof(int32_t)))

START_TEST(training_batches_lie_in_the_devices_memory)
{
    const pipeline_wire wire = {.train = {DATA_BF16}, .pinned = open_device(0)};
    pipeline *p = open_wired(&image, _i, 1, &wire);
    data_item item;
    (void)next_item(p);
    ck_assert_int_eq(pipeline_next_eval(p, BATCH, &item, NULL), HR_OK);
    ck_assert_uint_eq(device.held_bytes, (uint64_t)(_i + 1) * BATCH_BYTES);
    ck_assert_uint_eq(bytes_of(p, "pinned"), device.held_bytes);
    ck_assert_uint_eq(bytes_of(p, "prefetch"), _i == 0 ? UINT64_MAX : 0);
    ck_assert_ptr_null(pipeline_pinning_refused(p));
    pipeline_close(p);
    ck_assert(!device.open && device.held == 0);
}
END_TEST

// Even: through a prefetch thread.
START_TEST(what_the_device_refuses_is_ordinary_memory_and_told)
{
    const int prefetch = _i % 2 == 0 ? 2 : 0;
    const uint64_t pieces = 2 * (uint64_t)(prefetch + 1);
    static const pipeline_wire plain = {.train = {DATA_BF16}};
    for (uint64_t nth = 1; nth <= pieces; nth++) {
        const pipeline_wire wire = {.train = {DATA_BF16}, .pinned = open_device(nth)};
        pipeline *p = open_wired(&image, prefetch, 1, &wire), *q = open_wired(&image, prefetch, 1, &plain);
        for (int k = 0; k < 4; k++) {
            const data_item a = next_item(p), b = next_item(q);
            ck_assert_mem_eq(a.room.slot[0], b.room.slot[0], BATCH * VALUES * sizeof(uint16_t));
        }
        ck_assert_str_eq(pipeline_pinning_refused(p), "no page can be locked");
        ck_assert_uint_eq(device.given, nth); // it is asked once
        ck_assert_uint_eq(bytes_of(p, "pinned"), device.held_bytes);
        ck_assert_uint_eq(bytes_of(p, "pinned"), (nth - 1) / 2 * BATCH_BYTES); // whole batches
        pipeline_close(p);
        pipeline_close(q);
        ck_assert(!device.open && device.held == 0);
    }
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    const hr_knobs knobs = knobs_of(_i % 2 * 2, 1 + _i);
    const int64_t live = hr_host_mem_live();
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        const pipeline_wire wire = {.train = {DATA_F16}, .eval = {DATA_F16}, .pinned = open_device(0)};
        pipeline *p = NULL;
        data_item item;
        uint64_t wait_ns;
        hr_host_mem_fail_at(nth);
        hr_status status = pipeline_open(&knobs, &image, &wire, &p, NULL);
        if (status == HR_OK) {
            status = pipeline_next(p, &item, &wait_ns, NULL);
        }
        if (status == HR_OK) {
            status = pipeline_next_eval(p, BATCH, &item, NULL);
        }
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : HR_OK);
        ck_assert(device.open); // the pipeline's, or still ours
        p == NULL ? shut(&device) : pipeline_close(p);
        ck_assert(!device.open && device.held == 0);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

// Another build's batches: other types, or a device that gives none. The old memory goes once the new chain stands.
START_TEST(a_chain_made_anew_has_its_own_memory)
{
    const hr_knobs knobs = knobs_of(2, 1);
    static const pipeline_wire plain = {.train = {DATA_FLOAT}};
    const pipeline_wire wire = {.train = {DATA_BF16}, .pinned = open_device(0)};
    pipeline *p = open_wired(&image, 2, 1, &wire);
    ck_assert(pipeline_has_wire(p, &wire, true) && !pipeline_has_wire(p, &wire, false));
    ck_assert(!pipeline_has_wire(p, &plain, true));
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        hr_host_mem_fail_at(nth);
        const hr_status status = pipeline_rechain(p, &knobs, &plain, NULL);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : HR_OK);
        ck_assert(device.open == failed);
    }
    ck_assert(pipeline_has_wire(p, &plain, false));
    ck_assert_uint_eq(bytes_of(p, "pinned"), UINT64_MAX);
    pipeline_close(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pipeline wire");
    TCase *c = tcase_create("pipeline wire");
    tcase_add_loop_test(c, floats_are_narrowed_to_the_nearest_on_any_number_of_threads, 0, 4);
    tcase_add_loop_test(c, training_batches_lie_in_the_devices_memory, 0, 4);
    tcase_add_loop_test(c, what_the_device_refuses_is_ordinary_memory_and_told, 0, 2);
    tcase_add_loop_test(c, every_allocation_may_fail_once, 0, 4);
    tcase_add_test(c, a_chain_made_anew_has_its_own_memory);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
