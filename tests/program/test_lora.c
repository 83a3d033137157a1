// SPDX-License-Identifier: Apache-2.0
// compress.lora as models and programs: which parameters there are and which are trained, by the formulas and by the counts that
// PEFT prints; that gradients, optimizer state, sums and averages are of these alone; that nothing is computed for the rest.
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "device/executor.h"
#include "program/compile.h"
#include "program/model_checks.h"

static void set(hr_knobs *knobs, const char *pair)
{
    hr_err err = {0};
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

static hr_preset *open_named(const char *name, const char *const *pairs, hr_knobs *knobs)
{
    hr_preset *preset = NULL;
    hr_err err = {0};
    hr_preset_search_beside(".");
    ck_assert_msg(hr_preset_open(name, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    *knobs = *hr_preset_knobs(preset);
    for (; *pairs != NULL; pairs++) {
        set(knobs, *pairs);
    }
    return preset;
}

static hr_model *model_of(const char *name, const char *const *pairs)
{
    hr_knobs knobs;
    hr_model *model = NULL;
    hr_err err = {0};
    hr_preset *preset = open_named(name, pairs, &knobs);
    ck_assert_msg(model_create(preset, &knobs, &model, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_preset_close(preset);
    return model;
}

static uint64_t trained_of(const char *name, const char *rank, const char *targets)
{
    hr_model *model = model_of(name, (const char *[]){rank, targets, NULL});
    const uint64_t trained = model->trainable_parameters;
    model_destroy(model);
    return trained;
}

// ---- counts -----------------------------------------------------------------------------------------------------------

// https://huggingface.co/docs/peft: print_trainable_parameters() of GPT-2 (c_attn), and of Llama 3 8B and Mistral 7B (q_proj,
// v_proj). One A of c_attn with a B of three times the units has as many elements as two adapters.
START_TEST(published_counts_are_ours)
{
    static const struct {
        const char *model, *rank, *targets;
        uint64_t trained;
    } rows[] = {
        {"gpt2_124m", "compress.lora=8", "compress.lora_targets=qv", 294912},
        {"gpt2_124m", "compress.lora=16", "compress.lora_targets=qv", 589824},
        {"gpt2_124m", "compress.lora=32", "compress.lora_targets=qv", 1179648},
        {"gpt2_124m", "compress.lora=8", "compress.lora_targets=auto", 294912},
        {"gpt2_124m", "compress.lora=8", "compress.lora_targets=qkv", 442368},
        {"gpt2_124m", "compress.lora=8", "compress.lora_targets=attention", 589824},
        {"gpt2_124m", "compress.lora=8", "compress.lora_targets=dense", 12 * 2 * 8 * (768 + 3072)},
        {"llama3_1_8b", "compress.lora=8", "compress.lora_targets=qv", 3407872},
        {"mistral_7b", "compress.lora=8", "compress.lora_targets=qv", 3407872},
    };
    for (size_t k = 0; k < COUNT(rows); k++) {
        const uint64_t trained = trained_of(rows[k].model, rows[k].rank, rows[k].targets);
        ck_assert_msg(trained == rows[k].trained, "%s %s %s: %llu", rows[k].model, rows[k].rank,
                      rows[k].targets, (unsigned long long)trained);
    }
}
END_TEST

// tests/bench/peers/peft_counts.py: what PEFT itself trains.
START_TEST(counts_of_peft_are_ours)
{
    json_t *root = json_load_file("tests/bench/results/peft_counts.json", 0, NULL);
    const json_t *rows = json_object_get(root, "rows"), *row;
    size_t k;
    ck_assert_uint_ge(json_array_size(rows), 9);
    json_array_foreach((json_t *)(uintptr_t)rows, k, row)
    {
        char rank[32];
        const char *model = json_string_value(json_object_get(row, "model"));
        (void)snprintf(rank, sizeof rank, "compress.lora=%lld",
                       (long long)json_integer_value(json_object_get(row, "rank")));
        ck_assert_msg(trained_of(model, rank, "compress.lora_targets=qv") ==
                          (uint64_t)json_integer_value(json_object_get(row, "trainable")),
                      "%s %s", model, rank);
    }
    json_decref(root);
}
END_TEST

// ---- models -------------------------------------------------------------------------------------------------------------

static void assert_only_adapters_are_trained(const hr_model *with, const hr_model *base)
{
    uint32_t at = 0;
    uint64_t trained = 0, all = 0;
    for (uint32_t k = 0; k < with->param_count; k++) {
        const model_param *p = &with->params[k];
        uint64_t elements = 0;
        ck_assert(shape_elements(&p->shape, &elements));
        ck_assert(k == 0 || p->layer >= with->params[k - 1].layer);
        ck_assert_int_eq(p->trainable, p->adapter);
        ck_assert_int_eq(p->adapter, strstr(p->name, "lora_") != NULL);
        trained += p->trainable ? elements : 0;
        all += elements;
        if (!p->adapter) { // those that were read, in their order
            ck_assert_str_eq(p->name, base->params[at].name);
            ck_assert(shape_equal(&p->shape, &base->params[at++].shape));
        }
    }
    ck_assert_uint_eq(at, base->param_count);
    ck_assert_uint_eq(trained, with->trainable_parameters);
    ck_assert_uint_eq(all, with->parameters);
    ck_assert_uint_eq(all, base->parameters + trained);
    ck_assert_uint_gt(trained, 0);
}

START_TEST(a_model_with_adapters_is_a_model_and_the_base_in_it_is_frozen)
{
    static const char *const targets[] = {"compress.lora_targets=auto", "compress.lora_targets=all"};
    hr_preset_entry *entries = NULL;
    size_t count = 0;
    hr_preset_search_beside(".");
    ck_assert_int_eq(hr_preset_list("models", &entries, &count, NULL), HR_OK);
    for (size_t k = 0; k < count; k++) {
        for (size_t t = 0; t < COUNT(targets) && strstr(entries[k].name, "_tiny") != NULL; t++) {
            hr_model *base = model_of(entries[k].name, (const char *[]){NULL});
            hr_model *with = model_of(entries[k].name, (const char *[]){"compress.lora=2", targets[t], NULL});
            assert_names_unique(with);
            assert_nodes(with);
            assert_losses(with);
            assert_only_adapters_are_trained(with, base);
            model_destroy(base);
            model_destroy(with);
        }
    }
    hr_preset_list_free(entries);
}
END_TEST

#define TEXT(knobs)                                                                                          \
    "device: {vram: 1GiB}\n" knobs "model:\n"                                                                \
    "  name: small\n"                                                                                        \
    "  input: {shape: [6, 6, 3]}\n"                                                                          \
    "  classes: 4\n"                                                                                         \
    "  loss: softmax_cross_entropy\n"                                                                        \
    "  layers:\n"                                                                                            \
    "    - {name: image, kind: conv2d, filters: 8, kernel: 3, stride: 2, activation: relu}\n"                \
    "    - {kind: flatten}\n"                                                                                \
    "    - {name: inner, kind: dense, units: 5, activation: relu}\n"                                         \
    "    - {name: last, kind: dense, units: 4}\n"

static const model_node *giver(const hr_model *m, model_ref ref)
{
    ck_assert(!ref.is_param);
    return giver_of(m, ref.index);
}

static const char *param_name(const hr_model *m, model_ref ref)
{
    ck_assert(ref.is_param);
    return m->params[ref.index].name;
}

// y = x·W + b + (alpha / R)·(x·A)·B
START_TEST(the_adapter_stands_beside_its_layer)
{
    hr_model *m = model_from_text(TEXT("compress: {lora: 2, lora_alpha: 3, lora_targets: 'list:inner'}\n"));
    const model_node *sum = giver_of(m, (uint32_t)(value_of(m, "inner/dense") - m->values));
    ck_assert_int_eq(sum->op, HR_OP_ADD);
    const model_node *base = giver(m, sum->in[0]), *up = giver(m, sum->in[1]);
    ck_assert_int_eq(base->op, HR_OP_DENSE);
    ck_assert_str_eq(param_name(m, base->in[1]), "inner/weights");
    ck_assert_str_eq(param_name(m, base->in[2]), "inner/bias");
    ck_assert_int_eq(up->op, HR_OP_DENSE);
    ck_assert_uint_eq(up->in_count, 2);
    ck_assert_str_eq(param_name(m, up->in[1]), "inner/lora_b");
    const model_node *scale = giver(m, up->in[0]), *down = giver(m, scale->in[0]);
    ck_assert_int_eq(scale->op, HR_OP_SCALE);
    ck_assert_double_eq(scale->attr.scale, 1.5);
    ck_assert_int_eq(down->op, HR_OP_DENSE);
    ck_assert_str_eq(param_name(m, down->in[1]), "inner/lora_a");
    ck_assert_uint_eq(down->in[0].index, base->in[0].index);
    const model_param *a = param_of(m, "inner/lora_a"), *b = param_of(m, "inner/lora_b");
    assert_shape(&a->shape, "32x2");
    assert_shape(&b->shape, "2x5");
    ck_assert_int_eq(a->init, MODEL_INIT_UNIFORM);
    ck_assert_double_eq(a->init_scale, 1 / sqrt(32.0));
    ck_assert_int_eq(b->init, MODEL_INIT_ZEROS);
    ck_assert_uint_eq(m->trainable_parameters, 2 * (32 + 5));
    model_destroy(m);
}
END_TEST

// A has the kernel, stride and padding, B is 1x1; a factor of 1 is no instruction.
START_TEST(of_a_convolution_the_second_product_is_of_single_pixels)
{
    hr_model *m = model_from_text(TEXT("compress: {lora: 2, lora_targets: conv}\n"));
    const model_node *sum = giver_of(m, (uint32_t)(value_of(m, "image/conv") - m->values));
    const model_node *base = giver(m, sum->in[0]), *up = giver(m, sum->in[1]), *down = giver(m, up->in[0]);
    ck_assert_int_eq(down->op, HR_OP_CONV2D);
    ck_assert_mem_eq(&down->attr, &base->attr, sizeof base->attr);
    assert_shape(&param_of(m, "image/lora_a")->shape, "3x3x3x2");
    assert_shape(&param_of(m, "image/lora_b")->shape, "1x1x2x8");
    ck_assert_double_eq(param_of(m, "image/lora_a")->init_scale, 1 / sqrt(27.0));
    ck_assert_uint_eq(m->trainable_parameters, 2 * (27 + 8));
    model_destroy(m);
}
END_TEST

// mlp_tiny has dense, dense_1 and dense_2: a name within another one is neither of them.
START_TEST(a_list_names_whole_layers)
{
    static const struct {
        const char *pair, *missing; // the name that is refused; NULL: the layers that get adapters
        const char *layers;
    } rows[] = {
        {"compress.lora_targets=list:dense", NULL, "dense "},
        {"compress.lora_targets=list:dense_1", NULL, "dense_1 "},
        {"compress.lora_targets=list:dense_1,dense", NULL, "dense dense_1 "},
        {"compress.lora_targets=list:dens", "dens", NULL},
        {"compress.lora_targets=list:ense", "ense", NULL},
        {"compress.lora_targets=list:dense_", "dense_", NULL},
        {"compress.lora_targets=list:dense_11", "dense_11", NULL},
        {"compress.lora_targets=list:dense,Dense_1", "Dense_1", NULL},
    };
    for (size_t k = 0; k < COUNT(rows); k++) {
        hr_knobs knobs;
        hr_model *model = NULL;
        hr_err err = {0};
        char layers[256] = "", missing[64] = "";
        hr_preset *preset =
            open_named("mlp_tiny", (const char *[]){"compress.lora=2", rows[k].pair, NULL}, &knobs);
        const hr_status status = model_create(preset, &knobs, &model, NULL, &err);
        ck_assert_msg(status == (rows[k].missing == NULL ? HR_OK : HR_KNOB), "%s: %s", rows[k].pair,
                      err.sentence);
        for (uint32_t p = 0; status == HR_OK && p < model->param_count; p++) {
            const char *name = model->params[p].name, *end = strstr(name, "/lora_a");
            if (end != NULL) {
                strncat(strncat(layers, name, (size_t)(end - name)), " ", 2);
            }
        }
        (void)snprintf(missing, sizeof missing, "'%s'", rows[k].missing == NULL ? "" : rows[k].missing);
        ck_assert_msg(rows[k].layers == NULL || strcmp(layers, rows[k].layers) == 0, "%s: %s", rows[k].pair,
                      layers);
        ck_assert_msg(rows[k].missing == NULL || strstr(err.sentence, missing) != NULL, "%s", err.sentence);
        model_destroy(model);
        hr_preset_close(preset);
    }
}
END_TEST

START_TEST(no_name_of_a_list_is_empty)
{
    static const char *const wrong[] = {"list:", "list:,", "list:dense,", "list:,dense",
                                        "list:dense,,dense_1"};
    for (size_t k = 0; k < COUNT(wrong); k++) {
        hr_knobs knobs;
        hr_err err = {0};
        hr_preset *preset = open_named("mlp_tiny", (const char *[]){"compress.lora=2", NULL}, &knobs);
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_COMPRESS_LORA_TARGETS, wrong[k], NULL), HR_OK);
        ck_assert_msg(hr_knobs_validate(&knobs, &err) == HR_CONSTRAINT, "%s", wrong[k]);
        ck_assert_ptr_nonnull(strstr(err.sentence, wrong[k]));
        hr_preset_close(preset);
    }
}
END_TEST

START_TEST(what_the_model_does_not_have_is_refused)
{
    static const struct {
        const char *pair, *sentence;
    } rows[] = {
        {"compress.lora_targets=qv", "compress.lora_targets=qv: model mlp_tiny has no such layer"},
        {"compress.lora_targets=list:dense,nose",
         "model mlp_tiny has no layer 'nose' that multiplies by weights"},
    };
    for (size_t k = 0; k < COUNT(rows); k++) {
        hr_knobs knobs;
        hr_model *model = NULL;
        hr_err err = {0};
        hr_preset *preset =
            open_named("mlp_tiny", (const char *[]){"compress.lora=2", rows[k].pair, NULL}, &knobs);
        ck_assert_int_eq(model_create(preset, &knobs, &model, NULL, &err), HR_KNOB);
        ck_assert_ptr_null(model);
        ck_assert_msg(strstr(err.sentence, rows[k].sentence) != NULL, "%s", err.sentence);
        ck_assert_str_eq(err.hint, "-s compress.lora_targets=auto");
        hr_preset_close(preset);
    }
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    fail_every_allocation(TEXT("compress: {lora: 2, lora_alpha: 4, lora_targets: all}\n"), HR_OK);
}
END_TEST

// ---- programs -----------------------------------------------------------------------------------------------------------

static program *compile(const hr_model *model, const char *const *pairs)
{
    hr_knobs knobs;
    hr_err err = {0};
    hr_target target;
    program *p = NULL;
    hr_knobs_init(&knobs);
    set(&knobs, "device.kind=reference");
    for (; *pairs != NULL; pairs++) {
        set(&knobs, *pairs);
    }
    device_reference.target(NULL, &target);
    const hr_status status = program_compile(model, &knobs, PROGRAM_TRAIN, 2, &target, &p, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

static uint64_t bytes_of(const program *p, hr_category category)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        sum += p->tensors[k].category == category ? p->tensors[k].bytes : 0;
    }
    return sum;
}

static const char *const modes[] = {"execution.mode=eager", "execution.mode=graph"};

START_TEST(what_is_held_for_training_follows_what_is_trained)
{
    hr_model *m =
        model_of("gpt2_124m", (const char *[]){"compress.lora=8", "compress.lora_targets=qv", NULL});
    program *p = compile(m, (const char *[]){modes[_i], "optimizer.kind=adam", "optimizer.ema=0.9", NULL});
    ck_assert_uint_eq(bytes_of(p, HR_CATEGORY_WEIGHTS), 4 * m->parameters);
    ck_assert_uint_eq(bytes_of(p, HR_CATEGORY_GRADIENTS), 4 * 294912);
    ck_assert_uint_eq(bytes_of(p, HR_CATEGORY_OPTIMIZER), 3 * 4 * 294912);
    program_destroy(p);
    p = compile(m, (const char *[]){modes[_i], "batch.accumulate=2", NULL});
    ck_assert_uint_eq(bytes_of(p, HR_CATEGORY_ACCUMULATORS), 4 * 294912);
    program_destroy(p);
    model_destroy(m);
}
END_TEST

// A policy's copies of the weights are needed forward, frozen or not; gradients are cast back of adapters alone.
START_TEST(casts_of_gradients_are_of_what_is_trained)
{
    hr_model *m = model_of("gpt2_124m_tiny", (const char *[]){"compress.lora=8", NULL});
    program *p = compile(m, (const char *[]){modes[_i], "precision.policy=mixed_bfloat16", NULL});
    uint64_t cast = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        const bool gradient = i->op == HR_OP_CAST && i->phase == HR_PHASE_BACKWARD &&
                              p->tensors[i->out[0]].category == HR_CATEGORY_GRADIENTS;
        cast += gradient ? p->tensors[i->out[0]].bytes : 0;
    }
    ck_assert_uint_eq(cast, 4 * m->trainable_parameters);
    ck_assert_uint_eq(bytes_of(p, HR_CATEGORY_GRADIENTS), 4 * m->trainable_parameters);
    program_destroy(p);
    model_destroy(m);
}
END_TEST

static bool is_gradient_of_products(hr_op op)
{
    return op == HR_OP_DENSE_BWD_WEIGHTS || op == HR_OP_CONV2D_BWD_WEIGHTS;
}

// No gradient of a frozen product's weights, and nothing at all below the first layer with an adapter.
START_TEST(nothing_is_computed_for_what_is_frozen)
{
    hr_model *m = model_from_text(TEXT("compress: {lora: 2, lora_targets: 'list:last'}\n"));
    program *p = compile(m, (const char *[]){modes[_i], NULL});
    uint32_t products = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->phase != HR_PHASE_BACKWARD || !op_needs_kernel(i->op)) {
            continue;
        }
        ck_assert_msg(i->layer == HR_NO_ID || strcmp(m->layers[i->layer].name, "last") == 0, "%s of %s",
                      op_row_of(i->op)->name, m->layers[i->layer].name);
        products += is_gradient_of_products(i->op);
    }
    ck_assert_uint_eq(products, 2); // of A and of B
    program_destroy(p);
    model_destroy(m);
}
END_TEST

// Below the first adapter no variable flows: the tape records nothing there.
START_TEST(the_tape_keeps_nothing_below_the_first_adapter)
{
    hr_model *m = model_from_text(TEXT("compress: {lora: 2, lora_targets: 'list:last'}\n"));
    program *p = compile(m, (const char *[]){"execution.mode=eager", NULL});
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        ck_assert_msg(!p->tensors[k].saved || strncmp(p->tensors[k].name, "image/", 6) != 0, "%s is kept",
                      p->tensors[k].name);
    }
    program_destroy(p);
    model_destroy(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lora");
    TCase *tcase = tcase_create("lora");
    tcase_add_test(tcase, published_counts_are_ours);
    tcase_add_test(tcase, counts_of_peft_are_ours);
    tcase_add_test(tcase, a_model_with_adapters_is_a_model_and_the_base_in_it_is_frozen);
    tcase_add_test(tcase, the_adapter_stands_beside_its_layer);
    tcase_add_test(tcase, of_a_convolution_the_second_product_is_of_single_pixels);
    tcase_add_test(tcase, no_name_of_a_list_is_empty);
    tcase_add_test(tcase, what_the_model_does_not_have_is_refused);
    tcase_add_test(tcase, a_list_names_whole_layers);
    tcase_add_test(tcase, each_allocation_may_fail);
    tcase_add_loop_test(tcase, what_is_held_for_training_follows_what_is_trained, 0, 2);
    tcase_add_loop_test(tcase, casts_of_gradients_are_of_what_is_trained, 0, 2);
    tcase_add_loop_test(tcase, nothing_is_computed_for_what_is_frozen, 0, 2);
    tcase_add_test(tcase, the_tape_keeps_nothing_below_the_first_adapter);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
