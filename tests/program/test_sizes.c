// SPDX-License-Identifier: Apache-2.0
// Symbolic sizes: the shipped models under other sizes are the files with the numbers written out, as a plain reader of the
// text does it; what is said of sizes that are wrong; and the shelf that keeps the models of one preset.
#include <check.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "base/text.h"
#include "model/shelf.h"
#include "program/model_checks.h"

// ---- the text with its numbers written out ------------------------------------------------------------------------

typedef struct size_table {
    char name[8][24];
    long long value[8];
    size_t count;
} size_table;

static char *whole_file(const char *path)
{
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    char *words = calloc(1, 1 << 16);
    ck_assert_uint_gt(fread(words, 1, (1 << 16) - 1, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    return words;
}

// "  sizes: {sequence: 12, depth: 2}"
static size_table sizes_in(const char *words)
{
    size_table t = {.count = 0};
    const char *at = strstr(words, "\n  sizes: {");
    at = at != NULL ? at + strlen("\n  sizes: {") : "";
    int used = 0;
    while (sscanf(at, " %23[a-z]: %lld%n", t.name[t.count], &t.value[t.count], &used) == 2) {
        t.count++;
        at += used + (at[used] == ',');
    }
    return t;
}

// The product at *at, which is moved behind it; 0 when it is no whole number.
static long long product(const size_table *t, const char **at)
{
    long long all = 1;
    for (char sign = '*'; sign == '*' || sign == '/'; sign = **at) {
        *at += **at == '*' || **at == '/';
        long long factor = 0;
        char *end;
        if (**at == '$') {
            const size_t length = strspn(*at + 1, "abcdefghijklmnopqrstuvwxyz");
            for (size_t k = 0; k < t->count; k++) {
                factor = strlen(t->name[k]) == length && strncmp(t->name[k], *at + 1, length) == 0
                             ? t->value[k]
                             : factor;
            }
            *at += 1 + length;
        } else {
            factor = strtoll(*at, &end, 10);
            *at = end;
        }
        ck_assert_int_gt(factor, 0);
        if (sign == '/' && all % factor != 0) {
            return 0;
        }
        all = sign == '/' ? all / factor : all * factor;
    }
    return all;
}

// NULL when a quotient is not whole. The caller frees it.
static char *written_out(const char *from, const size_table *t)
{
    char *out = calloc(1, 1 << 17);
    size_t used = 0;
    for (const char *at = from; *at != '\0';) {
        if (strncmp(at, "\n  sizes:", 9) == 0) {
            at += 1 + strcspn(at + 1, "\n");
        } else if (*at == '$') {
            const long long number = product(t, &at);
            if (number == 0) {
                free(out);
                return NULL;
            }
            used += (size_t)sprintf(out + used, "%lld", number);
        } else {
            out[used++] = *at++;
        }
    }
    return out;
}

static void assert_same(const hr_model *a, const hr_model *b)
{
    ck_assert_uint_eq(a->parameters, b->parameters);
    ck_assert_uint_eq(a->param_count, b->param_count);
    ck_assert_uint_eq(a->value_count, b->value_count);
    ck_assert_uint_eq(a->node_count, b->node_count);
    ck_assert_uint_eq(a->layer_count, b->layer_count);
    ck_assert_ptr_null(model_first_other_param(a, b));
    for (uint32_t k = 0; k < a->value_count; k++) {
        ck_assert_str_eq(a->values[k].name, b->values[k].name);
        ck_assert_mem_eq(&a->values[k].shape, &b->values[k].shape, sizeof a->values[k].shape);
    }
    for (uint32_t k = 0; k < a->node_count; k++) {
        ck_assert_int_eq(a->nodes[k].op, b->nodes[k].op);
        ck_assert_mem_eq(&a->nodes[k].attr, &b->nodes[k].attr, sizeof a->nodes[k].attr);
    }
}

static hr_knobs knobs_of(const hr_preset *preset, const size_table *t)
{
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (size_t k = 0; k < t->count; k++) {
        char pair[64];
        snprintf(pair, sizeof pair, "model.%s=%lld", t->name[k], t->value[k]);
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    }
    return knobs;
}

static long long another(long long value, uint32_t seed, uint32_t which)
{
    uint32_t word[4];
    philox(philox_key_of(seed, "test"), which, 0, word);
    const long long by[] = {value, value * 2, (value + 1) / 2, value * 3, value + 32, value + 1};
    return by[word[0] % 6];
}

// Whether the sizes suited the model.
static bool compare(const hr_preset *preset, const char *file, const size_table *t)
{
    hr_model *sized = NULL, *plain = NULL;
    hr_preset *other = NULL;
    hr_err err = {0};
    const hr_knobs knobs = knobs_of(preset, t);
    const hr_status status = model_create(preset, &knobs, &sized, NULL, &err);
    char *words = written_out(file, t);
    if (words != NULL) {
        other = preset_from_text(words);
        ck_assert_msg(model_create(other, hr_preset_knobs(other), &plain, NULL, NULL) == status, "%s",
                      err.sentence);
    }
    ck_assert_int_eq(status == HR_OK, plain != NULL);
    ck_assert(status == HR_OK || status == HR_MODEL);
    if (plain != NULL) {
        assert_same(sized, plain);
    }
    model_destroy(sized);
    model_destroy(plain);
    hr_preset_close(other);
    free(words);
    return status == HR_OK;
}

START_TEST(shipped_models_are_their_files_with_numbers_written_out)
{
    glob_t shipped;
    unsigned sized = 0, suited = 0;
    ck_assert_int_eq(glob("presets/models/*.yaml", 0, NULL, &shipped), 0);
    for (size_t f = 0; f < shipped.gl_pathc; f++) {
        hr_preset *preset = NULL;
        char *words = whole_file(shipped.gl_pathv[f]);
        const size_table own = sizes_in(words);
        ck_assert_int_eq(hr_preset_open(shipped.gl_pathv[f], false, &preset, NULL, NULL), HR_OK);
        ck_assert(compare(preset, words, &own));
        for (uint32_t round = 0; own.count > 0 && round < 4; round++) {
            size_table turned = own;
            for (uint32_t k = 0; k < turned.count; k++) {
                turned.value[k] = another(own.value[k], (uint32_t)f, round * 8 + k);
                const bool deep = strcmp(turned.name[k], "depth") == 0;
                turned.value[k] = deep && turned.value[k] > 256 ? 256 : turned.value[k];
            }
            suited += compare(preset, words, &turned);
            sized++;
        }
        hr_preset_close(preset);
        free(words);
    }
    globfree(&shipped);
    ck_assert_uint_gt(sized, 80);
    ck_assert_uint_gt(suited, sized / 3);
    ck_assert_uint_lt(suited, sized); // both answers were compared
}
END_TEST

// ---- what is said ---------------------------------------------------------------------------------------------------

#define SIZED(sizes, shape, units)                                                                           \
    "model:\n  sizes: {" sizes "}\n  input: {shape: " shape "}\n  classes: 3\n  layers:\n"                   \
    "    - {kind: dense, units: " units "}\n"                                                                \
    "    - {name: last, kind: dense, units: 3}\n"

START_TEST(sizes_that_are_wrong_are_named)
{
    static const bad_model bad[] = {
        {SIZED("width: 8", "[6]", "$wdith"),
         6,
         1,
         {"'$wdith'", "no size is called", "those of this model are width"}},
        {SIZED("width: 8", "[6]", "$width/3"), 6, 1, {"units", "8 is not a multiple of 3"}},
        {SIZED("width: 8", "[6]", "$width*0"), 6, 1, {"'0'", "whole number"}},
        {SIZED("width: 8", "[6]", "$width*"), 6, 1, {"''", "whole number"}},
        {SIZED("width: 8", "[6]", "$width*-2"), 6, 1, {"'-2'"}},
        {SIZED("width: 8", "[6]", "\"$width\""), 6, 1, {"units must be a whole number", "'$width'"}},
        {SIZED("width: 16777216", "[6]", "$width*2"), 6, 1, {"it stands for 33554432"}},
        {SIZED("width: 16777216", "[6]", "$width*$width*$width"), 6, 1, {"is too large"}},
        {SIZED("width: 8, depth: 2", "[$width]", "$width"), 2, 1, {"'depth' stands nowhere", "write $depth"}},
        {SIZED("width: none", "[6]", "$width"), 6, 1, {"no number is given"}},
        {SIZED("width: 8", "[$width, $height]", "$width"), 3, 1, {"'$height'", "no size is called"}},
    };
    for (size_t k = 0; k < COUNT(bad); k++) {
        assert_refused(&bad[k]);
    }
}
END_TEST

START_TEST(the_preset_refuses_sizes_that_are_none)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        {SIZED("widht: 8", "[6]", "6"), "did you mean 'width'"},
        {SIZED("like: demo, width: 8", "[6]", "$width"), "unknown key 'like'"},
        {SIZED("width: 0", "[6]", "$width"), "model.width"},
        {SIZED("width: [8]", "[6]", "$width"), "needs one value"},
        {SIZED("width: \"8\"", "[6]", "$width"), "quoted"},
        {"model:\n  sizes: 8\n  input: {shape: [6]}\n  classes: 3\n  layers: [{kind: dense, units: 3}]\n",
         "sizes is a mapping"},
        {"model: {like: mlp, widht: 3}\n", "did you mean 'width'"},
        {"model: {like: no_such, width: 3}\n", "no preset 'no_such'"},
        {"model: {width: 3}\n", "no model"},
    };
    for (size_t k = 0; k < COUNT(bad); k++) {
        hr_err err = {0};
        ck_assert_ptr_null(try_preset_from_text(bad[k].text, &err));
        ck_assert_msg(strstr(err.sentence, bad[k].part), "no \"%s\" in \"%s\"", bad[k].part, err.sentence);
    }
}
END_TEST

// A model that has a size takes the value from where it was said last; one that has none refuses it.
START_TEST(a_size_is_said_once_and_turned_anywhere)
{
    hr_err err = {0};
    hr_model *m = NULL;
    hr_preset *like = preset_from_text("model: {like: gpt2_124m_tiny, sequence: 48}\n");
    ck_assert_int_eq(hr_knob_int(hr_preset_knobs(like), HR_KNOB_MODEL_SEQUENCE), 48);
    ck_assert_int_eq(hr_knob_int(hr_preset_knobs(like), HR_KNOB_MODEL_DEPTH), 2);
    ck_assert_uint_eq(hr_preset_origin(like, HR_KNOB_MODEL_SEQUENCE)->line, 1);
    ck_assert(!hr_knob_acts(hr_preset_knobs(like), HR_KNOB_MODEL_RESOLUTION));
    ck_assert(hr_knob_acts(hr_preset_knobs(like), HR_KNOB_MODEL_SEQUENCE));
    hr_preset_close(like);
    hr_preset *extends = preset_from_text("extends: gpt2_124m_tiny\nmodel: {depth: 3}\nbatch: {size: 2}\n");
    hr_knobs knobs = *hr_preset_knobs(extends);
    ck_assert_int_eq(hr_knob_int(&knobs, HR_KNOB_MODEL_DEPTH), 3);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "model.resolution=8", NULL), HR_OK);
    ck_assert_int_eq(model_create(extends, &knobs, &m, NULL, &err), HR_KNOB);
    ck_assert_ptr_nonnull(strstr(err.sentence, "model.resolution=8"));
    ck_assert_ptr_nonnull(strstr(err.sentence, "sequence, depth"));
    hr_preset_close(extends);
    hr_preset *own = preset_from_text("extends: gpt2_124m_tiny\n" SIZED("width: 5", "[6]", "$width"));
    ck_assert(!hr_knob_is_set(hr_preset_knobs(own), HR_KNOB_MODEL_SEQUENCE)); // of the model that is replaced
    ck_assert_int_eq(model_create(own, hr_preset_knobs(own), &m, NULL, &err), HR_OK);
    model_destroy(m);
    hr_preset_close(own);
}
END_TEST

// ---- the shelf -------------------------------------------------------------------------------------------------------

static hr_knobs with_width(const hr_preset *preset, unsigned width)
{
    char pair[32];
    hr_knobs knobs = *hr_preset_knobs(preset);
    (void)snprintf(pair, sizeof pair, "model.width=%u", width);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    return knobs;
}

START_TEST(the_shelf_reads_each_size_once_and_keeps_few)
{
    hr_preset *preset = preset_from_text(SIZED("width: 8", "[6]", "$width"));
    model_shelf *shelf = NULL;
    const hr_model *first = NULL, *again = NULL, *other = NULL, *refused = NULL;
    hr_err err = {0};
    ck_assert_int_eq(model_shelf_open(preset, &shelf, &err), HR_OK);
    hr_knobs eight = with_width(preset, 8), nine = with_width(preset, 9);
    hr_preset_close(preset); // the shelf holds it
    ck_assert_int_eq(model_shelf_take(shelf, &eight, &first, &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&eight, "batch.size=7", NULL), HR_OK); // is no size
    ck_assert_int_eq(model_shelf_take(shelf, &eight, &again, &err), HR_OK);
    ck_assert_ptr_eq(first, again);
    ck_assert_int_eq(model_shelf_take(shelf, &nine, &other, &err), HR_OK);
    ck_assert_ptr_ne(first, other);
    ck_assert_str_eq(model_first_other_param(first, other), "dense/weights");
    ck_assert_int_eq(hr_knobs_set_pair(&nine, "model.depth=2", NULL), HR_OK);
    ck_assert_int_eq(model_shelf_take(shelf, &nine, &refused, &err), HR_KNOB);
    ck_assert_ptr_null(refused);
    model_shelf_give_back(shelf, other);
    model_shelf_give_back(shelf, again);
    int64_t live = 0;
    for (unsigned width = 10; width < 200; width++) {
        hr_knobs knobs = eight;
        char value[16];
        snprintf(value, sizeof value, "%u", width);
        ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_MODEL_WIDTH, value, NULL), HR_OK);
        ck_assert_int_eq(model_shelf_take(shelf, &knobs, &other, &err), HR_OK);
        model_shelf_give_back(shelf, other);
        live = width == 100 ? hr_host_mem_live() : live;
    }
    ck_assert_int_eq(hr_host_mem_live(), live); // what nobody has goes
    ck_assert_int_eq(first->params[0].shape.dim[0] * first->params[0].shape.dim[1], 48); // what is held stays
    model_shelf_give_back(shelf, first);
    model_shelf_close(shelf);
}
END_TEST

START_TEST(every_allocation_of_the_shelf_may_fail)
{
    const int64_t before = hr_host_mem_live();
    for (uint64_t nth = 1, seen = nth; seen >= nth; nth++) {
        hr_preset *preset = preset_from_text(SIZED("width: 8", "[6]", "$width"));
        model_shelf *shelf = NULL;
        const hr_model *m = NULL;
        const hr_knobs nine = with_width(preset, 9);
        hr_host_mem_fail_at(nth);
        hr_status status = model_shelf_open(preset, &shelf, NULL);
        status = status == HR_OK ? model_shelf_take(shelf, &nine, &m, NULL) : status;
        seen = hr_host_mem_fail_at(0);
        ck_assert(status == HR_NOMEM || status == HR_OK);
        ck_assert_int_eq(status == HR_OK, seen < nth);
        if (shelf != NULL) { // the same question is answered afterwards
            model_shelf_give_back(shelf, m);
            ck_assert_int_eq(model_shelf_take(shelf, &nine, &m, NULL), HR_OK);
            model_shelf_give_back(shelf, m);
        }
        model_shelf_close(shelf);
        hr_preset_close(preset);
    }
    ck_assert_int_eq(hr_host_mem_live(), before);
}
END_TEST

int main(void)
{
    setenv("HEADROOM_DATA", "presets", 1); // tests start at the root of the tree
    Suite *suite = suite_create("sizes");
    TCase *tc = tcase_create("sizes");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, shipped_models_are_their_files_with_numbers_written_out);
    tcase_add_test(tc, sizes_that_are_wrong_are_named);
    tcase_add_test(tc, the_preset_refuses_sizes_that_are_none);
    tcase_add_test(tc, a_size_is_said_once_and_turned_anywhere);
    tcase_add_test(tc, the_shelf_reads_each_size_once_and_keeps_few);
    tcase_add_test(tc, every_allocation_of_the_shelf_may_fail);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
