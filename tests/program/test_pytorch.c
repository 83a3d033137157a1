// SPDX-License-Identifier: Apache-2.0
// What execution.as=pytorch promises of a program: what autograd keeps is there until the gradient of its operation has been
// taken, and nobody keeps it longer; results lie over their input only where networks ask for it; counts are int64. What PyTorch
// itself did is tests/program/pytorch_rules.py's.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "ops/pytorch.h"
#include "program/compile.h"
#include "program/compile_starved.h"
#include "program/model_from_text.h"

enum { BATCH = 3, INT64_BYTES = 8 };

// Convolutions of both kinds, both additions, both dropouts, a gate, pools, activations that keep inputs or results.
static const char image_model[] = "device: {vram: 1GiB}\n"
                                  "model:\n"
                                  "  name: images\n"
                                  "  input: {shape: [8, 8, 4]}\n"
                                  "  classes: 5\n"
                                  "  loss: softmax_cross_entropy\n"
                                  "  layers:\n"
                                  "    - {name: conv, kind: conv2d, filters: 8, kernel: 3, padding: same}\n"
                                  "    - {name: norm, kind: batch_norm, activation: relu6}\n"
                                  "    - {name: pool, kind: max_pool, size: 2}\n"
                                  "    - {name: deep, kind: depthwise_conv2d, kernel: 3, padding: same}\n"
                                  "    - {name: sum, kind: add, inputs: [deep, pool], in_place: true}\n"
                                  "    - {name: act, kind: silu}\n"
                                  "    - {name: twice, kind: add, inputs: [act, sum], activation: gelu}\n"
                                  "    - {name: squeeze, kind: global_avg_pool}\n"
                                  "    - {name: gate, kind: dense, units: 8, activation: sigmoid}\n"
                                  "    - {name: scale, kind: multiply, inputs: [twice, gate]}\n"
                                  "    - {name: mean, kind: global_avg_pool}\n"
                                  "    - {name: drop, kind: dropout, rate: 0.5, in_place: true}\n"
                                  "    - {name: wide, kind: dense, units: 16, activation: relu}\n"
                                  "    - {name: drop2, kind: dropout, rate: 0.5}\n"
                                  "    - {name: head, kind: dense, units: 5}\n";

static const char language_model[] = "device: {vram: 1GiB}\n"
                                     "model:\n"
                                     "  name: words\n"
                                     "  input: {type: int32, classes: 11, shape: [6]}\n"
                                     "  classes: 11\n"
                                     "  loss: softmax_cross_entropy\n"
                                     "  layers:\n"
                                     "    - {name: wte, kind: embedding, units: 8}\n"
                                     "    - {name: ln, kind: layer_norm}\n"
                                     "    - {name: attention, kind: attention, heads: 2, causal: true}\n"
                                     "    - {name: sum, kind: add, inputs: [previous, wte]}\n"
                                     "    - {name: head, kind: dense, units: 11}\n";

static const char *const models[] = {image_model, language_model};
enum { MODELS = sizeof models / sizeof *models };
static const char *const policies[] = {"precision.policy=float32", "precision.policy=mixed_bfloat16"};
enum { POLICIES = sizeof policies / sizeof *policies, CASES = MODELS * POLICIES };

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static bool fuses_all(void *context, hr_op op, hr_act act)
{
    (void)context, (void)op, (void)act;
    return true;
}

static const hr_target target = {.name = "willing", .key = 117, .ask = ask_nothing, .fuses = fuses_all};

static hr_knobs pytorch_knobs(const char *pair)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_BATCH_SIZE, "3", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_AS, "pytorch", NULL), HR_OK);
    ck_assert_int_eq(pair == NULL ? HR_OK : hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    return knobs;
}

static program *compile_with(const char *text, const char *pair)
{
    hr_err err = {0};
    const hr_knobs knobs = pytorch_knobs(pair);
    program *p = NULL;
    hr_model *model = model_from_text(text);
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    model_destroy(model);
    return p;
}

static uint32_t owner_of(const program *p, uint32_t id)
{
    while (p->tensors[id].storage != id) {
        id = p->tensors[id].storage;
    }
    return id;
}

static bool uses(const program *p, const instr *i, uint32_t owner)
{
    bool used = false;
    for (uint32_t k = 0; k < i->in_count; k++) {
        used = used || owner_of(p, i->in[k]) == owner;
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        used = used || owner_of(p, i->out[k]) == owner;
    }
    return used && i->op != HR_OP_ALLOC && i->op != HR_OP_FREE;
}

// Index of the last instruction that takes the gradient of forward instruction i; 0: none does.
static uint32_t gradient_taken(const program *p, const instr *i)
{
    uint32_t last = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        last = p->instrs[n].serves == i->id && i->id != 0 ? n : last;
    }
    return last;
}

static uint32_t freed_at(const program *p, uint32_t owner)
{
    for (uint32_t n = 0; n < p->instr_count; n++) {
        if (p->instrs[n].op == HR_OP_FREE && p->instrs[n].in[0] == owner) {
            return n;
        }
    }
    return p->instr_count;
}

// Whether autograd keeps this storage for instruction i.
static bool keeps(const program *p, const instr *i, uint32_t owner)
{
    const framework_rule *rule = i->phase == HR_PHASE_FORWARD ? pytorch_rule_of(i->op) : NULL;
    bool kept = false;
    for (uint32_t k = 0; rule != NULL && k < i->in_count; k++) {
        kept = kept || ((rule->keep_in >> k & 1) != 0 && owner_of(p, i->in[k]) == owner);
    }
    for (uint32_t k = 0; rule != NULL && k < i->out_count; k++) {
        kept = kept || ((rule->keep_out >> k & 1) != 0 && owner_of(p, i->out[k]) == owner);
    }
    return kept;
}

START_TEST(what_is_kept_lives_until_its_gradient_has_been_taken_and_no_longer)
{
    program *p = compile_with(models[_i % MODELS], policies[_i / MODELS]);
    unsigned kept = 0;
    for (uint32_t id = p->persistent_count; id < p->tensor_count; id++) {
        uint32_t until = 0, used = 0;
        for (uint32_t n = 0; p->tensors[id].storage == id && n < p->instr_count; n++) {
            const uint32_t taken = keeps(p, &p->instrs[n], id) ? gradient_taken(p, &p->instrs[n]) : 0;
            until = taken > until ? taken : until;
            used = uses(p, &p->instrs[n], id) ? n : used;
        }
        if (until == 0) {
            continue;
        }
        kept++;
        const uint32_t freed = freed_at(p, id), last = until > used ? until : used;
        ck_assert_uint_gt(freed, last);
        for (uint32_t n = last + 1; n < freed; n++) {
            const hr_op op = p->instrs[n].op; // HOLD: what PyTorch's kernel makes while it takes the gradient
            ck_assert_msg(op == HR_OP_FREE || op == HR_OP_ALLOC || op == HR_OP_HOLD,
                          "%s outlives its gradient", p->tensors[id].name);
        }
    }
    ck_assert_uint_gt(kept, 4);
    program_destroy(p);
}
END_TEST

static uint64_t sum_of_saved(const program *p)
{
    uint64_t sum = 0;
    for (uint32_t id = 0; id < p->tensor_count; id++) {
        bool saved = false;
        for (uint32_t k = 0; k < p->tensor_count; k++) {
            saved = saved || (p->tensors[k].saved && owner_of(p, k) == id);
        }
        const bool counted = !p->tensors[id].persistent || p->tensors[id].category == HR_CATEGORY_INPUT;
        sum += saved && counted ? p->tensors[id].bytes : 0;
    }
    return sum;
}

START_TEST(saved_bytes_count_every_storage_but_parameters_and_buffers)
{
    program *p = compile_with(models[_i % MODELS], policies[_i / MODELS]);
    ck_assert_uint_eq(p->saved_for_backward_bytes, sum_of_saved(p));
    program_destroy(p);
}
END_TEST

// Over its input lies: a ReLU, and what the model file says to be written in place.
START_TEST(results_lie_over_their_input_where_networks_ask_for_it)
{
    static const char *const over[] = {"wide/out", "sum/out", "drop/out"};
    program *on = compile_with(image_model, NULL), *off = compile_with(image_model, "execution.inplace=off");
    unsigned seen = 0, relus_apart = 0;
    for (uint32_t n = 0; n < on->instr_count; n++) {
        const instr *i = &on->instrs[n];
        if (i->phase != HR_PHASE_FORWARD || !op_needs_kernel(i->op)) {
            continue;
        }
        const char *name = on->tensors[i->out[0]].name;
        bool expected = false;
        for (size_t k = 0; k < sizeof over / sizeof *over; k++) {
            expected = expected || strcmp(over[k], name) == 0;
        }
        ck_assert_msg((owner_of(on, i->out[0]) == owner_of(on, i->in[0])) == expected, "%s", name);
        seen += expected;
    }
    ck_assert_uint_eq(seen, 3);
    for (uint32_t n = 0; n < off->instr_count; n++) {
        const instr *i = &off->instrs[n];
        relus_apart += i->op == HR_OP_RELU && owner_of(off, i->out[0]) != owner_of(off, i->in[0]);
    }
    ck_assert_uint_eq(relus_apart, 1);
    program_destroy(on);
    program_destroy(off);
}
END_TEST

static uint32_t last_of(const program *p, uint8_t phase)
{
    uint32_t last = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        last = p->instrs[n].phase == phase && p->instrs[n].op != HR_OP_FREE ? n : last;
    }
    return last;
}

static uint32_t first_of(const program *p, uint8_t phase)
{
    uint32_t n = 0;
    while (p->instrs[n].phase != phase) {
        n++;
    }
    return n;
}

static const tensor *named(const program *p, const char *name)
{
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        if (strcmp(p->tensors[k].name, name) == 0) {
            return &p->tensors[k];
        }
    }
    ck_abort_msg("no tensor %s", name);
}

START_TEST(counts_are_int64_and_a_mask_that_multiplies_is_as_wide_as_its_input)
{
    program *p = compile_with(image_model, NULL), *words = compile_with(language_model, NULL);
    ck_assert_uint_eq(named(p, "labels")->bytes, BATCH * INT64_BYTES);
    ck_assert_uint_eq(named(p, "pool/out:index")->bytes, UINT64_C(8) * 4 * 4 * BATCH * INT64_BYTES);
    ck_assert_uint_eq(named(p, "drop/out:mask")->bytes, UINT64_C(8) * BATCH * sizeof(float));
    ck_assert_uint_eq(named(p, "drop2/out:mask")->bytes, UINT64_C(16) * BATCH);
    ck_assert_uint_eq(named(words, "input")->bytes, UINT64_C(6) * BATCH * INT64_BYTES);
    ck_assert_uint_eq(named(words, "attention/lse")->bytes, UINT64_C(2) * 32 * BATCH * sizeof(float));
    program_destroy(p);
    program_destroy(words);
}
END_TEST

// nn.MultiheadAttention's copy is kept beside the result, for the last product; a slice that is kept keeps all of its input.
START_TEST(a_packed_attention_keeps_a_copy_and_a_slice_its_input)
{
    static const char vision[] = "device: {vram: 1GiB}\n"
                                 "model:\n"
                                 "  name: vision\n"
                                 "  input: {shape: [6, 8]}\n"
                                 "  classes: 5\n"
                                 "  loss: softmax_cross_entropy\n"
                                 "  layers:\n"
                                 "    - {name: attention, kind: attention, heads: 2%s}\n"
                                 "    - {name: first, kind: slice, axis: 1, from: 0, count: 1}\n"
                                 "    - {name: features, kind: reshape, shape: [8]}\n"
                                 "    - {name: head, kind: dense, units: 5}\n";
    const uint64_t sequence = UINT64_C(6) * 8 * BATCH * sizeof(float);
    char text[sizeof vision + 32];
    (void)snprintf(text, sizeof text, vision, ", packed: true");
    program *packed = compile_with(text, NULL);
    (void)snprintf(text, sizeof text, vision, "");
    program *plain = compile_with(text, NULL);
    ck_assert_uint_eq(packed->saved_for_backward_bytes, plain->saved_for_backward_bytes + sequence);
    ck_assert_uint_eq(named(packed, "attention/mixed:places_first")->bytes, sequence);
    ck_assert(named(plain, "attention/out")->saved);
    ck_assert(!named(plain, "first/out")->saved && !named(plain, "features/out")->saved);
    program_destroy(packed);
    program_destroy(plain);
}
END_TEST

// Queries, keys and values that are views of one product's result: that product casts what it reads once, and nothing is copied.
START_TEST(an_attention_of_views_casts_its_input_once)
{
    static const char sequence[] = "device: {vram: 1GiB}\n"
                                   "model:\n"
                                   "  name: sequence\n"
                                   "  input: {shape: [6, 8]}\n"
                                   "  classes: 5\n"
                                   "  loss: softmax_cross_entropy\n"
                                   "  layers:\n"
                                   "    - {name: ln, kind: layer_norm}\n"
                                   "    - {name: attention, kind: attention, heads: 2%s}\n"
                                   "    - {name: head, kind: dense, units: 5}\n";
    static const char *const ways[] = {"", ", packed: views", ", packed: views, form: materialised"};
    for (int way = 0; way < 3; way++) {
        char text[sizeof sequence + 64];
        unsigned casts = 0, copies = 0;
        (void)snprintf(text, sizeof text, sequence, ways[way]);
        program *p = compile_with(text, policies[1]);
        for (uint32_t id = 0; id < p->tensor_count; id++) {
            casts += strcmp(p->tensors[id].name, "ln/out:bfloat16") == 0;
            copies += strstr(p->tensors[id].name, "places_first") != NULL;
        }
        ck_assert_uint_eq(casts, way == 0 ? 3 : 1);
        ck_assert_uint_eq(copies, 0);
        program_destroy(p);
        p = compile_with(text, NULL);
        ck_assert(way == 2 || named(p, "attention/mixed")->saved);
        for (uint32_t id = 0; id < p->tensor_count; id++) {
            ck_assert(strstr(p->tensors[id].name, "places_first") == NULL);
        }
        program_destroy(p);
    }
}
END_TEST

// Without a name for it the answer lives as long as the call of the loss that it is an argument of.
START_TEST(an_answer_without_a_name_goes_when_the_loss_is_there)
{
    program *named_one = compile_with(models[_i], "execution.answer=named");
    program *dropped = compile_with(models[_i], "execution.answer=dropped");
    const uint32_t answer = (uint32_t)(named(named_one, "head/out") - named_one->tensors);
    ck_assert_str_eq(dropped->tensors[answer].name, "head/out");
    ck_assert_uint_gt(freed_at(named_one, answer), last_of(named_one, HR_PHASE_BACKWARD));
    ck_assert_uint_lt(freed_at(dropped, answer), first_of(dropped, HR_PHASE_BACKWARD));
    ck_assert_uint_gt(freed_at(dropped, answer), last_of(dropped, HR_PHASE_FORWARD) - 1);
    ck_assert_uint_eq(named_one->saved_for_backward_bytes, dropped->saved_for_backward_bytes);
    program_destroy(named_one);
    program_destroy(dropped);
}
END_TEST

START_TEST(a_packed_attention_needs_the_streaming_form)
{
    static const char text[] =
        "model:\n"
        "  name: vision\n"
        "  input: {shape: [6, 8]}\n"
        "  classes: 5\n"
        "  loss: softmax_cross_entropy\n"
        "  layers:\n"
        "    - {name: attention, kind: attention, heads: 2, packed: true, form: materialised}\n"
        "    - {name: mean, kind: reduce, axis: 1, of: mean}\n"
        "    - {name: head, kind: dense, units: 5}\n";
    hr_preset *preset = preset_from_text(text);
    hr_model *model = NULL;
    char *problems = NULL;
    ck_assert_int_ne(model_create(preset, hr_preset_knobs(preset), &model, &problems, NULL), HR_OK);
    ck_assert_ptr_nonnull(problems);
    ck_assert_ptr_nonnull(strstr(problems, "is packed, which needs form: streaming, had materialised"));
    hr_preset_problems_free(problems);
    hr_preset_close(preset);
}
END_TEST

// The bytes of a `hold`, and the instructions between which they are there.
static void assert_hold(const program *p, const char *name, uint64_t bytes, hr_op from, hr_op to)
{
    uint32_t id = (uint32_t)(named(p, name) - p->tensors), first = p->instr_count, last = 0;
    const uint32_t freed = freed_at(p, id);
    ck_assert_uint_eq(p->tensors[id].bytes, bytes);
    for (uint32_t n = 0; n < p->instr_count; n++) {
        first = p->instrs[n].op == from && n < first ? n : first;
        last = p->instrs[n].op == to ? n : last;
    }
    ck_assert_uint_gt(freed, last);
    bool held = false;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        held = held || (p->instrs[n].op == HR_OP_HOLD && p->instrs[n].out[0] == id);
    }
    ck_assert(held);
    ck_assert_uint_lt(first, freed);
}

START_TEST(the_loss_has_its_weight_and_both_its_gradients)
{
    program *p = compile_with(image_model, NULL);
    assert_hold(p, "loss:grad", sizeof(float), HR_OP_SOFTMAX_XENT, HR_OP_CONV2D_BWD_WEIGHTS);
    assert_hold(p, "probs:total_weight", sizeof(float), HR_OP_SOFTMAX_XENT, HR_OP_SOFTMAX_XENT);
    assert_hold(p, "probs:log_softmax:grad", UINT64_C(5) * BATCH * sizeof(float), HR_OP_SOFTMAX_XENT,
                HR_OP_SOFTMAX_XENT_BWD);
    program_destroy(p);
}
END_TEST

// binary_cross_entropy_with_logits keeps logits and targets; sigmoid_focal_loss five tensors as large besides, six with alpha.
START_TEST(binary_losses_keep_what_their_chains_of_primitives_keep)
{
    static const char form[] = "device: {vram: 1GiB}\n"
                               "model:\n"
                               "  name: tags\n"
                               "  input: {shape: [6]}\n"
                               "  losses: [{kind: %s}]\n"
                               "  layers:\n"
                               "    - {name: head, kind: dense, units: 5}\n";
    static const struct {
        const char *loss;
        uint64_t tensors;
    } rows[] = {{"binary_cross_entropy", 2}, {"focal", 8}, {"focal, alpha: 0", 7}};
    const uint64_t logits = UINT64_C(5) * BATCH * sizeof(float), input = UINT64_C(6) * BATCH * sizeof(float);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char text[sizeof form + 32];
        (void)snprintf(text, sizeof text, form, rows[k].loss);
        program *p = compile_with(text, NULL);
        ck_assert_uint_eq(p->saved_for_backward_bytes, input + rows[k].tensors * logits);
        program_destroy(p);
    }
}
END_TEST

// Under autocast products are in two bytes, norms of sequences and the loss in float32, all else in what comes.
START_TEST(autocast_computes_each_operation_in_its_own_type)
{
    static const struct {
        const char *name;
        hr_dtype dtype;
    } image[] = {{"conv/out", HR_BF16}, {"norm/norm", HR_BF16}, {"pool/out", HR_BF16}, {"scale/out", HR_BF16},
                 {"head/out", HR_BF16}, {"probs", HR_F32},      {"loss", HR_F32}},
      language[] = {{"wte/out", HR_F32},          {"ln/out", HR_F32},         {"attention/query", HR_BF16},
                    {"attention/mixed", HR_BF16}, {"attention/out", HR_BF16}, {"sum/out", HR_F32},
                    {"head/out", HR_BF16},        {"probs", HR_F32}};
    program *p = compile_with(image_model, policies[1]), *words = compile_with(language_model, policies[1]);
    for (size_t k = 0; k < sizeof image / sizeof *image; k++) {
        ck_assert_msg(named(p, image[k].name)->dtype == image[k].dtype, "%s", image[k].name);
    }
    for (size_t k = 0; k < sizeof language / sizeof *language; k++) {
        ck_assert_msg(named(words, language[k].name)->dtype == language[k].dtype, "%s", language[k].name);
    }
    program_destroy(p);
    program_destroy(words);
}
END_TEST

// A sum of two types lies over the cast that PyTorch does without.
START_TEST(a_cast_that_pytorch_does_without_holds_no_bytes_of_its_own)
{
    program *p = compile_with(language_model, policies[1]);
    const uint32_t sum = (uint32_t)(named(p, "sum/out") - p->tensors);
    const uint32_t cast = (uint32_t)(named(p, "attention/out:float32") - p->tensors);
    ck_assert_uint_eq(owner_of(p, sum), cast);
    const uint32_t probs = (uint32_t)(named(p, "probs") - p->tensors);
    ck_assert_uint_eq(owner_of(p, probs), (uint32_t)(named(p, "head/out:float32") - p->tensors));
    program_destroy(p);
}
END_TEST

// A weight's cast is kept for its gradient, a bias's until autocast ends; each reader of an activation casts for itself.
START_TEST(casts_of_weights_live_as_autocast_and_autograd_keep_them)
{
    program *p = compile_with(language_model, policies[1]);
    const uint32_t end = last_of(p, HR_PHASE_FORWARD);
    unsigned weights = 0, biases = 0, inputs = 0;
    for (uint32_t id = 0; id < p->tensor_count; id++) {
        const tensor *t = &p->tensors[id];
        inputs += strcmp(t->name, "ln/out:bfloat16") == 0;
        if (t->category != HR_CATEGORY_CASTS) {
            continue;
        }
        ck_assert_uint_gt(freed_at(p, id), end);
        ck_assert(t->saved == (t->shape.rank == 2));
        const uint32_t first = first_of(p, HR_PHASE_BACKWARD);
        ck_assert(t->saved ? freed_at(p, id) > first : freed_at(p, id) < first);
        weights += t->saved;
        biases += !t->saved;
    }
    ck_assert_uint_eq(weights, 5);
    ck_assert_uint_eq(biases, 5);
    ck_assert_uint_eq(inputs, 3);
    program_destroy(p);
}
END_TEST

START_TEST(the_loss_under_autocast_has_its_log_softmax_in_the_type_of_its_logits)
{
    program *p = compile_with(image_model, policies[1]);
    assert_hold(p, "head/out:float32:log_softmax", UINT64_C(5) * BATCH * sizeof(uint16_t), HR_OP_DENSE,
                HR_OP_SOFTMAX_XENT_BWD);
    assert_hold(p, "head/out:float32:log_softmax:grad", UINT64_C(5) * BATCH * sizeof(uint16_t),
                HR_OP_SOFTMAX_XENT, HR_OP_SOFTMAX_XENT_BWD);
    program_destroy(p);
}
END_TEST

START_TEST(gradients_of_weights_live_until_the_step_ends)
{
    program *p = compile_with(models[_i], NULL);
    uint32_t last = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        last = p->instrs[n].op != HR_OP_FREE ? n : last;
    }
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        const tensor *t = &p->tensors[k];
        ck_assert(t->category != HR_CATEGORY_GRADIENTS || freed_at(p, k) > last);
    }
    program_destroy(p);
}
END_TEST

// The most bytes of what torch.optim makes on the way that are alive at once.
static uint64_t most_on_the_way(const char *form, const char *kind, double decay)
{
    char pairs[3][64];
    snprintf(pairs[0], sizeof pairs[0], "optimizer.implementation=%s", form);
    snprintf(pairs[1], sizeof pairs[1], "optimizer.kind=%s", kind);
    snprintf(pairs[2], sizeof pairs[2], "optimizer.weight_decay=%g", decay);
    hr_knobs knobs = pytorch_knobs(pairs[0]);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pairs[1], NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pairs[2], NULL), HR_OK);
    hr_model *model = model_from_text(image_model);
    program *p = NULL;
    ck_assert_int_eq(program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, NULL), HR_OK);
    ck_assert_int_eq(program_check(p, NULL), HR_OK);
    uint64_t now = 0, most = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        const bool made = i->op == HR_OP_ALLOC && i->phase == HR_PHASE_UPDATE;
        const bool gone = i->op == HR_OP_FREE && p->tensors[i->in[0]].category == HR_CATEGORY_TEMPORARIES &&
                          i->phase == HR_PHASE_UPDATE;
        now += made ? p->tensors[i->out[0]].bytes : 0;
        now -= gone ? p->tensors[i->in[0]].bytes : 0;
        most = now > most ? now : most;
    }
    ck_assert_uint_eq(now, 0);
    program_destroy(p);
    model_destroy(model);
    return most;
}

static uint64_t trained_bytes(uint64_t *largest)
{
    hr_model *model = model_from_text(image_model);
    const uint64_t bytes = model->trainable_parameters * sizeof(float);
    *largest = 0;
    for (uint32_t k = 0; k < model->param_count; k++) {
        uint64_t elements = 0;
        ck_assert(shape_elements(&model->params[k].shape, &elements));
        *largest = elements * sizeof(float) > *largest ? elements * sizeof(float) : *largest;
    }
    model_destroy(model);
    return bytes;
}

START_TEST(an_optimizer_makes_lists_or_one_after_the_other_or_nothing)
{
    uint64_t largest = 0;
    const uint64_t all = trained_bytes(&largest);
    ck_assert_uint_eq(most_on_the_way("foreach", "adamw", 0.1), all);
    ck_assert_uint_eq(most_on_the_way("foreach", "adam", 0), all);
    ck_assert_uint_eq(most_on_the_way("foreach", "adam", 0.1), 2 * all);
    ck_assert_uint_eq(most_on_the_way("foreach", "rmsprop", 0), all);
    ck_assert_uint_eq(most_on_the_way("foreach", "momentum", 0), 0);
    ck_assert_uint_eq(most_on_the_way("foreach", "sgd", 0.1), all);
    ck_assert_uint_eq(most_on_the_way("loop", "sgd", 0.1), largest);
    ck_assert_uint_ge(most_on_the_way("loop", "adamw", 0.1), 2 * largest);
    ck_assert_uint_le(most_on_the_way("loop", "adamw", 0.1), 3 * largest);
    ck_assert_uint_ge(most_on_the_way("loop", "rmsprop", 0), largest);
    ck_assert_uint_eq(most_on_the_way("fused", "adam", 0.1), 0);
    ck_assert_uint_eq(most_on_the_way("fused", "momentum", 0.1), 0);
}
END_TEST

// clip_grad_norm_ multiplies gradients where they lie; its norms are gone when they are.
START_TEST(gradients_are_clipped_where_they_lie)
{
    program *p = compile_with(models[_i], "optimizer.clip_norm=0.5");
    unsigned clips = 0, norms = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        clips += i->op == HR_OP_CLIP;
        ck_assert(i->op != HR_OP_CLIP || i->in[0] == i->out[0]);
    }
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        const char *colon = strrchr(p->tensors[k].name, ':');
        norms += colon != NULL && strcmp(colon, ":norm") == 0;
    }
    ck_assert_uint_gt(clips, 4);
    ck_assert_uint_eq(norms, clips);
    ck_assert_uint_eq(named(p, "gradients:first_chunks")->bytes, (clips + 1) * sizeof(uint64_t));
    ck_assert_uint_eq(named(p, "gradients:chunk_norms")->bytes,
                      clips * sizeof(float)); // small ones: a chunk each
    program_destroy(p);
}
END_TEST

// .grad is there from the first round on; what a round adds to it goes at once.
START_TEST(gradients_of_a_round_go_when_they_have_been_added)
{
    program *p = compile_with(models[_i], "batch.accumulate=2");
    unsigned sums = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        if (i->op != HR_OP_ACCUMULATE) {
            continue;
        }
        sums++;
        uint32_t next = n + 1;
        while (p->instrs[next].op == HR_OP_FREE && p->instrs[next].in[0] != owner_of(p, i->in[1])) {
            next++;
        }
        ck_assert_uint_eq(p->instrs[next].op, HR_OP_FREE);
    }
    ck_assert_uint_gt(sums, 4);
    program_destroy(p);
}
END_TEST

// Whether autograd keeps this storage for what instruction i runs again.
static bool keeps_again(const program *p, const instr *i, uint32_t owner)
{
    instr forward = *i;
    forward.phase = HR_PHASE_FORWARD;
    return i->again && keeps(p, &forward, owner);
}

// What torch.utils.checkpoint runs again is kept as the first time would be without it; the first time keeps nothing.
START_TEST(what_runs_again_is_kept_until_its_gradient_has_been_taken)
{
    program *p = compile_with(models[_i], "checkpoint.strategy=every:3"),
            *whole = compile_with(models[_i], NULL);
    unsigned kept = 0;
    for (uint32_t id = p->persistent_count; id < p->tensor_count; id++) {
        uint32_t until = 0;
        for (uint32_t n = 0; p->tensors[id].storage == id && n < p->instr_count; n++) {
            const instr first = {.id = p->instrs[n].serves};
            const uint32_t taken = keeps_again(p, &p->instrs[n], id) ? gradient_taken(p, &first) : 0;
            until = taken > until ? taken : until;
        }
        ck_assert(until == 0 || freed_at(p, id) > until);
        ck_assert(!p->tensors[id].saved || !p->tensors[id].dropped);
        kept += until != 0;
    }
    ck_assert_uint_gt(kept, 2);
    ck_assert_uint_lt(p->saved_for_backward_bytes, whole->saved_for_backward_bytes);
    program_destroy(p);
    program_destroy(whole);
}
END_TEST

START_TEST(what_a_dropped_attention_holds_goes_at_once_and_comes_again)
{
    program *p = compile_with(language_model, "checkpoint.strategy=every:4");
    const uint32_t first = (uint32_t)(named(p, "attention/mixed:philox_seed") - p->tensors);
    const uint32_t again = (uint32_t)(named(p, "attention/mixed:again:philox_seed") - p->tensors);
    ck_assert_uint_lt(freed_at(p, first), first_of(p, HR_PHASE_BACKWARD));
    ck_assert_uint_gt(freed_at(p, again), first_of(p, HR_PHASE_BACKWARD));
    ck_assert(!p->tensors[first].saved && !p->tensors[again].saved);
    program_destroy(p);
}
END_TEST

START_TEST(what_has_no_rule_is_refused_by_name)
{
    static const char recurrent[] = "device: {vram: 1GiB}\n"
                                    "model:\n"
                                    "  name: recurrent\n"
                                    "  input: {type: int32, classes: 11, shape: [6]}\n"
                                    "  classes: 11\n"
                                    "  loss: softmax_cross_entropy\n"
                                    "  layers:\n"
                                    "    - {name: wte, kind: embedding, units: 8}\n"
                                    "    - {name: memory, kind: lstm, units: 8}\n"
                                    "    - {name: head, kind: dense, units: 11}\n";
    hr_err err = {0};
    const hr_knobs knobs = pytorch_knobs(NULL);
    program *p = NULL;
    hr_model *model = model_from_text(recurrent);
    ck_assert_int_eq(program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, &err), HR_MODEL);
    ck_assert_str_eq(err.sentence, "execution.as=pytorch has no rule for lstm (memory)");
    ck_assert_str_eq(err.hint, "-s execution.as=headroom");
    ck_assert_ptr_null(p);
    model_destroy(model);
}
END_TEST

// No fused kernel of PyTorch's takes float64; matrix products and a softmax, as form: materialised has them, do.
START_TEST(attention_in_float64_is_refused_unless_its_scores_are_materialised)
{
    static const char streaming[] = "heads: 2, causal: true}";
    hr_err err = {0};
    const hr_knobs knobs = pytorch_knobs("precision.policy=float64");
    program *p = NULL;
    hr_model *model = model_from_text(language_model);
    ck_assert_int_eq(program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, &err), HR_MODEL);
    ck_assert_str_eq(err.sentence, "execution.as=pytorch has no rule for attention in float64 (attention)");
    ck_assert_str_eq(err.hint, "-s precision.policy=float32");
    ck_assert_ptr_null(p);
    model_destroy(model);

    char text[sizeof language_model + 64];
    const char *at = strstr(language_model, streaming);
    ck_assert_ptr_nonnull(at);
    (void)snprintf(text, sizeof text, "%.*sheads: 2, form: materialised}%s", (int)(at - language_model),
                   language_model, at + strlen(streaming));
    p = compile_with(text, "precision.policy=float64");
    program_destroy(p);
}
END_TEST

START_TEST(every_combination_without_rules_is_refused)
{
    static const char *const pairs[] = {
        "execution.mode=graph",        "precision.policy=bfloat16", "checkpoint.strategy=selective",
        "offload.activations=on",      "offload.optimizer=on",      "optimizer.kind=lion",
        "optimizer.fused_backward=on", "optimizer.ema=0.9",
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        hr_err err = {0};
        hr_knobs knobs = pytorch_knobs(pairs[k]);
        ck_assert_int_eq(hr_knobs_validate(&knobs, &err), HR_CONSTRAINT);
        ck_assert_ptr_nonnull(strstr(err.sentence, "execution.as=pytorch"));
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, err.hint + 3, NULL), HR_OK); // "-s key=value"
        ck_assert_int_eq(hr_knobs_validate(&knobs, NULL), HR_OK);
    }
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    hr_model *model = model_from_text(models[_i % MODELS]);
    hr_knobs knobs = pytorch_knobs(policies[_i / MODELS]);
    ck_assert_int_eq(
        hr_knobs_set_pair(&knobs, _i == 1 ? "optimizer.implementation=loop" : "train.seed=1", NULL), HR_OK);
    const char *more = _i == 0 ? "optimizer.clip_norm=1" : "batch.accumulate=2";
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, more, NULL), HR_OK);
    compile_starved(model, &knobs, 2, &target);
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pytorch");
    TCase *tests = tcase_create("pytorch");
    tcase_add_loop_test(tests, what_is_kept_lives_until_its_gradient_has_been_taken_and_no_longer, 0, CASES);
    tcase_add_loop_test(tests, saved_bytes_count_every_storage_but_parameters_and_buffers, 0, CASES);
    tcase_add_test(tests, results_lie_over_their_input_where_networks_ask_for_it);
    tcase_add_test(tests, counts_are_int64_and_a_mask_that_multiplies_is_as_wide_as_its_input);
    tcase_add_test(tests, a_packed_attention_keeps_a_copy_and_a_slice_its_input);
    tcase_add_test(tests, an_attention_of_views_casts_its_input_once);
    tcase_add_loop_test(tests, an_answer_without_a_name_goes_when_the_loss_is_there, 0, MODELS);
    tcase_add_test(tests, a_packed_attention_needs_the_streaming_form);
    tcase_add_test(tests, the_loss_has_its_weight_and_both_its_gradients);
    tcase_add_test(tests, binary_losses_keep_what_their_chains_of_primitives_keep);
    tcase_add_test(tests, autocast_computes_each_operation_in_its_own_type);
    tcase_add_test(tests, a_cast_that_pytorch_does_without_holds_no_bytes_of_its_own);
    tcase_add_test(tests, casts_of_weights_live_as_autocast_and_autograd_keep_them);
    tcase_add_test(tests, the_loss_under_autocast_has_its_log_softmax_in_the_type_of_its_logits);
    tcase_add_loop_test(tests, gradients_of_weights_live_until_the_step_ends, 0, MODELS);
    tcase_add_test(tests, an_optimizer_makes_lists_or_one_after_the_other_or_nothing);
    tcase_add_loop_test(tests, gradients_are_clipped_where_they_lie, 0, MODELS);
    tcase_add_loop_test(tests, gradients_of_a_round_go_when_they_have_been_added, 0, MODELS);
    tcase_add_loop_test(tests, what_runs_again_is_kept_until_its_gradient_has_been_taken, 0, MODELS);
    tcase_add_test(tests, what_a_dropped_attention_holds_goes_at_once_and_comes_again);
    tcase_add_test(tests, what_has_no_rule_is_refused_by_name);
    tcase_add_test(tests, attention_in_float64_is_refused_unless_its_scores_are_materialised);
    tcase_add_test(tests, every_combination_without_rules_is_refused);
    tcase_add_loop_test(tests, every_allocation_may_fail_once, 0, CASES);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
