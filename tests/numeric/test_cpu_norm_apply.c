// SPDX-License-Identifier: Apache-2.0
// Batch normalisation that is computed again from its statistics has the bits of its first time: with and without an
// activation behind it, in float32 and bfloat16.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "numeric/op_cases.h"
#include "numeric/op_harness.h"

enum { ROUNDS = 20 };

static const struct {
    hr_act act;
    hr_dtype dtype;
} kinds[] = {
    {HR_ACT_NONE, HR_F32},  {HR_ACT_RELU, HR_F32},  {HR_ACT_RELU6, HR_F32},
    {HR_ACT_NONE, HR_BF16}, {HR_ACT_RELU, HR_BF16}, {HR_ACT_RELU6, HR_BF16},
};

// Values as they are in the operand's type, wide enough for RELU6 to cut.
static void draw(op_trial *t, uint32_t k, uint64_t *state, double low, double high)
{
    for (uint64_t i = 0; i < op_trial_in_count(t, k); i++) {
        const float value = (float)op_random(state, low, high);
        const bool half = t->query.in[k].dtype == HR_BF16;
        t->in[k][i] = (double)(half ? float_of_bf16(bf16_of_float(value)) : value);
    }
}

static op_trial normalisation(int kind, uint64_t *state)
{
    const int64_t channels = op_random_int(state, 1, 40);
    const int64_t image[OP_MAX_RANK] = {op_random_int(state, 1, 3), op_random_int(state, 1, 12),
                                        op_random_int(state, 1, 12), channels};
    op_trial t =
        op_trial_make(HR_OP_BATCH_NORM, (op_attr){.epsilon = 1e-3, .momentum = 0.1, .act = kinds[kind].act});
    op_trial_add_in(&t, kinds[kind].dtype, image);
    for (int k = 0; k < 4; k++) {
        op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){channels});
    }
    draw(&t, 0, state, -4.0, 4.0);
    draw(&t, 1, state, 1.0, 6.0); // gamma
    draw(&t, 2, state, -2.0, 4.0);
    draw(&t, 4, state, 0.5, 2.0);
    op_trial_infer_out(&t, 3);
    t.query.out[0].dtype = kinds[kind].dtype;
    return t;
}

static op_trial applied(const op_trial *first)
{
    op_trial t = op_trial_make(HR_OP_BATCH_NORM_APPLY, first->query.attr);
    const double *from[] = {first->in[0], first->in[1], first->in[2], first->out[1], first->out[2]};
    for (uint32_t k = 0; k < 5; k++) {
        op_trial_add_in(&t, (hr_dtype)first->query.in[k].dtype, first->query.in[k].shape.dim);
        memcpy(t.in[k], from[k], op_trial_in_count(&t, k) * sizeof *from[k]);
    }
    op_trial_infer_out(&t, 1);
    t.query.out[0].dtype = first->query.out[0].dtype;
    return t;
}

static bool is_native(op_device cpu, const op_query *q)
{
    hr_target target;
    target_answer answer;
    cpu.ops->target(cpu.context, &target);
    return target.ask(target.context, q, UINT64_MAX, &answer, NULL) == HR_OK;
}

START_TEST(apply_has_the_bits_of_batch_norm)
{
    uint64_t state = 3 + (uint64_t)_i, cut = 0, zero = 0;
    op_device cpu = op_device_open(&device_cpu, 2);
    for (int round = 0; round < ROUNDS; round++) {
        op_trial first = normalisation(_i, &state);
        if (!is_native(cpu, &first.query)) { // this processor does not compute in bfloat16
            op_trial_deinit(&first);
            break;
        }
        op_trial_run(&first, cpu, NULL);
        op_trial again = applied(&first);
        op_trial_run(&again, cpu, NULL);
        for (uint64_t i = 0; i < op_trial_out_count(&first, 0); i++) {
            ck_assert(memcmp(&first.out[0][i], &again.out[0][i], sizeof first.out[0][i]) == 0);
            cut += first.out[0][i] >= 6.0;
            zero += first.out[0][i] <= 0.0;
        }
        op_trial_deinit(&again);
        op_trial_deinit(&first);
        ck_assert(round < ROUNDS - 1 || (cut > 0 && zero > 0)); // the activations had something to do
    }
    op_device_close(&cpu);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_norm_apply");
    TCase *c = tcase_create("bits");
    tcase_add_loop_test(c, apply_has_the_bits_of_batch_norm, 0, (int)(sizeof kinds / sizeof kinds[0]));
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
