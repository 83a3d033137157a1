// SPDX-License-Identifier: Apache-2.0
// terms: what every word on a screen, in a column or in JSON means.
#include "headroom/terms.h"

#include <stdio.h>
#include <string.h>

#include "headroom/words.h"

#include "app/cli/cli.h"
#include "app/cli/emit.h"
#include "app/cli/options.h"
#include "app/cli/say.h"

enum { NAME_COLUMN = 27, TERMS_MAX = 512, OTHERS_MAX = 8, OTHERS_WORD_MIN = 4 };

static void print_json(emitter *e, const hr_term *t)
{
    emit_row(e, NULL);
    emit_text(e, "name", t->name);
    emit_text(e, "line", t->line);
    emit_text(e, "formula", t->formula);
    emit_text(e, "unit", t->unit);
    emit_text(e, "tensorflow", t->tensorflow);
    emit_text(e, "pytorch", t->pytorch);
    emit_text(e, "nvidia_smi", t->nvidia_smi);
    emit_text(e, "lesson", t->lesson);
    emit_end_object(e);
}

static void print_field(const char *label, const char *value)
{
    if (value != NULL && value[0] != '\0') {
        printf("  %-12s ", label);
        say_paragraph(value, 15);
    }
}

static void print_one(const hr_term *t)
{
    printf("%s\n  ", t->name);
    say_paragraph(t->line, 2);
    print_field("formula", t->formula);
    print_field("unit", t->unit);
    print_field("TensorFlow", t->tensorflow);
    print_field("PyTorch", t->pytorch);
    print_field("nvidia-smi", t->nvidia_smi);
    print_field("lesson", t->lesson);
}

static void print_all(bool is_json)
{
    size_t count = 0;
    const hr_term *terms = hr_terms(&count);
    emitter e = {.out = stdout};
    if (is_json) {
        emit_array(&e, NULL);
    }
    for (size_t k = 0; k < count; k++) {
        if (is_json) {
            print_json(&e, &terms[k]);
        } else {
            printf("%-26s ", terms[k].name);
            say_paragraph(terms[k].line, NAME_COLUMN);
        }
    }
    if (is_json) {
        emit_end_array(&e);
    }
}

// ---- Markdown ---------------------------------------------------------------------------------------------------

// A bar in a cell would end it.
static void print_cell(const char *text)
{
    fputs(" |", stdout);
    for (const char *c = text == NULL ? "" : text; *c != '\0'; c++) {
        if (c == text) {
            putchar(' ');
        }
        if (*c == '|') {
            putchar('\\');
        }
        putchar(*c);
    }
}

static void print_markdown(void)
{
    size_t count = 0;
    const hr_term *terms = hr_terms(&count);
    puts("| term | meaning | formula | unit | TensorFlow | PyTorch | nvidia-smi "
         "|\n|---|---|---|---|---|---|---|");
    for (size_t k = 0; k < count; k++) {
        const hr_term *t = &terms[k];
        const char *const cells[] = {t->line, t->formula, t->unit, t->tensorflow, t->pytorch, t->nvidia_smi};
        printf("| `%s`", t->name);
        for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
            print_cell(cells[i]);
        }
        puts(" |");
    }
}

static bool is_called(const char *others_name, const char *word)
{
    return others_name != NULL && strcasestr(others_name, word) != NULL;
}

// Terms that others call by a name with `word` in it: "GradScaler" is a loss_scale. Returns how many; the first of them.
static size_t find_others(const char *word, const hr_term *found[OTHERS_MAX])
{
    size_t count = 0, matches = 0;
    const hr_term *terms = hr_terms(&count);
    for (size_t k = 0; k < count && strlen(word) >= OTHERS_WORD_MIN && matches < OTHERS_MAX; k++) {
        const hr_term *t = &terms[k];
        if (is_called(t->tensorflow, word) || is_called(t->pytorch, word) || is_called(t->nvidia_smi, word)) {
            found[matches++] = t;
        }
    }
    return matches;
}

static void print_found(const hr_term *const *found, size_t count, bool is_json)
{
    emitter e = {.out = stdout};
    if (is_json && count > 1) {
        emit_array(&e, NULL);
    }
    for (size_t k = 0; k < count; k++) {
        if (is_json) {
            print_json(&e, found[k]);
        } else {
            print_one(found[k]);
        }
    }
    if (is_json && count > 1) {
        emit_end_array(&e);
    }
}

static hr_status refuse(const char *word, hr_err *err)
{
    const char *names[TERMS_MAX];
    size_t count = 0;
    const hr_term *terms = hr_terms(&count);
    count = count < TERMS_MAX ? count : TERMS_MAX;
    for (size_t k = 0; k < count; k++) {
        names[k] = terms[k].name;
    }
    const char *near = hr_word_nearest(word, names, count);
    hr_status status =
        HR_FAIL(err, USAGE, "there is no term '%.64s'%s%s%s", word, near == NULL ? "" : " — did you mean '",
                near == NULL ? "" : near, near == NULL ? "" : "'?");
    hr_err_try(err, "headroom terms%s%s", near == NULL ? "" : " ", near == NULL ? "" : near);
    return status;
}

static hr_status print_terms(const cli_args *args, hr_err *err)
{
    const char *word = args->words[0];
    const hr_term *found[OTHERS_MAX] = {word == NULL ? NULL : hr_term_find(word)};
    bool is_json = cli_given(args, APP_JSON);
    if (word == NULL && cli_given(args, APP_MARKDOWN)) {
        print_markdown();
        return HR_OK;
    }
    if (word == NULL) {
        print_all(is_json);
        return HR_OK;
    }
    size_t count = found[0] != NULL ? 1 : find_others(word, found);
    if (count == 0) {
        return refuse(word, err);
    }
    print_found(found, count, is_json);
    return HR_OK;
}

int cli_terms(int argc, char **argv)
{
    cli_args args;
    hr_err err;
    cli_next next = cli_parse(argc, argv, 1, &args, &err);
    if (next == CLI_DONE) {
        return 0;
    }
    hr_status status = next == CLI_GO_ON ? print_terms(&args, &err) : HR_USAGE;
    return status == HR_OK ? 0 : say_error(&err, cli_given(&args, APP_JSON));
}
