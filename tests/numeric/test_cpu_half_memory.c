// SPDX-License-Identifier: Apache-2.0
// Operations over two bytes hold no float32 copy of what they read or write: a property of every operation and both
// types, over batches so large that a copy would be seen.
#include <check.h>
#include <string.h>

#include "numeric/bf16_trial.h"
#include "numeric/op_cases.h"
#include "program/target.h"

enum { SEEDS = 12, SIZE = 8, LARGE_ELEMENTS = 1 << 23, THREADS = 2 };

static const hr_dtype types[] = {HR_F16, HR_BF16};

enum { TYPES = sizeof types / sizeof *types };

static op_device cpu;

static void open_device(void)
{
    cpu = op_device_open(&device_cpu, THREADS);
}

static void close_device(void)
{
    op_device_close(&cpu);
}

// ---- operations -------------------------------------------------------------------------------------------

static bool is_half(const op_operand *t)
{
    return t->dtype == HR_F16 || t->dtype == HR_BF16;
}

static uint64_t elements_of(const op_operand *t)
{
    uint64_t elements = 0;
    ck_assert(shape_elements(&t->shape, &elements));
    return elements;
}

// Elements of the largest two-byte operand; 0 without one.
static uint64_t largest_half(const op_query *q)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        const op_operand *t = k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
        const uint64_t elements = is_half(t) ? elements_of(t) : 0;
        most = elements > most ? elements : most;
    }
    return most;
}

static int64_t samples_of(const op_query *q, uint32_t axis)
{
    return q->in[q->op == HR_OP_LSTM_BWD || q->op == HR_OP_GRU_BWD ? 1 : 0].shape.dim[axis];
}

// Does nothing but samples have their number?
static bool tells_samples(const op_query *q, uint32_t axis)
{
    const int64_t samples = samples_of(q, axis);
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        const op_operand *t = k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
        for (uint32_t d = 0; d < t->shape.rank; d++) {
            if (d != axis && t->shape.dim[d] == samples) {
                return false;
            }
        }
    }
    return true;
}

// The same operation over `factor` times as many samples; of a recurrence steps, as it holds one of them in float32.
static op_query with_more_samples(const op_query *q, uint32_t axis, int64_t factor)
{
    op_query more = *q;
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        op_operand *t = k < q->in_count ? &more.in[k] : &more.out[k - q->in_count];
        if (t->shape.rank > axis && t->shape.dim[axis] == samples_of(q, axis)) {
            t->shape.dim[axis] *= factor;
        }
    }
    return more;
}

static void holds_no_copy(const op_query *small)
{
    const uint64_t elements = largest_half(small);
    const bool recurs = small->op == HR_OP_LSTM || small->op == HR_OP_LSTM_BWD || small->op == HR_OP_GRU ||
                        small->op == HR_OP_GRU_BWD;
    const uint32_t axis = recurs ? 1 : 0;
    if (elements == 0 || !tells_samples(small, axis)) {
        return; // float32 under every policy
    }
    const op_query q = with_more_samples(small, axis, (int64_t)(LARGE_ELEMENTS / elements) + 1);
    const uint64_t copy_bytes = largest_half(&q) * sizeof(float);
    hr_target target;
    target_answer answer;
    hr_err err = {0};
    cpu.ops->target(cpu.context, &target);
    ck_assert_msg(target_ask(&target, &q, UINT64_MAX, &answer, &err) == HR_OK, "%s", err.sentence);
    uint64_t bytes = answer.workspace_bytes;
    for (uint32_t k = 0; k < answer.reorder_count; k++) {
        bytes += answer.reorder[k].bytes;
    }
    ck_assert_msg(bytes < copy_bytes, "%s takes %llu B, a float32 copy is %llu B", op_name((hr_op)q.op),
                  (unsigned long long)bytes, (unsigned long long)copy_bytes);
}

static void check_backward(const op_trial *forward, hr_dtype type)
{
    const op_row *row = op_row_of((hr_op)forward->query.op);
    for (uint32_t g = 0; g < row->grad_count; g++) {
        if (op_trial_has_gradient(forward, g)) {
            op_trial backward = op_trial_backward(forward, g, forward->out[0]);
            op_trial half =
                half_trial(&backward, bf16_wide_of_backward(&forward->query, &row->grad[g]), type);
            holds_no_copy(&half.query);
            op_trial_deinit(&half);
            op_trial_deinit(&backward);
        }
    }
}

START_TEST(no_operation_holds_a_float32_copy)
{
    const hr_op op = (hr_op)(_i / TYPES);
    const hr_dtype type = types[_i % TYPES];
    for (uint64_t seed = 1; op_has_cases(op) && !op_is_for_cards(op) && seed <= SEEDS; seed++) {
        op_trial t = op_case(op, seed, SIZE);
        op_trial half = half_trial(&t, bf16_wide_of(op), type);
        holds_no_copy(&half.query);
        check_backward(&t, type);
        op_trial_deinit(&half);
        op_trial_deinit(&t);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_half_memory");
    TCase *tc = tcase_create("no copies");
    tcase_add_checked_fixture(tc, open_device, close_device);
    tcase_add_loop_test(tc, no_operation_holds_a_float32_copy, 0, HR_OP_COUNT * TYPES);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
