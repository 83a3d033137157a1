// SPDX-License-Identifier: Apache-2.0
// The Model: layers, what belongs to one, and sums that are counted again.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/terms.h"

#include "app/tui/shell/panes.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/fake_step_plan.h"
#include "tests/tui/golden.h"
#include "tests/tui/suite.h"

static void planned(app *a)
{
    screen_advance(a, 60);
    fake_step_plan_show(a);
    screen_keys(a, "8");
}

static app *model_at(int rows, int columns)
{
    app *a = screen_open(&(screen_look){.rows = rows, .columns = columns});
    planned(a);
    free(screen_text(a));
    return a;
}

START_TEST(it_looks_as_agreed)
{
    golden_all("model", planned);
}
END_TEST

static void compressed(app *a)
{
    app_turn(&a->feed, HR_KNOB_COMPRESS_PRUNE, "polynomial:0.5:0.8:0:1000");
    app_turn(&a->feed, HR_KNOB_COMPRESS_LOW_RANK, "32");
    planned(a);
}

START_TEST(what_compression_makes_of_each_layer_is_a_column)
{
    golden_all("model-compressed", compressed);
}
END_TEST

static void slid(app *a)
{
    planned(a);
    free(screen_text(a));
    for (int k = 0; k < 5; k++) {
        app_key(a, INPUT_DOWN);
    }
    screen_keys(a, "\t\t\t");
    free(screen_text(a));
    app_key(a, INPUT_ENTER);
    screen_advance(a, 1);
    free(screen_text(a));
    for (int k = 0; k < 9; k++) {
        app_key(a, INPUT_RIGHT);
    }
}

START_TEST(a_slider_shows_bytes_against_error)
{
    golden_all("model-ranks", slid);
}
END_TEST

// Planned until the layer's ranks were measured; a layer with a rank and masks has both in its sentence.
START_TEST(zeros_of_a_layer_are_planned_or_measured_and_say_which)
{
    app *a = screen_open(&(screen_look){.rows = 36, .columns = 160});
    compressed(a);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "80.0% p"));
    ck_assert_ptr_null(strstr(text, "43.8% m"));
    free(text);
    for (int k = 0; k < 5; k++) {
        app_key(a, INPUT_DOWN);
    }
    screen_keys(a, ".");
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "are made through rank 32"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "masks take 80.0% in the end (p); of all"));
    screen_keys(a, "\t\t\t");
    free(screen_text(a));
    app_key(a, INPUT_ENTER);
    screen_advance(a, 1);
    text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "43.8% m"));
    ck_assert_ptr_nonnull(strstr(text, "80.0% p")); // of the other layers
    free(text);
    screen_keys(a, "\t.");
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "in the end (p), 43.8% are zero now (m)"));
    screen_close(a);
}
END_TEST

static void expect_message(app *a, const char *words)
{
    ck_assert_msg(strstr(a->feed.message.text, words) != NULL, "%s", a->feed.message.text);
}

START_TEST(a_rank_is_asked_for_and_applied_by_keys_alone)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    slid(a);
    ck_assert_int_eq(a->focus, PANE_RANKS);
    ck_assert_uint_eq(a->feed.rank_count, 13);
    ck_assert_uint_eq(a->feed.rank[table_selected(&a->table[PANE_RANKS])].rank, 32);
    screen_keys(a, "a");
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_COMPRESS_LOW_RANK), "32");
    screen_keys(a, "z");
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_COMPRESS_LOW_RANK), "none");
    for (int k = 0; k < 9; k++) {
        app_key(a, INPUT_RIGHT);
    }
    screen_keys(a, "a"); // the full rank
    expect_message(a, "rank 64 makes nothing smaller");
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_COMPRESS_LOW_RANK), "none");
    screen_close(a);
}
END_TEST

START_TEST(ranks_of_another_layer_or_model_are_not_shown)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    slid(a);
    screen_keys(a, "\t"); // back to the layers
    app_key(a, INPUT_UP);
    free(screen_text(a));
    ck_assert_uint_eq(a->table[PANE_RANKS].count, 0);
    app_key(a, INPUT_DOWN);
    free(screen_text(a));
    ck_assert_uint_eq(a->table[PANE_RANKS].count, 13);
    app_turn(&a->feed, HR_KNOB_EXECUTION_MODE, "graph");
    screen_advance(a, 3);
    ck_assert_uint_eq(a->feed.rank_count, 0);
    screen_close(a);
}
END_TEST

START_TEST(without_a_step_plan_it_says_so)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 20);
    screen_keys(a, "8");
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "The step is being planned."));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(a_layers_tensors_and_instructions_are_all_of_its_own)
{
    app *a = model_at(36, 120);
    const hr_step_plan *p = feed_step_plan(&a->feed);
    for (uint32_t layer = 0; layer < p->layer_count; layer++) {
        size_t tensors = 0, instrs = 0;
        for (size_t k = 0; k < p->tensor_count; k++) {
            tensors += p->tensors[k].layer == layer;
        }
        for (size_t i = 0; i < p->instr_count; i++) {
            instrs += p->instrs[i].layer == layer && !p->instrs[i].is_alloc && !p->instrs[i].is_free;
        }
        free(screen_text(a));
        ck_assert_uint_eq(a->step.layer, layer);
        ck_assert_uint_eq(a->step.layer_tensors, tensors);
        ck_assert_uint_eq(a->step.layer_instrs, instrs);
        ck_assert_uint_eq(a->table[PANE_LAYER].count, tensors);
        ck_assert_uint_eq(a->table[PANE_WORK].count, instrs);
        app_key(a, INPUT_DOWN);
    }
    screen_close(a);
}
END_TEST

START_TEST(the_line_of_sums_adds_the_layers_up)
{
    app *a = model_at(24, 120);
    const hr_step_plan *p = feed_step_plan(&a->feed);
    uint64_t weights = 0, activations = 0;
    for (size_t k = 0; k < p->layer_count; k++) {
        weights += p->layers[k].parameter_bytes;
        activations += p->layers[k].activation_bytes;
    }
    char *text = screen_text(a), expected[64];
    snprintf(expected, sizeof expected, "W %.2f · A %.2f, kept", (double)weights / 1048576,
             (double)activations / 1048576);
    ck_assert_msg(strstr(text, expected) != NULL, "%s", expected);
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(sorting_by_activations_brings_the_largest_layer_up)
{
    app *a = model_at(24, 120);
    const table_source *s = pane_ops_of(PANE_LAYERS)->table;
    table_view *v = &a->table[PANE_LAYERS];
    while (v->sort < 0 || strcmp(s->columns[v->sort].term, "activations") != 0) {
        screen_keys(a, "o");
    }
    free(screen_text(a));
    for (size_t k = 1; k < v->count; k++) {
        ck_assert_uint_ge(a->feed.step_plan.layers[v->order[k - 1]].activation_bytes,
                          a->feed.step_plan.layers[v->order[k]].activation_bytes);
    }
    screen_close(a);
}
END_TEST

START_TEST(enter_leads_to_the_listing_and_to_the_timeline)
{
    app *a = model_at(24, 80);
    const hr_step_plan *p = feed_step_plan(&a->feed);
    app_key(a, INPUT_DOWN);
    app_key(a, INPUT_ENTER);
    ck_assert_int_eq(a->screen, SCREEN_PROGRAM);
    ck_assert_uint_eq(p->instrs[a->step.cursor].layer, 1);
    ck_assert(!p->instrs[a->step.cursor].is_alloc);
    screen_keys(a, "8\t");
    free(screen_text(a));
    ck_assert_int_eq(a->focus, PANE_LAYER);
    uint32_t tensor = a->step.of_layer[0]; // the largest
    app_key(a, INPUT_ENTER);
    ck_assert_int_eq(a->screen, SCREEN_TIMELINE);
    ck_assert_uint_eq(a->step.cursor, p->tensors[tensor].born);
    screen_close(a);
}
END_TEST

START_TEST(every_heading_is_in_the_glossary_and_every_row_can_be_copied)
{
    static const pane_id panes[] = {PANE_ALIVE, PANE_LISTING, PANE_TURNED, PANE_LAYERS,
                                    PANE_LAYER, PANE_WORK,    PANE_RANKS};
    app *a = model_at(36, 120);
    app_turn(&a->feed, HR_KNOB_EXECUTION_MODE, "graph");
    screen_advance(a, 2);
    fake_step_plan_show(a);
    ck_assert(feed_send_text(&a->feed, HR_COMMAND_RANKS, (hr_knob_id)0, "separable_conv2d"));
    screen_advance(a, 1);
    screen_keys(a, "8");
    free(screen_text(a));
    screen_keys(a, "9");
    free(screen_text(a));
    screen_keys(a, "3");
    free(screen_text(a));
    for (size_t i = 0; i < sizeof panes / sizeof *panes; i++) {
        const table_source *s = pane_ops_of(panes[i])->table;
        char row[1024];
        for (unsigned k = 0; k < s->column_count; k++) {
            ck_assert_msg(hr_term_find(s->columns[k].term) != NULL, "%s", s->columns[k].term);
        }
        ck_assert_msg(table_copy(&a->table[panes[i]], s, pane_rows(a, panes[i]), row, sizeof row), "%s",
                      pane_title(panes[i]));
        ck_assert_ptr_nonnull(strchr(row, '\t'));
    }
    screen_close(a);
}
END_TEST

static void say_point(app *a, uint32_t layer, uint32_t point, double error)
{
    hr_event e = {.kind = HR_EVENT_RANK, .instr = HR_NO_ID};
    e.u.rank = (hr_event_rank){.bytes = 8 * (point + 1),
                               .dense_bytes = 64,
                               .error = error,
                               .layer = layer,
                               .rank = point + 1,
                               .full = 4,
                               .point = point,
                               .points = 4};
    fake_engine_say(a->feed.session, &e);
}

static bool has_ranks_of(app *a, uint32_t layer)
{
    bool same = a->feed.rank_count == 4;
    for (uint32_t k = 0; same && k < 4; k++) {
        same = a->feed.rank[k].layer == layer && a->feed.rank[k].point == k;
    }
    return same;
}

static void check_two_answers(app *a, unsigned lost)
{
    a->feed.message.kind = MESSAGE_NONE;
    a->feed.rank_count = a->feed.rank_next = 0;
    for (uint32_t k = 0; k < 8; k++) {
        if ((lost >> k & 1) == 0) {
            say_point(a, 1 + k / 4, k % 4, 0.5);
        } else {
            fake_engine_say(a->feed.session, &(hr_event){.kind = HR_EVENT_LOG, .instr = HR_NO_ID});
        }
    }
    screen_advance(a, 1);
    const unsigned first = lost & 0xf, second = lost >> 4;
    ck_assert_int_eq(has_ranks_of(a, 2), second == 0);
    ck_assert_int_eq(has_ranks_of(a, 1), first == 0 && second == 0xf);
    ck_assert(a->feed.rank_count == 0 || a->feed.rank_count == 4);
    const bool halved = (first != 0 && first != 0xf) || (second != 0 && second != 0xf);
    ck_assert_int_eq(a->feed.message.kind == MESSAGE_NOTE, halved);
}

// Which of the eight records of two answers are lost on the way: a table is one answer, whole, or none is shown and that is said.
START_TEST(ranks_of_which_one_was_lost_are_no_table)
{
    app *a = model_at(36, 120);
    for (unsigned lost = 0; lost < 256; lost++) {
        check_two_answers(a, lost);
    }
    screen_close(a);
}
END_TEST

START_TEST(every_pane_says_itself_in_a_sentence)
{
    static const char *const screens[] = {"3", "9", "8"};
    for (int shown = 0; shown < 2; shown++) {
        app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
        screen_advance(a, 10);
        if (shown == 1) {
            fake_step_plan_show(a);
        }
        for (size_t k = 0; k < sizeof screens / sizeof *screens; k++) {
            screen_keys(a, screens[k]);
            for (int pane = 0; pane < 3; pane++) {
                free(screen_text(a));
                screen_keys(a, ".");
                size_t length = strlen(a->feed.message.text);
                ck_assert_uint_gt(length, 10);
                ck_assert_msg(strchr(".", a->feed.message.text[length - 1]) != NULL ||
                                  a->feed.message.text[length - 1] == ' ',
                              "%s", a->feed.message.text);
                app_key(a, INPUT_TAB);
            }
        }
        screen_close(a);
    }
}
END_TEST

SUITE_MAIN("tui model screen", it_looks_as_agreed, what_compression_makes_of_each_layer_is_a_column,
           a_slider_shows_bytes_against_error, zeros_of_a_layer_are_planned_or_measured_and_say_which,
           a_rank_is_asked_for_and_applied_by_keys_alone, ranks_of_another_layer_or_model_are_not_shown,
           without_a_step_plan_it_says_so, a_layers_tensors_and_instructions_are_all_of_its_own,
           the_line_of_sums_adds_the_layers_up, sorting_by_activations_brings_the_largest_layer_up,
           enter_leads_to_the_listing_and_to_the_timeline,
           every_heading_is_in_the_glossary_and_every_row_can_be_copied,
           ranks_of_which_one_was_lost_are_no_table, every_pane_says_itself_in_a_sentence)
