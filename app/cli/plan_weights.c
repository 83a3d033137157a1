// SPDX-License-Identifier: Apache-2.0
#include "app/cli/plan_weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/cli/emit.h"
#include "app/cli/say.h"

// FLOAT_BYTES: weights, gradients and states in float32, as every precision.policy but the pure two-byte ones has them.
enum { FLOAT_BYTES = 4, PATH_BYTES = 4096 };

static const struct {
    const char *kind; // of optimizer.kind
    unsigned states;  // of a weight
} optimizers[] = {{"sgd", 0}, {"momentum", 1}, {"adamw", 2}};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static uint64_t least_bytes(const hr_weights *w, size_t optimizer)
{
    return w->parameters * FLOAT_BYTES * (2 + optimizers[optimizer].states);
}

static void print_types(const hr_weights *w)
{
    char elements[SAY_COUNT_TEXT_MAX], bytes[HR_BYTES_TEXT_MAX];
    printf("%-12s %9s %19s %12s\n", "type", "tensors", "elements", "bytes");
    for (uint32_t k = 0; k < w->type_count; k++) {
        const hr_weights_type *t = &w->types[k];
        printf("%-12s %9" PRIu64 " %19s %12s\n", t->name, t->tensors, say_count(t->elements, elements),
               hr_bytes_human(t->bytes, bytes));
    }
}

static void print_least(const hr_weights *w)
{
    char weights[HR_BYTES_TEXT_MAX], states[HR_BYTES_TEXT_MAX], all[HR_BYTES_TEXT_MAX];
    (void)hr_bytes_human(w->parameters * FLOAT_BYTES, weights);
    printf("\nTraining %s takes at least, in float32 and before any activation:\n",
           w->files > 1 ? "what is in this part" : "all of them");
    printf("%-12s %12s %12s %12s %12s\n", "optimizer", "weights", "gradients", "states", "together");
    for (size_t k = 0; k < OPTIMIZERS; k++) {
        printf("%-12s %12s %12s %12s %12s\n", optimizers[k].kind, weights, weights,
               hr_bytes_human(w->parameters * FLOAT_BYTES * optimizers[k].states, states),
               hr_bytes_human(least_bytes(w, k), all));
    }
}

// Of NAME-00002-of-00003.gguf the first part, whose metadata the others lack; false: its name has no number.
static bool first_part(const char *path, char out[PATH_BYTES])
{
    const char *of = NULL;
    for (const char *next = strstr(path, "-of-"); next != NULL; next = strstr(next + 1, "-of-")) {
        of = next;
    }
    if (of == NULL || of - path < 6 || strspn(of - 5, "0123456789") != 5 || strlen(path) >= PATH_BYTES) {
        return false;
    }
    (void)snprintf(out, PATH_BYTES, "%.*s00001%s", (int)(of - path - 5), path, of);
    return true;
}

static void print_way(const cli_args *args, const hr_weights *w)
{
    char first[PATH_BYTES];
    if (w->files > 1 && w->architecture[0] == '\0' && strcmp(w->format, "GGUF") == 0) {
        puts("\nThe first of its files names the network, and the others do not.");
        if (first_part(args->words[0], first)) {
            fputs("  try: headroom plan '", stdout);
            say_foreign(stdout, first, "");
            puts("'");
        }
        return;
    }
    if (w->architecture[0] != '\0') {
        printf("\nIts architecture '");
        say_foreign(stdout, w->architecture, "");
        puts("' is none that is read, so there is no plan of a step.");
    } else {
        puts("\nIt names no network, so there is no plan of a step.");
    }
    puts("A plan needs the layers: headroom plan FOLDER/config.json, as it was published\n"
         "beside the weights, or scripts/export/torch_to_headroom.py of the module.");
}

void plan_weights_alone(const cli_args *args, const hr_weights *w)
{
    char parameters[SAY_COUNT_TEXT_MAX], bytes[HR_BYTES_TEXT_MAX];
    say_foreign(stdout, args->words[0], "");
    printf(": %s, %" PRIu64 " tensors, %s parameters, %s\n", w->format, w->tensors,
           say_count(w->parameters, parameters), hr_bytes_human(w->bytes, bytes));
    if (w->held_bytes < w->data_bytes) {
        char held[SAY_COUNT_TEXT_MAX], data[SAY_COUNT_TEXT_MAX];
        printf("a header with %s of its %s bytes of data\n", say_count(w->held_bytes, held),
               say_count(w->data_bytes, data));
    }
    if (w->files > 1) {
        printf("one of %" PRIu64 " files, of which this is said\n", w->files);
    }
    putchar('\n');
    print_types(w);
    print_least(w);
}

static void print_text(const cli_args *args, const hr_weights *w)
{
    plan_weights_alone(args, w);
    print_way(args, w);
}

static void print_json(const cli_args *args, const hr_weights *w)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.weights/1");
    emit_text(&e, "file", args->words[0]);
    emit_text(&e, "format", w->format);
    emit_text(&e, "architecture", w->architecture[0] != '\0' ? w->architecture : NULL);
    emit_count(&e, "files", w->files);
    emit_count(&e, "tensors", w->tensors);
    emit_count(&e, "parameters", w->parameters);
    emit_count(&e, "bytes", w->bytes);
    emit_count(&e, "data_bytes", w->data_bytes);
    emit_count(&e, "held_bytes", w->held_bytes);
    emit_array(&e, "types");
    for (uint32_t k = 0; k < w->type_count; k++) {
        emit_row(&e, NULL);
        emit_text(&e, "name", w->types[k].name);
        emit_count(&e, "tensors", w->types[k].tensors);
        emit_count(&e, "elements", w->types[k].elements);
        emit_count(&e, "bytes", w->types[k].bytes);
        emit_end_object(&e);
    }
    emit_end_array(&e);
    emit_object(&e, "least_bytes");
    for (size_t k = 0; k < OPTIMIZERS; k++) {
        emit_count(&e, optimizers[k].kind, least_bytes(w, k));
    }
    emit_end_object(&e);
    emit_end_object(&e);
}

static hr_status check_options(const cli_args *args, hr_err *err)
{
    if ((args->given & ~(uint64_t)APP_OPTION(JSON)) == 0 && args->set_count == 0) {
        return HR_OK;
    }
    hr_status status =
        HR_FAIL(err, USAGE, "%.200s names no network, and every option but --json is about the step of one",
                args->words[0]);
    hr_err_try(err, "headroom plan '%.200s'", args->words[0]);
    return status;
}

int plan_weights(const cli_args *args, const hr_weights *w)
{
    hr_err err;
    if (check_options(args, &err) != HR_OK) {
        return say_error(&err, cli_given(args, APP_JSON));
    }
    (cli_given(args, APP_JSON) ? print_json : print_text)(args, w);
    return 0;
}
