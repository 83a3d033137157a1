// SPDX-License-Identifier: Apache-2.0
// What a first step makes to stay under execution.as=pytorch: a build takes and gives back what that step does, with the
// optimizer's slots allocated as its first update begins and, for a card, cuBLAS's workspaces at the first products, and keeps
// nothing of it but them.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "device/executor.h"
#include "program/compile.h"
#include "program/model_from_text.h"

enum { BATCH = 64, EVENTS_MAX = 4096, GRAIN = 512 };

static const char text[] = "device: {vram: 1GiB}\n"
                           "model:\n"
                           "  name: images\n"
                           "  input: {shape: [16, 16, 4]}\n"
                           "  classes: 10\n"
                           "  loss: softmax_cross_entropy\n"
                           "  layers:\n"
                           "    - {name: conv, kind: conv2d, filters: 64, kernel: 3, padding: same}\n"
                           "    - {name: norm, kind: batch_norm, activation: relu}\n"
                           "    - {name: flat, kind: flatten}\n"
                           "    - {name: wide, kind: dense, units: 64, activation: relu}\n"
                           "    - {name: head, kind: dense, units: 10}\n";

typedef struct told {
    bool taken; // or given back
    uint32_t id;
} told;

typedef struct story {
    told events[EVENTS_MAX];
    uint32_t count;
} story;

static backing source;
static trace_bus bus;
static allocator *heap;
static executor *x;
static story heard;
static hr_err err;

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out, hr_err *e)
{
    (void)context, (void)q, (void)limit, (void)e;
    *out = (target_answer){0};
    return HR_OK;
}

static bool fuses_all(void *context, hr_op op, hr_act act)
{
    (void)context, (void)op, (void)act;
    return true;
}

static hr_target target = {.name = "willing", .key = 118, .ask = ask_nothing, .fuses = fuses_all};

static program *compile_as(const char *as, const char *optimizer)
{
    hr_knobs knobs;
    program *p = NULL;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_BATCH_SIZE, "64", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_AS, as, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_OPTIMIZER_KIND, optimizer, NULL), HR_OK);
    hr_model *model = model_from_text(text);
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN, BATCH, &target, &p, &err) == HR_OK, "%s",
                  err.sentence);
    model_destroy(model);
    return p;
}

static void add(story *s, bool taken, uint32_t id)
{
    ck_assert_uint_lt(s->count, EVENTS_MAX);
    s->events[s->count++] = (told){taken, id};
}

static void hear(void *context, const hr_event *event)
{
    if (event->kind == HR_EVENT_ALLOC || event->kind == HR_EVENT_FREE) {
        add(context, event->kind == HR_EVENT_ALLOC, event->u.memory.tensor);
    }
}

static void open_heap(const char *kind, uint64_t limit_bytes)
{
    allocator_config config = {.kind = kind, .limit_bytes = limit_bytes};
    err = (hr_err){0};
    heard.count = 0;
    trace_bus_init(&bus);
    ck_assert(trace_attach(&bus, hear, &heard));
    ck_assert_int_eq(backing_numbers_open(limit_bytes, GRAIN, &source, NULL), HR_OK);
    ck_assert_int_eq(allocator_create(&config, &source, &bus, &heap, NULL), HR_OK);
    ck_assert_int_eq(executor_create(NULL, NULL, heap, &bus, &x, NULL), HR_OK);
}

static void close_heap(void)
{
    trace_detach(&bus, hear, &heard);
    executor_destroy(x);
    allocator_destroy(heap);
    backing_close(&source);
}

static bool is_slot(const program *p, uint32_t id)
{
    return p->tensors[id].category == HR_CATEGORY_OPTIMIZER;
}

static bool is_workspace(const program *p, uint32_t id)
{
    return id < p->persistent_count && p->tensors[id].category == HR_CATEGORY_TEMPORARIES;
}

// The network has a dense layer with a bias before the loss, and the other's gradient behind it.
static bool is_first_forward(const program *p, uint32_t n)
{
    return p->instrs[n].op == HR_OP_DENSE && strcmp(p->layer_names[p->instrs[n].layer], "wide") == 0;
}

static bool is_first_backward(const program *p, uint32_t n)
{
    return p->instrs[n].op == HR_OP_DENSE_BWD_DATA && strcmp(p->layer_names[p->instrs[n].layer], "head") == 0;
}

static void add_workspaces(const program *p, const char *phase, story *out)
{
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        if (is_workspace(p, k) && strstr(p->tensors[k].name, phase) != NULL) {
            add(out, true, k);
        }
    }
}

// What PyTorch's allocator sees up to the end of the first step.
static void expect(const program *p, bool late, story *out)
{
    bool updating = !late;
    out->count = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        if (!late || !(is_slot(p, k) || is_workspace(p, k))) {
            add(out, true, k);
        }
    }
    for (uint32_t n = 0; late && n < p->instr_count; n++) {
        const instr *i = &p->instrs[n];
        for (uint32_t k = 0; !updating && i->phase == HR_PHASE_UPDATE && k < p->persistent_count; k++) {
            if (is_slot(p, k)) {
                add(out, true, k);
            }
        }
        updating = updating || i->phase == HR_PHASE_UPDATE;
        if (is_first_forward(p, n)) {
            add_workspaces(p, "forward", out);
        }
        if (is_first_backward(p, n)) {
            add_workspaces(p, "backward", out);
        }
        if (i->op == HR_OP_ALLOC || i->op == HR_OP_FREE) {
            add(out, i->op == HR_OP_ALLOC, i->op == HR_OP_ALLOC ? i->out[0] : i->in[0]);
        }
    }
}

static uint64_t persistent_bytes(const program *p)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        bytes += (p->tensors[k].bytes + GRAIN - 1) / GRAIN * GRAIN;
    }
    return bytes;
}

static void check_build(const char *as, const char *optimizer, bool late)
{
    static story wanted;
    program *p = compile_as(as, optimizer);
    expect(p, late, &wanted);
    open_heap("direct", HR_GIB);
    ck_assert_msg(executor_build(x, p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(heard.count, wanted.count);
    for (uint32_t k = 0; k < heard.count; k++) {
        ck_assert_msg(heard.events[k].taken == wanted.events[k].taken &&
                          heard.events[k].id == wanted.events[k].id,
                      "event %u is of %s", k, p->tensors[heard.events[k].id].name);
    }
    ck_assert_uint_eq(allocator_get_stats(heap).in_use_bytes, persistent_bytes(p));
    ck_assert_int_eq(allocator_check(heap, &err), HR_OK);
    close_heap();
    program_destroy(p);
}

START_TEST(slots_lie_where_the_first_step_left_room)
{
    check_build("pytorch", "adamw", true);
    check_build("pytorch", "rmsprop", true);
    check_build("pytorch", "sgd", true);
}
END_TEST

static uint32_t workspaces_of(const char *as, uint32_t compute_major, uint64_t bytes[3])
{
    uint32_t count = 0;
    target.compute_major = compute_major;
    program *p = compile_as(as, "sgd");
    for (uint32_t k = 0; k < p->persistent_count; k++) {
        if (is_workspace(p, k)) {
            ck_assert_uint_lt(count, 3);
            bytes[count++] = p->tensors[k].bytes;
        }
    }
    program_destroy(p);
    target.compute_major = 0;
    return count;
}

// CUBLAS_WORKSPACE_CONFIG by default: :4096:2:16:8, and 32 MiB for Hopper and Blackwell (9 to 12); 1 MiB of cuBLASLt's.
START_TEST(a_card_has_workspaces_of_cublas)
{
    uint64_t bytes[3];
    ck_assert_uint_eq(workspaces_of("pytorch", 8, bytes), 3);
    ck_assert_uint_eq(bytes[0], 8519680);
    ck_assert_uint_eq(bytes[1], 1048576);
    ck_assert_uint_eq(bytes[2], 8519680);
    for (uint32_t major = 9; major <= 13; major++) {
        const uint64_t handle = major <= 12 ? 33554432 : 8519680;
        ck_assert_uint_eq(workspaces_of("pytorch", major, bytes), 3);
        ck_assert_uint_eq(bytes[0], handle);
        ck_assert_uint_eq(bytes[1], 1048576);
        ck_assert_uint_eq(bytes[2], handle);
    }
    ck_assert_uint_eq(workspaces_of("pytorch", 0, bytes), 0);
    ck_assert_uint_eq(workspaces_of("headroom", 9, bytes), 0);
}
END_TEST

START_TEST(workspaces_are_made_at_the_first_products_and_stay)
{
    target.compute_major = 9;
    check_build("pytorch", "adamw", true);
    check_build("pytorch", "sgd", true);
    target.compute_major = 0;
}
END_TEST

START_TEST(without_pytorchs_rules_a_build_is_what_lasts_and_nothing_else)
{
    target.compute_major = 9;
    check_build("headroom", "adamw", false);
    target.compute_major = 0;
}
END_TEST

START_TEST(a_card_without_room_for_a_step_is_built_and_its_step_says_so)
{
    program *p = compile_as("pytorch", "adamw");
    const uint64_t lasting_bytes = persistent_bytes(p);
    uint32_t slot = 0;
    step_io io = {0};
    open_heap("direct", lasting_bytes + GRAIN);
    ck_assert_msg(executor_build(x, p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(allocator_get_stats(heap).in_use_bytes, lasting_bytes);
    ck_assert(!executor_last_oom(x)->happened);
    ck_assert_int_eq(executor_attach(x, p, &slot, &err), HR_OK);
    ck_assert_int_eq(executor_step(x, slot, &io, &err), HR_OOM);
    ck_assert_uint_eq(allocator_get_stats(heap).in_use_bytes, lasting_bytes);
    close_heap();
    program_destroy(p);
}
END_TEST

// What is above the threshold is unmapped as a step ends, so that what the next one maps depends on it.
START_TEST(a_build_ends_as_a_step_does)
{
    program *p = compile_as("pytorch", "adamw");
    uint32_t slot = 0;
    step_io io = {0};
    open_heap("async", HR_GIB);
    ck_assert_msg(executor_build(x, p, &err) == HR_OK, "%s", err.sentence);
    const uint64_t pool_bytes = allocator_get_stats(heap).pool_bytes;
    ck_assert_int_eq(executor_attach(x, p, &slot, &err), HR_OK);
    ck_assert_int_eq(executor_step(x, slot, &io, &err), HR_OK);
    ck_assert_uint_eq(allocator_get_stats(heap).pool_bytes, pool_bytes);
    close_heap();
    program_destroy(p);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    program *p = compile_as("pytorch", "adamw");
    const int64_t live = hr_host_mem_live();
    bool failed_once = true;
    for (uint64_t nth = 1; failed_once; nth++) {
        open_heap("direct", HR_GIB);
        (void)hr_host_mem_fail_at(nth);
        const hr_status status = executor_build(x, p, &err);
        failed_once = hr_host_mem_fail_at(0) >= nth;
        ck_assert(failed_once || status == HR_OK);
        ck_assert(status == HR_OK || status == HR_NOMEM ||
                  status == HR_OOM); // OOM: of the backing's own books
        close_heap();
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    program_destroy(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("first_step");
    TCase *tc = tcase_create("first_step");
    tcase_add_test(tc, slots_lie_where_the_first_step_left_room);
    tcase_add_test(tc, a_card_has_workspaces_of_cublas);
    tcase_add_test(tc, workspaces_are_made_at_the_first_products_and_stay);
    tcase_add_test(tc, without_pytorchs_rules_a_build_is_what_lasts_and_nothing_else);
    tcase_add_test(tc, a_card_without_room_for_a_step_is_built_and_its_step_says_so);
    tcase_add_test(tc, a_build_ends_as_a_step_does);
    tcase_add_test(tc, every_allocation_may_fail_once);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
