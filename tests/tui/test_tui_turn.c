// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "headroom/units.h"

#include "app/tui/feed/knob_edit.h"
#include "tests/tui/suite.h"

static hr_knobs knobs_with(const char *pair)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=64MiB", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    return knobs;
}

START_TEST(neighbours_are_what_a_hand_would_type)
{
    static const struct {
        const char *pair;
        hr_knob_id id;
        const char *less, *more; // "": none
    } rows[] = {
        {"batch.size=128", HR_KNOB_BATCH_SIZE, "64", "256"},
        {"batch.size=1", HR_KNOB_BATCH_SIZE, "", "2"},
        {"batch.size=1048576", HR_KNOB_BATCH_SIZE, "524288", ""},
        {"threads.count=2", HR_KNOB_THREADS_COUNT, "1", "3"},
        {"threads.count=0", HR_KNOB_THREADS_COUNT, "", "1"},
        {"pipeline.prefetch=2", HR_KNOB_PIPELINE_PREFETCH, "1", "4"},
        {"optimizer.kind=momentum", HR_KNOB_OPTIMIZER_KIND, "sgd", "rmsprop"},
        {"optimizer.kind=adam8bit", HR_KNOB_OPTIMIZER_KIND, "lion", ""},
        {"execution.mode=eager", HR_KNOB_EXECUTION_MODE, "", "graph"},
        {"device.vram=64MiB", HR_KNOB_DEVICE_VRAM, "60MiB", "72MiB"},
        {"device.vram=4GiB", HR_KNOB_DEVICE_VRAM, "3840MiB", "4608MiB"},
        {"device.vram=1MiB", HR_KNOB_DEVICE_VRAM, "", "2MiB"},
        {"optimizer.learning_rate=0.001", HR_KNOB_OPTIMIZER_LEARNING_RATE, "0.0005", "0.002"},
        {"optimizer.learning_rate=0.002", HR_KNOB_OPTIMIZER_LEARNING_RATE, "0.001", "0.005"},
        {"optimizer.learning_rate=0.003", HR_KNOB_OPTIMIZER_LEARNING_RATE, "0.002", "0.005"},
        {"optimizer.learning_rate=0", HR_KNOB_OPTIMIZER_LEARNING_RATE, "", "1e-05"},
        {"optimizer.learning_rate=1000", HR_KNOB_OPTIMIZER_LEARNING_RATE, "500", ""},
        {"optimizer.momentum=0.9", HR_KNOB_OPTIMIZER_MOMENTUM, "0.85", "0.95"},
        {"train.save=x", HR_KNOB_TRAIN_SAVE, "", ""},
        {"checkpoint.strategy=none", HR_KNOB_CHECKPOINT_STRATEGY, "", "selective"},
        {"checkpoint.strategy=sqrt", HR_KNOB_CHECKPOINT_STRATEGY, "blocks", ""},
        {"checkpoint.strategy=every:3", HR_KNOB_CHECKPOINT_STRATEGY, "", "none"},
        {"optimizer.clip_norm=none", HR_KNOB_OPTIMIZER_CLIP_NORM, "", "0.1"},
        {"optimizer.clip_norm=0.5", HR_KNOB_OPTIMIZER_CLIP_NORM, "0.1", "1"},
        {"optimizer.clip_norm=2", HR_KNOB_OPTIMIZER_CLIP_NORM, "1", "5"},
        {"optimizer.clip_norm=7", HR_KNOB_OPTIMIZER_CLIP_NORM, "5", ""},
        {"optimizer.ema=0.99", HR_KNOB_OPTIMIZER_EMA, "0.9", "0.999"},
        {"workspace.limit=none", HR_KNOB_WORKSPACE_LIMIT, "512MiB", ""},
        {"workspace.limit=32MiB", HR_KNOB_WORKSPACE_LIMIT, "8MiB", "128MiB"},
        {"workspace.limit=100MiB", HR_KNOB_WORKSPACE_LIMIT, "32MiB", "128MiB"},
        {"workspace.limit=2GiB", HR_KNOB_WORKSPACE_LIMIT, "512MiB", "none"},
        {"workspace.limit=0", HR_KNOB_WORKSPACE_LIMIT, "", "1MiB"},
        {"precision.loss_scale=dynamic", HR_KNOB_PRECISION_LOSS_SCALE, "none", "1024"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char less[HR_KNOB_TEXT_MAX], more[HR_KNOB_TEXT_MAX];
        hr_knobs knobs = knobs_with(rows[i].pair);
        bool has_less = knob_edit_neighbour(&knobs, rows[i].id, KNOB_EDIT_LESS, 0, less);
        bool has_more = knob_edit_neighbour(&knobs, rows[i].id, KNOB_EDIT_MORE, 0, more);
        ck_assert_msg(strcmp(has_less ? less : "", rows[i].less) == 0, "%s: left is %s", rows[i].pair, less);
        ck_assert_msg(strcmp(has_more ? more : "", rows[i].more) == 0, "%s: right is %s", rows[i].pair, more);
    }
}
END_TEST

static bool is_a_list(hr_knob_id id)
{
    const char *words[KNOB_EDIT_WORDS_MAX];
    return hr_knob_rows(NULL)[id].type == HR_KNOB_CHOICE || knob_edit_words(id, words) > 0;
}

static bool can_stand(const hr_knobs *knobs, hr_knob_id id, const char *value)
{
    hr_knobs turned = *knobs, both;
    const hr_constraint *broken;
    return hr_knobs_set(&turned, id, value, NULL) == HR_OK &&
           (hr_knobs_validate(&turned, NULL) == HR_OK || knob_edit_both(&turned, id, &both, &broken));
}

// Beside a walk over the neighbours: what is reached stands wherever anything on that side does, and all before it do not.
static void check_reach(const hr_knobs *knobs, hr_knob_id id, int direction)
{
    char first[HR_KNOB_TEXT_MAX], next[HR_KNOB_TEXT_MAX], reached[HR_KNOB_TEXT_MAX], passed[HR_KNOB_TEXT_MAX];
    char expected[HR_KNOB_TEXT_MAX] = "";
    hr_knobs at = *knobs;
    const bool any = knob_edit_neighbour(knobs, id, direction, HR_GIB, first);
    ck_assert_int_eq(knob_edit_reach(knobs, id, direction, HR_GIB, reached, passed), any);
    if (!any) {
        return;
    }
    bool more = true;
    strcpy(next, first);
    while (is_a_list(id) && more && !can_stand(knobs, id, next)) {
        strcat(strcat(expected, expected[0] != '\0' ? ", " : ""), next);
        ck_assert_int_eq(hr_knobs_set(&at, id, next, NULL), HR_OK);
        more = knob_edit_neighbour(&at, id, direction, HR_GIB, next);
    }
    ck_assert_str_eq(reached, more ? next : first);
    ck_assert_str_eq(passed, more ? expected : "");
}

START_TEST(a_key_reaches_the_first_value_of_a_list_that_stands)
{
    static const char *const rules[] = {"execution.as=headroom", "execution.as=pytorch",
                                        "execution.as=tensorflow"};
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        const hr_knobs knobs = knobs_with(rules[r]);
        ck_assert_int_eq(hr_knobs_validate(&knobs, NULL), HR_OK);
        for (size_t i = 0; i < count; i++) {
            check_reach(&knobs, panel[i], KNOB_EDIT_LESS);
            check_reach(&knobs, panel[i], KNOB_EDIT_MORE);
        }
    }
}
END_TEST

START_TEST(a_size_that_is_not_set_starts_from_the_limit)
{
    char text[HR_KNOB_TEXT_MAX];
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert(!knob_edit_neighbour(&knobs, HR_KNOB_DEVICE_VRAM, KNOB_EDIT_LESS, 0, text));
    ck_assert(knob_edit_neighbour(&knobs, HR_KNOB_DEVICE_VRAM, KNOB_EDIT_LESS, 8 * HR_GIB, text));
    ck_assert_str_eq(text, "7680MiB");
}
END_TEST

START_TEST(every_neighbour_of_the_panel_can_be_set_however_far_it_is_turned)
{
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    ck_assert_uint_ge(count, 9);
    for (size_t i = 0; i < count; i++) {
        for (int direction = KNOB_EDIT_LESS; direction <= KNOB_EDIT_MORE; direction += 2) {
            hr_knobs knobs = knobs_with("batch.size=128");
            char text[HR_KNOB_TEXT_MAX];
            for (int turns = 0; turns < 400; turns++) {
                if (!knob_edit_neighbour(&knobs, panel[i], direction, HR_GIB, text)) {
                    break;
                }
                ck_assert_int_eq(hr_knobs_set(&knobs, panel[i], text, NULL), HR_OK);
            }
        }
    }
}
END_TEST

START_TEST(every_knob_of_more_than_one_value_is_in_the_panel_once)
{
    size_t count, all;
    const hr_knob_id *panel = knob_edit_panel(&count);
    const hr_knob_row *rows = hr_knob_rows(&all);
    size_t wanted = 0;
    for (size_t id = 0; id < all; id++) {
        size_t found = 0;
        for (size_t i = 0; i < count; i++) {
            found += (size_t)panel[i] == id;
        }
        bool turns = rows[id].type != HR_KNOB_CHOICE || rows[id].choices[1] != NULL;
        ck_assert_msg(found == turns, "%s is in the panel %zu times", rows[id].key, found);
        wanted += turns;
    }
    ck_assert_uint_eq(count, wanted);
    for (size_t i = KNOB_EDIT_FRONT + 1; i < count; i++) {
        ck_assert_int_lt(panel[i - 1], panel[i]);
    }
}
END_TEST

START_TEST(an_illegal_combination_changes_nothing)
{
    hr_knobs knobs = knobs_with("batch.size=128"), before = knobs;
    hr_err err;
    ck_assert_int_ne(knob_edit_set(&knobs, HR_KNOB_ALLOCATOR_FRACTION, "0.5", &err), HR_OK);
    ck_assert_int_ne(knob_edit_set(&knobs, HR_KNOB_BATCH_SIZE, "many", &err), HR_OK);
    ck_assert_mem_eq(&knobs, &before, sizeof knobs);
}
END_TEST

START_TEST(undo_and_redo_walk_the_same_way)
{
    knob_edit_log log = {0};
    hr_knob_value value[101] = {0};
    for (int i = 0; i <= 100; i++) {
        value[i].set = true;
        value[i].u.integer = i;
    }
    for (int i = 0; i < 100; i++) {
        knob_edit_log_add(&log, HR_KNOB_BATCH_SIZE, &value[i], &value[i + 1]);
    }
    for (int i = 99; i >= 100 - KNOB_EDIT_UNDO_MAX; i--) {
        ck_assert_int_eq(knob_edit_log_undo(&log)->before.u.integer, i);
    }
    ck_assert_ptr_null(knob_edit_log_undo(&log));
    for (int i = 100 - KNOB_EDIT_UNDO_MAX; i < 100; i++) {
        ck_assert_int_eq(knob_edit_log_redo(&log)->after.u.integer, i + 1);
    }
    ck_assert_ptr_null(knob_edit_log_redo(&log));
    knob_edit_log_undo(&log);
    knob_edit_log_add(&log, HR_KNOB_BATCH_SIZE, &value[0], &value[1]); // a new turn forgets what was undone
    ck_assert_ptr_null(knob_edit_log_redo(&log));
}
END_TEST

START_TEST(what_is_joined_is_forgotten_together)
{
    knob_edit_log log = {0};
    hr_knob_value value = {.set = true};
    for (int i = 0; i < 3; i++) {
        knob_edit_log_add(&log, HR_KNOB_BATCH_SIZE, &value, &value);
    }
    knob_edit_log_join(&log, 3);
    for (int i = 0; i < KNOB_EDIT_UNDO_MAX - 2; i++) { // one more than there is room for
        knob_edit_log_add(&log, HR_KNOB_BATCH_ACCUMULATE, &value, &value);
    }
    ck_assert_uint_eq(log.done, KNOB_EDIT_UNDO_MAX - 2);
    for (size_t i = 0; i < log.done; i++) {
        ck_assert(!log.step[i].joined);
        ck_assert_int_eq(log.step[i].id, HR_KNOB_BATCH_ACCUMULATE);
    }
}
END_TEST

// Every set on the way is legal, the last one is `to`, and nothing is turned twice.
static void check_order(const hr_knobs *from, const hr_knobs *to)
{
    hr_knob_id order[HR_KNOB_COUNT];
    size_t count;
    hr_knobs now = *from;
    ck_assert_int_eq(knob_edit_order(from, to, order, &count, NULL), HR_OK);
    for (size_t i = 0; i < count; i++) {
        ck_assert(knob_edit_differs(&now, to, order[i]));
        now.value[order[i]] = to->value[order[i]];
        ck_assert_int_eq(hr_knobs_validate(&now, NULL), HR_OK);
    }
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        ck_assert(!knob_edit_differs(&now, to, (hr_knob_id)id));
    }
}

START_TEST(several_knobs_are_turned_in_an_order_that_is_legal_all_the_way)
{
    // static needs graph, inplace is refused in eager: turned by the table's order, each way would fail half-way.
    hr_knobs eager = knobs_with("execution.mode=eager"), graph = eager;
    ck_assert_int_eq(hr_knobs_set_pair(&graph, "execution.mode=graph", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&graph, "allocator.kind=static", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&graph, "batch.size=7", NULL), HR_OK);
    check_order(&eager, &graph);
    check_order(&graph, &eager);
    hr_knobs illegal = eager;
    hr_knob_id order[HR_KNOB_COUNT];
    size_t count;
    ck_assert_int_eq(hr_knobs_set_pair(&illegal, "allocator.kind=static", NULL), HR_OK);
    ck_assert_int_eq(knob_edit_order(&eager, &illegal, order, &count, NULL), HR_CONSTRAINT);
}
END_TEST

SUITE_MAIN("tui turn", neighbours_are_what_a_hand_would_type,
           a_key_reaches_the_first_value_of_a_list_that_stands, a_size_that_is_not_set_starts_from_the_limit,
           every_neighbour_of_the_panel_can_be_set_however_far_it_is_turned,
           every_knob_of_more_than_one_value_is_in_the_panel_once, an_illegal_combination_changes_nothing,
           undo_and_redo_walk_the_same_way, what_is_joined_is_forgotten_together,
           several_knobs_are_turned_in_an_order_that_is_legal_all_the_way)
