// SPDX-License-Identifier: Apache-2.0
// What PyTorch copies and our kernels do not, where execution.as=pytorch makes an operation of the copy: what it reads instead has
// the size that PyTorch's has, autograd keeps it, and without PyTorch's rules there is none. Whether PyTorch asks for the same is
// tests/program/pytorch_rules.py's.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "program/compile.h"
#include "program/compile_starved.h"
#include "program/model_from_text.h"

enum { BATCH = 3 };

// Windows of 3 and 2 with a padding of "same", which is 1 at both ends and 1 behind; a causal one; one with a stride, padded by 1 behind.
static const char padded_model[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  name: padded\n"
    "  input: {shape: [8, 6, 4]}\n"
    "  classes: 5\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {name: even, kind: conv2d, filters: 4, kernel: [3, 2], padding: same}\n"
    "    - {name: odd, kind: conv2d, filters: 4, kernel: 3, padding: same}\n"
    "    - {name: stride, kind: conv2d, filters: 4, kernel: 5, stride: 2, padding: same}\n"
    "    - {name: rows, kind: reshape, shape: [12, 4]}\n"
    "    - {name: causal, kind: conv1d, filters: 4, kernel: 3, dilation: 2, padding: causal}\n"
    "    - {name: image, kind: reshape, shape: [12, 1, 4]}\n"
    "    - {name: mean, kind: global_avg_pool}\n"
    "    - {name: head, kind: dense, units: 5}\n";

// Sums of residuals begin with attention's result, as in a Vision Transformer: from the first one on places come before samples.
static const char packed_model[] = "device: {vram: 1GiB}\n"
                                   "model:\n"
                                   "  name: packed\n"
                                   "  input: {shape: [6, 16]}\n"
                                   "  classes: 5\n"
                                   "  loss: softmax_cross_entropy\n"
                                   "  layers:\n"
                                   "    - {name: rows, kind: dense, units: 16}\n"
                                   "    - {name: ln, kind: layer_norm}\n"
                                   "    - {name: attention, kind: attention, heads: 2, packed: true}\n"
                                   "    - {name: sum, kind: add, inputs: [attention, rows]}\n"
                                   "    - {name: ln2, kind: layer_norm}\n"
                                   "    - {name: first, kind: slice, axis: 1, from: 0, count: 1}\n"
                                   "    - {name: features, kind: reshape, shape: [16]}\n"
                                   "    - {name: head, kind: dense, units: 5}\n";

#define HEAD              "    - {name: flat, kind: flatten}\n    - {name: head, kind: dense, units: 5}\n"
#define ATTENTION(packed) "    - {name: attention, kind: attention, heads: 2, packed: " packed "}\n"
#define MODEL(layers)                                                                                        \
    "device: {vram: 1GiB}\nmodel:\n  name: packed\n  input: {shape: [6, 16]}\n  classes: 5\n"                \
    "  loss: softmax_cross_entropy\n  layers:\n" layers HEAD

// What attention reads is the network's input, which needs no gradient.
static const char first_model[] = MODEL(ATTENTION("true"));

// Two modules of one input.
#define OTHER(packed)                                                                                        \
    "    - {name: other, kind: attention, heads: 2, packed: " packed ", input: ln}\n"                        \
    "    - {name: sum, kind: add, inputs: [attention, other]}\n"
#define TWO(packed) MODEL("    - {name: ln, kind: layer_norm}\n" ATTENTION(packed) OTHER(packed))
static const char two_model[] = TWO("true"), two_of_views_model[] = TWO("views");

static const char *const policies[] = {"float32", "mixed_bfloat16"};
static const char *const models[] = {padded_model, packed_model, first_model, two_model};
enum { MODELS = sizeof models / sizeof *models, POLICIES = sizeof policies / sizeof *policies };

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static const hr_target target = {.name = "willing", .key = 118, .ask = ask_nothing};

static hr_knobs knobs_of(const char *framework, const char *policy)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_BATCH_SIZE, "3", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_AS, framework, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PRECISION_POLICY, policy, NULL), HR_OK);
    return knobs;
}

static hr_status compile_once(const char *text, const char *framework, const char *policy, program **out,
                              hr_err *err)
{
    const hr_knobs knobs = knobs_of(framework, policy);
    hr_model *model = model_from_text(text);
    const hr_status status = program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, out, err);
    model_destroy(model);
    return status;
}

static program *compile_in(const char *text, const char *framework, const char *policy)
{
    hr_err err = {0};
    program *p = NULL;
    ck_assert_msg(compile_once(text, framework, policy, &p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

static program *compile_as(const char *text, const char *framework)
{
    return compile_in(text, framework, policies[0]);
}

static const instr *forward_of(const program *p, const char *result)
{
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->phase == HR_PHASE_FORWARD && i->out_count > 0 && op_needs_kernel(i->op) &&
            strcmp(p->tensors[i->out[0]].name, result) == 0) {
            return i;
        }
    }
    return NULL;
}

static void assert_padded(const program *p, const char *name, uint64_t rows, uint64_t columns)
{
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%s:padded", name);
    const instr *conv = forward_of(p, name), *pad = forward_of(p, copy);
    ck_assert_msg(conv != NULL && pad != NULL, "%s", copy);
    ck_assert_int_eq(pad->op, HR_OP_ZERO_PAD);
    ck_assert_uint_eq(conv->in[0], pad->out[0]);
    ck_assert_uint_eq(p->tensors[pad->out[0]].bytes, rows * columns * 4 * BATCH * sizeof(float));
    ck_assert(p->tensors[pad->out[0]].saved);
    ck_assert_int_eq(conv->attr.pad_top, conv->attr.pad_bottom);
    ck_assert_int_eq(conv->attr.pad_left, conv->attr.pad_right);
}

START_TEST(a_convolution_of_unequal_pads_reads_a_padded_copy_that_is_kept)
{
    program *p = compile_as(padded_model, "pytorch");
    assert_padded(p, "even/out", 8, 7);           // a column behind; 1 above and below stay
    assert_padded(p, "stride/out", 8 + 3, 6 + 3); // all of it: 1 before, 2 behind
    assert_padded(p, "causal/conv", 1, 12 + 4);
    ck_assert_ptr_null(forward_of(p, "odd/out:padded"));
    program_destroy(p);
}
END_TEST

// So that whoever asks PyTorch's library for one has PyTorch's pads.
START_TEST(no_convolution_forward_or_backward_pads_its_ends_otherwise)
{
    program *p = compile_as(padded_model, "pytorch");
    uint32_t count = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->op == HR_OP_CONV2D || i->op == HR_OP_CONV2D_BWD_DATA || i->op == HR_OP_CONV2D_BWD_WEIGHTS) {
            ck_assert_int_eq(i->attr.pad_top, i->attr.pad_bottom);
            ck_assert_int_eq(i->attr.pad_left, i->attr.pad_right);
            count++;
        }
    }
    ck_assert_uint_ge(count, 8);
    program_destroy(p);
}
END_TEST

START_TEST(without_pytorchs_rules_nothing_is_padded_apart)
{
    program *p = compile_as(padded_model, "headroom");
    for (uint32_t n = 0; n < p->instr_count; n++) {
        ck_assert_int_ne(p->instrs[n].op, HR_OP_ZERO_PAD);
    }
    program_destroy(p);
}
END_TEST

static uint32_t named(const program *p, const char *name)
{
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        if (strcmp(p->tensors[k].name, name) == 0) {
            return k;
        }
    }
    ck_abort_msg("no tensor %s", name);
}

// Three tensors of one layer, "prefix_suffix" each, are thirds of one tensor's bytes. Returns the bytes of a third.
static uint64_t assert_beside(const program *p, const char *const prefix[3], const char *suffix)
{
    uint32_t id[3], owner[3];
    for (int k = 0; k < 3; k++) {
        char name[96];
        (void)snprintf(name, sizeof name, "attention/%s%s", prefix[k], suffix);
        id[k] = owner[k] = named(p, name);
        while (p->tensors[owner[k]].storage != owner[k]) {
            owner[k] = p->tensors[owner[k]].storage;
        }
    }
    ck_assert_msg(owner[0] == owner[1] && owner[0] == owner[2], "%s", suffix);
    const uint64_t bytes = p->tensors[owner[0]].bytes / 3;
    bool seen[3] = {false};
    for (int k = 0; k < 3; k++) {
        const uint64_t at = program_offset(p, id[k]);
        ck_assert_uint_eq(at % bytes, 0);
        ck_assert(!seen[at / bytes]);
        seen[at / bytes] = true;
    }
    return bytes;
}

static const char *const parts[] = {"query", "key", "value"};

START_TEST(what_is_one_product_in_pytorch_lies_in_one_tensor)
{
    const bool half = _i == 1;
    const uint64_t element = half ? 2 : sizeof(float);
    program *p = compile_in(packed_model, "pytorch", policies[_i]);
    ck_assert_uint_eq(assert_beside(p, parts, ""), 6 * 16 * BATCH * element);
    ck_assert_uint_eq(assert_beside(p, parts, ":grad:joined"), 6 * 16 * BATCH * element);
    ck_assert_uint_eq(assert_beside(p, parts, "_weights:grad"), 16 * 16 * sizeof(float));
    ck_assert_uint_eq(assert_beside(p, parts, "_bias:grad"), 16 * sizeof(float));
    if (half) {
        ck_assert_uint_eq(assert_beside(p, parts, "_weights:bfloat16"), 16 * 16 * 2);
        ck_assert_uint_eq(assert_beside(p, parts, "_weights:bfloat16:grad"), 16 * 16 * 2);
    }
    const uint32_t copy = named(p, half ? "ln/out:bfloat16:places_first" : "ln/out:places_first");
    ck_assert(p->tensors[copy].saved && !p->tensors[named(p, "ln/out")].saved);
    program_destroy(p);
}
END_TEST

static bool has_tensor(const program *p, const char *name)
{
    bool has = false;
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        has = has || strcmp(p->tensors[k].name, name) == 0;
    }
    return has;
}

static uint32_t count_ending(const program *p, const char *suffix)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        const size_t length = strlen(p->tensors[k].name), end = strlen(suffix);
        found += length >= end && strcmp(p->tensors[k].name + length - end, suffix) == 0 ? 1 : 0;
    }
    return found;
}

// Two copies of each gradient by heads (the memory-efficient kernel's, float32), a tensor of all three for the second and third, their
// sum, and the copies side by side.
static void assert_gradients_joined(const program *p, bool half)
{
    ck_assert_uint_eq(count_ending(p, ":by_heads"), half ? 0 : 6);
    ck_assert_uint_eq(count_ending(p, ":others"), 2);
    ck_assert_uint_eq(count_ending(p, ":in_order"), 1);
    ck_assert_uint_eq(assert_beside(p, parts, ":grad:joined"), 6 * 16 * BATCH * (half ? 2 : sizeof(float)));
}

// Autograd goes through the product's result for its weights alone, too.
START_TEST(gradients_are_copied_whether_the_input_needs_one_or_not)
{
    program *p = compile_in(packed_model, "pytorch", policies[_i]);
    assert_gradients_joined(p, _i == 1);
    program_destroy(p);
    p = compile_in(first_model, "pytorch", policies[_i]);
    assert_gradients_joined(p, _i == 1);
    ck_assert_uint_eq(assert_beside(p, parts, "_weights:grad"), 16 * 16 * sizeof(float));
    ck_assert_uint_eq(assert_beside(p, parts, "_bias:grad"), 16 * sizeof(float));
    ck_assert(!has_tensor(p, "input:grad"));
    program_destroy(p);
}
END_TEST

// What the product reads that makes a part of attention.
static uint32_t read_by(const program *p, const char *layer, const char *part)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s/%s", layer, part);
    const instr *product = forward_of(p, name);
    ck_assert_msg(product != NULL && product->op == HR_OP_DENSE, "%s", name);
    return product->in[0];
}

static void assert_own_input(const program *p, uint32_t expected_copies)
{
    const uint32_t one = read_by(p, "attention", "query"), other = read_by(p, "other", "query");
    for (int k = 1; k < 3; k++) {
        ck_assert_uint_eq(read_by(p, "attention", parts[k]), one);
        ck_assert_uint_eq(read_by(p, "other", parts[k]), other);
    }
    ck_assert_int_eq(one != other, expected_copies == 2);
    ck_assert(p->tensors[one].saved && p->tensors[other].saved);
}

START_TEST(two_modules_of_one_input_copy_and_cast_it_each)
{
    program *p = compile_in(two_model, "pytorch", policies[_i]);
    assert_own_input(p, 2);
    ck_assert_uint_eq(count_ending(p, ":places_first"), _i == 1 ? 2 : 4); // of results, too, in float32
    ck_assert_uint_eq(count_ending(p, "ln/out:bfloat16"), _i == 1 ? 2 : 0);
    program_destroy(p);
    p = compile_in(two_of_views_model, "pytorch", policies[_i]);
    assert_own_input(p, _i == 1 ? 2 : 1); // in float32 both read what is there
    program_destroy(p);
}
END_TEST

// Of one sample, or of one place, there is no other order.
START_TEST(what_lies_in_another_order_is_copied_where_there_is_one)
{
    program *p = compile_as(packed_model, "pytorch");
    ck_assert(has_tensor(p, "ln2/out:turned") && has_tensor(p, "ln2/out:turned:again"));
    ck_assert(!has_tensor(p, "ln/out:turned") && has_tensor(p, "ln/out:turned:grad"));
    ck_assert(has_tensor(p, "attention/out:turned:grad") && has_tensor(p, "attention/mixed:places_first"));
    program_destroy(p);
    hr_model *model = model_from_text(packed_model);
    const hr_knobs knobs = knobs_of("pytorch", policies[0]);
    ck_assert_int_eq(program_compile(model, &knobs, PROGRAM_TRAIN, 1, &target, &p, NULL), HR_OK);
    ck_assert_int_eq(program_check(p, NULL), HR_OK);
    ck_assert(!has_tensor(p, "ln2/out:turned") && !has_tensor(p, "ln/out:places_first"));
    ck_assert_uint_eq(assert_beside(p, parts, ""), 6 * 16 * sizeof(float));
    program_destroy(p);
    model_destroy(model);
}
END_TEST

// The checker knows what lies where.
START_TEST(a_part_that_lies_over_another_is_an_error)
{
    program *p = compile_as(packed_model, "pytorch");
    tensor *key = (tensor *)(uintptr_t)&p->tensors[named(p, "attention/key")];
    hr_err err = {0};
    const uint64_t offset = key->offset;
    key->offset = offset / 2;
    ck_assert_int_eq(program_check(p, &err), HR_CHECK);
    ck_assert_ptr_nonnull(strstr(err.sentence, "reads attention/query before it is written"));
    key->offset = 3 * offset;
    ck_assert_int_eq(program_check(p, &err), HR_CHECK);
    ck_assert_str_eq(err.sentence, "attention/key ends behind attention/query, in which it lies");
    key->offset = offset;
    ck_assert_int_eq(program_check(p, &err), HR_OK);
    program_destroy(p);
}
END_TEST

// The first of several in one place, too.
START_TEST(a_tensor_that_is_larger_than_what_it_lies_in_is_an_error)
{
    program *p = compile_as(packed_model, "pytorch");
    uint32_t first = 0;
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        tensor *t = (tensor *)(uintptr_t)&p->tensors[k];
        if (t->storage == k || program_offset(p, k) != 0) {
            continue;
        }
        hr_err err = {0};
        const uint64_t bytes = t->bytes;
        t->bytes = (uint64_t)1 << 30;
        ck_assert_int_eq(program_check(p, &err), HR_CHECK);
        ck_assert_ptr_nonnull(strstr(err.sentence, " ends behind "));
        t->bytes = bytes;
        first++;
    }
    ck_assert_uint_gt(first, 0);
    program_destroy(p);
}
END_TEST

START_TEST(a_listing_says_int64_and_where_a_part_begins)
{
    char line[4096] = "";
    program *p = compile_as(packed_model, "pytorch");
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    program_print_persistent(p, named(p, "labels"), file);
    for (uint32_t n = 0; n < p->instr_count; n++) {
        if (p->instrs[n].op == HR_OP_DENSE) {
            program_print_instr(p, &p->instrs[n], file);
        }
    }
    rewind(file);
    ck_assert_uint_gt(fread(line, 1, sizeof line - 1, file), 0);
    fclose(file);
    ck_assert_ptr_nonnull(strstr(line, "labels[int64 3]"));
    ck_assert_ptr_nonnull(strstr(line, "attention/key[float32 3x6x16]@attention/query+1152"));
    program_destroy(p);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    hr_model *model = model_from_text(models[_i % MODELS]);
    const hr_knobs knobs = knobs_of("pytorch", policies[_i / MODELS]);
    compile_starved(model, &knobs, BATCH, &target);
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pytorch_copies");
    TCase *tests = tcase_create("pytorch_copies");
    tcase_add_test(tests, a_convolution_of_unequal_pads_reads_a_padded_copy_that_is_kept);
    tcase_add_test(tests, no_convolution_forward_or_backward_pads_its_ends_otherwise);
    tcase_add_test(tests, without_pytorchs_rules_nothing_is_padded_apart);
    tcase_add_loop_test(tests, what_is_one_product_in_pytorch_lies_in_one_tensor, 0, POLICIES);
    tcase_add_test(tests, what_lies_in_another_order_is_copied_where_there_is_one);
    tcase_add_loop_test(tests, gradients_are_copied_whether_the_input_needs_one_or_not, 0, POLICIES);
    tcase_add_loop_test(tests, two_modules_of_one_input_copy_and_cast_it_each, 0, POLICIES);
    tcase_add_test(tests, a_part_that_lies_over_another_is_an_error);
    tcase_add_test(tests, a_tensor_that_is_larger_than_what_it_lies_in_is_an_error);
    tcase_add_test(tests, a_listing_says_int64_and_where_a_part_begins);
    tcase_add_loop_test(tests, every_allocation_may_fail_once, 0, MODELS * POLICIES);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
