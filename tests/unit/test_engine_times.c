// SPDX-License-Identifier: Apache-2.0
// Promises of device/cuda/engine_times.h, and of graph.h where engines have measured times: what was written is read again, a
// file that is not what it should be is refused and left alone, and lists of the real cuDNN are in the order of random times.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

#if HEADROOM_HAVE_CUDA

#include <sys/stat.h>
#include <unistd.h>

#include "headroom/card.h"
#include "headroom/preset.h"
#include "headroom/units.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "device_cuda/conv_spec.h"
#include "device_cuda/cudnn.h"
#include "device_cuda/device_impl.h"
#include "device_cuda/graph_impl.h"

enum { ROWS_MAX = 40, ROUNDS = 20, SHAPES = 12, LIMITS = 7 };

static const engine_times_of h200 = {
    .title = "NVIDIA H200", .compute_major = 9, .multiprocessors = 132, .cudnn = 91900};
static hr_err err;
static char folder[] = "/tmp/engine_times_XXXXXX", path[ENGINE_TIMES_PATH_MAX];
static uint64_t state;

static uint64_t next(uint64_t below)
{
    state = hash64_mix(state, 7);
    return state % below;
}

static void setup(void)
{
    state = 1;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(setenv("XDG_DATA_HOME", folder, 1), 0);
    ck_assert(engine_times_path(&h200, path));
}

static void teardown(void)
{
    char command[ENGINE_TIMES_PATH_MAX + 16];
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
}

static void write_words(const char *to, const char *words)
{
    (void)hr_file_make_folders(to);
    FILE *file = fopen(to, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(words, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static engine_row random_row(void)
{
    engine_row row = {.key = {next(UINT64_MAX), next(UINT64_MAX)},
                      .count = 1 + (uint32_t)next(ENGINE_TIMES_MAX)};
    for (uint32_t k = 0; k < row.count; k++) {
        row.time[k] = (engine_time){.engine = (int64_t)next(4000),
                                    .knobs = next(UINT64_MAX),
                                    .took_ns = 1 + next(UINT64_C(1) << (1 + next(52)))};
    }
    return row;
}

static void expect_row(const engine_times *t, const engine_row *row)
{
    const engine_row *found = engine_times_find(t, row->key);
    ck_assert_ptr_nonnull(found);
    ck_assert_uint_eq(found->count, row->count);
    ck_assert_int_eq(memcmp(found->time, row->time, row->count * sizeof *row->time), 0);
}

// ---- the file -----------------------------------------------------------------------------------------------------

START_TEST(what_is_written_is_read)
{
    engine_row rows[ROWS_MAX];
    for (uint32_t round = 0; round < ROUNDS; round++) {
        engine_times written, read;
        const uint32_t count = (uint32_t)next(ROWS_MAX);
        (void)remove(path);
        engine_times_init(&written, &h200);
        for (uint32_t k = 0; k < count; k++) {
            rows[k] = random_row();
            ck_assert_int_eq(engine_times_add(&written, &rows[k], &err), HR_OK);
        }
        ck_assert_msg(engine_times_write(&written, &err) == HR_OK, "%s", err.sentence);
        engine_times_init(&read, &h200);
        ck_assert_msg(engine_times_read(&read, "", &err) == HR_OK, "%s", err.sentence);
        ck_assert_uint_eq(read.rows.count, count);
        for (uint32_t k = 0; k < count; k++) {
            expect_row(&read, &rows[k]);
        }
        ck_assert(!engine_times_changed(&read));
        ck_assert_uint_ne(read.hash, 0);
        engine_times_deinit(&read);
        engine_times_deinit(&written);
    }
}
END_TEST

// Where an engine had no memory the row is of this run alone, wherever it stands among the others.
START_TEST(what_is_partial_is_not_kept)
{
    for (uint32_t left_out = 0; left_out < 3; left_out++) {
        engine_times written, read;
        engine_row rows[3];
        (void)remove(path);
        engine_times_init(&written, &h200);
        for (uint32_t k = 0; k < 3; k++) {
            rows[k] = random_row();
            rows[k].partial = k == left_out;
            ck_assert_int_eq(engine_times_add(&written, &rows[k], &err), HR_OK);
        }
        ck_assert_msg(engine_times_write(&written, &err) == HR_OK, "%s", err.sentence);
        engine_times_init(&read, &h200);
        ck_assert_msg(engine_times_read(&read, "", &err) == HR_OK, "%s", err.sentence);
        ck_assert_uint_eq(read.rows.count, 2);
        for (uint32_t k = 0; k < 3; k++) {
            ck_assert_int_eq(engine_times_find(&read, rows[k].key) == NULL, k == left_out);
        }
        engine_times_deinit(&read);
        engine_times_deinit(&written);
    }
}
END_TEST

START_TEST(more_graphs_than_any_model_has_are_refused)
{
    enum { TOO_MANY = 16385 };
    engine_times read;
    text words = {0};
    text_append(&words,
                "{\"card\": \"%s\", \"compute_capability\": %u, \"multiprocessors\": %u, \"cudnn\": %llu, "
                "\"graphs\": [",
                h200.title, (unsigned)(h200.compute_major * 10 + h200.compute_minor),
                (unsigned)h200.multiprocessors, (unsigned long long)h200.cudnn);
    for (int k = 0; k < TOO_MANY; k++) {
        text_append(&words, "%s{}", k == 0 ? "" : ",");
    }
    text_append(&words, "]}");
    write_words(path, words.data);
    engine_times_init(&read, &h200);
    ck_assert_int_eq(engine_times_read(&read, "", &err), HR_PRESET);
    ck_assert_ptr_nonnull(strstr(err.sentence, "needed at most 16384 graphs, had 16385"));
    (void)remove(path);
    text_deinit(&words);
    engine_times_deinit(&read);
}
END_TEST

// Two processes that measure other models on one card: neither takes the other's times away.
START_TEST(what_another_process_wrote_stays)
{
    engine_times mine, theirs, read;
    const engine_row a = random_row(), b = random_row();
    engine_times_init(&mine, &h200);
    engine_times_init(&theirs, &h200);
    ck_assert_int_eq(engine_times_read(&mine, "", &err), HR_OK);
    ck_assert_int_eq(engine_times_add(&mine, &a, &err), HR_OK);
    ck_assert_int_eq(engine_times_add(&theirs, &b, &err), HR_OK);
    ck_assert_int_eq(engine_times_write(&theirs, &err), HR_OK);
    ck_assert(engine_times_changed(&mine));
    ck_assert_int_eq(engine_times_write(&mine, &err), HR_OK);
    engine_times_init(&read, &h200);
    ck_assert_int_eq(engine_times_read(&read, "", &err), HR_OK);
    expect_row(&read, &a);
    expect_row(&read, &b);
    engine_times_deinit(&mine);
    engine_times_deinit(&theirs);
    engine_times_deinit(&read);
}
END_TEST

// Nor does who timed a graph in part take away what another process timed whole, however often it writes.
START_TEST(what_another_process_timed_whole_stays)
{
    engine_times mine, theirs, read;
    const engine_row other = random_row(), whole = random_row();
    engine_row partial = whole;
    partial.partial = true;
    partial.count = 1;
    partial.time[0].took_ns++;
    engine_times_init(&mine, &h200);
    engine_times_init(&theirs, &h200);
    ck_assert_int_eq(engine_times_add(&theirs, &whole, &err), HR_OK);
    ck_assert_int_eq(engine_times_write(&theirs, &err), HR_OK);
    ck_assert_int_eq(engine_times_add(&mine, &partial, &err), HR_OK);
    ck_assert_int_eq(engine_times_add(&mine, &other, &err), HR_OK);
    ck_assert_int_eq(engine_times_write(&mine, &err), HR_OK);
    ck_assert_int_eq(engine_times_write(&mine, &err), HR_OK);
    engine_times_init(&read, &h200);
    ck_assert_int_eq(engine_times_read(&read, "", &err), HR_OK);
    ck_assert_uint_eq(read.rows.count, 2);
    ck_assert_uint_eq(mine.rows.count, 3);
    expect_row(&read, &whole);
    expect_row(&read, &other);
    engine_times_deinit(&mine);
    engine_times_deinit(&theirs);
    engine_times_deinit(&read);
}
END_TEST

START_TEST(the_users_file_comes_before_the_one_beside_the_card)
{
    char beside[ENGINE_TIMES_PATH_MAX], properties[ENGINE_TIMES_PATH_MAX];
    const char *leaf = strrchr(path, '/') + 1;
    engine_times t;
    (void)snprintf(beside, sizeof beside, "%.256s/shipped/%.256s", folder, leaf);
    (void)snprintf(properties, sizeof properties, "%.256s/shipped/h200-141g.json", folder);
    write_words(beside, "{\"card\": \"NVIDIA H200\", \"compute_capability\": 90, \"multiprocessors\": 132, "
                        "\"cudnn\": 91900, \"graphs\": [{\"graph\": \"00000000000000010000000000000002\", "
                        "\"engines\": [{\"engine\": 3, \"knobs\": \"0000000000000004\", \"took_ns\": 5}]}]}");
    engine_times_init(&t, &h200);
    ck_assert_msg(engine_times_read(&t, properties, &err) == HR_OK, "%s", err.sentence);
    const engine_row *row = engine_times_find(&t, (const uint64_t[]){1, 2});
    ck_assert_ptr_nonnull(row);
    ck_assert_uint_eq(engine_row_ns(row, 3, 4), 5);
    ck_assert_uint_eq(engine_row_ns(row, 3, 5), 0);
    ck_assert_uint_eq(engine_row_ns(row, 2, 4), 0);
    engine_times_deinit(&t);
    write_words(path, "{\"card\": \"NVIDIA H200\", \"compute_capability\": 90, \"multiprocessors\": 132, "
                      "\"cudnn\": 91900, \"graphs\": []}");
    engine_times_init(&t, &h200);
    ck_assert_int_eq(engine_times_read(&t, properties, &err), HR_OK);
    ck_assert_uint_eq(t.rows.count, 0);
    engine_times_deinit(&t);
}
END_TEST

#define HEAD                                                                                                 \
    "{\"card\": \"NVIDIA H200\", \"compute_capability\": 90, \"multiprocessors\": 132, \"cudnn\": 91900, "
#define ROW(graph, engines) HEAD "\"graphs\": [{\"graph\": " graph ", \"engines\": [" engines "]}]}"
#define GRAPH               "\"00000000000000010000000000000002\""
#define TIME                "{\"engine\": 3, \"knobs\": \"0000000000000004\", \"took_ns\": 5}"

static const char *const damaged[] = {
    "",
    "{",
    "[]",
    "{}",
    HEAD "\"graphs\": 1}",
    HEAD "\"graphs\": [1]}",
    ROW("\"0001\"", TIME),
    ROW("1", TIME),
    ROW("\"0000000000000001000000000000000g\"", TIME),
    ROW(GRAPH, ""),
    ROW(GRAPH, "1"),
    ROW(GRAPH,
        TIME "," TIME "," TIME "," TIME "," TIME "," TIME "," TIME "," TIME "," TIME "," TIME "," TIME),
    ROW(GRAPH, "{\"engine\": 3, \"knobs\": \"0000000000000004\"}"),
    ROW(GRAPH, "{\"engine\": 3, \"knobs\": \"0000000000000004\", \"took_ns\": 0}"),
    ROW(GRAPH, "{\"engine\": 3, \"knobs\": \"0000000000000004\", \"took_ns\": -5}"),
    ROW(GRAPH, "{\"engine\": 3, \"knobs\": \"0000000000000004\", \"took_ns\": 0.5}"),
    ROW(GRAPH, "{\"engine\": \"3\", \"knobs\": \"0000000000000004\", \"took_ns\": 5}"),
    ROW(GRAPH, "{\"engine\": 3, \"knobs\": 4, \"took_ns\": 5}"),
    "{\"card\": \"NVIDIA H100\", \"compute_capability\": 90, \"multiprocessors\": 132, \"cudnn\": 91900, "
    "\"graphs\": []}",
    "{\"card\": \"NVIDIA H200\", \"compute_capability\": 80, \"multiprocessors\": 132, \"cudnn\": 91900, "
    "\"graphs\": []}",
    "{\"card\": \"NVIDIA H200\", \"compute_capability\": 90, \"multiprocessors\": 114, \"cudnn\": 91900, "
    "\"graphs\": []}",
    "{\"card\": \"NVIDIA H200\", \"compute_capability\": 90, \"multiprocessors\": 132, \"cudnn\": 91800, "
    "\"graphs\": []}",
};

START_TEST(what_is_not_such_a_file_is_refused_and_left_alone)
{
    engine_times t;
    const engine_row row = random_row();
    char *left = NULL;
    size_t bytes = 0;
    write_words(path, damaged[_i]);
    engine_times_init(&t, &h200);
    ck_assert_int_eq(engine_times_read(&t, "", &err), HR_PRESET);
    ck_assert_ptr_nonnull(strstr(err.sentence, path));
    ck_assert_ptr_nonnull(strstr(err.hint, "workspace.search=off"));
    ck_assert_uint_eq(t.rows.count, 0);
    ck_assert_int_eq(engine_times_add(&t, &row, &err), HR_OK);
    ck_assert_int_eq(engine_times_write(&t, &err), HR_PRESET);
    ck_assert_int_eq(file_read(path, HR_MIB, &left, &bytes, &err), HR_OK);
    ck_assert_str_eq(left, damaged[_i]);
    hr_free(left);
    engine_times_deinit(&t);
}
END_TEST

START_TEST(every_allocation_and_every_file_operation_may_fail)
{
    uint64_t (*const fail_at[])(uint64_t) = {hr_host_mem_fail_at, file_fail_at};
    const engine_row old = random_row(), new = random_row();
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        engine_times t, read;
        (void)remove(path);
        engine_times_init(&t, &h200);
        ck_assert_int_eq(engine_times_add(&t, &old, &err), HR_OK);
        ck_assert_int_eq(engine_times_write(&t, &err), HR_OK);
        fail_at[_i](nth);
        hr_status status = engine_times_add(&t, &new, &err);
        status = status == HR_OK ? engine_times_write(&t, &err) : status;
        failed = fail_at[_i](0) >= nth;
        engine_times_deinit(&t);
        ck_assert_msg(failed || status == HR_OK, "%s", err.sentence);
        engine_times_init(&read, &h200);
        ck_assert_int_eq(engine_times_read(&read, "", &err), HR_OK);
        expect_row(&read, &old); // whole, whatever failed
        if (status == HR_OK) {
            expect_row(&read, &new);
        }
        engine_times_deinit(&read);
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
}
END_TEST

START_TEST(every_read_may_fail)
{
    uint64_t (*const fail_at[])(uint64_t) = {hr_host_mem_fail_at, file_fail_at};
    engine_times t;
    const engine_row row = random_row();
    engine_times_init(&t, &h200);
    ck_assert_int_eq(engine_times_add(&t, &row, &err), HR_OK);
    ck_assert_int_eq(engine_times_write(&t, &err), HR_OK);
    engine_times_deinit(&t);
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        engine_times_init(&t, &h200);
        fail_at[_i](nth);
        const hr_status status = engine_times_read(&t, "", &err);
        failed = fail_at[_i](0) >= nth;
        ck_assert_int_eq(status, !failed ? HR_OK : _i == 0 ? HR_NOMEM : HR_READ);
        ck_assert_uint_eq(t.rows.count, failed ? 0 : 1);
        engine_times_deinit(&t);
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
}
END_TEST

// ---- lists of the real cuDNN --------------------------------------------------------------------------------------

static cuda_device *open_device(bool search, bool deterministic, bool tf32)
{
    hr_card card;
    void *context = NULL;
    ck_assert_msg(hr_card_load("h200-141g", &card, &err) == HR_OK, "%s", err.sentence);
    const device_options options = {
        .card = &card, .plan_only = true, .search = search, .deterministic = deterministic, .tf32 = tf32};
    ck_assert_msg(device_cuda.open(&options, &context, &err) == HR_OK, "%s", err.sentence);
    return context;
}

static graph_spec random_convolution(void)
{
    static const int64_t sizes[] = {7, 14, 28, 56}, channels[] = {32, 64, 128, 256};
    static const hr_dtype types[] = {HR_F32, HR_F16, HR_BF16};
    static const hr_op ops[] = {HR_OP_CONV2D, HR_OP_CONV2D_BWD_DATA, HR_OP_CONV2D_BWD_WEIGHTS};
    const int64_t size = sizes[next(4)], in = channels[next(4)], out = channels[next(4)];
    const int32_t kernel = next(2) == 0 ? 1 : 3, pad = kernel / 2;
    const hr_dtype type = types[next(3)];
    const op_operand x = {.shape = shape_of(4, (const int64_t[]){16, size, size, in}), .dtype = type},
                     y = {.shape = shape_of(4, (const int64_t[]){16, size, size, out}), .dtype = type},
                     w = {.shape = shape_of(4, (const int64_t[]){kernel, kernel, in, out}), .dtype = type};
    op_query q = {.op = ops[next(3)],
                  .in_count = 2,
                  .out_count = 1,
                  .attr = {.kernel_h = kernel,
                           .kernel_w = kernel,
                           .stride_h = 1,
                           .stride_w = 1,
                           .pad_top = pad,
                           .pad_left = pad,
                           .pad_bottom = pad,
                           .pad_right = pad,
                           .groups = 1}};
    q.in[0] = q.op == HR_OP_CONV2D_BWD_DATA ? y : x;
    q.in[1] = q.op == HR_OP_CONV2D_BWD_WEIGHTS ? y : w;
    q.out[0] = q.op == HR_OP_CONV2D ? y : q.op == HR_OP_CONV2D_BWD_DATA ? x : w;
    graph_spec spec;
    uint8_t result = 0;
    conv_spec(&q, &spec, &result);
    return spec;
}

static graph_list *list_of(cuda_device *device, const graph_spec *spec)
{
    graph_list *list = NULL;
    last_words last;
    graph_library *l = cuda_device_graphs(device);
    graph_enter(l, &last);
    const hr_status status = graph_library_device(l, &err);
    ck_assert_msg(status == HR_OK && graph_list_of(l, spec, &list, &err) == HR_OK, "%s", err.sentence);
    graph_leave(l, &last);
    return list;
}

// Times of some of a list's engines, in no order.
static engine_row random_times(const graph_list *list)
{
    engine_row row = {.key = {list->key[0], list->key[1]}};
    for (uint32_t k = 0; k < list->count && row.count < ENGINE_TIMES_MAX; k++) {
        if (next(3) != 0) {
            row.time[row.count++] = (engine_time){.engine = list->config[k].engine,
                                                  .knobs = graph_config_knobs(&list->config[k]),
                                                  .took_ns = 1 + next(1000000)};
        }
    }
    return row;
}

static bool obeys(const graph_config *c, uint64_t limit, bool deterministic, bool exact)
{
    return c->workspace_bytes <= limit && !c->compiled && !c->narrow_sums &&
           !(deterministic && c->nondeterministic) && !(exact && c->tensor_cores);
}

// The fastest of those with a time that obey; without one, the first of the others. By walking the heuristics' own list.
static const graph_config *best_of(const graph_list *list, const engine_row *row, uint64_t limit,
                                   bool deterministic, bool exact)
{
    const graph_config *best = NULL, *first = NULL;
    uint64_t best_ns = 0;
    for (uint32_t k = 0; k < list->count; k++) {
        const graph_config *c = &list->config[k];
        const uint64_t ns = engine_row_ns(row, c->engine, graph_config_knobs(c));
        if (!obeys(c, limit, deterministic, exact)) {
            continue;
        }
        if (ns != 0 && (best == NULL || ns < best_ns)) {
            best = c;
            best_ns = ns;
        }
        first = first == NULL && ns == 0 ? c : first;
    }
    return best != NULL ? best : first;
}

static void expect_choices(cuda_device *searching, const graph_spec *spec, const graph_list *list,
                           const engine_row *row, bool deterministic, bool tf32)
{
    static const uint64_t limits[LIMITS] = {4 * HR_GIB, 64 * HR_MIB, HR_MIB, 64 * HR_KIB, 4 * HR_KIB, 131, 0};
    uint64_t before = UINT64_MAX;
    for (uint32_t k = 0; k < LIMITS; k++) {
        graph_choice choice, again;
        char name[GRAPH_NAME_MAX];
        const graph_config *best = best_of(list, row, limits[k], deterministic, list->float32 && !tf32);
        const hr_status status = graph_choose(searching, spec, limits[k], &choice, &err);
        if (best == NULL) { // FALLBACK's engines stay what they are
            continue;
        }
        ck_assert_msg(status == HR_OK, "%s", err.sentence);
        graph_config_name(best, name, sizeof name);
        ck_assert_str_eq(choice.name, name);
        ck_assert_uint_le(choice.workspace_bytes, before);
        before = choice.workspace_bytes;
        ck_assert_int_eq(graph_choose(searching, spec, choice.workspace_bytes, &again, &err), HR_OK);
        ck_assert_str_eq(again.name, choice.name);
    }
}

START_TEST(the_fastest_that_obeys_limit_and_knobs_is_chosen)
{
    const bool deterministic = _i % 2 == 1, tf32 = _i / 2 == 1;
    graph_spec specs[SHAPES];
    engine_row rows[SHAPES];
    engine_times t;
    cuda_device *plain = open_device(false, deterministic, tf32);
    state = (uint64_t)_i + 1;
    engine_times_init(&t, &(engine_times_of){.title = "NVIDIA H200",
                                             .compute_major = 9,
                                             .multiprocessors = 132,
                                             .cudnn = cudnn.cudnnGetVersion()});
    for (uint32_t k = 0; k < SHAPES; k++) {
        specs[k] = random_convolution();
        rows[k] = random_times(list_of(plain, &specs[k]));
        if (rows[k].count > 0 && engine_times_find(&t, rows[k].key) == NULL) {
            ck_assert_int_eq(engine_times_add(&t, &rows[k], &err), HR_OK);
        }
    }
    ck_assert_int_eq(engine_times_write(&t, &err), HR_OK);
    cuda_device *searching = open_device(true, deterministic, tf32);
    device_search told;
    device_cuda.searched(searching, &told);
    ck_assert(told.wanted);
    ck_assert_uint_eq(told.known, t.rows.count);
    ck_assert_uint_eq(told.measured, 0);
    ck_assert_ptr_null(told.refused);
    for (uint32_t k = 0; k < SHAPES; k++) {
        const engine_row none = {.count = 0}, *row = engine_times_find(&t, rows[k].key);
        expect_choices(searching, &specs[k], list_of(plain, &specs[k]), row == NULL ? &none : row,
                       deterministic, tf32);
    }
    device_cuda.close(searching);
    device_cuda.close(plain);
    engine_times_deinit(&t);
}
END_TEST

// A run on the card would time nothing of it either: that is no reason to call a plan not exact.
START_TEST(a_graph_that_is_never_timed_is_not_waited_for)
{
    const graph_spec spec = random_convolution();
    graph_config configs[2] = {{.compiled = true}, {.workspace_bytes = 5 * HR_GIB}};
    graph_list list = {.key = {1, 2}, .config = configs, .count = 2};
    cuda_device *device = open_device(true, false, true);
    graph_library *l = cuda_device_graphs(device);
    device_search told;
    ck_assert_int_eq(graph_search_order(l, &spec, &list, &err), HR_OK);
    device_cuda.searched(device, &told);
    ck_assert_uint_eq(told.unmeasured, 0);
    configs[1].workspace_bytes = HR_GIB;
    ck_assert_int_eq(graph_search_order(l, &spec, &list, &err), HR_OK);
    device_cuda.searched(device, &told);
    ck_assert_uint_eq(told.unmeasured, 1);
    device_cuda.close(device);
}
END_TEST

// Answers that are remembered from process to process: other times are other answers, and times that are not asked for none.
START_TEST(the_key_of_answers_is_of_the_times)
{
    hr_target off, none, some;
    engine_times t;
    engine_times_of of = h200;
    const engine_row row = random_row();
    cuda_device *plain = open_device(false, false, true), *empty = open_device(true, false, true);
    of.cudnn = cudnn.cudnnGetVersion();
    device_cuda.target(plain, &off);
    device_cuda.target(empty, &none);
    ck_assert(!device_cuda.outdated(empty));
    engine_times_init(&t, &of);
    ck_assert_int_eq(engine_times_add(&t, &row, &err), HR_OK);
    ck_assert_int_eq(engine_times_write(&t, &err), HR_OK);
    engine_times_deinit(&t);
    ck_assert(device_cuda.outdated(empty));
    ck_assert(!device_cuda.outdated(plain));
    cuda_device *full = open_device(true, false, true);
    device_cuda.target(full, &some);
    ck_assert(!device_cuda.outdated(full));
    ck_assert_uint_ne(off.key, none.key);
    ck_assert_uint_ne(none.key, some.key);
    ck_assert_uint_ne(off.key, some.key);
    // What one that searches has answered is not remembered for the next: each counts what is not timed.
    cuda_device *again = open_device(true, false, true);
    hr_target same;
    device_cuda.target(again, &same);
    ck_assert_uint_ne(same.key, some.key);
    device_cuda.close(again);
    device_cuda.close(plain);
    device_cuda.close(empty);
    device_cuda.close(full);
}
END_TEST

START_TEST(times_that_cannot_be_read_keep_the_device_from_opening)
{
    hr_card card;
    void *device = NULL;
    engine_times_of of = h200;
    of.cudnn = cudnn.cudnnGetVersion();
    ck_assert(engine_times_path(&of, path));
    write_words(path, "[");
    ck_assert_int_eq(hr_card_load("h200-141g", &card, &err), HR_OK);
    const device_options options = {.card = &card, .plan_only = true, .search = true};
    ck_assert_int_eq(device_cuda.open(&options, &device, &err), HR_PRESET);
    ck_assert_ptr_nonnull(strstr(err.sentence, path));
    ck_assert_int_eq(hr_host_mem_live(), 0);
    device_cuda.close(open_device(false, false, true)); // who does not search does not read it
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    unsetenv("HEADROOM_DATA");
    if (cudnn_need(&err) != HR_OK) {
        (void)fprintf(stderr, "skipped: %s\n", err.sentence);
        return SKIPPED;
    }
    Suite *suite = suite_create("engine_times");
    TCase *c = tcase_create("engine_times");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, what_is_written_is_read);
    tcase_add_test(c, what_is_partial_is_not_kept);
    tcase_add_test(c, more_graphs_than_any_model_has_are_refused);
    tcase_add_test(c, what_another_process_wrote_stays);
    tcase_add_test(c, what_another_process_timed_whole_stays);
    tcase_add_test(c, the_users_file_comes_before_the_one_beside_the_card);
    tcase_add_loop_test(c, what_is_not_such_a_file_is_refused_and_left_alone, 0,
                        sizeof damaged / sizeof *damaged);
    tcase_add_loop_test(c, every_allocation_and_every_file_operation_may_fail, 0, 2);
    tcase_add_loop_test(c, every_read_may_fail, 0, 2);
    tcase_add_loop_test(c, the_fastest_that_obeys_limit_and_knobs_is_chosen, 0, 4);
    tcase_add_test(c, a_graph_that_is_never_timed_is_not_waited_for);
    tcase_add_test(c, the_key_of_answers_is_of_the_times);
    tcase_add_test(c, times_that_cannot_be_read_keep_the_device_from_opening);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#else

int main(void)
{
    return SKIPPED;
}

#endif
