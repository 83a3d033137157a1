// SPDX-License-Identifier: Apache-2.0
// execution.layout auto over random networks: the operations are those of nhwc on the same values, no operation mixes
// layouts, what is paid for reorders is less than what the blocked convolutions save, and workspace.limit is kept.
#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"
#include "headroom/knobs.h"

#include "base/hash.h"
#include "base/host_mem.h"
#include "program/compile.h"
#include "program/model_from_text.h"

enum { NETWORKS = 60, MAX_LAYERS = 12, TEXT_BYTES = 4096, MAX_CHAIN = 64 };

static const double gain_per_flop = 1e-9;

// ---- a device with a few blocked kernels ----------------------------------------------------------------------

static bool is_convolution(uint32_t op)
{
    return op == HR_OP_CONV2D || op == HR_OP_CONV2D_BWD_DATA || op == HR_OP_CONV2D_BWD_WEIGHTS;
}

static bool has_blocked_kernel(uint32_t op)
{
    static const hr_op ops[] = {HR_OP_BATCH_NORM,         HR_OP_BATCH_NORM_BWD,
                                HR_OP_BATCH_NORM_APPLY,   HR_OP_RELU,
                                HR_OP_RELU_BWD,           HR_OP_ADD,
                                HR_OP_MAX_POOL,           HR_OP_MAX_POOL_BWD,
                                HR_OP_MAX_POOL_BWD_INDEX, HR_OP_UPSAMPLE,
                                HR_OP_UPSAMPLE_BWD,       HR_OP_CONCAT,
                                HR_OP_GLOBAL_AVG_POOL,    HR_OP_GLOBAL_AVG_POOL_BWD};
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
        if (ops[k] == op) {
            return true;
        }
    }
    return is_convolution(op);
}

// Place of a convolution's weights among inputs and outputs, counted through.
static bool is_weights(const op_query *q, uint32_t place)
{
    const uint32_t weights = q->op == HR_OP_CONV2D_BWD_WEIGHTS ? q->in_count : 1;
    return (is_convolution(q->op) && place == weights) ||
           (q->op >= HR_OP_CONV2D_TRANSPOSE && place == weights &&
            q->op <= HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS);
}

static bool is_first_image(const op_query *q, uint32_t place)
{
    return is_convolution(q->op) && place == 0 && q->op != HR_OP_CONV2D_BWD_DATA &&
           q->in[0].shape.dim[3] < OP_BLOCK_CHANNELS;
}

static void count_layouts(const op_query *q, unsigned *plain, unsigned *blocked)
{
    *plain = *blocked = 0;
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        const op_operand *t = k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
        if (t->shape.rank == 4 && !is_weights(q, k) && !is_first_image(q, k)) {
            *plain += t->layout == HR_LAYOUT_PLAIN;
        }
        ck_assert(t->layout != HR_LAYOUT_BLOCKED || t->shape.dim[3] % OP_BLOCK_CHANNELS == 0);
        *blocked += t->layout == HR_LAYOUT_BLOCKED;
    }
}

static bool prefers(void *context, const op_query *q)
{
    unsigned plain = 0, blocked = 0;
    (void)context;
    count_layouts(q, &plain, &blocked);
    return has_blocked_kernel(q->op) && plain == 0 && blocked > 0;
}

static uint64_t scratch_bytes(const op_query *q, unsigned blocked)
{
    uint64_t bytes = 0, padding_bytes = 0;
    (void)operand_bytes(&q->in[0], &bytes, &padding_bytes);
    return blocked > 0 && is_convolution(q->op) ? bytes : 0;
}

// Refuses what a device without mixed kernels refuses. A blocked convolution wants as much scratch as its image has.
static hr_status ask(void *context, const op_query *q, uint64_t limit, target_answer *out, hr_err *err)
{
    unsigned plain = 0, blocked = 0;
    *out = (target_answer){0};
    count_layouts(q, &plain, &blocked);
    if (q->op == HR_OP_REORDER) {
        ck_assert_uint_eq(q->attr.peer, HR_NO_ID);
        ck_assert_uint_ne(q->in[0].layout, q->out[0].layout);
        return HR_OK;
    }
    if (scratch_bytes(q, blocked) > limit) {
        return HR_FAIL(err, DEVICE, "%s needs more scratch", op_name((hr_op)q->op));
    }
    out->impl = "blocks";
    return blocked == 0 || prefers(context, q)
               ? HR_OK
               : HR_FAIL(err, DEVICE, "%s mixes layouts", op_name((hr_op)q->op));
}

static bool fuses_nothing(void *context, hr_op op, hr_act act)
{
    (void)context, (void)op, (void)act;
    return false;
}

static double gain(void *context, const op_query *q, const target_answer *answer)
{
    (void)context;
    ck_assert_msg(answer->impl != NULL, "%s: a gain is asked for, and nobody computes it",
                  op_name((hr_op)q->op));
    return is_convolution(q->op) ? gain_per_flop * (double)op_flops(q) : 0.0;
}

static double reorder(void *context, uint64_t bytes)
{
    return *(const double *)context * (double)bytes;
}

static hr_target target_at(double *seconds_per_byte)
{
    return (hr_target){.name = "blocks",
                       .key = 7,
                       .context = seconds_per_byte,
                       .ask = ask,
                       .fuses = fuses_nothing,
                       .prefers_blocked = prefers,
                       .blocked_gain_seconds = gain,
                       .reorder_seconds = reorder};
}

// ---- random networks ------------------------------------------------------------------------------------------

typedef struct network {
    char text[TEXT_BYTES];
    size_t used;
    uint64_t state;
    int size[MAX_LAYERS], channels[MAX_LAYERS], count; // of the layers so far
} network;

static int pick(network *w, int count)
{
    w->state = hash64_mix(w->state, 1);
    return (int)(w->state % (uint64_t)count);
}

static void say(network *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(w->text + w->used, sizeof w->text - w->used, format, arguments);
    va_end(arguments);
    ck_assert(written > 0 && (size_t)written < sizeof w->text - w->used);
    w->used += (size_t)written;
}

static void add_layer(network *w, int size, int channels)
{
    w->size[w->count] = size;
    w->channels[w->count++] = channels;
}

static int earlier_like(network *w, bool same_channels)
{
    const int last = w->count - 1;
    for (int k = 0; k < last; k++) {
        if (w->size[k] == w->size[last] && (!same_channels || w->channels[k] == w->channels[last])) {
            return k;
        }
    }
    return -1;
}

static void grow(network *w)
{
    static const int filters[] = {16, 32, 24};
    const int last = w->count - 1, size = w->size[last], channels = w->channels[last];
    const int twin = earlier_like(w, true), neighbour = earlier_like(w, false);
    switch (pick(w, 8)) {
    case 0:
        say(w, "    - {name: l%d, kind: batch_norm, activation: relu}\n", w->count);
        add_layer(w, size, channels);
        return;
    case 1:
        if (size >= 4) {
            say(w, "    - {name: l%d, kind: max_pool, size: 2}\n", w->count);
            add_layer(w, size / 2, channels);
        }
        return;
    case 2:
        if (size <= 8) {
            say(w, "    - {name: l%d, kind: conv2d_transpose, filters: %d, kernel: 2, stride: 2}\n", w->count,
                filters[pick(w, 3)]);
            add_layer(w, size * 2, 0);
            w->channels[w->count - 1] = -1;
        }
        return;
    case 3:
        if (size <= 8) {
            say(w, "    - {name: l%d, kind: upsample, size: 2}\n", w->count);
            add_layer(w, size * 2, channels);
        }
        return;
    case 4:
        if (twin >= 0 && channels > 0) {
            say(w, "    - {name: l%d, kind: add, inputs: [l%d, l%d], activation: relu}\n", w->count, twin,
                last);
            add_layer(w, size, channels);
        }
        return;
    case 5:
        if (neighbour >= 0) {
            say(w, "    - {name: l%d, kind: concat, inputs: [l%d, l%d]}\n", w->count, neighbour, last);
            add_layer(w, size, -1);
        }
        return;
    default: {
        const int f = filters[pick(w, 3)];
        say(w, "    - {name: l%d, kind: conv2d, filters: %d, kernel: 3, padding: 1, activation: relu}\n",
            w->count, f);
        add_layer(w, size, f);
    }
    }
}

static void make_network(network *w, uint64_t seed)
{
    *w = (network){.state = seed};
    say(w, "device: {vram: 1GiB}\nmodel:\n  name: random\n  input: {shape: [8, 8, 3]}\n  classes: 4\n"
           "  loss: softmax_cross_entropy\n  layers:\n"
           "    - {name: l0, kind: conv2d, filters: 16, kernel: 3, padding: 1}\n");
    add_layer(w, 8, 16);
    while (w->count < 4 + (int)(seed % (MAX_LAYERS - 4))) {
        grow(w);
    }
    say(w, "    - {name: flat, kind: %s}\n    - {name: out, kind: dense, units: 4}\n",
        seed % 2 == 0 ? "flatten" : "global_avg_pool");
}

static program *compile(const char *text, const char *const *pairs, const char *layout,
                        const hr_target *target)
{
    hr_err err = {0};
    hr_knobs knobs;
    program *p = NULL;
    hr_model *model = model_from_text(text);
    hr_knobs_init(&knobs);
    ck_assert(hr_knobs_set_pair(&knobs, layout, &err) == HR_OK);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    target_forget();
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN, 4, target, &p, &err) == HR_OK, "%s\n%s",
                  err.sentence, text);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s\n%s", err.sentence, text);
    model_destroy(model);
    return p;
}

// ---- what is asked of them ------------------------------------------------------------------------------------

static bool is_image_reorder(const instr *i)
{
    return i->op == HR_OP_REORDER && i->attr.peer == HR_NO_ID;
}

static bool is_memory(const instr *i)
{
    return i->op == HR_OP_ALLOC || i->op == HR_OP_FREE || is_image_reorder(i);
}

// The value's first name: that of the image that it is a copy of.
static const char *value_name(const program *p, uint32_t before, uint32_t id)
{
    for (uint32_t n = before; n-- > 0;) {
        if (is_image_reorder(&p->instrs[n]) && p->instrs[n].out[0] == id) {
            return value_name(p, n, p->instrs[n].in[0]);
        }
    }
    return p->tensors[id].name;
}

static const instr *next_compute(const program *p, uint32_t *n)
{
    while (*n < p->instr_count && is_memory(&p->instrs[*n])) {
        ++*n;
    }
    return *n < p->instr_count ? &p->instrs[*n] : NULL;
}

static void same_work(const program *plain, const program *chosen)
{
    uint32_t a = 0, b = 0;
    for (;; a++, b++) {
        const instr *x = next_compute(plain, &a), *y = next_compute(chosen, &b);
        if (x == NULL || y == NULL) {
            ck_assert(x == y);
            return;
        }
        ck_assert_str_eq(op_name(x->op), op_name(y->op));
        ck_assert(x->in_count == y->in_count && x->out_count == y->out_count);
        for (uint32_t k = 0; k < x->in_count; k++) {
            ck_assert_str_eq(plain->tensors[x->in[k]].name, value_name(chosen, b, y->in[k]));
        }
        for (uint32_t k = 0; k < x->out_count; k++) {
            ck_assert_str_eq(plain->tensors[x->out[k]].name, chosen->tensors[y->out[k]].name);
        }
    }
}

typedef struct account {
    unsigned reorders, blocked_convolutions;
    double paid_bytes, saved_seconds;
    uint64_t largest_copy_bytes;
} account;

static account account_of(const program *p)
{
    account a = {0};
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        op_query q;
        program_query(p, i, &q);
        if (is_image_reorder(i)) {
            const uint64_t bytes = p->tensors[i->in[0]].bytes;
            a.reorders++;
            a.paid_bytes += (double)(bytes + p->tensors[i->out[0]].bytes);
            a.largest_copy_bytes = bytes > a.largest_copy_bytes ? bytes : a.largest_copy_bytes;
        } else if (is_convolution(i->op) && prefers(NULL, &q)) {
            a.blocked_convolutions++;
            a.saved_seconds += gain_per_flop * (double)op_flops(&q);
        }
    }
    return a;
}

static const char *const settings[][4] = {
    {"execution.mode=graph", NULL},
    {"execution.mode=eager", NULL},
    {"execution.mode=graph", "batch.accumulate=2", NULL},
    {"execution.mode=graph", "checkpoint.strategy=sqrt", NULL},
    {"execution.mode=eager", "checkpoint.strategy=sqrt", NULL},
    {"execution.mode=graph", "execution.inplace=off", "execution.fuse=off", NULL},
};

// 0: reorders cost nothing; the last: more than anything saves.
static double rates[] = {0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1.0};

START_TEST(blocked_runs_pay_for_their_reorders_and_change_no_work)
{
    unsigned reorders = 0, blocked = 0;
    for (uint64_t seed = 0; seed < NETWORKS; seed++) {
        network w;
        make_network(&w, seed);
        double *rate = &rates[seed % (sizeof rates / sizeof rates[0])];
        const hr_target target = target_at(rate);
        program *plain = compile(w.text, settings[_i], "execution.layout=nhwc", &target);
        program *chosen = compile(w.text, settings[_i], "execution.layout=auto", &target);
        same_work(plain, chosen);
        const account a = account_of(chosen);
        ck_assert_msg(a.saved_seconds >= *rate * a.paid_bytes, "seed %u: %g saved, %g bytes moved",
                      (unsigned)seed, a.saved_seconds, a.paid_bytes);
        ck_assert_uint_eq(account_of(plain).blocked_convolutions, 0);
        reorders += a.reorders;
        blocked += a.blocked_convolutions;
        program_destroy(plain);
        program_destroy(chosen);
    }
    ck_assert_uint_gt(reorders, NETWORKS / 2);
    ck_assert_uint_gt(blocked, NETWORKS);
}
END_TEST

START_TEST(workspace_limit_bounds_every_copy_and_every_kernel)
{
    double rate = 1e-9;
    const hr_target target = target_at(&rate);
    unsigned blocked = 0;
    for (uint64_t seed = 0; seed < NETWORKS; seed++) {
        network w;
        make_network(&w, seed);
        const char *const pairs[] = {"workspace.limit=8KiB", NULL};
        program *p = compile(w.text, pairs, "execution.layout=auto", &target);
        ck_assert_uint_le(account_of(p).largest_copy_bytes, 8192);
        blocked += account_of(p).blocked_convolutions;
        program_destroy(p);
    }
    ck_assert_uint_gt(blocked, 0);
}
END_TEST

static const char ends_flat[] =
    "device: {vram: 1GiB}\nmodel:\n  name: flat\n  input: {shape: [16, 16, 3]}\n  classes: 4\n"
    "  loss: softmax_cross_entropy\n  layers:\n"
    "    - {name: a, kind: conv2d, filters: 32, kernel: 3, padding: 1}\n"
    "    - {name: b, kind: conv2d, filters: 32, kernel: 3, padding: 1, activation: relu}\n"
    "    - {name: pool, kind: max_pool, size: 2}\n"
    "    - {name: up, kind: upsample, size: 2}\n"
    "    - {name: flat, kind: flatten}\n"
    "    - {name: out, kind: dense, units: 4}\n";

START_TEST(a_run_ends_where_the_image_is_smallest)
{
    double rate = 1e-9;
    const hr_target target = target_at(&rate);
    program *p = compile(ends_flat, settings[0], "execution.layout=auto", &target);
    const account a = account_of(p);
    ck_assert_uint_eq(a.blocked_convolutions, 2 + 1 + 2); // forward, data, weights
    ck_assert_uint_eq(a.reorders, 2);                     // behind the pooling, and its gradient
    for (uint32_t n = 0; n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        ck_assert(!is_image_reorder(i) || strncmp(p->tensors[i->in[0]].name, "pool/", 5) == 0);
        ck_assert(i->op != HR_OP_UPSAMPLE || p->tensors[i->out[0]].layout == HR_LAYOUT_PLAIN);
        ck_assert(i->op != HR_OP_MAX_POOL || p->tensors[i->out[0]].layout == HR_LAYOUT_BLOCKED);
    }
    program_destroy(p);
}
END_TEST

START_TEST(every_failing_allocation_is_told)
{
    double rate = 1e-9;
    const hr_target target = target_at(&rate);
    hr_knobs knobs;
    hr_err err = {0};
    hr_model *model = model_from_text(ends_flat);
    hr_knobs_init(&knobs);
    ck_assert(hr_knobs_set_pair(&knobs, "execution.layout=auto", &err) == HR_OK);
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK && nth < 100000; nth++) {
        program *p = NULL;
        target_forget();
        const int64_t live = hr_host_mem_live();
        (void)hr_host_mem_fail_at(nth);
        status = program_compile(model, &knobs, PROGRAM_TRAIN, 4, &target, &p, &err);
        (void)hr_host_mem_fail_at(0);
        ck_assert_msg(status == HR_OK || status == HR_NOMEM, "%s", err.sentence);
        program_destroy(p);
        target_forget();
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layout");
    TCase *c = tcase_create("layout");
    tcase_add_loop_test(c, blocked_runs_pay_for_their_reorders_and_change_no_work, 0,
                        (int)(sizeof settings / sizeof settings[0]));
    tcase_add_test(c, workspace_limit_bounds_every_copy_and_every_kernel);
    tcase_add_test(c, a_run_ends_where_the_image_is_smallest);
    tcase_add_test(c, every_failing_allocation_is_told);
    tcase_set_timeout(c, 120);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
