// SPDX-License-Identifier: Apache-2.0
// Weights that are held as whole numbers (compress.lora_base) are filled as one: of a store with all their parts these, of one
// without, or with some, all of them from the real weights.
#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: flatten}\n"                                                                                \
    "    - {name: inner, kind: dense, units: 6, activation: relu}\n"                                         \
    "    - {kind: dense, units: 10}\n"

#include "base/quantize.h"
#include "train/engine_impl.h"
#include "unit/small_engine.h"

enum { ROWS = 3072, UNITS = 6 };

static hr_engine *built(char images[160])
{
    const char *const pairs[] = {write_images(16, 8, images), "compress.lora=2", "compress.lora_targets=all",
                                 "compress.lora_base=int8", NULL};
    hr_err err = {0};
    hr_engine *e = create(pairs, NULL);
    ck_assert_msg(engine_rebuild(e, &err) == HR_OK, "%s", err.sentence);
    return e;
}

static void add(store *s, const char *name, hr_dtype dtype, const void *values, uint32_t rank)
{
    const hr_shape shape =
        rank == 2 ? shape_of(2, (const int64_t[]){ROWS, UNITS}) : shape_of(1, (const int64_t[]){UNITS});
    stored_tensor *t = store_add(s, name, &shape, dtype, HR_CATEGORY_WEIGHTS);
    ck_assert_ptr_nonnull(t);
    memcpy(t->data, values, t->bytes);
}

static void assert_filled(hr_engine *e, const store *s, const int8_t *q, const float *scale)
{
    hr_err err = {0};
    store none = {0}, had = {0};
    ck_assert_int_eq(store_fill(s, &none, e->build, e->model, 1, &err), HR_OK);
    ck_assert_int_eq(store_take_one(&had, e->build, "inner/weights", &err), HR_OK);
    ck_assert_int_eq(store_take_one(&had, e->build, "inner/weights:scale", &err), HR_OK);
    ck_assert_int_eq(memcmp(had.tensors.data[0].data, q, (size_t)ROWS * UNITS), 0);
    ck_assert_int_eq(memcmp(had.tensors.data[1].data, scale, UNITS * sizeof *scale), 0);
    store_deinit(&had);
}

START_TEST(a_stray_scale_is_no_part_of_real_weights)
{
    char images[160];
    static float w[ROWS * UNITS], scale[UNITS];
    static const float stray[UNITS] = {7, 7, 7, 7, 7, 7};
    static int8_t q[ROWS * UNITS];
    for (int k = 0; k < ROWS * UNITS; k++) {
        w[k] = (float)((k * 37) % 101 - 50) / 64;
    }
    quantize_int8(w, ROWS, UNITS, q, scale);
    hr_engine *e = built(images);
    store real = {0}, mixed = {0}, whole = {0};
    add(&real, "inner/weights", HR_F32, w, 2);
    assert_filled(e, &real, q, scale);
    add(&mixed, "inner/weights", HR_F32, w, 2);
    add(&mixed, "inner/weights:scale", HR_F32, stray, 1);
    assert_filled(e, &mixed, q, scale);
    add(&whole, "inner/weights", HR_I8, q, 2);
    add(&whole, "inner/weights:scale", HR_F32, stray, 1);
    assert_filled(e, &whole, q, stray);
    store_deinit(&real);
    store_deinit(&mixed);
    store_deinit(&whole);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("held_fill");
    TCase *tests = tcase_create("stores");
    tcase_add_checked_fixture(tests, open_preset, close_preset);
    tcase_add_test(tests, a_stray_scale_is_no_part_of_real_weights);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
