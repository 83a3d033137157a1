// SPDX-License-Identifier: Apache-2.0
// Generated data for every form of model: the same bytes whenever they are asked for, in range, and about something.
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "data/data_files.h"
#include "data/map.h"
#include "data/source.h"

#define FLOATS(...)                                                                                          \
    {                                                                                                        \
        .type = DATA_FLOAT, __VA_ARGS__                                                                      \
    }
#define IDS(n, ...)                                                                                          \
    {                                                                                                        \
        .type = DATA_IDS, .classes = (n), __VA_ARGS__                                                        \
    }
#define MASK(n, ...)                                                                                         \
    {                                                                                                        \
        .type = DATA_MASK, .classes = (n), __VA_ARGS__                                                       \
    }

enum { LANGUAGE, SEGMENTATION, SENTENCE, REGRESSION, TAGGING, BINARY, FORMS };

static const data_form forms[FORMS] = {
    [LANGUAGE] = {.count = 2,
                  .slot = {IDS(50257, .rank = 1, .dim = {40}),
                           IDS(50257, .rank = 1, .dim = {40}, .is_label = true)}},
    [SEGMENTATION] = {.count = 2,
                      .slot = {FLOATS(.rank = 3, .dim = {24, 20, 3}),
                               MASK(3, .rank = 2, .dim = {24, 20}, .is_label = true)}},
    [SENTENCE] = {.count = 3,
                  .slot = {IDS(30522, .rank = 1, .dim = {16}), IDS(2, .rank = 1, .dim = {16}),
                           FLOATS(.rank = 1, .dim = {32}, .is_label = true)}},
    [REGRESSION] = {.count = 2,
                    .slot = {FLOATS(.rank = 2, .dim = {6, 5}),
                             FLOATS(.rank = 1, .dim = {3}, .is_label = true)}},
    [BINARY] = {.count = 2,
                .slot = {FLOATS(.rank = 2, .dim = {6, 5}),
                         FLOATS(.rank = 1, .dim = {8}, .is_label = true, .binary = true)}},
    [TAGGING] = {.count = 2, .slot = {IDS(7, .rank = 1, .dim = {9}), IDS(4, .rank = 0, .is_label = true)}},
};

static const pinned_memory ordinary = {.take = NULL};

static data_source *open_form(const data_form *form)
{
    hr_knobs knobs = data_knobs("generated", "");
    hr_err err = {0};
    data_source *s = NULL;
    ck_assert_msg(data_source_open(&knobs, form, &s, &err) == HR_OK, "%s", err.sentence);
    return s;
}

static data_room read_samples(const data_source *s, data_set set, uint32_t first, uint32_t count)
{
    data_room room;
    const data_map map = {.source = s, .to = s->form};
    uint8_t *scratch = malloc(data_map_scratch_bytes(&map));
    ck_assert_int_eq(data_room_take(&s->form, count, &ordinary, &room, NULL), HR_OK);
    for (uint32_t i = 0; i < count; i++) {
        data_room at = data_room_at(&s->form, &room, i);
        const data_ask ask = {.set = set, .sample = first + i};
        ck_assert_int_eq(data_map_write(&map, &ask, scratch, &at, NULL), HR_OK);
    }
    free(scratch);
    return room;
}

static void assert_in_range(const data_slot *slot, const void *values, uint32_t samples)
{
    for (uint64_t i = 0; i < samples * data_slot_values(slot); i++) {
        switch (slot->type) {
        case DATA_IDS:
            ck_assert_int_ge(((const int32_t *)values)[i], 0);
            ck_assert_int_lt(((const int32_t *)values)[i], (int32_t)slot->classes);
            break;
        case DATA_MASK:
            ck_assert_uint_lt(((const uint8_t *)values)[i], slot->classes);
            break;
        case DATA_FLOAT:
            ck_assert(((const float *)values)[i] >= -2.0f && ((const float *)values)[i] <= 2.0f);
            break;
        case DATA_F16:
        case DATA_BF16:
        case DATA_F64:
        case DATA_BYTES:
            ck_abort_msg("a source gives floats of four bytes");
        }
    }
}

START_TEST(samples_are_in_range_and_the_same_in_any_order)
{
    enum { SAMPLES = 30 };
    data_source *s = open_form(&forms[_i]);
    data_room all = read_samples(s, DATA_TRAIN, 0, SAMPLES);
    data_room held_out = read_samples(s, DATA_EVAL, 0, SAMPLES);
    for (uint32_t k = 0; k < s->form.count; k++) {
        const uint64_t bytes = data_slot_bytes(&s->form.slot[k]);
        assert_in_range(&s->form.slot[k], all.slot[k], SAMPLES);
        data_room late = read_samples(s, DATA_TRAIN, SAMPLES - 1, 1);
        ck_assert_mem_eq(late.slot[k], (uint8_t *)all.slot[k] + (SAMPLES - 1) * bytes, bytes);
        data_room_give_back(&late);
    }
    ck_assert_int_ne(memcmp(all.slot[0], held_out.slot[0], SAMPLES * data_slot_bytes(&s->form.slot[0])), 0);
    data_room_give_back(&all);
    data_room_give_back(&held_out);
    data_source_close(s);
}
END_TEST

START_TEST(binary_labels_are_zeros_and_ones_of_the_class)
{
    enum { SAMPLES = 40, VALUES = 8 };
    data_source *s = open_form(&forms[BINARY]);
    data_room room = read_samples(s, DATA_TRAIN, 0, SAMPLES);
    const float *labels = room.slot[1];
    uint32_t ones = 0;
    for (uint32_t i = 0; i < SAMPLES * VALUES; i++) {
        ck_assert(labels[i] == 0.0f || labels[i] == 1.0f);
        ones += labels[i] == 1.0f;
    }
    ck_assert_uint_gt(ones, SAMPLES * VALUES / 4);
    ck_assert_uint_lt(ones, SAMPLES * VALUES * 3 / 4);
    data_room_give_back(&room);
    data_source_close(s);
}
END_TEST

START_TEST(labels_of_a_language_are_its_tokens_one_further_on)
{
    data_source *s = open_form(&forms[LANGUAGE]);
    data_room room = read_samples(s, DATA_TRAIN, 5, 3);
    const int32_t *ids = room.slot[0], *labels = room.slot[1];
    for (uint32_t n = 0; n < 3; n++) {
        for (uint32_t t = 0; t + 1 < 40; t++) {
            ck_assert_int_eq(labels[n * 40 + t], ids[n * 40 + t + 1]);
        }
    }
    data_room_give_back(&room);
    data_source_close(s);
}
END_TEST

// The figure stands out: pixels below the mask differ from those beside it.
START_TEST(a_mask_lies_on_its_figure)
{
    enum { SAMPLES = 20, PIXELS = 24 * 20 };
    data_source *s = open_form(&forms[SEGMENTATION]);
    data_room room = read_samples(s, DATA_TRAIN, 0, SAMPLES);
    for (uint32_t n = 0; n < SAMPLES; n++) {
        const uint8_t *mask = (const uint8_t *)room.slot[1] + n * PIXELS;
        const float *image = (const float *)room.slot[0] + n * PIXELS * 3;
        double inside = 0, outside = 0;
        uint32_t covered = 0;
        for (uint32_t p = 0; p < PIXELS; p++) {
            covered += mask[p] != 0;
            *(mask[p] != 0 ? &inside : &outside) += (double)image[3 * p];
        }
        ck_assert_uint_gt(covered, 0);
        ck_assert_uint_lt(covered, PIXELS);
        double contrast = inside / covered - outside / (PIXELS - covered);
        ck_assert(contrast > 0.05 || contrast < -0.05);
    }
    data_room_give_back(&room);
    data_source_close(s);
}
END_TEST

// Without an image, too: a mask of more than two dimensions has no other room to be drawn in.
START_TEST(every_value_of_a_pixel_of_a_mask_is_the_pixels)
{
    enum { SAMPLES = 8, PIXELS = 9 * 7, DEPTH = 50 };
    static const data_form deep = {
        .count = 2,
        .slot = {FLOATS(.rank = 1, .dim = {5}), MASK(3, .rank = 3, .dim = {9, 7, DEPTH}, .is_label = true)}};
    data_source *s = open_form(&deep);
    data_room room = read_samples(s, DATA_TRAIN, 0, SAMPLES);
    const uint8_t *mask = room.slot[1];
    for (uint32_t p = 0; p < SAMPLES * PIXELS; p++) {
        for (uint32_t k = 1; k < DEPTH; k++) {
            ck_assert_uint_eq(mask[p * DEPTH + k], mask[p * DEPTH]);
        }
    }
    data_room_give_back(&room);
    data_source_close(s);
}
END_TEST

START_TEST(float_targets_say_the_class_and_nothing_else)
{
    enum { SAMPLES = 200 };
    data_source *s = open_form(&forms[REGRESSION]);
    data_room room = read_samples(s, DATA_TRAIN, 0, SAMPLES);
    const float *targets = room.slot[1];
    uint32_t distinct = 0;
    for (uint32_t n = 0; n < SAMPLES; n++) {
        uint32_t k = 0;
        while (memcmp(targets + 3 * k, targets + 3 * n, 3 * sizeof *targets) != 0) {
            k++;
        }
        distinct += k == n;
    }
    ck_assert_uint_eq(distinct, 10);
    data_room_give_back(&room);
    data_source_close(s);
}
END_TEST

START_TEST(segments_are_halves)
{
    data_source *s = open_form(&forms[SENTENCE]);
    data_room room = read_samples(s, DATA_TRAIN, 0, 1);
    const int32_t *segments = room.slot[1];
    for (int t = 0; t < 16; t++) {
        ck_assert_int_eq(segments[t], t >= 8);
    }
    data_room_give_back(&room);
    data_source_close(s);
}
END_TEST

START_TEST(what_cannot_be_drawn_is_refused)
{
    static const data_form unequal = {.count = 2,
                                      .slot = {FLOATS(.rank = 3, .dim = {24, 20, 3}),
                                               MASK(2, .rank = 2, .dim = {12, 20}, .is_label = true)}};
    static const data_form grey_and_colour = {.count = 3,
                                              .slot = {FLOATS(.rank = 3, .dim = {24, 20, 1}),
                                                       FLOATS(.rank = 3, .dim = {24, 20, 3}),
                                                       IDS(4, .rank = 0, .is_label = true)}};
    hr_knobs knobs = data_knobs("generated", "");
    hr_err err = {0};
    data_source *s = NULL;
    ck_assert_int_eq(data_source_open(&knobs, &unequal, &s, &err), HR_DATA);
    ck_assert_ptr_null(s);
    ck_assert_ptr_nonnull(strstr(err.sentence, "12x20 mask values below 2"));
    ck_assert_int_eq(data_source_open(&knobs, &grey_and_colour, &s, &err), HR_DATA);
    ck_assert_ptr_nonnull(strstr(err.sentence, "24x20x3 floats"));
    knobs = data_knobs("mnist", "/nowhere");
    ck_assert_int_eq(data_source_open(&knobs, &forms[LANGUAGE], &s, &err), HR_DATA);
    ck_assert_ptr_nonnull(strstr(err.sentence, "40 ids below 50257"));
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    hr_knobs knobs = data_knobs("generated", "");
    int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        data_source *s = NULL;
        data_room room = {.slot = {NULL}};
        hr_host_mem_fail_at(nth);
        status = data_source_open(&knobs, &forms[_i], &s, NULL);
        if (status == HR_OK && data_room_take(&forms[_i], 4, &ordinary, &room, NULL) != HR_OK) {
            status = HR_NOMEM;
        }
        hr_host_mem_fail_at(0);
        data_room_give_back(&room);
        data_source_close(s);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

// 32 bits hold no such sample: it is refused before anything is taken, whichever way it would overflow.
START_TEST(a_sample_of_gigabytes_is_refused)
{
    static const data_form giants[] = {
        {.count = 2,
         .slot = {FLOATS(.rank = 1, .dim = {1u << 29}), FLOATS(.rank = 1, .dim = {3}, .is_label = true)}},
        {.count = 2,
         .slot = {FLOATS(.rank = 1, .dim = {1u << 30}), FLOATS(.rank = 1, .dim = {3}, .is_label = true)}},
        {.count = 2,
         .slot = {IDS(50257, .rank = 2, .dim = {1u << 16, 1u << 14}),
                  IDS(50257, .rank = 2, .dim = {1u << 16, 1u << 14}, .is_label = true)}},
        {.count = 2,
         .slot = {FLOATS(.rank = 4, .dim = {1u << 31, 1u << 31, 1u << 31, 8}),
                  IDS(4, .rank = 0, .is_label = true)}},
    };
    hr_knobs knobs = data_knobs("generated", "");
    for (size_t k = 0; k < sizeof giants / sizeof *giants; k++) {
        hr_err err = {0};
        data_source *s = NULL;
        ck_assert_int_eq(data_source_open(&knobs, &giants[k], &s, &err), HR_DATA);
        ck_assert_ptr_null(s);
        ck_assert_ptr_nonnull(strstr(err.sentence, "needed samples of at most 2147483647 bytes, had "));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("invented");
    TCase *tests = tcase_create("invented");
    tcase_add_loop_test(tests, samples_are_in_range_and_the_same_in_any_order, 0, FORMS);
    tcase_add_test(tests, a_sample_of_gigabytes_is_refused);
    tcase_add_test(tests, binary_labels_are_zeros_and_ones_of_the_class);
    tcase_add_test(tests, labels_of_a_language_are_its_tokens_one_further_on);
    tcase_add_test(tests, a_mask_lies_on_its_figure);
    tcase_add_test(tests, every_value_of_a_pixel_of_a_mask_is_the_pixels);
    tcase_add_test(tests, float_targets_say_the_class_and_nothing_else);
    tcase_add_test(tests, segments_are_halves);
    tcase_add_test(tests, what_cannot_be_drawn_is_refused);
    tcase_add_loop_test(tests, every_allocation_may_fail_once, 0, FORMS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
