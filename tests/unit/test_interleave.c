// SPDX-License-Identifier: Apache-2.0
// pipeline.interleave: the order is that of tf.data's interleave over the files, as a plain model and tf.data itself say it; it goes on
// at any sample without reading; together with a shuffle every sample still comes once an epoch.
#include "base/host_mem.h"
#include "base/philox.h"
#include "data/data_files.h"
#include "data/host_plan.h"
#include "data/split.h"
#include "data/stages.h"

enum { FILES_MOST = 40, SAMPLES_MOST = 4000, IMAGE = 32 * 32 * 3 };

static uint32_t pick(uint64_t seed, uint64_t which, uint32_t n)
{
    uint32_t words[4];
    philox(philox_key_of(seed, "interleave"), which, 0, words);
    return words[0] % n;
}

// ---- a source of files that have only sizes --------------------------------------------------------------------

typedef struct sizes_source {
    data_source base;
    uint32_t size[FILES_MOST];
} sizes_source;

static uint64_t sizes_part_begin(const data_source *base, uint32_t part)
{
    const sizes_source *s = (const sizes_source *)base;
    uint64_t begin = 0;
    for (uint32_t k = 0; k < part; k++) {
        begin += s->size[k];
    }
    return begin;
}

static const data_source_ops sizes_ops = {.part_begin = sizes_part_begin};

static sizes_source source_of(const uint32_t *size, uint32_t files)
{
    sizes_source s = {.base = {.ops = &sizes_ops, .parts = files}};
    for (uint32_t k = 0; k < files; k++) {
        s.size[k] = size[k];
        s.base.info.train_samples += size[k];
    }
    return s;
}

static data_stage *stage_of(const sizes_source *s, interleave_form form)
{
    data_stage *source, *stage;
    form.cycle = form.cycle < s->base.parts ? form.cycle : s->base.parts;
    ck_assert_int_eq(stage_source_open(&s->base, DATA_TRAIN, &source, NULL), HR_OK);
    ck_assert_int_eq(stage_interleave_open(source, &s->base, &form, &stage, NULL), HR_OK);
    return stage;
}

static bool next_of(data_stage *s, uint32_t *number)
{
    data_item item;
    ck_assert_int_eq(s->ops->next(s, &item, NULL), HR_OK);
    *number = item.sample;
    return !item.end;
}

// ---- the order ------------------------------------------------------------------------------------------------

// As the documentation of tf.data says it, turn by turn: a turn opens the next file where none is open, gives up to a block of what the
// file has left, and closes it when more was asked for than it had.
static uint32_t model_order(const sizes_source *s, interleave_form form, uint32_t *order)
{
    struct {
        bool is_open;
        uint32_t at, left;
    } file[FILES_MOST] = {{0}};
    uint32_t opened = 0, count = 0, number = 0;
    while (count < s->base.info.train_samples) {
        for (uint32_t turn = 0; turn < form.cycle && turn < FILES_MOST; turn++) {
            if (!file[turn].is_open && opened < s->base.parts) {
                file[turn].is_open = true;
                file[turn].at = number;
                file[turn].left = s->size[opened];
                number += s->size[opened++];
            }
            uint32_t given = 0;
            for (; given < form.block && file[turn].is_open && file[turn].left > 0; given++) {
                order[count++] = file[turn].at++;
                file[turn].left--;
            }
            file[turn].is_open = file[turn].is_open && given == form.block;
        }
    }
    return count;
}

START_TEST(the_order_is_that_of_the_model_in_every_epoch)
{
    static uint32_t order[SAMPLES_MOST];
    for (uint64_t round = 0; round < 150; round++) {
        uint32_t size[FILES_MOST];
        const uint32_t files = 1 + pick(round, 0, FILES_MOST);
        for (uint32_t k = 0; k < files; k++) {
            size[k] = pick(round, 10 + k, 3) == 0 ? 0 : pick(round, 60 + k, 60);
        }
        size[0] += 1;
        const interleave_form form = {.cycle = 1 + pick(round, 1, FILES_MOST + 4),
                                      .block = 1 + pick(round, 2, 9)};
        const sizes_source s = source_of(size, files);
        const uint32_t count = model_order(&s, form, order);
        data_stage *stage = stage_of(&s, form);
        for (int epoch = 0; epoch < 2; epoch++) {
            uint32_t number;
            for (uint32_t k = 0; k < count; k++) {
                ck_assert(next_of(stage, &number));
                ck_assert_uint_eq(number, order[k]);
            }
            ck_assert(!next_of(stage, &number));
        }
        for (uint32_t k = 0; k < 10; k++) {
            const uint32_t at = pick(round, 200 + k, count + 1);
            uint32_t number;
            ck_assert_int_eq(stage->ops->seek(stage, (data_position){.epoch = k, .samples = at}, NULL),
                             HR_OK);
            for (uint32_t n = at; n < count && n < at + 50; n++) {
                ck_assert(next_of(stage, &number));
                ck_assert_uint_eq(number, order[n]);
            }
        }
        data_stage_close(stage);
    }
}
END_TEST

// What tensorflow 2.21 gives for from_tensor_slices(files).interleave(range, cycle_length, block_length).
START_TEST(the_order_is_that_of_tensorflow)
{
    static const struct {
        uint32_t size[7], files, cycle, block, count;
        uint32_t order[30];
    } cases[] = {
        {{4, 8, 4}, 3, 2, 4, 16, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        {{6, 6, 6, 6, 6}, 5, 2, 4, 30, {0,  1,  2,  3,  6,  7,  8,  9,  4,  5,  10, 11, 12, 13, 14,
                                        15, 18, 19, 20, 21, 16, 17, 22, 23, 24, 25, 26, 27, 28, 29}},
        {{3, 0, 0, 5, 1, 2}, 6, 3, 2, 11, {0, 1, 2, 3, 4, 8, 9, 10, 5, 6, 7}},
        {{0, 7, 2, 0, 0, 4, 1}, 7, 4, 3, 14, {0, 1, 2, 7, 8, 3, 4, 5, 9, 10, 11, 13, 6, 12}},
        {{5, 1, 9, 3}, 4, 2, 1, 18, {0, 5, 1, 2, 6, 3, 7, 4, 8, 9, 15, 10, 16, 11, 17, 12, 13, 14}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const sizes_source s = source_of(cases[c].size, cases[c].files);
        data_stage *stage = stage_of(&s, (interleave_form){cases[c].cycle, cases[c].block});
        uint32_t number;
        for (uint32_t k = 0; k < cases[c].count; k++) {
            ck_assert(next_of(stage, &number));
            ck_assert_uint_eq(number, cases[c].order[k]);
        }
        ck_assert(!next_of(stage, &number));
        data_stage_close(stage);
    }
}
END_TEST

START_TEST(training_samples_before_a_number_are_counted)
{
    for (uint64_t samples = 2; samples < 200; samples++) {
        uint64_t before = 0, next = 0;
        for (uint64_t number = 0; number <= samples; number++) {
            ck_assert_uint_eq(split_train_before(samples, number), before);
            if (next < split_count(samples, DATA_TRAIN) &&
                split_number(samples, DATA_TRAIN, next) == number) {
                before++;
                next++;
            }
        }
    }
}
END_TEST

// ---- in a pipeline --------------------------------------------------------------------------------------------

static const uint32_t cifar_sizes[] = {13, 5, 29, 1, 8, 17};
enum { CIFAR_FILES = 6, CIFAR_SAMPLES = 73 };

static const data_form cifar_form = {.count = 2,
                                     .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {32, 32, 3}},
                                              {.type = DATA_IDS, .is_label = true, .classes = 10}}};
static const pipeline_wire as_it_is = {.train = {DATA_FLOAT}};
static data_folder folder;

static void make_folder(void)
{
    folder = data_folder_make();
    uint32_t first = 0;
    for (uint32_t k = 0; k < CIFAR_FILES; k++) {
        char leaf[32];
        (void)snprintf(leaf, sizeof leaf, "data_batch_%u.bin", k + 1);
        cifar_write(&folder, leaf, first, cifar_sizes[k]);
        first += cifar_sizes[k];
    }
    ck_assert_uint_eq(first, CIFAR_SAMPLES);
    cifar_write(&folder, "test_batch.bin", first, 20);
}

static void remove_folder(void)
{
    data_folder_remove(&folder);
}

static hr_knobs knobs_of(const char *const *pairs)
{
    hr_knobs knobs = data_knobs("cifar10", folder.path);
    for (; *pairs != NULL; pairs++) {
        hr_err err = {0};
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    return knobs;
}

static pipeline *open_with(const hr_knobs *knobs)
{
    hr_err err = {0};
    pipeline *p = NULL;
    ck_assert_msg(pipeline_open(knobs, &cifar_form, &as_it_is, &p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

// The numbers of the next batch's samples; 0 at the end of an epoch.
static uint32_t numbers_of(pipeline *p, uint32_t *numbers)
{
    data_item item;
    uint64_t wait_ns;
    ck_assert_int_eq(pipeline_next(p, &item, &wait_ns, NULL), HR_OK);
    for (uint32_t k = 0; !item.end && k < item.count; k++) {
        const float *image = (const float *)item.room.slot[0] + (size_t)k * IMAGE;
        numbers[k] = (uint32_t)(image[0] * 255.0f + 0.5f) + ((uint32_t)(image[3] * 255.0f + 0.5f) << 8);
    }
    return item.end ? 0 : item.count;
}

enum { EPOCHS = 3, BATCH = 5 };

// The order of all epochs, made without threads.
static uint32_t whole_order(const hr_knobs *knobs, uint32_t order[EPOCHS * CIFAR_SAMPLES])
{
    pipeline *p = open_with(knobs);
    uint32_t count = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        uint32_t now;
        while ((now = numbers_of(p, order + count)) > 0) {
            count += now;
        }
    }
    pipeline_close(p);
    return count / EPOCHS;
}

static void assert_goes_on(pipeline *p, const uint32_t *order, uint32_t epoch_samples, data_position at)
{
    ck_assert_int_eq(pipeline_seek(p, at, NULL), HR_OK);
    for (uint32_t batches = 0; batches < 6;) {
        uint32_t numbers[BATCH];
        const uint32_t now = numbers_of(p, numbers);
        if (now == 0) {
            ck_assert_uint_eq(at.samples, epoch_samples);
            at = (data_position){.epoch = at.epoch + 1};
            if (at.epoch == EPOCHS) {
                return;
            }
            continue;
        }
        ck_assert_mem_eq(numbers, order + at.epoch * epoch_samples + at.samples, now * sizeof *numbers);
        at.samples += now;
        batches++;
    }
}

// Whatever stands together: all samples that are wanted once an epoch, the same from every place, on any number of threads.
static void assert_once_and_anywhere(const char *const *pairs, const bool wanted[CIFAR_SAMPLES],
                                     uint64_t seed)
{
    static uint32_t order[EPOCHS * CIFAR_SAMPLES];
    static const char *const threads[] = {"pipeline.map_threads=1", "pipeline.map_threads=3"};
    hr_knobs knobs = knobs_of(pairs);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "pipeline.prefetch=0", NULL), HR_OK);
    const uint32_t samples = whole_order(&knobs, order);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        bool seen[CIFAR_SAMPLES] = {0};
        for (uint32_t k = 0; k < samples; k++) {
            const uint32_t number = order[epoch * samples + k];
            ck_assert(number < CIFAR_SAMPLES && wanted[number] && !seen[number]);
            seen[number] = true;
        }
        ck_assert_mem_eq(seen, wanted, sizeof seen);
    }
    for (uint32_t k = 0; k < 60; k++) {
        char prefetch[32];
        (void)snprintf(prefetch, sizeof prefetch, "pipeline.prefetch=%u", pick(seed, k, 3));
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, prefetch, NULL), HR_OK);
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, threads[k % 2], NULL), HR_OK);
        pipeline *p = open_with(&knobs);
        for (uint32_t n = 0; n < 4; n++) {
            const data_position at = {.epoch = pick(seed, 100 + 9 * k + n, EPOCHS),
                                      .samples = pick(seed, 900 + 9 * k + n, samples + 1)};
            assert_goes_on(p, order, samples, at);
        }
        pipeline_close(p);
    }
}

START_TEST(every_sample_comes_once_an_epoch_and_from_anywhere)
{
    static const char *const cases[][8] = {
        {"batch.size=5", "pipeline.interleave=3", "pipeline.interleave_block=2", "pipeline.shuffle=0",
         "batch.remainder=keep"},
        {"batch.size=5", "pipeline.interleave=6", "pipeline.shuffle=11", "batch.remainder=keep"},
        {"batch.size=5", "pipeline.interleave=2", "pipeline.interleave_block=7", "pipeline.shuffle=9",
         "pipeline.shuffle_of=elements", "batch.remainder=keep"},
        {"batch.size=5", "pipeline.interleave=4", "pipeline.shuffle=20", "pipeline.cache=ram",
         "pipeline.stages=interleave,shuffle,cache,map,batch,prefetch", "batch.remainder=keep"},
        {"batch.size=5", "pipeline.filter=label:0,3,7", "pipeline.interleave=3", "pipeline.shuffle=6",
         "batch.remainder=keep"},
        {"batch.size=5", "pipeline.filter=label:0,3,7", "pipeline.interleave=4", "pipeline.shuffle=6",
         "pipeline.shuffle_of=elements", "pipeline.cache=ram", "batch.remainder=keep"},
    };
    if (_i >= 4) { // of classes 0, 3 and 7; a sample's class is its number's last digit
        bool some[CIFAR_SAMPLES];
        for (uint32_t k = 0; k < CIFAR_SAMPLES; k++) {
            some[k] = k % 10 == 0 || k % 10 == 3 || k % 10 == 7;
        }
        assert_once_and_anywhere(cases[_i], some, (uint64_t)_i + 1);
        return;
    }
    bool all[CIFAR_SAMPLES];
    memset(all, true, sizeof all);
    assert_once_and_anywhere(cases[_i], all, (uint64_t)_i + 1);
}
END_TEST

START_TEST(files_are_read_in_turn)
{
    static const char *const pairs[] = {"batch.size=5", "pipeline.interleave=3",
                                        "pipeline.interleave_block=2", "pipeline.shuffle=0", NULL};
    static const uint32_t wanted[] = {0,  1, 13, 14, 18, 19, 2, 3, 15, 16, 20,
                                      21, 4, 5,  17, 22, 23, 6, 7, 47, 24};
    const hr_knobs knobs = knobs_of(pairs);
    pipeline *p = open_with(&knobs);
    uint32_t numbers[4 * BATCH];
    for (uint32_t k = 0; k < 4; k++) {
        ck_assert_uint_eq(numbers_of(p, numbers + (size_t)k * BATCH), BATCH);
    }
    ck_assert_mem_eq(numbers, wanted, sizeof numbers);
    pipeline_close(p);
}
END_TEST

// The plan's stages are the run's, whatever the files.
static void assert_planned(const hr_knobs *knobs)
{
    data_facts facts;
    ck_assert_int_eq(data_facts_read(knobs, &cifar_form, &facts, NULL), HR_OK);
    const host_plan plan = host_plan_make(knobs, &facts, &as_it_is, false);
    pipeline *p = open_with(knobs);
    pipeline_stage_info stages[PIPELINE_MAX_STAGES];
    uint32_t numbers[4 * BATCH];
    (void)numbers_of(p, numbers);
    const uint32_t count = pipeline_stages(p, stages);
    ck_assert_uint_eq(count, plan.count);
    for (uint32_t k = 0; k < count; k++) {
        ck_assert_str_eq(stages[k].name, plan.stages[k].name);
        ck_assert_uint_eq(stages[k].peak_host_bytes, plan.stages[k].bytes);
    }
    pipeline_close(p);
}

START_TEST(what_it_holds_is_planned)
{
    static const char *const cases[][6] = {
        {"pipeline.interleave=4", "batch.size=5"},
        {"pipeline.interleave=100", "pipeline.cache=ram", "batch.size=5"},
        {"pipeline.interleave=1", "batch.size=5"},
        {"pipeline.interleave=2", "pipeline.array=uint8", "batch.size=5"},
        {"pipeline.interleave=3", "pipeline.filter=label:1,2", "batch.size=5"},
        {"pipeline.filter=label:4", "pipeline.array=float64", "pipeline.mode=eager_stack", "batch.size=5"},
        {"pipeline.filter=label:0, 9", "pipeline.samples=6", "pipeline.interleave=2", "batch.size=5"},
    };
    const hr_knobs knobs = knobs_of(cases[_i]);
    assert_planned(&knobs);
}
END_TEST

// ---- classes --------------------------------------------------------------------------------------------------

START_TEST(a_filter_is_a_list_of_classes)
{
    static const char *const none[] = {
        "",          "label",     "label:",  "0,1",       "label:,1", "label:1,",   "label:-1",
        "label:1;2", "label:1 2", "label:x", "label:1.5", "Label:1",  "label:1,,2", "label:1234567890"};
    class_filter f;
    for (size_t k = 0; k < sizeof none / sizeof *none; k++) {
        ck_assert_msg(!class_filter_of(none[k], &f), "%s", none[k]);
    }
    ck_assert(class_filter_of("label:7", &f));
    ck_assert(class_filter_has(&f, 7) && !class_filter_has(&f, 0));
    ck_assert(class_filter_of("label: 0, 12 ,999999999", &f));
    ck_assert_uint_eq(f.count, 3);
    ck_assert(class_filter_has(&f, 12) && class_filter_has(&f, 999999999) && !class_filter_has(&f, 1));
}
END_TEST

// Labels without the sample are those with it, of every source that has some.
START_TEST(filtered_samples_have_the_classes)
{
    static const char *const sources[] = {"cifar10", "generated", "mnist"};
    const data_form mnist = {.count = 2,
                             .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {28, 28, 1}},
                                      {.type = DATA_IDS, .is_label = true, .classes = 10}}};
    mnist_write_set(&folder, false, 40, 30);
    hr_knobs knobs = data_knobs(sources[_i], folder.path);
    hr_err err = {0};
    data_source *all, *some;
    const data_form *form = _i == 2 ? &mnist : &cifar_form;
    ck_assert_int_eq(data_source_open(&knobs, form, &all, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "pipeline.filter=label:2,5", NULL), HR_OK);
    ck_assert_msg(data_source_open(&knobs, form, &some, &err) == HR_OK, "%s", err.sentence);
    uint64_t kept = 0;
    uint8_t *room = malloc(all->room_bytes), *other = malloc(all->room_bytes);
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        uint32_t next = 0;
        for (uint32_t k = 0; k < data_source_samples(all, set); k++) {
            data_raw raw, again;
            ck_assert_int_eq(data_source_fetch(all, set, k, room, &raw, NULL), HR_OK);
            if (raw.label == 2 || raw.label == 5) {
                ck_assert_int_eq(data_source_fetch(some, set, next++, other, &again, NULL), HR_OK);
                ck_assert_int_eq(again.label, raw.label);
                ck_assert_mem_eq(again.bytes, raw.bytes, raw.size_bytes);
            }
        }
        ck_assert_uint_eq(next, data_source_samples(some, set));
        kept += next;
    }
    ck_assert_uint_eq(some->held_bytes, all->held_bytes + 4 * kept);
    free(room);
    free(other);
    data_source_close(all);
    data_source_close(some);
}
END_TEST

static void assert_refused(const char *source, const char *filter, const data_form *form,
                           const char *sentence)
{
    hr_knobs knobs = data_knobs(source, folder.path);
    hr_err err = {0};
    data_source *s = NULL;
    const int64_t live = hr_host_mem_live();
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_FILTER, filter, NULL), HR_OK);
    ck_assert_int_eq(data_source_open(&knobs, form, &s, &err), HR_DATA);
    ck_assert_msg(strstr(err.sentence, sentence) != NULL, "%s", err.sentence);
    ck_assert_int_eq(hr_host_mem_live(), live);
}

START_TEST(what_cannot_be_filtered_is_said)
{
    const data_form tokens = {
        .count = 2,
        .slot = {{.type = DATA_IDS, .rank = 1, .dim = {4}, .classes = 300},
                 {.type = DATA_IDS, .is_label = true, .rank = 1, .dim = {4}, .classes = 300}}};
    assert_refused("cifar10", "label:11", &cifar_form,
                   ": needed samples of the classes of pipeline.filter to train on, had none");
    assert_refused("cifar10", "11", &cifar_form, "pipeline.filter: needed label:CLASS,CLASS, had 11");
    assert_refused("generated", "label:1", &tokens,
                   ": pipeline.filter needed labels that are known without reading the samples, had none");
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    static const char *const pairs[] = {"batch.size=5", "pipeline.interleave=3", "pipeline.filter=label:1,2",
                                        NULL};
    const hr_knobs knobs = knobs_of(pairs);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        pipeline *p = NULL;
        hr_host_mem_fail_at(nth);
        status = pipeline_open(&knobs, &cifar_form, &as_it_is, &p, NULL);
        (void)hr_host_mem_fail_at(0);
        pipeline_close(p);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interleave");
    TCase *order = tcase_create("order");
    tcase_add_test(order, the_order_is_that_of_the_model_in_every_epoch);
    tcase_add_test(order, the_order_is_that_of_tensorflow);
    tcase_add_test(order, training_samples_before_a_number_are_counted);
    suite_add_tcase(suite, order);
    TCase *pipelines = tcase_create("pipelines");
    tcase_add_checked_fixture(pipelines, make_folder, remove_folder);
    tcase_add_loop_test(pipelines, every_sample_comes_once_an_epoch_and_from_anywhere, 0, 6);
    tcase_add_test(pipelines, files_are_read_in_turn);
    tcase_add_loop_test(pipelines, what_it_holds_is_planned, 0, 7);
    tcase_add_test(pipelines, a_filter_is_a_list_of_classes);
    tcase_add_loop_test(pipelines, filtered_samples_have_the_classes, 0, 3);
    tcase_add_test(pipelines, what_cannot_be_filtered_is_said);
    tcase_add_test(pipelines, every_allocation_may_fail_once);
    suite_add_tcase(suite, pipelines);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
