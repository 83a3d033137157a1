// SPDX-License-Identifier: Apache-2.0
// A neighbour that what-if calls possible is one that a training takes, and the other way round: every knob of the panel, both
// sides, before the first step and behind it, with nothing turned and with each technique of compress.* on. No fake: engine and planner.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/feed/knob_edit.h"
#include "app/tui/feed/whatif.h"
#include "session/planner_queue.h"

static const struct {
    const char *preset, *pairs;
    bool learned;
} cases[] = {
    {"demo", "", false},
    {"demo", "", true},
    {"demo", "compress.lora=8", true},
    {"demo", "compress.lora=8 compress.lora_base=int8", true},
    {"demo", "compress.low_rank=ratio:0.5", true},
    {"demo", "compress.prune=constant:0.5", true},
    {"demo", "compress.prune=constant:0.5 compress.prune_structure=filter", true},
    {"demo", "compress.distill=self", true},
    {"demo", "compress.quantize=qat", true},
    {"mlp_tiny", "", true},
    {"mlp_tiny", "compress.lora=8", true},
    {"mlp_tiny", "compress.low_rank=ratio:0.5", true},
    {"gpt2_124m_tiny", "", true},
    {"gpt2_124m_tiny", "compress.lora=8", true},
    {"gpt2_124m_tiny", "compress.lora=8 compress.lora_base=nf4", true},
};

static whatif asked;
static whatif_answers answers;
static hr_turn turns[HR_TURNS_MAX];

static void set_pairs(hr_knobs *knobs, const char *pairs)
{
    char pair[HR_KNOB_TEXT_MAX];
    hr_err err = {0};
    while (*pairs != '\0') {
        const size_t length = strcspn(pairs, " ");
        snprintf(pair, sizeof pair, "%.*s", (int)length, pairs);
        ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
        pairs += length + (pairs[length] == ' ');
    }
}

static void ask(const hr_preset *preset, const hr_knobs *knobs, bool learned)
{
    static planning_question q;
    planner_queue *queue = NULL;
    hr_answer answer;
    const whatif_question question = {
        .knobs = *knobs, .first = HR_KNOB_COMPRESS_LORA, .when_unset_bytes = UINT64_C(1) << 30};
    q = (planning_question){.kind = HR_QUESTION_TURNS, .number = 1, .knobs = *knobs};
    answers.question = 0;
    q.turn_count = (uint32_t)whatif_begin(&asked, &question, q.turns);
    memcpy(turns, q.turns, sizeof turns);
    ck_assert_int_eq(planner_queue_create(&queue, NULL), HR_OK);
    planner_queue_open(queue, hr_preset_path(preset), false);
    planner_queue_ask(queue, &q);
    for (planning_work done; (done = planner_queue_work(queue, &answer)) != PLANNING_IDLE;) {
        if (done == PLANNING_ANSWERED) {
            whatif_take(&asked, &answer, &answers);
            hr_answer_deinit(&answer);
        }
    }
    planner_queue_destroy(queue);
    if (learned) {
        whatif_learn(&answers);
    }
}

typedef struct trial {
    hr_preset *preset;
    hr_knobs knobs;
    bool learned, builds; // of every knob that is turned, not of those of compress.* alone
    hr_engine *engine;
} trial;

static hr_engine *engine_of(const hr_preset *preset, const hr_knobs *knobs, bool learned)
{
    hr_engine *e = NULL;
    hr_err err = {0};
    bool idle = false;
    ck_assert_msg(hr_engine_create(preset, knobs, NULL, &e, &err) == HR_OK, "%s", err.sentence);
    if (learned) {
        hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 1};
        ck_assert_int_eq(hr_engine_command(e, &run, &err), HR_OK);
        while (!idle) {
            hr_engine_advance(e, &idle);
        }
        ck_assert_msg(hr_engine_steps(e) == 1, "%s", hr_engine_error(e)->sentence);
    }
    return e;
}

static hr_status turn(hr_engine *e, hr_knob_id id, const char *value, hr_err *err)
{
    hr_command c = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = id};
    snprintf(c.text, sizeof c.text, "%s", value);
    return hr_engine_command(e, &c, err);
}

// What does not fit stands: it says so.
static bool builds(hr_engine *e, hr_err *err)
{
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 1},
                     pause = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_PAUSE};
    bool idle;
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    hr_engine_advance(e, &idle);
    const bool stands = hr_engine_get_state(e) != HR_ENGINE_FAILED;
    if (!stands) {
        *err = *hr_engine_error(e);
    }
    ck_assert_int_eq(hr_engine_command(e, &pause, NULL), HR_OK);
    return stands;
}

static bool concerns_compression(hr_knob_id id)
{
    return strncmp(hr_knob_rows(NULL)[id].key, "compress.", 9) == 0;
}

// `doubted`: what-if refuses it. Turned, built, and turned back, so that the engine is as before; one that cannot be (adapters have begun) is made anew.
static bool takes(trial *t, hr_knob_id id, const char *value, bool doubted, hr_err *err)
{
    char now[HR_KNOB_TEXT_MAX];
    const bool build = !hr_knob_rows(NULL)[id].hot && (t->builds || doubted || concerns_compression(id));
    hr_knob_format(hr_engine_knobs(t->engine), id, now);
    const bool taken = turn(t->engine, id, value, err) == HR_OK;
    const bool stands = taken && (!build || builds(t->engine, err));
    if (taken && turn(t->engine, id, now, NULL) != HR_OK) {
        hr_engine_destroy(t->engine);
        t->engine = engine_of(t->preset, &t->knobs, t->learned);
    }
    return stands;
}

static void check_side(trial *t, hr_knob_id id, int side)
{
    const whatif_cell *cell = &answers.cell[id][side];
    char value[HR_KNOB_TEXT_MAX];
    hr_err err = {0};
    if (!knob_edit_reach(&t->knobs, id, side == WHATIF_LESS ? KNOB_EDIT_LESS : KNOB_EDIT_MORE,
                         UINT64_C(1) << 30, value, NULL)) {
        ck_assert(cell->refused);
        return;
    }
    const bool taken = takes(t, id, value, cell->refused, &err);
    ck_assert_msg(cell->known, "%s=%s", hr_knob_rows(NULL)[id].key, value);
    if (id == HR_KNOB_DEVICE_KIND && (err.status == HR_DEVICE || err.status == HR_DEPENDENCY)) {
        // This machine has none, and a plan for it stands.
        return;
    }
    ck_assert_msg(taken == !cell->refused, "%s=%s: what-if %s (%s), the engine %s (%s)",
                  hr_knob_rows(NULL)[id].key, value, cell->refused ? "refuses" : "plans", cell->why,
                  taken ? "takes it" : "refuses", err.sentence);
    ck_assert_msg(taken || cell->why[0] != '\0', "%s=%s: no reason", hr_knob_rows(NULL)[id].key, value);
}

START_TEST(what_is_said_to_be_possible_is_taken)
{
    trial t = {.learned = cases[_i].learned, .builds = cases[_i].pairs[0] == '\0'};
    hr_err err = {0};
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    ck_assert_msg(hr_preset_open(cases[_i].preset, false, &t.preset, NULL, &err) == HR_OK, "%s",
                  err.sentence);
    t.knobs = *hr_preset_knobs(t.preset);
    set_pairs(&t.knobs, cases[_i].pairs);
    set_pairs(&t.knobs, "pipeline.shuffle=64 train.save= device.vram=512MiB");
    t.engine = engine_of(t.preset, &t.knobs, t.learned);
    ask(t.preset, &t.knobs, t.learned);
    for (size_t k = 0; k < count; k++) {
        check_side(&t, panel[k], WHATIF_LESS);
        check_side(&t, panel[k], WHATIF_MORE);
    }
    hr_engine_destroy(t.engine);
    hr_preset_close(t.preset);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("turns stand");
    TCase *tests = tcase_create("turns stand");
    tcase_add_loop_test(tests, what_is_said_to_be_possible_is_taken, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
