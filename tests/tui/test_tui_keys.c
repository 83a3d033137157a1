// SPDX-License-Identifier: Apache-2.0
// Keys and commands as a person gives them, and as nobody would.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/units.h"

#include "app/tui/shell/act.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

static app *bench(void)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 10);
    return a;
}

START_TEST(arrows_turn_the_batch_and_z_turns_it_back)
{
    app *a = bench();
    app_key(a, INPUT_LEFT);
    app_key(a, INPUT_LEFT);
    screen_advance(a, 3);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_SIZE), 32);
    screen_keys(a, "zz");
    screen_advance(a, 3);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_SIZE), 128);
    screen_keys(a, "Z");
    screen_advance(a, 3);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_SIZE), 64);
    screen_close(a);
}
END_TEST

START_TEST(enter_edits_the_exact_value)
{
    app *a = bench();
    app_key(a, INPUT_ENTER);
    app_key(a, 21); // ^U
    screen_keys(a, "100\n");
    screen_advance(a, 2);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_SIZE), 100);
    app_key(a, INPUT_ENTER);
    screen_keys(a, "x\n");
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 100);
    screen_keys(a, "w"); // a key without a job leaves the error to be read
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    app_key(a, INPUT_ESCAPE);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_NONE);
    screen_close(a);
}
END_TEST

START_TEST(enter_edits_only_where_the_knobs_have_the_focus)
{
    app *a = bench();
    for (int i = 0; i < 3; i++) {
        app_key(a, INPUT_TAB);
        ck_assert_int_ne(a->focus, PANE_KNOBS);
        app_key(a, INPUT_ENTER);
        ck_assert_int_eq(a->overlay, OVERLAY_NONE);
        ck_assert_int_eq(a->feed.message.kind, MESSAGE_NOTE);
    }
    screen_close(a);
}
END_TEST

START_TEST(what_is_typed_takes_the_place_of_the_value)
{
    app *a = bench();
    app_key(a, INPUT_ENTER);
    ck_assert_str_eq(a->prompt.text, "128");
    screen_keys(a, "64");
    ck_assert_str_eq(a->prompt.text, "64");
    app_key(a, INPUT_LEFT);
    app_key(a, 21); // ^U clears on both sides of the cursor
    ck_assert_str_eq(a->prompt.text, "");
    app_key(a, INPUT_BACKSPACE);
    ck_assert_int_eq(a->overlay, OVERLAY_EDIT);
    app_key(a, INPUT_ESCAPE);
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    app_key(a, INPUT_ENTER);
    app_key(a, INPUT_END); // keeps the value to be changed
    screen_keys(a, "0");
    ck_assert_str_eq(a->prompt.text, "1280");
    app_key(a, INPUT_ESCAPE);
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 128);
    screen_close(a);
}
END_TEST

START_TEST(run_pauses_and_goes_on)
{
    app *a = bench();
    screen_keys(a, "r");
    screen_advance(a, 5);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_PAUSED);
    uint64_t steps = a->feed.live.steps;
    screen_advance(a, 5);
    ck_assert_uint_eq(a->feed.live.steps, steps);
    screen_keys(a, "r");
    screen_advance(a, 5);
    ck_assert_uint_eq(a->feed.live.steps, steps + 5);
    screen_close(a);
}
END_TEST

static void leaves_at_once(app *a, bool at_once)
{
    screen_keys(a, "q");
    ck_assert_int_eq(a->next.work, at_once ? PENDING_QUIT : PENDING_NONE);
    ck_assert_int_eq(a->overlay, at_once ? OVERLAY_NONE : OVERLAY_QUIT);
    screen_close(a);
}

START_TEST(leaving_asks_where_steps_would_be_lost_and_not_otherwise)
{
    app *a = bench();
    screen_keys(a, "q");
    ck_assert_int_eq(a->overlay, OVERLAY_QUIT);
    screen_keys(a, "n");
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    screen_keys(a, "qy");
    ck_assert_int_eq(a->next.work, PENDING_QUIT);
    app_work(a);
    ck_assert(a->quits && !a->feed.keeps);
    screen_close(a);
    a = bench();
    screen_keys(a, "qs");
    app_work(a);
    ck_assert(a->quits && a->feed.keeps);
    screen_close(a);
    a = bench();
    screen_keys(a, "r"); // paused: its steps are lost all the same
    screen_advance(a, 1);
    leaves_at_once(a, false);
    a = bench();
    ck_assert_int_eq(hr_knobs_set_pair(&a->feed.applied, "train.save=a.safetensors", NULL), HR_OK);
    leaves_at_once(a, true); // it saves at its end
    a = bench();
    ck_assert_int_eq(hr_knobs_set_pair(&a->feed.applied, "device.kind=plan", NULL), HR_OK);
    leaves_at_once(a, true);
    a = bench();
    a->feed.kept_step = a->feed.live.steps; // :save was the last that was done
    leaves_at_once(a, true);
    a = bench();
    app_key(a, INPUT_CTRL_C);
    ck_assert_int_eq(a->next.work, PENDING_NONE);
    app_key(a, INPUT_CTRL_C);
    ck_assert_int_eq(a->next.work, PENDING_QUIT);
    ck_assert(a->feed.keeps); // nobody was asked
    screen_close(a);
}
END_TEST

// What was saved is not counted as lost, and what leaving does to it is said.
START_TEST(leaving_says_what_the_saves_have)
{
    enum { NONE = -1 };
    static const struct {
        int kept, autosaved;
        const char *line;
    } rows[] = {{NONE, NONE, "40 steps are in no save: s saves and leaves"},
                {NONE, 38, "40 steps, autosaved at step 38: s keeps all, y discards all"},
                {NONE, 40, "40 steps, autosaved at step 40: s keeps all"},
                {30, NONE, "10 steps since the save of step 30 are in no save: s saves"},
                {30, 38, "10 steps since the save of step 30, autosaved at step 38: s keeps all"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        app *a = bench();
        a->feed.live.steps = 40;
        snprintf(a->feed.autosave, sizeof a->feed.autosave, "/dev/null/autosave");
        for (int k = 0; k < 2; k++) {
            hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_SAVED};
            const int step = k == 0 ? rows[i].kept : rows[i].autosaved;
            e.u.note.count = (uint64_t)step;
            snprintf(e.u.note.text, sizeof e.u.note.text, "%.40s", k == 0 ? "mine.save" : a->feed.autosave);
            if (step != NONE) {
                fake_engine_say(a->feed.session, &e);
            }
        }
        bool more;
        (void)app_drain(a, &more);
        screen_keys(a, "q");
        char *text = screen_text(a);
        ck_assert_msg(strstr(text, rows[i].line) != NULL, "%s\n%s", rows[i].line, text);
        free(text);
        a->feed.autosave[0] = '\0';
        screen_close(a);
    }
}
END_TEST

START_TEST(fix_turns_what_the_doctor_names_and_nothing_else)
{
    static const char *const wrong[] = {":fix 0\n", ":fix 3\n", ":fix two\n"};
    app *a = bench();
    hr_knobs before = a->feed.knobs;
    screen_keys(a, ":fix\n");
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_mem_eq(&a->feed.knobs, &before, sizeof before);
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, ":set batch.size 256\n");
    screen_advance(a, 5);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_OOM);
    ck_assert_uint_eq(a->feed.report.oom.fix_count, 2);
    before = a->feed.knobs;
    for (int k = 0; k < 3; k++) {
        screen_keys(a, wrong[k]);
        ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
        ck_assert_mem_eq(&a->feed.knobs, &before, sizeof before);
        app_key(a, INPUT_ESCAPE);
    }
    screen_keys(a, ":fix 2\n");
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 128);
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_ACCUMULATE), 2);
    screen_advance(a, 5);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_RUNNING);
    screen_keys(a, "z"); // both knobs
    ck_assert_mem_eq(&a->feed.knobs, &before, sizeof before);
    screen_close(a);
}
END_TEST

START_TEST(a_preset_is_chosen_and_runs)
{
    app *a = bench();
    screen_keys(a, "p");
    app_key(a, INPUT_DOWN);
    app_key(a, INPUT_ENTER);
    ck_assert_int_eq(a->overlay, OVERLAY_SWITCH); // ten steps would be lost
    app_key(a, INPUT_ENTER);
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    ck_assert_int_eq(a->next.work, PENDING_NONE);
    screen_keys(a, "p");
    app_key(a, INPUT_DOWN);
    screen_keys(a, "\ny");
    ck_assert_int_eq(a->next.work, PENDING_PRESET);
    app_work(a);
    screen_advance(a, 3);
    ck_assert_str_eq(hr_preset_name(a->feed.preset), "cifar10_separable_cnn");
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 64);
    ck_assert_uint_eq(a->feed.live.steps, 2);
    screen_keys(a, ":preset nothing\n");
    ck_assert_int_eq(a->overlay, OVERLAY_NONE); // it is known before anybody is asked
    ck_assert_int_eq(a->next.work, PENDING_NONE);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_str_eq(hr_preset_name(a->feed.preset), "cifar10_separable_cnn");
    screen_close(a);
}
END_TEST

// The engine knows best whether weights would be lost: until it has spoken the value is shown, and then the running one again.
START_TEST(a_refused_turn_shows_what_runs_again_and_what_to_type)
{
    static const hr_status statuses[] = {HR_STATE, HR_KNOB, HR_CONSTRAINT, HR_PRESET, HR_SAVE};
    app *a = bench();
    for (size_t k = 0; k < sizeof statuses / sizeof *statuses; k++) {
        hr_err err = {.status = statuses[k], .sentence = "dense/lora_a would have another shape"};
        snprintf(err.hint, sizeof err.hint, "headroom %s -s compress.lora=16",
                 hr_preset_name(a->feed.preset));
        fake_engine_refuse(a->feed.session, &err);
        screen_keys(a, ":set compress.lora 16\n");
        ck_assert(hr_knob_is_set(&a->feed.knobs, HR_KNOB_COMPRESS_LORA));
        screen_advance(a, 1);
        ck_assert(!hr_knob_is_set(&a->feed.knobs, HR_KNOB_COMPRESS_LORA));
        ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
        ck_assert_ptr_nonnull(strstr(a->feed.message.text, "\ntry: :anew compress.lora 16"));
        ck_assert_uint_eq(a->feed.turned.done, 0); // nothing is there to be turned back
        app_key(a, INPUT_ESCAPE);
    }
    screen_keys(a, ":set compress.lora 16\n");
    screen_advance(a, 1);
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_COMPRESS_LORA), 16);
    screen_close(a);
}
END_TEST

// While a turn is on its way an automatic save may fail: that is said, and the turn stays.
START_TEST(a_save_that_fails_turns_no_knob_back)
{
    app *a = bench();
    const hr_err err = {.status = HR_WRITE, .sentence = "no room for the save"};
    fake_engine_refuse(a->feed.session, &err);
    screen_keys(a, ":set compress.lora 16\n");
    screen_advance(a, 1);
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_COMPRESS_LORA), 16);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    screen_close(a);
}
END_TEST

START_TEST(a_training_begins_anew_with_all_that_is_turned)
{
    app *a = bench();
    screen_keys(a, ":set batch.size 32\n:set train.resume base.safetensors\n");
    screen_advance(a, 3);
    screen_keys(a, ":anew compress.lora 16\n");
    ck_assert_int_eq(a->overlay, OVERLAY_SWITCH); // steps would be lost
    screen_keys(a, "n");
    ck_assert(!hr_knob_is_set(&a->feed.knobs, HR_KNOB_COMPRESS_LORA));
    screen_keys(a, ":anew compress.lora=16 compress.lora_targets=dense\ny");
    app_work(a);
    screen_advance(a, 3);
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_COMPRESS_LORA), 16);
    ck_assert_str_eq(hr_knob_text(&a->feed.applied, HR_KNOB_COMPRESS_LORA_TARGETS), "dense");
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 32);
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_TRAIN_RESUME), "base.safetensors");
    ck_assert_uint_eq(a->feed.live.steps, 2);
    static const char *const wrong[] = {":anew compress.lora\n", ":anew compress.lora x\n",
                                        ":anew nothing.there 3\n", ":anew batch.size=2 compress.lora\n"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        app_key(a, INPUT_ESCAPE);
        screen_keys(a, wrong[k]);
        ck_assert_int_eq(a->overlay, OVERLAY_NONE); // it is known before anybody is asked
        ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    }
    app_key(a, INPUT_ESCAPE); // compress.lora=16 stands: what is advised is the whole line, and works
    screen_keys(a, ":anew compress.low_rank 8\n");
    ck_assert_ptr_nonnull(
        strstr(a->feed.message.text, "\ntry: :anew compress.low_rank=8 compress.lora=none"));
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, ":anew compress.low_rank=8 compress.lora=none compress.lora_targets=auto\n");
    ck_assert_int_eq(a->overlay, OVERLAY_SWITCH);
    screen_close(a);
}
END_TEST

START_TEST(commands_do_what_keys_do)
{
    app *a = bench();
    screen_keys(a, ":set batch.size 16\n");
    screen_keys(a, ":optimizer.kind=sgd\n");
    screen_advance(a, 3);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_SIZE), 16);
    ck_assert_str_eq(hr_knob_text(&a->feed.applied, HR_KNOB_OPTIMIZER_KIND), "sgd");
    screen_keys(a, ":freeze\n");
    ck_assert(a->feed.is_frozen);
    screen_keys(a, ":nonsense\n");
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    screen_close(a);
}
END_TEST

START_TEST(tab_completes_commands_knobs_and_choices)
{
    app *a = bench();
    screen_keys(a, ":save-d\t");
    ck_assert_str_eq(a->prompt.text, "save-display ");
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, ":set execution.mo\t");
    ck_assert_str_eq(a->prompt.text, "set execution.mode ");
    screen_keys(a, "g\t");
    ck_assert_str_eq(a->prompt.text, "set execution.mode graph");
    app_key(a, INPUT_ESCAPE);
    screen_close(a);
}
END_TEST

START_TEST(the_screen_is_saved_over_another_file_only_when_asked)
{
    app *a = bench();
    char path[] = "/tmp/headroom-screen-XXXXXX.txt", line[64];
    close(mkstemps(path, 4));
    snprintf(line, sizeof line, ":save-display %s\n", path);
    screen_keys(a, line);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "\ntry: :save-display! /tmp/"));
    snprintf(line, sizeof line, ":save-display! %s\n", path);
    screen_keys(a, line);
    FILE *file = fopen(path, "r");
    char first[128];
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(first, sizeof first, file));
    ck_assert_ptr_nonnull(strstr(first, "headroom"));
    fclose(file);
    unlink(path);
    screen_close(a);
}
END_TEST

START_TEST(a_save_without_a_file_says_what_to_type)
{
    app *a = bench();
    screen_keys(a, ":save\n");
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "\ntry: :save weights.safetensors"));
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, ":set train.save there.safetensors\n:save\n");
    ck_assert_int_ne(a->feed.message.kind, MESSAGE_ERROR);
    screen_advance(a, 1);
    screen_keys(a, ":save here.safetensors\n");
    screen_advance(a, 1);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, " is saved in here.safetensors"));
    screen_keys(a, ":set train.save \"\"\n:save\n"); // as a preset writes that there is none
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    screen_close(a);
}
END_TEST

START_TEST(a_line_takes_any_character_and_any_length)
{
    prompt p = {0};
    prompt_begin(&p, "");
    for (int i = 0; i < 2000; i++) {
        prompt_key(&p, i % 3 == 0 ? 0x20ac : i % 3 == 1 ? 0x1f600 : 'x');
    }
    ck_assert_uint_lt(p.length, PROMPT_MAX);
    for (int i = 0; i < 2000; i++) {
        prompt_key(&p, INPUT_LEFT);
    }
    ck_assert_uint_eq(p.cursor, 0);
    while (p.length > 0) {
        size_t before = p.length;
        prompt_key(&p, INPUT_DELETE);
        ck_assert_uint_lt(p.length, before);
    }
}
END_TEST

static int random_key(void)
{
    size_t count;
    const request_row *rows = request_rows(&count);
    int dice = rand() % 100;
    if (dice < 70) {
        return rows[(size_t)rand() % count].key;
    }
    return dice < 90 ? ' ' + rand() % 95 : dice < 95 ? INPUT_BEYOND_UNICODE + rand() % 20 : rand() % 0x3000;
}

static void random_run(unsigned seed, const screen_look *look)
{
    app *a = screen_open(look);
    srand(seed);
    for (int i = 0; i < 700; i++) {
        int key = random_key();
        a->click_y = rand() % look->rows;
        a->click_x = rand() % look->columns;
        app_key(a, key);
        if (a->next.work == PENDING_QUIT) {
            a->next.work = PENDING_NONE; // stays to take more
        } else {
            app_work(a);
        }
        if (a->feed.session != NULL && i % 7 == 0) {
            bool more;
            fake_engine_advance(a->feed.session, (unsigned)rand() % 3);
            app_drain(a, &more);
        }
        app_draw(a);
    }
    screen_close(a);
}

START_TEST(random_keys_find_nothing)
{
    static const screen_look looks[] = {
        {.rows = 24, .columns = 80},  {.rows = 50, .columns = 160},
        {.rows = 10, .columns = 40},  {.rows = 16, .columns = 60},
        {.rows = 1, .columns = 1},    {.rows = 3, .columns = 200},
        {.rows = 100, .columns = 12}, {.rows = 24, .columns = 80, .no_color = true}};
    char folder[] = "/tmp/headroom-keys-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0); // ":save-display" may find a name
    for (unsigned i = 0; i < sizeof looks / sizeof *looks; i++) {
        random_run(i + 1, &looks[i]);
    }
}
END_TEST

// On the Doctor, where one pane is shown alone, an out-of-memory brings the verdict: a pane without a table.
START_TEST(an_out_of_memory_closes_the_list_of_columns_of_a_pane_it_leaves)
{
    app *a = screen_open(&(screen_look){.rows = 20, .columns = 70});
    screen_advance(a, 5);
    screen_keys(a, "4");
    a->focus = PANE_FIXES;
    screen_keys(a, ">c");
    ck_assert_int_eq(a->overlay, OVERLAY_COLUMNS);
    screen_advance(a, 3);
    ck_assert_int_eq(a->focus, PANE_DOCTOR);
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    app_key(a, INPUT_DOWN);
    screen_close(a);
}
END_TEST

START_TEST(the_wheel_does_not_change_what_a_line_is_about)
{
    app *a = bench();
    app_key(a, INPUT_ENTER); // the value of batch.size
    hr_knob_id id = feed_knob(&a->feed);
    app_key(a, INPUT_WHEEL_DOWN);
    ck_assert_int_eq(feed_knob(&a->feed), id);
    screen_keys(a, "32\n");
    screen_advance(a, 3);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_SIZE), 32);
    screen_keys(a, "q");
    ck_assert_int_eq(a->overlay, OVERLAY_QUIT);
    app_key(a, INPUT_WHEEL_DOWN);
    ck_assert_int_eq(feed_knob(&a->feed), id);
    app_key(a, INPUT_ESCAPE);
    app_key(a, INPUT_WHEEL_DOWN);
    ck_assert_int_ne(feed_knob(&a->feed), id);
    screen_close(a);
}
END_TEST

START_TEST(less_and_vi_move_beside_the_arrows)
{
    app *a = bench();
    screen_keys(a, "jjj");
    ck_assert_uint_eq(a->feed.knob, 3);
    screen_keys(a, "k");
    ck_assert_uint_eq(a->feed.knob, 2);
    screen_keys(a, "G");
    size_t knobs;
    knob_edit_panel(&knobs);
    ck_assert_uint_eq(a->feed.knob, knobs - 1);
    app_key(a, INPUT_HOME);
    screen_keys(a, "n"); // nothing was looked for
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "nothing was looked for"));
    screen_keys(a, "/alloc\n");
    size_t first = a->feed.knob;
    ck_assert_ptr_nonnull(strstr(hr_knob_rows(NULL)[feed_knob(&a->feed)].key, "alloc"));
    screen_keys(a, "n");
    ck_assert_uint_gt(a->feed.knob, first);
    ck_assert_ptr_nonnull(strstr(hr_knob_rows(NULL)[feed_knob(&a->feed)].key, "alloc"));
    screen_keys(a, "N");
    ck_assert_uint_eq(a->feed.knob, first);
    screen_keys(a, "?jj");
    ck_assert_uint_eq(a->help.top, 2);
    screen_close(a);
}
END_TEST

START_TEST(every_key_does_something_or_says_that_it_does_not)
{
    for (int key = '!'; key < INPUT_BACKSPACE; key++) {
        app *a = bench();
        a->feed.message.kind = MESSAGE_NONE;
        if (request_of_key(key) == REQUEST_NONE) {
            app_key(a, key);
            ck_assert_int_eq(a->feed.message.kind, MESSAGE_NOTE);
            ck_assert_ptr_nonnull(strstr(a->feed.message.text, "has no job"));
        }
        a->feed.message.kind = MESSAGE_NONE;
        screen_keys(a, "?");
        app_key(a, key);
        bool closed = a->overlay != OVERLAY_HELP || a->help.top > 0;
        ck_assert_msg(closed || a->feed.message.kind == MESSAGE_NOTE || key == 'k', "%c", key);
        screen_close(a);
    }
}
END_TEST

static void select_knob(app *a, hr_knob_id id)
{
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    for (a->feed.knob = 0; panel[a->feed.knob] != id; a->feed.knob++) {
        ck_assert_uint_lt(a->feed.knob, count);
    }
}

// A fix may have turned the knob that stands in the way: the same key again turns both, and z both back.
START_TEST(a_turn_that_another_knob_refuses_turns_both_at_the_second_key)
{
    app *a = bench();
    ck_assert(app_turn(&a->feed, HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "on"));
    screen_advance(a, 5);
    const hr_knobs before = a->feed.knobs;
    select_knob(a, HR_KNOB_PRECISION_POLICY);
    screen_keys(a, ">");
    ck_assert_mem_eq(&a->feed.knobs, &before, sizeof before);
    ck_assert_ptr_nonnull(
        strstr(a->feed.message.text, "needs optimizer.fused_backward=off, and > again turns both"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "a dynamic loss scale skips"));
    screen_keys(a, "2"); // it was read, and is not asked any more
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_NONE);
    screen_keys(a, "1>");
    ck_assert_mem_eq(&a->feed.knobs, &before, sizeof before);
    screen_keys(a, ">");
    ck_assert(hr_knob_is(&a->feed.knobs, HR_KNOB_PRECISION_POLICY, "mixed_float16"));
    ck_assert(hr_knob_is(&a->feed.knobs, HR_KNOB_OPTIMIZER_FUSED_BACKWARD, "off"));
    screen_keys(a, "z");
    ck_assert(knob_edit_same(&a->feed.knobs, &before));
    screen_close(a);
}
END_TEST

// What no other knob would let stand is passed over, both ways, and named; what is shown beside the knob is where the key goes.
START_TEST(a_key_passes_over_a_choice_that_is_refused)
{
    app *a = bench();
    char spoken[PANE_TEXT_MAX];
    ck_assert(app_turn_pairs(&a->feed, "execution.mode=eager precision.policy=float32 execution.as=pytorch"));
    screen_advance(a, 5);
    select_knob(a, HR_KNOB_CHECKPOINT_STRATEGY);
    ck_assert(hr_knob_is(&a->feed.knobs, HR_KNOB_CHECKPOINT_STRATEGY, "none"));
    const pane_view view = {.feed = &a->feed};
    pane_knobs.say(&view, spoken);
    ck_assert_ptr_nonnull(strstr(spoken, "right of it blocks."));
    app_key(a, INPUT_RIGHT);
    ck_assert(hr_knob_is(&a->feed.knobs, HR_KNOB_CHECKPOINT_STRATEGY, "blocks"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "checkpoint.strategy=blocks from the next step on"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "passed over, because it is refused here: selective"));
    app_key(a, INPUT_RIGHT);
    ck_assert(hr_knob_is(&a->feed.knobs, HR_KNOB_CHECKPOINT_STRATEGY, "sqrt"));
    ck_assert_ptr_null(strstr(a->feed.message.text, "passed over"));
    app_key(a, INPUT_LEFT);
    app_key(a, INPUT_LEFT);
    ck_assert(hr_knob_is(&a->feed.knobs, HR_KNOB_CHECKPOINT_STRATEGY, "none"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "selective"));
    screen_keys(a, "z"); // one turn, whatever lay between
    ck_assert(hr_knob_is(&a->feed.knobs, HR_KNOB_CHECKPOINT_STRATEGY, "blocks"));
    screen_close(a);
}
END_TEST

START_TEST(a_key_stops_where_every_choice_behind_is_refused)
{
    app *a = bench();
    ck_assert(
        app_turn_pairs(&a->feed, "execution.mode=eager precision.policy=float32 execution.as=tensorflow"));
    screen_advance(a, 5);
    select_knob(a, HR_KNOB_CHECKPOINT_STRATEGY);
    app_key(a, INPUT_RIGHT);
    ck_assert(hr_knob_is(&a->feed.knobs, HR_KNOB_CHECKPOINT_STRATEGY, "none"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "no rules for recomputation"));
    screen_close(a);
}
END_TEST

// Nothing was lost, so it does not stand in the way until Esc.
START_TEST(a_refused_turn_goes_with_the_next_key)
{
    app *a = bench();
    select_knob(a, HR_KNOB_PIPELINE_SOURCE);
    screen_keys(a, ">>"); // generated, cifar10
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "pipeline.path"));
    screen_keys(a, "2");
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_NONE);
    screen_close(a);
}
END_TEST

// What is typed is answered as an arrow is; a key that is none with what can be set.
START_TEST(a_typed_turn_says_what_became_of_it)
{
    static const char *const lines[][2] = {
        {":set batch.size 64\n", "batch.size=64 from the next step on; z turns it back"},
        {":batch.size=32\n", "batch.size=32 from the next step on"},
        {":batch.size 32\n", "batch.size is 32 already"},
        {":set train.save x.safetensors\n", "train.save=x.safetensors from the next step on"},
        {":set train.save \"\"\n", "train.save=\"\" from the next step on"},
        {":set\n", "try: :set batch.size 64"},
        {":set precision fp16\n", "try: :set precision.policy mixed_float16"},
        {":set batch.sise 3\n", "did you mean 'batch.size'?\ntry: :set batch.size 3"},
        {":set nothing_like_it 3\n", "try: Tab after :set"}};
    app *a = bench();
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        screen_keys(a, lines[i][0]);
        ck_assert_msg(strstr(a->feed.message.text, lines[i][1]) != NULL, "%s%s", lines[i][0],
                      a->feed.message.text);
        app_key(a, INPUT_ESCAPE);
    }
    screen_close(a);
}
END_TEST

START_TEST(a_preset_that_was_edited_wrongly_is_opened_again)
{
    app *a = bench();
    a->feed.preset = fake_broken_preset();
    act_preset_was_edited(a, true);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "no preset is called"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "\ntry: E, which opens it again"));
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    screen_close(a);
}
END_TEST

// Its own save is told once: it comes every 20 seconds. Somebody's is told each time.
START_TEST(an_autosave_is_logged_once)
{
    app *a = bench();
    static const char *const files[] = {"/dev/null/autosave", "/dev/null/autosave", "mine.save", "mine.save"};
    int told[2] = {0, 0};
    snprintf(a->feed.autosave, sizeof a->feed.autosave, "%s", files[0]);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_SAVED};
        bool more;
        snprintf(e.u.note.text, sizeof e.u.note.text, "%s", files[i]);
        fake_engine_say(a->feed.session, &e);
        (void)app_drain(a, &more);
    }
    for (size_t i = 0; i < a->feed.live.log_count && i < LOG_LENGTH; i++) {
        told[0] += strstr(a->feed.live.log[i].text, "autosaved at step") != NULL;
        told[1] += strcmp(a->feed.live.log[i].text, "saved mine.save") == 0;
        ck_assert_ptr_null(strstr(a->feed.live.log[i].text, "/dev/null"));
    }
    ck_assert_int_eq(told[0], 1);
    ck_assert_int_eq(told[1], 2);
    a->feed.autosave[0] = '\0';
    screen_close(a);
}
END_TEST

START_TEST(a_fix_of_several_knobs_is_one_step_of_undo)
{
    app *a = bench();
    app_key(a, INPUT_RIGHT); // batch 256 does not fit
    screen_advance(a, 3);
    screen_keys(a, ":fix 2\n");
    screen_advance(a, 3);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_SIZE), 128);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_ACCUMULATE), 2);
    screen_keys(a, "z");
    screen_advance(a, 3);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_SIZE), 256);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_ACCUMULATE), 1);
    screen_keys(a, "Z");
    screen_advance(a, 3);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_SIZE), 128);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_ACCUMULATE), 2);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui keys", less_and_vi_move_beside_the_arrows, every_key_does_something_or_says_that_it_does_not,
           an_out_of_memory_closes_the_list_of_columns_of_a_pane_it_leaves,
           the_wheel_does_not_change_what_a_line_is_about, a_fix_of_several_knobs_is_one_step_of_undo,
           a_preset_that_was_edited_wrongly_is_opened_again, an_autosave_is_logged_once,
           a_typed_turn_says_what_became_of_it, a_turn_that_another_knob_refuses_turns_both_at_the_second_key,
           a_refused_turn_goes_with_the_next_key, a_key_passes_over_a_choice_that_is_refused,
           a_key_stops_where_every_choice_behind_is_refused, arrows_turn_the_batch_and_z_turns_it_back,
           enter_edits_the_exact_value, enter_edits_only_where_the_knobs_have_the_focus,
           what_is_typed_takes_the_place_of_the_value, run_pauses_and_goes_on,
           leaving_asks_where_steps_would_be_lost_and_not_otherwise, leaving_says_what_the_saves_have,
           fix_turns_what_the_doctor_names_and_nothing_else, a_preset_is_chosen_and_runs,
           a_refused_turn_shows_what_runs_again_and_what_to_type, a_save_that_fails_turns_no_knob_back,
           a_training_begins_anew_with_all_that_is_turned, commands_do_what_keys_do,
           tab_completes_commands_knobs_and_choices, the_screen_is_saved_over_another_file_only_when_asked,
           a_save_without_a_file_says_what_to_type, a_line_takes_any_character_and_any_length,
           random_keys_find_nothing)
