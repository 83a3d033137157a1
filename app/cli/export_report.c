// SPDX-License-Identifier: Apache-2.0
#include "app/cli/export_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/emit.h"
#include "app/cli/export_ranks.h"
#include "app/cli/say.h"

enum { TENSORS_SHOWN = 12, CELL_TEXT_MAX = 32, NAME_COLUMNS = 27 };

static double sparsity_of(const hr_deploy_tensor *t)
{
    return t->elements == 0 ? 0 : (double)t->zeros / (double)t->elements;
}

// ---- JSON -----------------------------------------------------------------------------------------------------

static void emit_size(emitter *e, const char *key, const hr_deploy_size *s)
{
    emit_row(e, key);
    emit_count(e, "ram_bytes", s->ram_bytes);
    emit_count(e, "file_bytes", s->file_bytes);
    emit_count(e, "gzip_bytes", s->gzip_bytes);
    emit_count(e, "zstd_bytes", s->zstd_bytes);
    emit_end_object(e);
}

static void emit_eval(emitter *e, const char *key, const hr_deploy_eval *v)
{
    emit_row(e, key);
    emit_count(e, "samples", v->samples);
    emit_real(e, "accuracy", v->accuracy, EMIT_EXACT);
    emit_real(e, "loss", v->loss, EMIT_LOSS);
    emit_real(e, "examples_per_second", v->examples_per_second, EMIT_EXACT);
    emit_count(e, "peak_in_use_bytes", v->samples == 0 ? HR_NONE : v->peak_in_use_bytes);
    emit_end_object(e);
}

static void emit_tensor(emitter *e, const hr_deploy_tensor *t)
{
    emit_row(e, NULL);
    emit_text(e, "name", t->name);
    emit_text(e, "dtype", t->type);
    emit_count(e, "elements", t->elements);
    emit_count(e, "zeros", t->zeros);
    emit_real(e, "sparsity", sparsity_of(t), EMIT_EXACT);
    emit_count(e, "bytes", t->bytes);
    emit_count(e, "deployed_bytes", t->deployed_bytes);
    emit_real(e, "max_error", t->max_error, EMIT_LOSS);
    emit_end_object(e);
}

static void emit_layer(emitter *e, const hr_deploy_layer *layer)
{
    emit_row(e, NULL);
    emit_text(e, "name", layer->name);
    emit_count(e, "filters", layer->filters);
    emit_count(e, "deployed_filters", layer->deployed_filters);
    emit_end_object(e);
}

static void emit_what(emitter *to, const hr_deploy *d, const hr_deploy_request *request)
{
    emit_text(to, "schema", "headroom.export/1");
    emit_text(to, "model", d->model);
    emit_count(to, "steps", d->steps);
    emit_text(to, "quantize", hr_quantize_name(d->quantize));
    emit_bool(to, "averaged", d->averaged);
    emit_bool(to, "decomposed", d->decomposed);
    emit_bool(to, "merged", d->merged);
    emit_bool(to, "adapters", request->adapters);
    emit_text(to, "base", d->base);
    emit_text(to, "written", request->out);
    emit_text(to, "preset", d->preset);
    emit_count(to, "parameters", d->parameters);
    emit_count(to, "deployed_parameters", d->deployed_parameters);
}

void export_print_json(const hr_deploy *d, const hr_deploy_request *request)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_what(&e, d, request);
    emit_object(&e, "sizes");
    emit_size(&e, "save", &d->save);
    emit_size(&e, "stripped", &d->stripped);
    emit_size(&e, "with_adapters", &d->with_adapters);
    emit_size(&e, "deployed", &d->deployed);
    emit_end_object(&e);
    emit_object(&e, "evaluation");
    emit_eval(&e, "trained", &d->before);
    emit_eval(&e, "with_adapters", &d->after_merge);
    emit_eval(&e, "deployed", &d->after);
    emit_end_object(&e);
    emit_array(&e, "layers");
    for (size_t k = 0; k < d->layer_count; k++) {
        emit_layer(&e, &d->layers[k]);
    }
    emit_end_array(&e);
    emit_array(&e, "tensors");
    for (size_t k = 0; k < d->tensor_count; k++) {
        emit_tensor(&e, &d->tensors[k]);
    }
    emit_end_array(&e);
    if (request->ranks) {
        export_emit_ranks(&e, d);
    }
    emit_end_object(&e);
}

// ---- text -----------------------------------------------------------------------------------------------------

static const char *number(double value, int digits, char text[CELL_TEXT_MAX])
{
    (void)snprintf(text, CELL_TEXT_MAX, "%.*f", digits, value);
    return isnan(value) ? "-" : text;
}

static const char *error_text(double error, char text[CELL_TEXT_MAX])
{
    (void)snprintf(text, CELL_TEXT_MAX, "%.2g", error);
    return isnan(error) ? "-" : text;
}

// What is deployed is another model, or has other numbers, than trained or merged.
static bool is_another(const hr_deploy *d)
{
    return d->layer_count > 0 || (d->quantize != HR_QUANTIZE_NONE && !d->was_quantized);
}

static const char *label_of_deployed(const hr_deploy *d)
{
    return d->quantize != HR_QUANTIZE_NONE ? hr_quantize_name(d->quantize) : "shrunk";
}

// Factors are made of what was trained, where the save has no factors yet.
static const char *label_of_trained(const hr_deploy *d)
{
    return d->was_quantized ? hr_quantize_name(d->quantize) : d->decomposed ? "as factors" : "trained";
}

static void print_size(const char *label, const hr_deploy_size *s)
{
    char ram[SAY_COUNT_TEXT_MAX], file[SAY_COUNT_TEXT_MAX], gzip[SAY_COUNT_TEXT_MAX],
        zstd[SAY_COUNT_TEXT_MAX];
    printf("  %-12s %14s %14s %14s %14s\n", label, say_count(s->ram_bytes, ram),
           say_count(s->file_bytes, file), say_count(s->gzip_bytes, gzip), say_count(s->zstd_bytes, zstd));
}

static void print_sizes(const hr_deploy *d, const hr_deploy_request *request)
{
    printf("  %-12s %14s %14s %14s %14s\n", "bytes", "in RAM", "on disk", "gzip", "zstd");
    if (!d->was_quantized) {
        print_size("save", &d->save);
        print_size(d->decomposed ? "as factors" : "stripped", &d->stripped);
    }
    if (d->merged) {
        print_size("merged", &d->with_adapters);
    }
    if (request->adapters) {
        print_size("adapters", &d->deployed);
    } else if (is_another(d) || d->was_quantized) {
        print_size(label_of_deployed(d), &d->deployed);
    }
}

static void print_eval(const char *label, const hr_deploy_eval *v)
{
    char accuracy[CELL_TEXT_MAX], loss[CELL_TEXT_MAX], rate[CELL_TEXT_MAX];
    printf("  %-12s %14s %14s %14s\n", label, number(v->accuracy, 4, accuracy), number(v->loss, 6, loss),
           number(v->examples_per_second, 0, rate));
}

static void print_evaluation(const hr_deploy *d)
{
    char samples[SAY_COUNT_TEXT_MAX];
    if (d->before.samples == 0) {
        puts("\n  no samples are held out: accuracy and speed were not measured");
        return;
    }
    printf("\n  %-12s %14s %14s %14s\n", "evaluated", "accuracy", "loss", "examples/s m");
    print_eval(label_of_trained(d), &d->before);
    if (d->merged) {
        print_eval("merged", &d->after_merge);
    }
    if (is_another(d)) {
        print_eval(label_of_deployed(d), &d->after);
    }
    printf("  on %s samples that are held out\n", say_count(d->before.samples, samples));
}

static int larger(const void *a, const void *b)
{
    const hr_deploy_tensor *x = *(const hr_deploy_tensor *const *)a, *y = *(const hr_deploy_tensor *const *)b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : x < y ? -1 : x > y;
}

// Of a name that is too long its end, which tells tensors apart.
static const char *short_name(const char *name, char text[NAME_COLUMNS + 1])
{
    const size_t length = strlen(name);
    const char *from = length > NAME_COLUMNS ? name + length - NAME_COLUMNS : name;
    memcpy(text, from, strlen(from) + 1);
    if (from != name) {
        memcpy(text, "..", 2);
    }
    return text;
}

static void print_tensor(const hr_deploy_tensor *t)
{
    char bytes[SAY_COUNT_TEXT_MAX], deployed[SAY_COUNT_TEXT_MAX], error[CELL_TEXT_MAX];
    char name[NAME_COLUMNS + 1];
    printf("  %-27s %6.1f %% %-7s %11s %11s %9s\n", short_name(t->name, name), 100 * sparsity_of(t), t->type,
           say_count(t->bytes, bytes), say_count(t->deployed_bytes, deployed),
           error_text(t->max_error, error));
}

// The largest of them; of the others their sum.
static void print_tensors(const hr_deploy *d)
{
    const hr_deploy_tensor **order = calloc(d->tensor_count + 1, sizeof *order);
    uint64_t rest_bytes = 0;
    if (order == NULL) {
        return;
    }
    for (size_t k = 0; k < d->tensor_count; k++) {
        order[k] = &d->tensors[k];
    }
    qsort(order, d->tensor_count, sizeof *order, larger);
    printf("\n  %-27s %8s %-7s %11s %11s %9s\n", "tensor", "zeros", "dtype", "bytes", "deployed",
           "max_error");
    for (size_t k = 0; k < d->tensor_count; k++) {
        if (k < TENSORS_SHOWN) {
            print_tensor(order[k]);
        } else {
            rest_bytes += order[k]->deployed_bytes;
        }
    }
    if (d->tensor_count > TENSORS_SHOWN) {
        char bytes[SAY_COUNT_TEXT_MAX];
        printf("  %-3zu smaller ones %*s\n", d->tensor_count - TENSORS_SHOWN, 51,
               say_count(rest_bytes, bytes));
    }
    free(order);
}

// The first layers that lost filters, and of the others how many there are.
static void print_layers(const hr_deploy *d)
{
    char name[NAME_COLUMNS + 1], before[SAY_COUNT_TEXT_MAX], after[SAY_COUNT_TEXT_MAX];
    if (d->layer_count == 0) {
        return;
    }
    printf("\n  %-28s %14s %14s\n", "filters", "trained", "deployed");
    for (size_t k = 0; k < d->layer_count && k < TENSORS_SHOWN; k++) {
        const hr_deploy_layer *layer = &d->layers[k];
        printf("  %-28s %14s %14s\n", short_name(layer->name, name), say_count(layer->filters, before),
               say_count(layer->deployed_filters, after));
    }
    if (d->layer_count > TENSORS_SHOWN) {
        printf("  and %zu layers more, which --json lists\n", d->layer_count - TENSORS_SHOWN);
    }
    printf("  %-28s %14s %14s\n", "parameters", say_count(d->parameters, before),
           say_count(d->deployed_parameters, after));
}

// The command that goes on with what was written, of `preset`; merged adapters are none any more.
static void print_command(const char *preset, const hr_deploy *d, const hr_deploy_request *request)
{
    fputs("  headroom export ", stdout);
    say_word(stdout, preset);
    fputs(d->preset_needs_trust ? " --trust" : "", stdout);
    fputs(d->merged ? " -s compress.lora=none --save " : " --save ", stdout);
    say_word(stdout, request->out);
    putchar('\n');
}

static void print_headline(const hr_deploy *d, const hr_deploy_request *request)
{
    char steps[SAY_COUNT_TEXT_MAX];
    printf("%s after %s steps, ", d->model, say_count(d->steps, steps));
    if (request->adapters) {
        puts("its adapters alone\n");
    } else if (d->quantize != HR_QUANTIZE_NONE) {
        printf("%sdeployed with %s weights\n\n", d->merged ? "its adapters merged, " : "",
               hr_quantize_name(d->quantize));
    } else {
        printf("deployed %s\n\n", d->merged       ? "with its adapters merged"
                                  : d->decomposed ? "as factors of what was trained"
                                                  : "as trained");
    }
}

static void print_remarks(const hr_deploy *d, const hr_deploy_request *request)
{
    if (d->averaged) {
        puts("The weights are the averages that optimizer.ema holds, which evaluation uses.");
    }
    if (d->decomposed) {
        puts("The save has whole weights, not these factors of them: without compress.low_rank\n"
             "export says what it is as it was trained.");
    }
    if (d->base != NULL && d->merged) {
        printf("What was held as %s is real again: merged are the numbers that it stood for,\n"
               "not those that it was made of.\n",
               d->base);
    }
    if (request->adapters) {
        puts("They go with one base: base_sha256 in the file is of its weights.");
    }
}

static void print_written(const char *preset, const hr_deploy *d, const hr_deploy_request *request)
{
    const bool trains = d->quantize == HR_QUANTIZE_NONE;
    fputs("Written to ", stdout);
    say_foreign(stdout, request->out, "");
    if (request->adapters) {
        puts(".\nA, B, rank, alpha and targets are there under their names; training goes on from\n"
             "the save that they are of.");
        return;
    }
    if (d->preset == NULL) {
        puts(":");
    } else {
        fputs(",\nand its narrower model to ", stdout);
        say_foreign(stdout, d->preset, "");
        puts(d->preset_needs_trust ? ", which needs --trust.\nWith that preset" : ".\nWith that preset");
    }
    print_command(d->preset == NULL ? preset : d->preset, d, request);
    puts(trains ? "evaluates it, and train.resume trains on with fresh slots."
                : "evaluates it; it does not train.");
}

void export_print_text(const char *preset, const hr_deploy *d, const hr_deploy_request *request)
{
    print_headline(d, request);
    print_sizes(d, request);
    print_evaluation(d);
    print_layers(d);
    print_tensors(d);
    if (request->ranks) {
        export_print_ranks(d);
    }
    putchar('\n');
    print_remarks(d, request);
    if (request->out == NULL) {
        puts("Nothing was written: -o FILE writes it.");
        return;
    }
    print_written(preset, d, request);
}
