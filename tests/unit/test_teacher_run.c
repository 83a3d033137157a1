// SPDX-License-Identifier: Apache-2.0
// Training with a teacher (compress.distill): its weights come from its own save, and are nobody else's: a save has the student
// alone, a resumed run is the run, and what does not fit is refused before anything has changed.
#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {name: conv, kind: conv2d, filters: 4, kernel: 3, stride: 4, activation: relu}\n"                 \
    "    - {name: norm, kind: batch_norm}\n"                                                                 \
    "    - {name: flat, kind: flatten}\n"                                                                    \
    "    - {name: logits, kind: dense, units: 10}\n"

#include <sys/stat.h>

#include "base/machine.h"
#include "train/engine_impl.h"
#include "unit/small_engine.h"

static void save(hr_engine *e, const char *path)
{
    hr_command c = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_SAVE};
    (void)snprintf(c.text, sizeof c.text, "%s", path);
    ck_assert_int_eq(hr_engine_command(e, &c, NULL), HR_OK);
}

// A save of so many steps of the model itself, which teaches it; returns the pair that names it.
static const char *teach(uint64_t steps, char pair[160])
{
    char path[128];
    hr_engine *e = create((const char *[]){"train.seed=7", NULL}, NULL);
    run_steps(e, steps);
    save(e, file_in("teacher.safetensors", path));
    hr_engine_destroy(e);
    (void)snprintf(pair, 160, "compress.distill_weights=%s", path);
    return pair;
}

static double last_loss(hr_engine *e)
{
    hr_report r = report_of(e);
    const double loss = r.train.loss_last;
    hr_report_deinit(&r);
    return loss;
}

static bool file_has(const char *path, const char *word)
{
    static char bytes[1 << 20];
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    const size_t length = fread(bytes, 1, sizeof bytes, f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_uint_lt(length, sizeof bytes);
    return memmem(bytes, length, word, strlen(word)) != NULL;
}

typedef struct said {
    int seeded;
} said;

static void listen(void *context, const hr_event *event)
{
    said *s = context;
    s->seeded += event->kind == HR_EVENT_LOG &&
                 strstr(event->u.note.text, "the teacher has seeded values: no distill_weights") != NULL;
}

START_TEST(a_teacher_without_a_save_is_told_of)
{
    char weights[160];
    said s = {0};
    const hr_engine_options options = {.sink = listen, .sink_context = &s};
    hr_engine *e = create((const char *[]){"compress.distill=self", NULL}, &options);
    run_steps(e, 2);
    ck_assert_int_eq(s.seeded, 1);
    const double loss = last_loss(e);
    hr_engine_destroy(e);
    s.seeded = 0;
    e = create((const char *[]){"compress.distill=self", teach(5, weights), NULL}, &options);
    run_steps(e, 2);
    ck_assert_int_eq(s.seeded, 0);
    ck_assert_double_ne(last_loss(e), loss);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_save_has_the_student_alone_and_goes_on_bit_for_bit)
{
    char weights[160], half[128], resume[192], whole[HR_SHA256_TEXT_MAX], sha[HR_SHA256_TEXT_MAX];
    const char *pairs[] = {"compress.distill=self", teach(5, weights), NULL, NULL};
    hr_engine *e = create(pairs, NULL);
    run_steps(e, 3);
    save(e, file_in("half.safetensors", half));
    ck_assert(!file_has(half, "teacher/"));
    run_steps(e, 3);
    weights_of(e, whole);
    hr_engine_destroy(e);
    (void)snprintf(resume, sizeof resume, "train.resume=%s", half);
    pairs[2] = resume;
    e = create(pairs, NULL);
    run_steps(e, 6); // of them three are done
    weights_of(e, sha);
    ck_assert_str_eq(sha, whole);
    hr_engine_destroy(e);
}
END_TEST

// A rebuild fills the teacher anew: it is what it was.
START_TEST(a_turn_of_another_knob_leaves_the_teacher)
{
    char weights[160], whole[HR_SHA256_TEXT_MAX], sha[HR_SHA256_TEXT_MAX];
    const char *pairs[] = {"compress.distill=self", teach(5, weights), NULL};
    hr_engine *e = create(pairs, NULL);
    run_steps(e, 6);
    weights_of(e, whole);
    hr_engine_destroy(e);
    e = create(pairs, NULL);
    run_steps(e, 3);
    ck_assert_int_eq(turn(e, HR_KNOB_ALLOCATOR_KIND, "caching"), HR_OK);
    run_steps(e, 3);
    weights_of(e, sha);
    ck_assert_str_eq(sha, whole);
    ck_assert_int_eq(turn(e, HR_KNOB_COMPRESS_DISTILL, "none"), HR_OK); // what was learned stays
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_IDLE);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_save_that_is_not_the_teachers_is_refused)
{
    char weights[160], other[160], path[128], word[160];
    FILE *f = fopen(file_in("wide.yaml", path), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_gt(fprintf(f, "model:\n  name: wide\n  input: {shape: [32, 32, 3]}\n  classes: 10\n"
                                "  loss: softmax_cross_entropy\n  layers:\n    - {kind: flatten}\n"
                                "    - {name: logits, kind: dense, units: 10}\n"),
                     0);
    ck_assert_int_eq(fclose(f), 0);
    (void)snprintf(word, sizeof word, "compress.distill=%s", path);
    hr_engine *e = create((const char *[]){word, teach(2, weights), NULL}, NULL);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_ptr_nonnull(strstr(hr_engine_error(e)->sentence,
                                 "does not fit the teacher of small: logits/weights needs 3072x10, had "));
    hr_engine_destroy(e);
    (void)snprintf(other, sizeof other, "compress.distill_weights=%s", file_in("none.safetensors", path));
    e = create((const char *[]){"compress.distill=self", other, NULL}, NULL);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    hr_engine_destroy(e);
}
END_TEST

// ---- answers that were given before ---------------------------------------------------------------------------

enum { IMAGES = 27, HELD_OUT = 9, STEPS = 11 }; // of more than three epochs

typedef struct host_bytes {
    uint64_t answers, all;
} host_bytes;

// Trains on a few images that are shuffled; returns what the host held.
static host_bytes train(const char *const *pairs, bool plan_only, char sha[HR_SHA256_TEXT_MAX])
{
    hr_engine *e = create(pairs, &(hr_engine_options){.plan_only = plan_only});
    run_steps(e, STEPS);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_report r = report_of(e);
    host_bytes bytes = {.all = r.host.peak_bytes};
    for (uint32_t k = 0; k < r.host.stage_count; k++) {
        bytes.answers += strcmp(r.host.stages[k].name, "answers") == 0 ? r.host.stages[k].peak_bytes : 0;
    }
    hr_report_deinit(&r);
    if (!plan_only) {
        weights_of(e, sha);
    }
    hr_engine_destroy(e);
    return bytes;
}

static const char *const chains[] = {"pipeline.prefetch=2",
                                     "pipeline.prefetch=0",
                                     "pipeline.shuffle_of=elements",
                                     "pipeline.cache=ram",
                                     "execution.mode=graph",
                                     "batch.remainder=pad",
                                     "batch.remainder=keep",
                                     "pipeline.normalise=device",
                                     "pipeline.device_prefetch=2",
                                     "pipeline.stages=cache,shuffle,repeat,map,batch,prefetch",
                                     "pipeline.stages=shuffle,map,cache,batch",
                                     "batch.accumulate=2",
                                     "pipeline.array=uint8",
                                     "precision.policy=mixed_float16",
                                     "precision.policy=mixed_bfloat16",
                                     "compress.quantize=qat",
                                     "compress.lora=2"};
enum { CHAINS = sizeof chains / sizeof *chains };

START_TEST(answers_from_the_host_train_the_same_weights)
{
    char weights[160], images[160], sha[2][HR_SHA256_TEXT_MAX];
    const char *pairs[] = {
        "compress.distill=self",      teach(5, weights), write_images(IMAGES, HELD_OUT, images),
        "compress.distill_cache=off", chains[_i],        NULL};
    ck_assert_uint_eq(train(pairs, false, sha[0]).answers, 0);
    pairs[3] = "compress.distill_cache=on";
    const host_bytes planned = train(pairs, true, NULL), held = train(pairs, false, sha[1]);
    ck_assert_uint_eq(held.answers, IMAGES * 10 * sizeof(float));
    ck_assert_uint_eq(planned.answers, held.answers);
    ck_assert_uint_eq(planned.all, held.all);
    ck_assert_str_eq(sha[0], sha[1]);
}
END_TEST

START_TEST(the_teachers_bytes_are_gone)
{
    char images[160];
    const char *pairs[] = {"compress.distill=none", write_images(IMAGES, HELD_OUT, images), NULL, NULL};
    hr_engine *e = create(pairs, NULL);
    run_steps(e, 1);
    hr_report plain = report_of(e);
    hr_engine_destroy(e);
    pairs[0] = "compress.distill=self";
    pairs[2] = "compress.distill_cache=on";
    e = create(pairs, NULL);
    run_steps(e, 1);
    hr_report cached = report_of(e);
    hr_engine_destroy(e);
    ck_assert_uint_eq(cached.memory.static_bytes, plain.memory.static_bytes);
    ck_assert_uint_eq(cached.model.layer_count, plain.model.layer_count);
    hr_report_deinit(&plain);
    hr_report_deinit(&cached);
}
END_TEST

START_TEST(answers_follow_the_teacher)
{
    char weights[160], images[160], sha[3][HR_SHA256_TEXT_MAX];
    const char *pairs[] = {"compress.distill=self", "compress.distill_cache=on",
                           write_images(IMAGES, HELD_OUT, images), NULL};
    const char *path = strchr(teach(5, weights), '=') + 1;
    for (int way = 0; way < 3; way++) { // turned at once, later, never
        hr_engine *e = create(pairs, NULL);
        run_steps(e, 2);
        ck_assert_int_eq(turn(e, way < 2 ? HR_KNOB_COMPRESS_DISTILL_CACHE : HR_KNOB_ALLOCATOR_KIND,
                              way == 0   ? "off"
                              : way == 1 ? "on"
                                         : "direct"),
                         HR_OK);
        ck_assert_int_eq(turn(e, HR_KNOB_COMPRESS_DISTILL_WEIGHTS, way < 2 ? path : ""), HR_OK);
        run_steps(e, 4);
        ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
        weights_of(e, sha[way]);
        hr_engine_destroy(e);
    }
    ck_assert_str_eq(sha[0], sha[1]);
    ck_assert_str_ne(sha[1], sha[2]);
}
END_TEST

// A teacher that is wider than the model: its weights take 24 MiB.
static const char *write_wide(char pair[160])
{
    char path[128];
    FILE *f = fopen(file_in("wide_teacher.yaml", path), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs("model:\n  name: wide\n  input: {shape: [32, 32, 3]}\n  classes: 10\n"
                           "  loss: softmax_cross_entropy\n  layers:\n    - {kind: flatten}\n"
                           "    - {kind: dense, units: 2048}\n    - {kind: dense, units: 10}\n",
                           f),
                     0);
    ck_assert_int_eq(fclose(f), 0);
    (void)snprintf(pair, 160, "compress.distill=%s", path);
    return pair;
}

static hr_knobs knobs_of(hr_engine *e, const char *pair)
{
    hr_knobs knobs = *hr_engine_knobs(e);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    return knobs;
}

// By a plan, by a run and by a what-if, and what each names to try is enough.
START_TEST(a_teacher_too_wide_to_answer_is_refused_before_the_run)
{
    char wide[160], images[160];
    const char *pairs[] = {write_wide(wide), "compress.distill_cache=on",
                           write_images(IMAGES, HELD_OUT, images), NULL, NULL};
    hr_planner *planner = NULL;
    hr_whatif told;
    ck_assert_int_eq(hr_planner_open(preset, &planner, NULL), HR_OK);
    for (int way = 0; way < 2; way++) {
        pairs[3] = NULL;
        hr_engine *e = create(pairs, &(hr_engine_options){.plan_only = way == 0});
        run_steps(e, 2);
        ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
        ck_assert_ptr_nonnull(strstr(hr_engine_error(e)->sentence, "the teacher's answers: "));
        const char *const vram = strstr(hr_engine_error(e)->hint, "device.vram=32MiB");
        ck_assert_msg(vram != NULL, "%s", hr_engine_error(e)->hint);
        ck_assert_ptr_null(strstr(hr_engine_error(e)->hint, "batch.size"));
        ck_assert_int_eq(hr_planner_plan(planner, hr_engine_knobs(e), &told, NULL), HR_OK);
        ck_assert(!told.fits && told.missing_bytes > 16 << 20 && told.missing_bytes <= 24 << 20);
        const hr_knobs larger = knobs_of(e, "device.vram=32MiB");
        ck_assert_int_eq(hr_planner_plan(planner, &larger, &told, NULL), HR_OK);
        ck_assert(told.fits);
        hr_engine_destroy(e);
        pairs[3] = "device.vram=32MiB";
        e = create(pairs, &(hr_engine_options){.plan_only = way == 0});
        run_steps(e, 2);
        ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
        hr_engine_destroy(e);
    }
    hr_planner_close(planner);
}
END_TEST

// Between two builds the teacher has the device for itself; what does not fit even so leaves the build as it was.
START_TEST(a_refused_teacher_leaves_what_was_learned)
{
    char wide[160], images[160], before[HR_SHA256_TEXT_MAX], after[HR_SHA256_TEXT_MAX];
    hr_engine *e = create((const char *[]){"compress.distill=self", "compress.distill_cache=on",
                                           write_images(IMAGES, HELD_OUT, images), NULL},
                          NULL);
    run_steps(e, 3);
    weights_of(e, before);
    ck_assert_int_eq(turn(e, HR_KNOB_COMPRESS_DISTILL, strchr(write_wide(wide), '=') + 1), HR_OK);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
    weights_of(e, after);
    ck_assert_str_eq(before, after);
    ck_assert_int_eq(turn(e, HR_KNOB_DEVICE_VRAM, "32MiB"), HR_OK);
    run_steps(e, 1);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    ck_assert_uint_eq(hr_engine_steps(e), 4);
    hr_engine_destroy(e);
}
END_TEST

typedef struct hearing {
    uint32_t begun, batches, steps;
    hr_event_answers last;
} hearing;

static void hear(void *context, const hr_event *event)
{
    hearing *h = context;
    h->steps += event->kind == HR_EVENT_STEP;
    if (event->kind != HR_EVENT_ANSWERS) {
        return;
    }
    const hr_event_answers *a = &event->u.answers;
    ck_assert_uint_eq(a->samples, IMAGES);
    ck_assert(a->answered == 0 || (a->answered > h->last.answered && a->answered <= IMAGES));
    ck_assert((a->answered == 0) == (a->spent_ns == 0) &&
              (a->answered == 0 || a->spent_ns > h->last.spent_ns));
    h->begun += a->answered == 0;
    h->batches += a->answered > 0;
    h->last = *a;
}

static void send(hr_engine *e, hr_command_kind kind, uint64_t count)
{
    const hr_command c = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind, .count = count};
    ck_assert_int_eq(hr_engine_command(e, &c, NULL), HR_OK);
}

// So many pieces of work: answering begins with one, and each batch is one.
static void advance(hr_engine *e, int pieces)
{
    bool idle;
    for (int k = 0; k < pieces; k++) {
        hr_engine_advance(e, &idle);
        ck_assert(!idle);
    }
}

// At the first build and at a later one: what was learned can be saved then, and answers go on where they were.
START_TEST(a_teacher_can_be_stopped)
{
    char weights[160], images[160], path[128], sha[2][HR_SHA256_TEXT_MAX];
    const char *teacher = strchr(teach(5, weights), '=') + 1;
    const char *pairs[] = {"compress.distill=self", "compress.distill_cache=on", "batch.size=8",
                           write_images(IMAGES, HELD_OUT, images), NULL};
    for (int way = 0; way < 2; way++) { // stopped, and not
        hearing h = {0};
        hr_engine *e = create(pairs, &(hr_engine_options){.sink = hear, .sink_context = &h});
        if (way == 0) {
            send(e, HR_COMMAND_RUN, 3);
            advance(e, 3);
            ck_assert_uint_eq(h.last.answered, 16);
            send(e, HR_COMMAND_STOP, 0);
            ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_IDLE);
        }
        run_steps(e, 3);
        ck_assert_uint_eq(h.begun, 1);
        ck_assert_uint_eq(h.last.answered, IMAGES);
        ck_assert_uint_eq(h.steps, 3);
        ck_assert_int_eq(turn(e, HR_KNOB_COMPRESS_DISTILL_WEIGHTS, teacher), HR_OK);
        if (way == 0) {
            send(e, HR_COMMAND_RUN, 3);
            advance(e, 2);
            ck_assert_uint_eq(h.begun, 2);
            ck_assert_uint_eq(h.last.answered, 8);
            ck_assert_ptr_null(e->answers); // nothing of what was is held beside what is made
            ck_assert_ptr_null(e->build);
            send(e, HR_COMMAND_PAUSE, 0);
            ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_PAUSED);
            save(e, file_in("stopped.safetensors", path));
            ck_assert(file_has(path, "logits/weights"));
            hr_report r = report_of(e);
            ck_assert_uint_eq(r.train.steps, 3);
            hr_report_deinit(&r);
        }
        run_steps(e, 3);
        ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
        ck_assert_uint_eq(hr_engine_steps(e), 6);
        ck_assert_uint_eq(h.begun, 2);
        ck_assert_uint_eq(h.batches, 2 * ((IMAGES + 7) / 8));
        weights_of(e, sha[way]);
        hr_engine_destroy(e);
    }
    ck_assert_str_eq(sha[0], sha[1]);
}
END_TEST

// What is turned while a teacher answers: what changes its answers begins them anew, what needs none ends them, and another
// knob waits for them.
START_TEST(knobs_are_turned_while_a_teacher_answers)
{
    static const struct {
        hr_knob_id id;
        const char *value;
        uint32_t begun;
    } turns[] = {{HR_KNOB_TRAIN_SEED, "9", 2},
                 {HR_KNOB_COMPRESS_DISTILL_CACHE, "off", 1},
                 {HR_KNOB_COMPRESS_DISTILL, "none", 1},
                 {HR_KNOB_ALLOCATOR_KIND, "caching", 1}};
    char images[160];
    const char *pairs[] = {"compress.distill=self", "compress.distill_cache=on", "batch.size=8",
                           write_images(IMAGES, HELD_OUT, images), NULL};
    for (size_t k = 0; k < sizeof turns / sizeof *turns; k++) {
        hearing h = {0};
        hr_engine *e = create(pairs, &(hr_engine_options){.sink = hear, .sink_context = &h});
        send(e, HR_COMMAND_RUN, 2);
        advance(e, 3);
        ck_assert_int_eq(turn(e, turns[k].id, turns[k].value), HR_OK);
        run_steps(e, 2);
        ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
        ck_assert_uint_eq(h.steps, 2);
        ck_assert_uint_eq(h.begun, turns[k].begun);
        ck_assert_ptr_null(e->answering);
        hr_engine_destroy(e);
    }
}
END_TEST

// On each device that computes, with a last batch that is not full, and where training holds more or less than answering.
START_TEST(the_peak_of_answering_is_planned)
{
    static const char *const others[] = {"device.kind=reference",  "optimizer.kind=sgd",
                                         "batch.size=1",           "precision.policy=mixed_float16",
                                         "allocator.kind=caching", "compress.quantize=qat"};
    char images[160];
    const char *pairs[] = {"compress.distill=self",
                           "compress.distill_cache=on",
                           "batch.size=8",
                           write_images(IMAGES, HELD_OUT, images),
                           others[_i],
                           NULL};
    uint64_t peak[2];
    for (int way = 0; way < 2; way++) {
        hearing h = {0};
        hr_engine *e =
            create(pairs, &(hr_engine_options){.plan_only = way == 0, .sink = hear, .sink_context = &h});
        run_steps(e, 2);
        hr_report r = report_of(e);
        peak[way] = r.answers.peak_in_use_bytes;
        ck_assert_uint_eq(h.last.peak_in_use_bytes, way == 0 ? 0 : peak[way]);
        ck_assert_uint_gt(peak[way], 0);
        ck_assert_uint_ne(peak[way], HR_NONE);
        hr_report_deinit(&r);
        ck_assert_int_eq(turn(e, HR_KNOB_COMPRESS_DISTILL_CACHE, "off"), HR_OK);
        run_steps(e, 2);
        r = report_of(e);
        ck_assert_uint_eq(r.answers.peak_in_use_bytes, HR_NONE);
        hr_report_deinit(&r);
        hr_engine_destroy(e);
    }
    ck_assert_uint_eq(peak[0], peak[1]);
}
END_TEST
enum { ANSWERING_WAYS = 6 };

static void set_available(const char *root, unsigned kib)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/proc", root);
    (void)mkdir(path, 0700);
    (void)strcat(path, "/meminfo");
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_gt(fprintf(f, "MemTotal: 1048576 kB\nMemAvailable: %u kB\n", kib), 0);
    ck_assert_int_eq(fclose(f), 0);
    machine_read_below(root);
}

// 27 samples of 10 classes take 1080 B: 80 % of 1 KiB are less, of 2 KiB more.
START_TEST(answers_that_the_machine_cannot_hold_are_refused_before_the_teacher_speaks)
{
    char images[160];
    hearing h = {0};
    hr_engine *e = create((const char *[]){"compress.distill=self", "compress.distill_cache=on",
                                           write_images(IMAGES, HELD_OUT, images), NULL},
                          &(hr_engine_options){.sink = hear, .sink_context = &h});
    set_available(folder, 1);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_int_eq(hr_engine_error(e)->status, HR_HOST_LIMIT);
    ck_assert_str_eq(
        hr_engine_error(e)->sentence,
        "compress.distill_cache: the teacher's answers take 1.05 KiB of host memory, 80 % of what "
        "this machine has available is 800 B");
    ck_assert_str_eq(hr_engine_error(e)->hint, "-s compress.distill_cache=off");
    ck_assert_uint_eq(h.begun, 0);
    set_available(folder, 2);
    run_steps(e, 1);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    ck_assert_uint_eq(e->answers_bytes, 1080);
    set_available(folder, 1); // what gives way counts
    ck_assert_int_eq(turn(e, HR_KNOB_TRAIN_SEED, "9"), HR_OK);
    run_steps(e, 1);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    ck_assert_uint_eq(h.begun, 2);
    machine_read_below("");
    hr_engine_destroy(e);
}
END_TEST

// ---- what the loss is made of ---------------------------------------------------------------------------------

typedef struct parts_seen {
    uint32_t parts, steps;
    hr_event_losses first, last;
    double first_loss;
} parts_seen;

// Each step is told behind its parts.
static void see_parts(void *context, const hr_event *event)
{
    parts_seen *s = context;
    if (event->kind == HR_EVENT_LOSSES) {
        s->first = s->parts++ == 0 ? event->u.losses : s->first;
        s->last = event->u.losses;
    } else if (event->kind == HR_EVENT_STEP) {
        s->steps++;
        ck_assert(s->parts == 0 || s->parts == s->steps);
        s->first_loss = s->steps == 1 ? event->u.step.loss : s->first_loss;
    }
}

static parts_seen train_parts(const char *const pairs[], hr_report *r)
{
    parts_seen seen = {.parts = 0};
    hr_engine *e = create(pairs, &(hr_engine_options){.sink = see_parts, .sink_context = &seen});
    run_steps(e, 3);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    *r = report_of(e);
    hr_engine_destroy(e);
    return seen;
}

static double first_loss_of(const char *const pairs[])
{
    hr_engine *e = create(pairs, NULL);
    run_steps(e, 1);
    hr_report r = report_of(e);
    const double loss = r.train.loss_first;
    hr_report_deinit(&r);
    hr_engine_destroy(e);
    return loss;
}

// Judged by two trainings: without a teacher, and from the teacher alone.
START_TEST(a_loss_is_told_in_its_parts)
{
    static const char *const others[] = {
        "batch.size=8",          "batch.accumulate=3",   "compress.distill_cache=on",
        "device.kind=cpu",       "execution.mode=graph", "precision.policy=mixed_float16",
        "precision.loss_scale=8"};
    char weights[160], images[160];
    hr_report r;
    const char *pairs[] = {"compress.distill=self", "compress.distill_alpha=0.3",           others[_i],
                           teach(5, weights),       write_images(IMAGES, HELD_OUT, images), NULL};
    const parts_seen seen = train_parts(pairs, &r);
    ck_assert_uint_eq(seen.parts, 3);
    ck_assert_double_eq_tol(0.3 * seen.first.student + 0.7 * seen.first.distill, seen.first_loss, 1e-12);
    ck_assert(r.train.loss_student == seen.last.student && r.train.loss_distill == seen.last.distill);
    hr_report_deinit(&r);
    pairs[1] = "compress.distill_alpha=0";
    ck_assert_double_eq_tol(seen.first.distill, first_loss_of(pairs), 1e-6);
    const parts_seen alone = train_parts(pairs, &r);
    ck_assert(isnan(alone.last.student) && alone.last.distill > 0);
    hr_report_deinit(&r);
    pairs[0] = "compress.distill=none";
    pairs[1] = "batch.remainder=drop";
    pairs[3] = "train.steps=9";
    pairs[2] = strcmp(others[_i], "compress.distill_cache=on") == 0 ? "batch.size=8" : others[_i];
    ck_assert_double_eq_tol(seen.first.student, first_loss_of(pairs), 1e-6);
    const parts_seen none = train_parts(pairs, &r);
    ck_assert(none.parts == 0 && isnan(r.train.loss_student) && isnan(r.train.loss_distill));
    hr_report_deinit(&r);
}
END_TEST
enum { PART_WAYS = 7 };

// A model that is compared with soft labels too: its own distance is not the teacher's, whether its rows are wider or not.
static hr_preset *open_with_own_distance(int units)
{
    char path[128];
    hr_preset *with = NULL;
    hr_err err = {0};
    FILE *f = fopen(file_in("soft.yaml", path), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_gt(
        fprintf(f,
                "device: {kind: reference, vram: 8MiB}\nbatch: {size: 8}\npipeline: {samples: 32}\nmodel:\n"
                "  name: soft\n  inputs:\n    - {name: x, shape: [8]}\n  labels:\n"
                "    - {name: y, type: int32, classes: 10}\n    - {name: soft, type: float32, shape: [%d]}\n"
                "  losses:\n    - {kind: softmax_cross_entropy, prediction: logits, labels: y}\n"
                "    - {kind: kl, prediction: side, labels: soft}\n  layers:\n"
                "    - {name: body, kind: dense, units: 8}\n"
                "    - {name: logits, kind: dense, units: 10}\n"
                "    - {name: side, kind: dense, units: %d, input: body}\n",
                units, units),
        0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_msg(hr_preset_open(path, false, &with, NULL, &err) == HR_OK, "%s", err.sentence);
    return with;
}

START_TEST(a_distance_of_the_models_own_is_not_the_teachers)
{
    static const int units[] = {3, 20};
    char sha[2][HR_SHA256_TEXT_MAX];
    hr_preset *const small = preset;
    preset = open_with_own_distance(units[_i]);
    const char *pairs[] = {"compress.distill=self", "compress.distill_cache=off", NULL};
    for (int way = 0; way < 2; way++) {
        pairs[1] = way == 0 ? "compress.distill_cache=off" : "compress.distill_cache=on";
        hr_engine *e = create(pairs, NULL);
        run_steps(e, STEPS);
        ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
        weights_of(e, sha[way]);
        hr_engine_destroy(e);
    }
    ck_assert_str_eq(sha[0], sha[1]);
    hr_preset_close(preset);
    preset = small;
}
END_TEST

static const char *const ways[] = {"execution.mode=eager",
                                   "execution.mode=graph",
                                   "checkpoint.strategy=sqrt",
                                   "checkpoint.strategy=selective",
                                   "batch.accumulate=2",
                                   "precision.policy=mixed_float16",
                                   "offload.activations=on",
                                   "offload.optimizer=on",
                                   "compress.distill_alpha=0",
                                   "compress.distill_cache=on",
                                   "compress.distill_temperature=20",
                                   "pipeline.normalise=device",
                                   "optimizer.fused_backward=on"};
enum { WAYS = sizeof ways / sizeof *ways };

START_TEST(the_loss_falls)
{
    char weights[160];
    hr_engine *e = create((const char *[]){"compress.distill=self", teach(20, weights), "batch.size=32",
                                           "optimizer.learning_rate=0.003", ways[_i], NULL},
                          NULL);
    run_steps(e, 25);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_report r = report_of(e);
    ck_assert_msg(r.train.loss_last < 0.85 * r.train.loss_first, "%s: %g to %g", ways[_i], r.train.loss_first,
                  r.train.loss_last);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("teacher run");
    TCase *tests = tcase_create("teacher run");
    tcase_add_checked_fixture(tests, open_preset, close_preset);
    tcase_add_test(tests, a_teacher_without_a_save_is_told_of);
    tcase_add_test(tests, a_save_has_the_student_alone_and_goes_on_bit_for_bit);
    tcase_add_test(tests, a_turn_of_another_knob_leaves_the_teacher);
    tcase_add_test(tests, a_save_that_is_not_the_teachers_is_refused);
    tcase_add_loop_test(tests, answers_from_the_host_train_the_same_weights, 0, CHAINS);
    tcase_add_test(tests, the_teachers_bytes_are_gone);
    tcase_add_test(tests, answers_follow_the_teacher);
    tcase_add_test(tests, a_teacher_too_wide_to_answer_is_refused_before_the_run);
    tcase_add_test(tests, a_refused_teacher_leaves_what_was_learned);
    tcase_add_test(tests, a_teacher_can_be_stopped);
    tcase_add_test(tests, knobs_are_turned_while_a_teacher_answers);
    tcase_add_loop_test(tests, the_peak_of_answering_is_planned, 0, ANSWERING_WAYS);
    tcase_add_test(tests, answers_that_the_machine_cannot_hold_are_refused_before_the_teacher_speaks);
    tcase_add_loop_test(tests, a_loss_is_told_in_its_parts, 0, PART_WAYS);
    tcase_add_loop_test(tests, a_distance_of_the_models_own_is_not_the_teachers, 0, 2);
    tcase_add_loop_test(tests, the_loss_falls, 0, WAYS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
