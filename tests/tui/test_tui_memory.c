// SPDX-License-Identifier: Apache-2.0
// The Memory screen, on the scripted engine's step played through an allocator of the engine: what it shows is what the
// allocator says.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/terms.h"
#include "headroom/units.h"

#include "app/tui/screens/memory/cells.h"
#include "app/tui/screens/memory/memory.h"
#include "app/tui/shell/panes.h"
#include "memory/heap.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/fake_step_plan.h"
#include "tests/tui/golden.h"
#include "tests/tui/suite.h"

enum { TENSORS_MAX = 256 };

// ---- a training whose memory is a real allocator's ----------------------------------------------------------------

typedef struct training {
    app *app;
    trace_bus bus;
    heap heap;
    uint64_t address[TENSORS_MAX];
    uint32_t steps;
    bool refused;
    // At the first moment of the largest in_use of the last step.
    heap_counters peak;
} training;

static void tell(void *context, const hr_event *e)
{
    training *t = context;
    run_state_feed(&t->app->feed.live, e);
    heap_record_knobs(&t->app->feed.heap, &t->app->feed.applied);
    heap_record_feed(&t->app->feed.heap, e);
}

static void training_begin(training *t, app *a, const char *kind, uint64_t limit_bytes)
{
    backing source;
    memset(t, 0, sizeof *t);
    t->app = a;
    trace_bus_init(&t->bus);
    t->bus.simulated = true;
    MUST(trace_attach(&t->bus, tell, t));
    MUST(backing_numbers_open(limit_bytes, 4096, &source, NULL) == HR_OK);
    allocator_config config = allocator_config_of(kind, limit_bytes);
    config.growth = true;
    MUST(hr_knobs_set(&a->feed.applied, HR_KNOB_ALLOCATOR_KIND, kind, NULL) == HR_OK);
    t->heap = heap_over(&config, source, &t->bus);
    a->feed.live.limit_bytes = limit_bytes;
    fake_step_plan_show(a);
    trace_note(&t->bus, HR_EVENT_STATE, HR_ENGINE_RUNNING, "");
    trace_note(&t->bus, HR_EVENT_BUILD, 0, "built");
}

static void training_end(training *t)
{
    trace_detach(&t->bus, tell, t);
    heap_close(&t->heap);
}

static void ask(training *t, const hr_event *e)
{
    uint32_t tensor = e->u.memory.tensor;
    MUST(tensor < TENSORS_MAX);
    t->bus.category = e->category;
    t->bus.phase = e->phase;
    t->bus.instr = e->instr;
    t->bus.now_ns += 1000000;
    if (e->kind == HR_EVENT_FREE) {
        allocator_free(t->heap.allocator, t->address[tensor]);
        return;
    }
    t->refused = allocator_alloc(t->heap.allocator, e->u.memory.requested_bytes, tensor, &t->address[tensor],
                                 NULL) != HR_OK;
    heap_counters now = allocator_get_stats(t->heap.allocator);
    if (now.in_use_bytes > t->peak.in_use_bytes) {
        t->peak = now;
    }
}

// The build, or one step, of the workbench's step plan; stops where it is refused.
static void play(training *t, bool builds)
{
    const hr_step_plan *p = &t->app->feed.step_plan;
    size_t begin = builds ? 0 : p->build_events, end = builds ? p->build_events : p->event_count;
    t->peak = (heap_counters){0};
    for (size_t i = begin; i < end && !t->refused; i++) {
        if (p->events[i].kind == HR_EVENT_ALLOC || p->events[i].kind == HR_EVENT_FREE) {
            ask(t, &p->events[i]);
        }
    }
    if (!builds && !t->refused) {
        hr_event e = {.kind = HR_EVENT_STEP};
        t->bus.step = ++t->steps;
        e.u.step.loss = 2.3;
        trace_emit(&t->bus, &e);
    }
}

static training shared;

// Two steps and the screen; the caller ends it after the workbench.
static void train(app *a, const char *kind, uint64_t limit_bytes)
{
    training_begin(&shared, a, kind, limit_bytes);
    play(&shared, true);
    play(&shared, false);
    play(&shared, false);
    screen_keys(a, "2");
}

static app *open_training(const char *kind, uint64_t limit_bytes)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    train(a, kind, limit_bytes);
    return a;
}

static void close_training(app *a)
{
    screen_close(a);
    training_end(&shared);
}

static void draw(app *a)
{
    free(screen_text(a));
}

static bool shows(app *a, const char *words)
{
    char *text = screen_text(a);
    bool found = strstr(text, words) != NULL;
    free(text);
    return found;
}

// ---- looks --------------------------------------------------------------------------------------------------------

static void show_bfc(app *a)
{
    train(a, "bfc", 96 * HR_MIB);
    training_end(&shared); // nothing of it is told any more
}

static void compare_one(const char *name, const char *kind, uint64_t limit_bytes, const screen_look *look)
{
    app *a = screen_open(look);
    train(a, kind, limit_bytes);
    golden_compare(name, a);
    close_training(a);
}

START_TEST(the_heap_at_the_peak_of_the_last_step_looks_as_agreed)
{
    golden_all("memory", show_bfc);
}
END_TEST

START_TEST(refused_requests_and_other_allocators_look_as_agreed)
{
    static const screen_look small = {.rows = 24, .columns = 80}, large = {.rows = 50, .columns = 160};
    compare_one("memory-refused", "bfc", 64 * HR_MIB, &small);
    compare_one("memory-caching", "caching", 96 * HR_MIB, &small);
    compare_one("memory-direct", "direct", 96 * HR_MIB, &small);
    compare_one("memory-direct-160x50", "direct", 96 * HR_MIB, &large);
}
END_TEST

START_TEST(before_the_first_step_the_screen_says_so)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_keys(a, "2");
    ck_assert(shows(a, "No step has been done yet, so there is no heap to show."));
    screen_keys(a, ".");
    ck_assert(shows(a, "No step has been done yet"));
    screen_close(a);
}
END_TEST

START_TEST(a_view_that_was_frozen_before_the_first_look_shows_the_heap)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_keys(a, " ");
    ck_assert(a->feed.is_frozen);
    train(a, "bfc", 96 * HR_MIB);
    ck_assert(a->feed.is_frozen);
    free(screen_text(a));
    ck_assert_uint_gt(heap_scene_rows(&a->memory.scene), 0);
    const uint64_t number = a->memory.scene.step.number;
    play(&shared, false);
    free(screen_text(a));
    ck_assert_uint_eq(a->memory.scene.step.number, number); // from there on it stands still
    screen_close(a);
    training_end(&shared);
}
END_TEST

// ---- numbers ------------------------------------------------------------------------------------------------------

START_TEST(the_heap_at_the_peak_has_the_numbers_of_the_allocator)
{
    static const char *const kinds[] = {"bfc", "caching", "async", "direct"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        app *a = open_training(kinds[i], 96 * HR_MIB);
        draw(a);
        const heap_mirror *m = &a->memory.scene.heap;
        ck_assert_int_eq(a->memory.scene.step.kind, HEAP_STEP_TRAINED);
        ck_assert_uint_eq(m->in_use_bytes, shared.peak.in_use_bytes);
        ck_assert_uint_eq(m->pool_bytes, shared.peak.pool_bytes);
        ck_assert_uint_eq(m->requested_bytes, shared.peak.requested_bytes);
        ck_assert_uint_eq(heap_mirror_largest_free(m), shared.peak.largest_free_bytes);
        ck_assert_double_eq_tol(heap_mirror_fragmentation(m), shared.peak.fragmentation, 1e-12);
        ck_assert_uint_eq(a->feed.heap.damage, 0);
        close_training(a);
    }
}
END_TEST

START_TEST(a_refused_request_is_the_last_event_and_stands_beside_the_largest_hole)
{
    app *a = open_training("bfc", 64 * HR_MIB);
    draw(a);
    heap_counters now = allocator_get_stats(shared.heap.allocator);
    ck_assert(shared.refused && a->memory.scene.refused.is_recorded);
    ck_assert_uint_eq(memory_selected_row(&a->memory) + 1, heap_scene_rows(&a->memory.scene));
    ck_assert_uint_eq(a->memory.scene.heap.in_use_bytes, now.in_use_bytes);
    ck_assert_uint_eq(a->memory.scene.refused.largest_free_bytes, now.largest_free_bytes);
    ck_assert_uint_eq(heap_mirror_largest_free(&a->memory.scene.heap), now.largest_free_bytes);
    ck_assert(shows(a, "2.20 MiB in one piece"));
    trace_note(&shared.bus, HR_EVENT_STATE, HR_ENGINE_OOM, "");
    app_key(a, INPUT_UP); // nothing trains: walking back needs no freezing
    draw(a);
    ck_assert(!a->feed.is_frozen);
    ck_assert_uint_eq(a->memory.scene.at + 1, a->memory.scene.count);
    close_training(a);
}
END_TEST

START_TEST(what_only_a_plan_was_refused_is_shown_as_it_was_planned)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    hr_event e = {.kind = HR_EVENT_OOM};
    e.u.memory = (hr_event_memory){.requested_bytes = 9 * HR_MIB,
                                   .in_use_bytes = 60 * HR_MIB,
                                   .pool_bytes = 64 * HR_MIB,
                                   .largest_free_bytes = 3 * HR_MIB,
                                   .tensor = HR_NO_ID};
    trace_emit(&shared.bus, &e);
    ck_assert(shows(a, "A dry run was refused")); // the plan has not come yet
    ck_assert_uint_eq(memory_selected_row(&a->memory) + 1, heap_scene_rows(&a->memory.scene));
    ck_assert_int_eq(hr_knobs_set(&a->feed.knobs, HR_KNOB_BATCH_SIZE, "256", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&a->feed.knobs, HR_KNOB_ALLOCATOR_GROWTH, "off", NULL), HR_OK);
    fake_step_plan_show(a);
    ck_assert(!a->feed.step_plan.fits);
    draw(a);
    ck_assert_int_eq(a->memory.scene.step.kind, HEAP_STEP_PLANNED);
    ck_assert_int_eq(a->memory.scene.changes[a->memory.scene.count - 1].kind, HR_EVENT_OOM);
    ck_assert_uint_eq(a->memory.scene.at, a->memory.scene.count);
    ck_assert(shows(a, "refused, planned"));
    play(&shared, false); // it trains again
    draw(a);
    ck_assert_int_eq(a->memory.scene.step.kind, HEAP_STEP_TRAINED);
    close_training(a);
}
END_TEST

// ---- walking ------------------------------------------------------------------------------------------------------

START_TEST(the_view_follows_the_newest_step_until_the_first_step_of_the_cursor_holds_it)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    ck_assert_uint_eq(a->memory.scene.step.number, 2);
    ck_assert_uint_eq(a->memory.scene.at, a->memory.scene.peak);
    play(&shared, false);
    draw(a);
    ck_assert_uint_eq(a->memory.scene.step.number, 3);
    size_t at = a->memory.scene.at;
    app_key(a, INPUT_DOWN);
    draw(a);
    ck_assert(a->feed.is_frozen);
    ck_assert(shows(a, "step 3 is held"));
    ck_assert_uint_eq(a->memory.scene.at, at + 1);
    play(&shared, false);
    draw(a);
    ck_assert_uint_eq(a->memory.scene.step.number, 3);
    screen_keys(a, " ");
    draw(a);
    ck_assert(!a->feed.is_frozen);
    ck_assert_uint_eq(a->memory.scene.step.number, 4);
    ck_assert_uint_eq(a->memory.scene.at, a->memory.scene.peak);
    close_training(a);
}
END_TEST

START_TEST(home_is_the_beginning_of_the_step_and_end_its_end)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    app_key(a, INPUT_HOME);
    draw(a);
    ck_assert_uint_eq(a->memory.scene.at, 0);
    ck_assert(shows(a, "step 2 begins"));
    size_t blocks = a->memory.scene.heap.block_count;
    app_key(a, INPUT_END);
    draw(a);
    ck_assert_uint_eq(a->memory.scene.at, a->memory.scene.count);
    ck_assert_uint_eq(a->memory.scene.heap.block_count, blocks); // a step leaves what it found
    for (unsigned pane = 0; pane < 3; pane++) {                  // behind the end there is the newest step
        ck_assert(a->feed.is_frozen);
        play(&shared, false);
        app_key(a, INPUT_END);
        draw(a);
        ck_assert(!a->feed.is_frozen);
        ck_assert_uint_eq(a->memory.scene.step.number, 3 + pane);
        ck_assert_uint_eq(a->memory.scene.at, a->memory.scene.peak);
        app_key(a, INPUT_TAB);
        app_key(a, INPUT_END);
        draw(a);
        ck_assert(a->feed.is_frozen);
        ck_assert_uint_eq(a->memory.scene.at, a->memory.scene.count);
    }
    close_training(a);
}
END_TEST

// Every event of the step, downwards and upwards, in panes and sizes of all kinds.
START_TEST(every_event_is_reached_both_ways_and_the_heap_goes_with_it)
{
    for (int i = 0; i < GOLDEN_LOOKS; i++) {
        app *a = screen_open(&golden_looks[i].look);
        train(a, "bfc", 96 * HR_MIB);
        draw(a);
        app_key(a, INPUT_HOME);
        draw(a);
        for (size_t at = 1; at <= a->memory.scene.count; at++) {
            app_key(a, at % 7 == 0 ? INPUT_TAB : INPUT_DOWN);
            app_key(a, at % 7 == 0 ? INPUT_DOWN : INPUT_NONE);
            draw(a);
            MUST(a->memory.scene.at == at);
        }
        for (size_t at = a->memory.scene.count; at > 0; at--) {
            app_key(a, INPUT_UP);
            draw(a);
            MUST(a->memory.scene.at == at - 1);
        }
        close_training(a);
    }
}
END_TEST

START_TEST(the_cursor_goes_from_chunk_to_chunk_and_stays_in_its_moment)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    size_t at = a->memory.scene.at, pieces = 0, seen = 0;
    heap_walk walk = {0};
    heap_piece piece, under;
    while (heap_mirror_next(&a->memory.scene.heap, &walk, &piece)) {
        pieces++;
    }
    for (size_t i = 0; i < pieces; i++) {
        app_key(a, INPUT_LEFT);
    }
    heap_mirror_next(&a->memory.scene.heap, &(heap_walk){0}, &piece);
    ck_assert(heap_scene_piece(&a->memory.scene, &under));
    ck_assert_uint_eq(under.address, piece.address);
    for (walk = (heap_walk){0}; heap_mirror_next(&a->memory.scene.heap, &walk, &piece); seen++) {
        ck_assert(heap_scene_piece(&a->memory.scene, &under));
        ck_assert_uint_eq(under.address, piece.address);
        app_key(a, INPUT_RIGHT);
        draw(a);
    }
    ck_assert_uint_eq(seen, pieces);
    ck_assert_uint_eq(a->memory.scene.at, at);
    close_training(a);
}
END_TEST

START_TEST(the_chunk_that_was_chosen_stays_chosen_while_the_training_goes_on)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    app_key(a, INPUT_LEFT);
    app_key(a, INPUT_LEFT);
    uint64_t address = a->memory.scene.address;
    ck_assert_uint_ne(address, a->memory.scene.changes[a->memory.scene.at - 1].address);
    play(&shared, false);
    draw(a);
    ck_assert_uint_eq(a->memory.scene.step.number, 3);
    ck_assert_uint_eq(a->memory.scene.address, address);
    app_key(a, INPUT_DOWN);
    draw(a);
    ck_assert_uint_eq(a->memory.scene.address, a->memory.scene.changes[a->memory.scene.at - 1].address);
    close_training(a);
}
END_TEST

START_TEST(enter_goes_to_the_event_that_made_a_chunk_and_on_to_the_one_that_ends_it)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    heap_scene *v = &a->memory.scene;
    heap_piece piece;
    for (int i = 0; i < 60; i++) {
        app_key(a, INPUT_RIGHT);
    }
    do {
        app_key(a, INPUT_LEFT);
        ck_assert(heap_scene_piece(v, &piece));
    } while (piece.block == NULL || heap_scene_made(v, &piece) + 1 == v->at);
    size_t made = heap_scene_made(v, &piece), ended = heap_scene_ended(v, &piece);
    ck_assert_uint_ne(made, SIZE_MAX);
    ck_assert_uint_ne(ended, SIZE_MAX);
    app_key(a, INPUT_ENTER);
    draw(a);
    ck_assert_uint_eq(v->at, made + 1);
    ck_assert_int_eq(v->changes[made].kind, HR_EVENT_ALLOC);
    ck_assert_uint_eq(v->changes[made].address, piece.address);
    ck_assert(a->feed.is_frozen);
    app_key(a, INPUT_ENTER);
    draw(a);
    ck_assert_uint_eq(v->at, ended + 1);
    ck_assert_int_eq(v->changes[ended].kind, HR_EVENT_FREE);
    close_training(a);
}
END_TEST

START_TEST(zooming_keeps_the_chunk_under_the_cursor_in_sight)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    for (int zoom = 0; zoom < 30; zoom++) {
        map_scale s;
        bool seen = false;
        screen_keys(a, "+");
        app_key(a, zoom % 2 == 0 ? INPUT_LEFT : INPUT_RIGHT);
        draw(a);
        MUST(map_scale_make(&s, &a->memory.scene, 7, 69));
        uint64_t first, end;
        heap_piece piece;
        map_selected(&s, &a->memory.scene, &first, &end);
        MUST(heap_scene_piece(&a->memory.scene, &piece));
        const map_half *halves = map_halves(&s, &a->memory.scene);
        for (uint64_t i = first; i < end && i < 2 * 7 * 69; i++) {
            seen = halves[i].address == piece.address || seen;
        }
        MUST(seen || (first < end && first < 2 * 7 * 69)); // it may be less than half of its cell
    }
    for (int zoom = 0; zoom < 40; zoom++) {
        screen_keys(a, "-");
    }
    ck_assert_uint_eq(a->memory.scene.zoom, 0);
    close_training(a);
}
END_TEST

START_TEST(a_click_on_the_map_selects_the_chunk_there)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    rect r = app_layout(a).pane[PANE_HEAP];
    heap_piece piece;
    a->click_y = r.y + 3;  // the second region
    a->click_x = r.x + 12; // its first cells
    app_key(a, INPUT_CLICK);
    ck_assert(heap_scene_piece(&a->memory.scene, &piece));
    ck_assert_uint_eq(piece.region, 1);
    close_training(a);
}
END_TEST

START_TEST(filtered_events_still_carry_the_heap)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    app_key(a, INPUT_TAB);
    screen_keys(a, "/free\n");
    draw(a);
    app_key(a, INPUT_HOME);
    draw(a);
    ck_assert_uint_gt(a->memory.scene.at, 0);
    ck_assert_int_eq(a->memory.scene.changes[a->memory.scene.at - 1].kind, HR_EVENT_FREE);
    close_training(a);
}
END_TEST

START_TEST(another_order_of_the_events_stays_in_the_same_moment)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    app_key(a, INPUT_TAB);
    for (int i = 0; i < 8; i++) {
        screen_keys(a, i % 2 == 0 ? "o" : "O");
        draw(a);
        ck_assert_uint_eq(a->memory.scene.at, a->memory.scene.peak);
        ck_assert_uint_eq(memory_selected_row(&a->memory), a->memory.scene.peak);
        ck_assert(!a->feed.is_frozen);
    }
    close_training(a);
}
END_TEST

// ---- words --------------------------------------------------------------------------------------------------------

START_TEST(names_are_those_of_the_plan_only_where_it_is_the_same_tensor)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    const hr_step_plan_tensor *t = &a->feed.step_plan.tensors[2];
    char text[HR_NAME_MAX];
    ck_assert_str_eq(memory_tensor_name(&a->feed, 2, t->category, t->bytes, text),
                     hr_step_plan_text(&a->feed.step_plan, t->name));
    ck_assert_str_eq(memory_tensor_name(&a->feed, 2, t->category, t->bytes + 1, text), "tensor 2");
    ck_assert_str_eq(memory_tensor_name(&a->feed, 100000, t->category, t->bytes, text), "tensor 100000");
    ck_assert_str_eq(memory_tensor_name(&a->feed, HR_NO_ID, HR_CATEGORY_GRADIENTS, 5, text), "gradients");
    ck_assert_str_eq(memory_tensor_name(&a->feed, HR_NO_ID, 200, 5, text), "unknown");
    close_training(a);
}
END_TEST

START_TEST(every_pane_is_said_explained_and_copied)
{
    app *a = open_training("bfc", 96 * HR_MIB);
    draw(a);
    static const pane_id panes[] = {PANE_HEAP, PANE_EVENTS, PANE_BLOCK};
    static const char *const said[] = {"fragmentation", "are in use after it", "requested"};
    static const char *const copied[] = {"in_use_bytes\t", "\t0x", "address\t0x"};
    for (int i = 0; i < 3; i++) {
        char text[1024];
        const pane_ops *ops = pane_ops_of(panes[i]);
        a->focus = panes[i];
        screen_keys(a, ".");
        ck_assert_msg(strstr(a->feed.message.text, said[i]) != NULL, "%s", a->feed.message.text);
        const pane_view v = pane_view_of(a, panes[i]);
        bool any = ops->copy != NULL ? ops->copy(&v, text, sizeof text)
                                     : table_copy(&a->table[panes[i]], ops->table, pane_rows(a, panes[i]),
                                                  text, sizeof text);
        ck_assert(any);
        ck_assert_msg(strstr(text, copied[i]) != NULL, "%s", text);
    }
    close_training(a);
}
END_TEST

START_TEST(every_line_about_a_chunk_begins_with_a_term)
{
    static const uint64_t limits_bytes[] = {96 * HR_MIB, 32 * HR_MIB}; // the second is too small
    for (int i = 0; i < 2; i++) {
        app *a = open_training("bfc", limits_bytes[i]);
        char text[4096];
        for (int event = 0; event < 60; event++) {
            draw(a);
            const pane_view v = pane_view_of(a, PANE_BLOCK);
            ck_assert(v.ops->copy(&v, text, sizeof text));
            for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest)) != NULL;) {
                line[strcspn(line, "\t")] = '\0';
                ck_assert_msg(hr_term_find(line) != NULL, "no term %s", line);
            }
            app_key(a, INPUT_UP);
        }
        close_training(a);
    }
}
END_TEST

// ---- bad input ----------------------------------------------------------------------------------------------------

// What the scripted engine says of its heap contradicts itself: the screen shows nothing untrue, and goes on.
START_TEST(a_stream_that_contradicts_itself_draws_every_frame)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_keys(a, "2");
    static const int keys[] = {INPUT_UP,  INPUT_RIGHT, '+', INPUT_ENTER,
                               INPUT_TAB, INPUT_END,   ' ', INPUT_LEFT};
    for (size_t i = 0; i < 60; i++) {
        screen_advance(a, 1);
        app_key(a, keys[i % (sizeof keys / sizeof *keys)]);
        draw(a);
    }
    ck_assert_uint_gt(a->feed.heap.damage, 0);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui memory", the_heap_at_the_peak_of_the_last_step_looks_as_agreed,
           refused_requests_and_other_allocators_look_as_agreed, before_the_first_step_the_screen_says_so,
           a_view_that_was_frozen_before_the_first_look_shows_the_heap,
           the_heap_at_the_peak_has_the_numbers_of_the_allocator,
           a_refused_request_is_the_last_event_and_stands_beside_the_largest_hole,
           what_only_a_plan_was_refused_is_shown_as_it_was_planned,
           the_view_follows_the_newest_step_until_the_first_step_of_the_cursor_holds_it,
           home_is_the_beginning_of_the_step_and_end_its_end,
           every_event_is_reached_both_ways_and_the_heap_goes_with_it,
           the_cursor_goes_from_chunk_to_chunk_and_stays_in_its_moment,
           the_chunk_that_was_chosen_stays_chosen_while_the_training_goes_on,
           enter_goes_to_the_event_that_made_a_chunk_and_on_to_the_one_that_ends_it,
           zooming_keeps_the_chunk_under_the_cursor_in_sight, a_click_on_the_map_selects_the_chunk_there,
           filtered_events_still_carry_the_heap, another_order_of_the_events_stays_in_the_same_moment,
           names_are_those_of_the_plan_only_where_it_is_the_same_tensor,
           every_pane_is_said_explained_and_copied, every_line_about_a_chunk_begins_with_a_term,
           a_stream_that_contradicts_itself_draws_every_frame)
