// SPDX-License-Identifier: Apache-2.0
// The difference between two listings: what it names is in the listings, and without it they are the same.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "program/compile.h"
#include "program/model_from_text.h"

static const char cnn[] =
    "device: {vram: 1GiB}\n"
    "model:\n"
    "  name: cnn\n"
    "  input: {shape: [12, 12, 3]}\n"
    "  classes: 4\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {name: a, kind: conv2d, filters: 8, kernel: 3, activation: relu}\n"
    "    - {kind: max_pool, size: 2}\n"
    "    - {name: b, kind: conv2d, filters: 8, kernel: 3, padding: 1, activation: relu}\n"
    "    - {name: c, kind: conv2d, filters: 8, kernel: 3, padding: 1}\n"
    "    - {name: sum, kind: add, inputs: [b, c], activation: relu}\n"
    "    - {kind: flatten}\n"
    "    - {kind: dense, units: 4}\n";

static program *compile(const char *const *pairs)
{
    hr_knobs knobs;
    hr_err err = {0};
    hr_target target;
    void *context = NULL;
    program *p = NULL;
    hr_model *model = model_from_text(cnn);
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    const device_options options = {.card = NULL};
    ck_assert_int_eq(device_plan.open(&options, &context, &err), HR_OK);
    device_plan.target(context, &target);
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN,
                                  (uint32_t)hr_knob_int(&knobs, HR_KNOB_BATCH_SIZE), &target, &p,
                                  &err) == HR_OK,
                  "%s", err.sentence);
    device_plan.close(context);
    model_destroy(model);
    return p;
}

// ---- listings as lines ------------------------------------------------------------------------------------------

enum { LINES_MAX = 2000, HEAD = 1000 }; // a persistent tensor is line HEAD + k, an instruction its number

typedef struct lines {
    char *text[LINES_MAX]; // "forward alloc A 32 B …"; NULL where there is none
    char *buffer;
    unsigned tensors;
} lines;

static char *printed(void (*print)(const void *argument, FILE *out), const void *argument)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    ck_assert_ptr_nonnull(f);
    print(argument, f);
    ck_assert_int_eq(fclose(f), 0);
    return text;
}

static void print_program(const void *p, FILE *out)
{
    program_print(p, out);
}

// One blank for every run of them.
static char *squeeze(char *s)
{
    char *to = s;
    for (const char *from = s; *from != '\0'; from++) {
        if (*from != ' ' || (to > s && to[-1] != ' ')) {
            *to++ = *from;
        }
    }
    *to = '\0';
    return s;
}

static lines lines_of(const program *p)
{
    lines l = {.buffer = printed(print_program, p)};
    char *rest = NULL;
    for (char *s = strtok_r(l.buffer, "\n", &rest); s != NULL; s = strtok_r(NULL, "\n", &rest)) {
        if (s[0] != ';') { // number, phase, live bytes ("13.28 MiB"), text
            unsigned long n = strtoul(s, &s, 10);
            ck_assert_uint_lt(n, HEAD);
            char *phase = s + 2;
            memmove(phase + 8, phase + 8 + 2 + 10, strlen(phase + 8 + 2 + 10) + 1);
            l.text[n] = squeeze(phase);
        } else if (strstr(s, "training step") == NULL && strstr(s, "persistent:") == NULL) {
            l.text[HEAD + l.tensors++] = squeeze(s + 2);
        }
    }
    return l;
}

// Takes the lines that the difference names out of the listings, where they must stand as it says.
static void take_out(char *difference, lines *before, lines *after, unsigned *gone, unsigned *come)
{
    char *rest = NULL;
    for (char *s = strtok_r(difference, "\n", &rest); s != NULL; s = strtok_r(NULL, "\n", &rest)) {
        if (s[0] == ';') {
            continue;
        }
        lines *l = s[0] == '-' ? before : after;
        ck_assert(s[0] == '-' || s[0] == '+');
        (*(s[0] == '-' ? gone : come))++;
        char *mark = s + 1 + strspn(s + 1, " ");
        if (*mark == ';') {
            char *text = squeeze(mark + 2);
            unsigned k = HEAD;
            while (l->text[k] == NULL || strcmp(l->text[k], text) != 0) {
                ck_assert_msg(++k < LINES_MAX, "%s", text);
            }
            l->text[k] = NULL;
        } else {
            unsigned long n = strtoul(s + 1, &mark, 10);
            ck_assert_uint_lt(n, HEAD);
            ck_assert_ptr_nonnull(l->text[n]);
            ck_assert_str_eq(squeeze(mark + 2), l->text[n]);
            l->text[n] = NULL;
        }
    }
}

static void same_rest(const lines *before, const lines *after)
{
    unsigned x = 0;
    unsigned y = 0;
    for (;;) {
        while (x < LINES_MAX && before->text[x] == NULL) {
            x++;
        }
        while (y < LINES_MAX && after->text[y] == NULL) {
            y++;
        }
        ck_assert((x < LINES_MAX) == (y < LINES_MAX));
        if (x == LINES_MAX) {
            return;
        }
        ck_assert_str_eq(before->text[x++], after->text[y++]);
    }
}

typedef struct two {
    const program *before, *after;
} two;

static void print_difference(const void *argument, FILE *out)
{
    const two *t = argument;
    hr_err err = {0};
    ck_assert_msg(program_print_diff(t->before, t->after, out, &err) == HR_OK, "%s", err.sentence);
}

static const struct {
    const char *before, *after;
    unsigned gone, come; // at most
} turns[] = {
    {"execution.fuse=on", "execution.fuse=off", 20, 30},
    {"execution.fuse=off", "execution.fuse=on", 30, 20},
    {"execution.inplace=on", "execution.inplace=off", 30, 50},
    {"execution.mode=eager", "execution.mode=graph", 60, 60},
    {"execution.tape=once", "execution.tape=none", 120, 20},
    {"execution.tape=once", "execution.tape=persistent", 30, 30},
    {"batch.accumulate=1", "batch.accumulate=4", 20, 80},
    {"optimizer.fused_backward=off", "optimizer.fused_backward=on", 40, 40},
    {"optimizer.kind=sgd", "optimizer.kind=adam", 20, 60},
    {"execution.retain=none", "execution.retain=losses", 4, 4},
    {"optimizer.momentum=0.9", "optimizer.momentum=0.5", 0, 0},
    {"batch.size=8", "batch.size=9", 150, 150},
};

START_TEST(a_listing_and_its_difference_are_the_other_listing)
{
    unsigned gone = 0;
    unsigned come = 0;
    program *before = compile((const char *[]){turns[_i].before, NULL});
    program *after = compile((const char *[]){turns[_i].after, NULL});
    char *difference = printed(print_difference, &(two){before, after});
    lines a = lines_of(before);
    lines b = lines_of(after);
    unsigned said_gone = 0;
    unsigned said_come = 0;
    ck_assert_int_eq(sscanf(difference, "; %u lines go, %u come", &said_gone, &said_come), 2);
    take_out(difference, &a, &b, &gone, &come);
    same_rest(&a, &b);
    ck_assert_uint_eq(gone, said_gone);
    ck_assert_uint_eq(come, said_come);
    ck_assert_uint_le(gone, turns[_i].gone);
    ck_assert_uint_le(come, turns[_i].come);
    ck_assert(turns[_i].come == 0 || gone + come > 0);
    free(difference);
    free(a.buffer);
    free(b.buffer);
    program_destroy(before);
    program_destroy(after);
}
END_TEST

START_TEST(a_program_does_not_differ_from_itself)
{
    program *p = compile((const char *[]){turns[_i].after, NULL});
    program *again = compile((const char *[]){turns[_i].after, NULL});
    char *difference = printed(print_difference, &(two){p, again});
    ck_assert_ptr_nonnull(strstr(difference, "; 0 lines go, 0 come"));
    ck_assert_ptr_eq(strchr(difference, '\n'), difference + strlen(difference) - 1);
    free(difference);
    program_destroy(p);
    program_destroy(again);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diff");
    TCase *cases = tcase_create("diff");
    tcase_add_loop_test(cases, a_listing_and_its_difference_are_the_other_listing, 0,
                        sizeof turns / sizeof *turns);
    tcase_add_loop_test(cases, a_program_does_not_differ_from_itself, 0, sizeof turns / sizeof *turns);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
