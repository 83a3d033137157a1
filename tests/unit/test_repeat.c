// SPDX-License-Identifier: Apache-2.0
// repeat in pipeline.stages: which samples of which epochs stand in a batch, as a plain model of tf.data's repeat and shuffle says it;
// where an epoch ends; that all goes on from any update; and what it takes on the host.
#include "base/hash.h"
#include "base/host_mem.h"
#include "base/philox.h"
#include "data/data_files.h"
#include "data/pipeline.h"

enum { TRAIN = 23, EVAL = 3, IMAGE = 32 * 32 * 3, SEED = 1, EPOCHS = 24, GIVEN_MOST = 12 * TRAIN };

static const data_form form = {.count = 2,
                               .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {32, 32, 3}},
                                        {.type = DATA_IDS, .is_label = true, .classes = 10}}};
static const pipeline_wire wire = {.train = {DATA_FLOAT}};
static data_folder folder;

static void make_folder(void)
{
    folder = data_folder_make();
    cifar_write_set(&folder, TRAIN, EVAL);
}

static void remove_folder(void)
{
    data_folder_remove(&folder);
}

static void set(hr_knobs *knobs, const char *pair)
{
    hr_err err = {0};
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

static void set_number(hr_knobs *knobs, const char *key, uint32_t number)
{
    char pair[64];
    (void)snprintf(pair, sizeof pair, "%s=%u", key, number);
    set(knobs, pair);
}

// A random but reproducible number in [0, n).
static uint32_t pick(uint32_t seed, uint32_t which, uint32_t n)
{
    uint32_t word[4];
    philox(philox_key_of(seed, "test"), which, 0, word);
    return word[0] % n;
}

// ---- cases ----------------------------------------------------------------------------------------------------

typedef struct repeat_case {
    bool before_shuffle, elements;
    uint32_t places, batch, rounds; // places 1: no shuffle
    hr_knobs knobs;
} repeat_case;

static repeat_case case_of(uint32_t seed)
{
    static const char *const stages[2][3] = {
        {"shuffle,repeat,map,batch,prefetch", "shuffle,map,repeat,batch", "cache,shuffle,repeat,map,batch"},
        {"repeat,shuffle,map,batch,prefetch", "map,repeat,shuffle,batch", "cache,repeat,shuffle,map,batch"}};
    static const char *const remainders[] = {"drop", "keep", "pad"};
    char pair[96];
    repeat_case c = {.before_shuffle = pick(seed, 0, 2) == 1,
                     .elements = pick(seed, 1, 2) == 1,
                     .places = 1 + pick(seed, 2, 2 * TRAIN),
                     .batch = 1 + pick(seed, 3, pick(seed, 4, 4) == 0 ? 2 * TRAIN + 9 : 9),
                     .rounds = 1 + pick(seed, 5, 3),
                     .knobs = data_knobs("cifar10", folder.path)};
    const uint32_t order = pick(seed, 6, 3);
    (void)snprintf(pair, sizeof pair, "pipeline.stages=%s", stages[c.before_shuffle][order]);
    set(&c.knobs, pair);
    set(&c.knobs, order == 2 && pick(seed, 7, 2) == 1 ? "pipeline.cache=ram" : "pipeline.cache=none");
    set(&c.knobs, c.elements ? "pipeline.shuffle_of=elements" : "pipeline.shuffle_of=indices");
    set(&c.knobs, "pipeline.augment=flip,colour:0.5");
    (void)snprintf(pair, sizeof pair, "batch.remainder=%s", remainders[pick(seed, 8, 3)]);
    set(&c.knobs, pair);
    set_number(&c.knobs, "pipeline.shuffle", c.places);
    set_number(&c.knobs, "pipeline.map_threads", 1 + pick(seed, 9, 3));
    set_number(&c.knobs, "pipeline.prefetch", pick(seed, 10, 4));
    set_number(&c.knobs, "batch.size", c.batch);
    set_number(&c.knobs, "batch.accumulate", c.rounds);
    set_number(&c.knobs, "train.seed", SEED);
    hr_err err = {0};
    ck_assert_msg(hr_knobs_validate(&c.knobs, &err) == HR_OK, "%s", err.sentence);
    return c;
}

static pipeline *open_pipeline(const hr_knobs *knobs)
{
    hr_err err = {0};
    pipeline *p = NULL;
    ck_assert_msg(pipeline_open(knobs, &form, &wire, &p, &err) == HR_OK, "%s", err.sentence);
    return p;
}

static data_item next_item(pipeline *p)
{
    data_item item;
    uint64_t wait_ns;
    hr_err err = {0};
    ck_assert_msg(pipeline_next(p, &item, &wait_ns, &err) == HR_OK, "%s", err.sentence);
    return item;
}

// ---- the model ------------------------------------------------------------------------------------------------

typedef struct given {
    uint32_t sample, epoch;
} given;

// A buffer is filled before the first draw, and what was drawn is replaced by the next input: `count` inputs begin at `from`.
static uint32_t shuffled(uint32_t places, uint64_t epoch, uint32_t from, uint32_t count, uint32_t give,
                         given *out)
{
    given buffer[2 * TRAIN + 1];
    uint32_t held = 0, taken = 0, done = 0;
    while (done < give) {
        for (; held < places && taken < count; held++, taken++) {
            buffer[held] = (given){(from + taken) % TRAIN, (from + taken) / TRAIN};
        }
        if (held == 0) {
            break;
        }
        uint32_t word[4];
        philox(philox_key_of(SEED, "shuffle"), done, epoch, word);
        const uint32_t drawn = places > 1 ? (uint32_t)philox_below(word[0], word[1], held) : 0;
        out[done++] = buffer[drawn];
        buffer[drawn] = buffer[--held];
    }
    return done;
}

static void model_of(const repeat_case *c, given out[GIVEN_MOST])
{
    if (c->before_shuffle) {
        ck_assert_uint_eq(shuffled(c->places, 0, 0, UINT32_MAX, GIVEN_MOST, out), GIVEN_MOST);
        return;
    }
    for (uint32_t done = 0; done < GIVEN_MOST;) {
        done += shuffled(c->places, done / TRAIN, done, TRAIN, TRAIN, out + done);
    }
}

static uint64_t image_hash(const data_item *item, uint32_t place)
{
    const float *pixels = (const float *)item->room.slot[0] + (size_t)place * IMAGE;
    return hash64(pixels, IMAGE * sizeof *pixels, (uint64_t)((const int32_t *)item->room.slot[1])[place]);
}

// What each sample looks like in each epoch, by a chain without repeat, in file order.
static void make_images(uint64_t hash[EPOCHS][TRAIN])
{
    hr_knobs plain = data_knobs("cifar10", folder.path);
    set(&plain, "pipeline.stages=map,batch");
    set(&plain, "pipeline.augment=flip,colour:0.5");
    set(&plain, "batch.size=1");
    set_number(&plain, "train.seed", SEED);
    pipeline *p = open_pipeline(&plain);
    for (uint32_t k = 0; k < EPOCHS; k++) {
        for (uint32_t n = 0; n < TRAIN; n++) {
            const data_item item = next_item(p);
            hash[k][n] = image_hash(&item, 0);
        }
        ck_assert(next_item(p).end);
    }
    pipeline_close(p);
    ck_assert_uint_ne(hash[0][0], hash[1][0]);
}

// ---- what comes -----------------------------------------------------------------------------------------------

static given model[GIVEN_MOST];
static uint64_t image[EPOCHS][TRAIN];

// The batches of one update, from sample *count on.
static void take_update(pipeline *p, const repeat_case *c, uint64_t *count)
{
    for (uint32_t batch = 0; batch < c->rounds; batch++) {
        const data_item item = next_item(p);
        ck_assert(!item.end);
        ck_assert_uint_eq(item.count, c->batch);
        ck_assert_uint_eq(item.first_sample, *count);
        for (uint32_t n = 0; n < c->batch; n++, ++*count) {
            const given *expected = &model[*count];
            ck_assert_uint_eq(image_hash(&item, n), image[expected->epoch][expected->sample]);
        }
    }
}

static pipeline *kill_and_go_on(pipeline *p, const hr_knobs *knobs)
{
    const data_position at = pipeline_position(p);
    pipeline_close(p);
    p = open_pipeline(knobs);
    ck_assert_int_eq(pipeline_seek(p, at, NULL), HR_OK);
    return p;
}

// Killed now and then, in front of an epoch's end and behind it.
static void assert_is_the_model(const repeat_case *c, uint32_t seed)
{
    const uint64_t update = (uint64_t)c->batch * c->rounds;
    pipeline *p = open_pipeline(&c->knobs);
    model_of(c, model);
    for (uint64_t count = 0, epoch = 0; count + update <= GIVEN_MOST;) {
        take_update(p, c, &count);
        const bool ends = count / TRAIN > epoch;
        ck_assert(pipeline_epoch_is_over(p, pipeline_position(p)) == ends);
        p = pick(seed, 1000 + (uint32_t)count, 4) == 0 ? kill_and_go_on(p, &c->knobs) : p;
        if (ends) {
            ck_assert(next_item(p).end);
            epoch = count / TRAIN;
            ck_assert_uint_eq(pipeline_position(p).epoch, epoch);
            ck_assert_uint_eq(pipeline_position(p).samples, count % TRAIN);
        }
        p = pick(seed, 9000 + (uint32_t)count, 8) == 0 ? kill_and_go_on(p, &c->knobs) : p;
    }
    pipeline_close(p);
}

START_TEST(batches_are_those_of_the_model_from_any_update_on)
{
    make_images(image);
    for (uint32_t seed = (uint32_t)_i * 100; seed < (uint32_t)_i * 100 + 12; seed++) {
        const repeat_case c = case_of(seed);
        assert_is_the_model(&c, seed);
    }
}
END_TEST

// repeat behind shuffle: each TRAIN samples in a row are all there are. In front of it: some come again before others came once.
START_TEST(a_shuffle_of_what_is_repeated_mixes_epochs)
{
    for (uint32_t before = 0; before < 2; before++) {
        const repeat_case c = {.before_shuffle = before == 1, .places = TRAIN / 2};
        uint32_t strangers = 0, twice = 0, times[TRAIN] = {0};
        model_of(&c, model);
        for (uint32_t k = 0; k < TRAIN; k++) {
            strangers += model[k].epoch > 0;
            twice += times[model[k].sample]++ > 0;
        }
        ck_assert(before == 0 ? strangers == 0 && twice == 0 : strangers > 0 && twice > 0);
    }
}
END_TEST

// ---- the ledger -----------------------------------------------------------------------------------------------

static uint64_t stage_bytes(const pipeline *p, const char *name)
{
    pipeline_stage_info info[PIPELINE_MAX_STAGES];
    const uint32_t count = pipeline_stages(p, info);
    for (uint32_t k = 0; k < count; k++) {
        if (strcmp(info[k].name, name) == 0) {
            return info[k].host_bytes;
        }
    }
    return UINT64_MAX;
}

START_TEST(a_number_whose_epoch_is_its_own_takes_eight_bytes_more)
{
    static const struct {
        const char *stages;
        uint64_t shuffle, batch;
    } rows[] = {{"shuffle,map,batch,prefetch", 4, 4},
                {"shuffle,map,batch,repeat,prefetch", 4, 4},
                {"shuffle,map,batch,prefetch,repeat", 4, 4},
                {"shuffle,repeat,map,batch,prefetch", 4, 12},
                {"repeat,shuffle,map,batch,prefetch", 12, 12}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char pair[96];
        hr_knobs knobs = data_knobs("cifar10", folder.path);
        (void)snprintf(pair, sizeof pair, "pipeline.stages=%s", rows[k].stages);
        set(&knobs, pair);
        set(&knobs, "pipeline.shuffle=100");
        set(&knobs, "batch.size=5");
        pipeline *p = open_pipeline(&knobs);
        const uint64_t places = rows[k].shuffle == 12 ? 100 : TRAIN;
        ck_assert_uint_eq(stage_bytes(p, "shuffle"), places * rows[k].shuffle);
        ck_assert_uint_eq(stage_bytes(p, "batch"), 5 * rows[k].batch);
        ck_assert_uint_eq(stage_bytes(p, "repeat"), rows[k].batch == 12 ? 0 : UINT64_MAX);
        pipeline_close(p);
        set(&knobs, "pipeline.shuffle_of=elements");
        p = open_pipeline(&knobs);
        const uint64_t entry = IMAGE + 20 + 4 + rows[k].shuffle + (rows[k].shuffle == 12 ? 8 : 0);
        ck_assert_uint_eq(stage_bytes(p, "shuffle"), places * entry);
        ck_assert_uint_eq(stage_bytes(p, "batch"), 5 * (rows[k].batch + 4));
        pipeline_close(p);
    }
}
END_TEST

START_TEST(a_position_that_took_hours_to_reach_is_refused)
{
    static const char *const stages[] = {"pipeline.stages=repeat,shuffle,map,batch",
                                         "pipeline.stages=shuffle,repeat,map,batch"};
    static const data_position far[] = {{UINT64_MAX, 0}, {UINT64_C(1) << 40, 3}, {0, UINT64_C(1) << 60}};
    for (size_t k = 0; k < 2; k++) {
        hr_knobs knobs = data_knobs("cifar10", folder.path);
        set(&knobs, stages[k]);
        set(&knobs, "batch.size=5");
        pipeline *p = open_pipeline(&knobs);
        for (size_t n = 0; n < sizeof far / sizeof *far; n++) {
            hr_err err = {0};
            ck_assert_int_eq(pipeline_seek(p, far[n], &err), k == 0 ? HR_DATA : HR_OK);
            ck_assert(k == 1 || strncmp(err.hint, "-s pipeline.stages=", 19) == 0);
        }
        ck_assert_int_eq(pipeline_seek(p, (data_position){0}, NULL), HR_OK);
        ck_assert_uint_eq(next_item(p).count, 5);
        pipeline_close(p);
    }
}
END_TEST

static hr_status two_epochs(const hr_knobs *knobs)
{
    pipeline *p = NULL;
    hr_status status = pipeline_open(knobs, &form, &wire, &p, NULL);
    for (uint32_t ends = 0; status == HR_OK && ends < 2;) {
        data_item item;
        uint64_t wait_ns;
        status = pipeline_next(p, &item, &wait_ns, NULL);
        ends += status == HR_OK && item.end;
    }
    pipeline_close(p);
    return status;
}

START_TEST(every_allocation_may_fail_once)
{
    const repeat_case c = case_of((uint32_t)_i);
    const int64_t live = hr_host_mem_live();
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        hr_host_mem_fail_at(nth);
        const hr_status status = two_epochs(&c.knobs);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, failed ? HR_NOMEM : HR_OK);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("repeat");
    TCase *c = tcase_create("repeat");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, make_folder, remove_folder);
    tcase_add_loop_test(c, batches_are_those_of_the_model_from_any_update_on, 0, 10);
    tcase_add_test(c, a_shuffle_of_what_is_repeated_mixes_epochs);
    tcase_add_test(c, a_number_whose_epoch_is_its_own_takes_eight_bytes_more);
    tcase_add_test(c, a_position_that_took_hours_to_reach_is_refused);
    tcase_add_loop_test(c, every_allocation_may_fail_once, 0, 8);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
