// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/terms.h"

#include "app/tui/shell/frame.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

static const screen_look plain = {.rows = 24, .columns = 80};

START_TEST(no_key_and_no_name_is_given_twice)
{
    size_t count;
    const request_row *rows = request_rows(&count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(request_of_key(rows[i].key), i);
        ck_assert_uint_eq(request_of_name(rows[i].name), i);
        ck_assert_int_gt((int)strlen(rows[i].line), 0);
    }
    ck_assert_int_eq(request_of_key('~'), REQUEST_NONE);
}
END_TEST

// The knobs, sizes and rows that a request may change, folded into one text.
static void fingerprint(app *a, char text[2048])
{
    snprintf(text, 2048, "%d %d %d %d %d %d %d %zu %u %d %d %d %d %zu %d %d %s", a->feed.is_frozen,
             a->bench.baseline.pinned, (int)a->overlay, (int)a->screen, (int)a->focus, a->expanded,
             (int)a->feed.message.kind, a->feed.knob, a->bench.zoom, (int)a->looks.glyphs.set, a->redraws,
             (int)a->next.work, a->interrupted, a->feed.turned.done, a->quits,
             (int)a->feed.knobs.value[HR_KNOB_BATCH_SIZE].u.integer, a->feed.message.text);
}

START_TEST(every_request_that_is_live_does_something)
{
    size_t count;
    char folder[] = "/tmp/headroom-requests-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0); // S saves the screen
    request_rows(&count);
    for (size_t r = 0; r < count; r++) {
        app *a = screen_open(&plain);
        char before[2048], after[2048];
        screen_advance(a, 4);
        app_request(a, REQUEST_RIGHT);
        app_request(a, REQUEST_UNDO);
        app_request(a, REQUEST_DOWN);
        app_request(a, REQUEST_PIN);
        a->feed.message.kind = MESSAGE_NONE;
        fingerprint(a, before);
        const char *why_not = app_why_not(a, (request)r);
        app_key(a, request_rows(&count)[r].key);
        fingerprint(a, after);
        bool runs = r == REQUEST_PIN || r == REQUEST_PAGE_DOWN; // seen elsewhere
        ck_assert_msg(runs || strcmp(before, after) != 0, "%s changes nothing", request_rows(&count)[r].name);
        ck_assert_msg(why_not == NULL || strcmp(a->feed.message.text, why_not) == 0, "%s gives no reason",
                      request_rows(&count)[r].name);
        screen_close(a);
    }
    ck_assert_int_eq(unlink("headroom-1.svg"), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(the_footer_shows_live_keys_only_and_each_can_be_clicked)
{
    app *a = screen_open(&(screen_look){.rows = 40, .columns = 200});
    screen_advance(a, 4);
    char *text = screen_text(a);
    bool seen[REQUEST_COUNT] = {false};
    for (int x = 0; x < 200; x++) {
        request r = footer_request_at(a, x);
        if (r != REQUEST_NONE) {
            ck_assert_ptr_null(app_why_not(a, r));
            seen[r] = true;
        }
    }
    ck_assert(seen[REQUEST_QUIT] && seen[REQUEST_HELP] && seen[REQUEST_RUN] && seen[REQUEST_PRESETS]);
    ck_assert(!seen[REQUEST_UNDO] && !seen[REQUEST_BENCH]);
    ck_assert_ptr_nonnull(strstr(text, "r pause"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(help_names_every_key)
{
    app *a = screen_open(&(screen_look){.rows = 120, .columns = 160});
    size_t count;
    app_request(a, REQUEST_HELP);
    char *text = screen_text(a);
    const request_row *rows = request_rows(&count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(strstr(text, rows[i].line) != NULL, "help does not say: %s", rows[i].line);
    }
    free(text);
    screen_close(a);
}
END_TEST

// A label is a term itself or a row of words around one: "peak since start".
static bool is_term(const char *label)
{
    char word[64];
    size_t length = strcspn(label, " ");
    snprintf(word, sizeof word, "%.*s", (int)length, label);
    char bytes[80];
    snprintf(bytes, sizeof bytes, "%s_bytes", word);
    return hr_term_find(word) != NULL || hr_term_find(bytes) != NULL;
}

START_TEST(every_label_is_in_the_glossary)
{
    static const char *const labels[] = {"step",   "eval_accuracy", "loss",     "examples/s",
                                         "it/s",   "epoch",         "dtype",    "shape",
                                         "tensor", "left",          "measured", "planned"};
    for (int i = 0; i < COUNTER_COUNT; i++) {
        ck_assert_msg(hr_term_find(counter_term((counter_id)i)) != NULL, "no term %s",
                      counter_term((counter_id)i));
        ck_assert_msg(is_term(counter_label((counter_id)i)), "no term for label %s",
                      counter_label((counter_id)i));
    }
    for (int i = 0; i < PANE_FOCUS_COUNT; i++) {
        ck_assert_msg(is_term(pane_title((pane_id)i)), "no term for pane %s", pane_title((pane_id)i));
    }
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        ck_assert_msg(hr_term_find(labels[i]) != NULL, "no term %s", labels[i]);
    }
}
END_TEST

SUITE_MAIN("tui requests", no_key_and_no_name_is_given_twice, every_request_that_is_live_does_something,
           the_footer_shows_live_keys_only_and_each_can_be_clicked, help_names_every_key,
           every_label_is_in_the_glossary)
