// SPDX-License-Identifier: Apache-2.0
// A save in an engine that never trains: evaluated as it is, stripped, as whole numbers, evaluated again, written.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "knobs/lora.h"
#include "knobs/preset_model.h"
#include "program/optimizer_rules.h"
#include "train/adapted.h"
#include "train/deploy_sizes.h"
#include "train/deploy_tensors.h"
#include "train/engine_impl.h"
#include "train/held.h"
#include "train/quantized.h"
#include "train/ranks.h"
#include "train/save_header.h"
#include "train/save_write.h"
#include "train/shrink.h"

typedef struct deploying {
    const hr_deploy_request *request;
    hr_engine *e;
    store saved, stripped, left, deployed,
        back;          // left: without filters that are gone; back: what the deployed compute with
    store adapted;     // `stripped` before adapters were merged; empty where none were
    text header;       // of the file
    json_t *about;     // what its metadata say beside; NULL: nothing
    hr_knobs knobs;    // of the engine
    hr_knobs asked;    // of the preset that is written: what was asked for, without adapters that were merged
    bool had_adapters; // the save
    bool evaluated;    // out->before is there
    bool unevaluated;  // the engine has another model than the last evaluation had
    hr_preset *narrower; // NULL: the model is as it was
    text words;          // its preset
    hr_deploy *out;
} deploying;

void hr_deploy_deinit(hr_deploy *deploy)
{
    hr_free(deploy->tensors);
    hr_free(deploy->layers);
    hr_free(deploy->preset);
    hr_free(deploy->ranks);
    *deploy = (hr_deploy){.tensors = NULL};
}

// ---- the save -------------------------------------------------------------------------------------------------

static bool is_range_name(const char *name)
{
    static const char ending[] = ":range";
    const size_t length = strlen(name), least = sizeof ending - 1;
    return length > least && strcmp(name + length - least, ending) == 0;
}

static bool has_tensor(const json_t *root, bool (*is)(const char *name))
{
    const char *name = NULL;
    json_t *entry = NULL;
    json_object_foreach((json_t *)(uintptr_t)root, name, entry)
    {
        if (is(name)) {
            return true;
        }
    }
    return false;
}

static bool asks_for_adapters(const hr_deploy_request *request)
{
    return request->merges || request->adapters;
}

// "-s compress.lora=4 -s compress.lora_alpha=8" → 8, what stands behind the key; "": it is not there.
static void find_shape(const char *words, const char *key, char value[HR_KNOB_TEXT_MAX])
{
    char pattern[64];
    (void)snprintf(pattern, sizeof pattern, "-s %s=", key);
    const char *at = strstr(words, pattern);
    at = at == NULL ? "" : at + strlen(pattern);
    (void)snprintf(value, HR_KNOB_TEXT_MAX, "%.*s", (int)strcspn(at, " "), at);
}

// Merged with another factor than it was trained with, what was learned would be lost without a word.
static hr_status check_factor(const deploying *d, const hr_knobs *knobs, const json_t *root, hr_err *err)
{
    const char *words = save_text(json_object_get(root, "__metadata__"), SAVE_SHAPED_KEY);
    const bool known = asks_for_adapters(d->request) && d->had_adapters && words[0] != '\0';
    char alpha[HR_KNOB_TEXT_MAX];
    hr_knobs trained = *knobs;
    lora_choice was = {.scale = 1}, is = {.scale = 1};
    find_shape(words, "compress.lora_alpha", alpha);
    if (hr_knobs_set(&trained, HR_KNOB_COMPRESS_LORA_ALPHA, alpha[0] == '\0' ? "rank" : alpha, NULL) !=
        HR_OK) {
        return HR_FAIL(err, SAVE, "%s is damaged: its compress.lora_alpha is '%.40s'", d->request->save,
                       alpha);
    }
    (void)!lora_of(&trained, &was); // targets that are none are refused where the engine is made
    (void)!lora_of(knobs, &is);
    if (!known || fpclassify(was.scale - is.scale) == FP_ZERO) {
        return HR_OK;
    }
    (void)HR_FAIL(err, SAVE, "%s was trained with an adapter's factor of %g: needed the same, had %g",
                  d->request->save, was.scale, is.scale);
    hr_err_try(err, "%s", words);
    return HR_SAVE;
}

// The seed is the file's: nothing is trained, and data that are made of it are those that it learned from.
static hr_status read_facts(deploying *d, hr_knobs *knobs, hr_err *err)
{
    int fd = -1;
    int64_t number = 0;
    json_t *root = NULL;
    HR_TRY(save_open_any(d->request->save, &fd, &root, err));
    const char *seed = save_text(json_object_get(root, "__metadata__"), "seed");
    const hr_status status =
        text_to_int(seed, &number) ? hr_knobs_set(knobs, HR_KNOB_TRAIN_SEED, seed, err) : HR_OK;
    d->out->had_ranges = has_tensor(root, is_range_name);
    d->had_adapters = has_tensor(root, model_is_adapter_name);
    const hr_status factor = check_factor(d, knobs, root, status == HR_OK ? err : NULL);
    file_close(fd);
    json_decref(root);
    return status == HR_OK ? factor : status;
}

static hr_status set_defaults(hr_knobs *knobs, const hr_knob_id *ids, size_t count, hr_err *err)
{
    hr_knobs defaults;
    hr_knobs_init(&defaults);
    for (size_t k = 0; k < count; k++) {
        char value[HR_KNOB_TEXT_MAX];
        HR_TRY(hr_knobs_set(knobs, ids[k], hr_knob_format(&defaults, ids[k], value), err));
    }
    return HR_OK;
}

// What is deployed needs no teacher, nor is the model another one for it.
static hr_status leave_training(hr_knobs *knobs, hr_err *err)
{
    static const hr_knob_id ids[] = {HR_KNOB_TRAIN_SAVE,
                                     HR_KNOB_COMPRESS_QUANTIZE,
                                     HR_KNOB_COMPRESS_DISTILL,
                                     HR_KNOB_COMPRESS_DISTILL_ALPHA,
                                     HR_KNOB_COMPRESS_DISTILL_WEIGHTS,
                                     HR_KNOB_COMPRESS_DISTILL_TEMPERATURE,
                                     HR_KNOB_COMPRESS_DISTILL_CACHE};
    return set_defaults(knobs, ids, sizeof ids / sizeof *ids, err);
}

// Adapters that the save lacks would begin, and add nothing.
static hr_status check_adapters(const deploying *d, hr_err *err)
{
    if (!asks_for_adapters(d->request) || d->had_adapters) {
        return HR_OK;
    }
    const char *option = d->request->merges ? "--merge" : "--adapters";
    (void)HR_FAIL(err, SAVE, "%s has no adapters: %s needed what was trained under compress.lora",
                  d->request->save, option);
    hr_err_try(err, "export without %s, or --save FILE of a run with -s compress.lora=RANK", option);
    return HR_SAVE;
}

static hr_status read_save(deploying *d, const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    hr_knobs of_save = *knobs;
    HR_TRY(hr_knobs_set(&of_save, HR_KNOB_TRAIN_RESUME, d->request->save, err));
    HR_TRY(leave_training(&of_save, err));
    HR_TRY(read_facts(d, &of_save, err));
    HR_TRY(check_adapters(d, err));
    d->knobs = of_save;
    HR_TRY(hr_engine_create(preset, &of_save, NULL, &d->e, err));
    return engine_rebuild(d->e, err);
}

static hr_status open_engine(deploying *d, const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    static const char of_run[] = "headroom run ";
    const hr_status status = read_save(d, preset, knobs, err);
    if (status == HR_SAVE && err != NULL && strncmp(err->hint, of_run, sizeof of_run - 1) == 0) {
        shrink_try_preset(d->request->save, "export", "--save ", err);
    } else if (status == HR_SAVE && err != NULL && err->hint[0] == '\0') {
        hr_err_try(err, "--save FILE with what train.save wrote of this preset");
    }
    HR_TRY(status);
    if (!d->e->build->arithmetic) {
        (void)HR_FAIL(err, DEVICE, "device '%s' has no weights to deploy", d->e->build->device->name);
        hr_err_try(err, "-s device.kind=reference");
        return HR_DEVICE;
    }
    return store_take(&d->saved, d->e->build, err);
}

// What evaluation judges: the average of a weight where one is held.
static const stored_tensor *judged(deploying *d, const char *name)
{
    char average[160];
    (void)snprintf(average, sizeof average, "%s:%s", name, OPTIMIZER_EMA_SLOT);
    const stored_tensor *t = store_find(&d->saved, average);
    d->out->averaged = d->out->averaged || t != NULL;
    return t != NULL ? t : store_find(&d->saved, name);
}

static hr_status strip(deploying *d, hr_err *err)
{
    const hr_model *m = d->e->model;
    for (uint32_t k = 0; k < m->own_params; k++) {
        const stored_tensor *from = judged(d, m->params[k].name);
        if (from == NULL) {
            return HR_FAIL(err, SAVE, "%s lacks %s of model %s", d->request->save, m->params[k].name,
                           m->name);
        }
        stored_tensor *to = store_add_as(&d->stripped, m->params[k].name, from, from->dtype);
        if (to == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for a copy of %s", m->params[k].name);
        }
        to->category = m->params[k].category;
        HR_TRY(held_copy_scales(&d->saved, &m->params[k], &d->stripped, err));
    }
    return HR_OK;
}

// ---- the file -------------------------------------------------------------------------------------------------

static hr_status make_header(const deploying *d, const store *s, hr_quantize mode, text *out, hr_err *err)
{
    json_t *metadata =
        save_make_metadata(d->e, s, &(save_kind){.mode = mode, .stripped = true, .more = d->about});
    const hr_status status = save_make_header(metadata, s, out, err);
    json_decref(metadata);
    return status;
}

// The header stays that of the file.
static hr_status weigh(deploying *d, const store *s, hr_quantize mode, hr_deploy_size *out, hr_err *err)
{
    text header = {0};
    hr_status status = make_header(d, s, mode, &header, err);
    if (status == HR_OK) {
        status = deploy_weigh(&header, s, out, err);
    }
    text_deinit(&d->header);
    d->header = header;
    return status;
}

static const hr_deploy_size not_weighed = {HR_NONE, HR_NONE, HR_NONE, HR_NONE};

static hr_status weigh_trained(deploying *d, hr_err *err)
{
    d->out->save = d->out->stripped = d->out->with_adapters = not_weighed;
    if (d->out->was_quantized) {
        return HR_OK;
    }
    HR_TRY(deploy_weigh_file(d->request->save, &d->out->save, err));
    return weigh(d, &d->stripped, HR_QUANTIZE_NONE, &d->out->stripped, err);
}

// ---- evaluation -----------------------------------------------------------------------------------------------

// Of the median full batch. Making the whole numbers of weights is left out: where they are deployed that is done.
static double median_rate(const hr_engine *e)
{
    const program *p = e->build->programs[BUILD_EVAL];
    const instr_times *times = executor_times(e->build->x, e->build->slots[BUILD_EVAL]);
    uint64_t sum_ns = 0;
    for (uint32_t k = 0; times != NULL && times->ns != NULL && k < times->instr_count; k++) {
        const hr_op op = p->instrs[k].op;
        const bool made_before = op == HR_OP_QUANTIZE_INT8 || op == HR_OP_QUANTIZE_INT4;
        sum_ns += made_before ? 0 : instr_times_median_ns(times, k);
    }
    return sum_ns == 0 ? (double)NAN : (double)p->batch * 1e9 / (double)sum_ns;
}

static const hr_deploy_eval not_evaluated = {
    .loss = (double)NAN, .accuracy = (double)NAN, .examples_per_second = (double)NAN};

static hr_status evaluate(hr_engine *e, hr_deploy_eval *out, hr_err *err)
{
    *out = not_evaluated;
    if (pipeline_get_info(e->data)->eval_samples == 0) {
        return HR_OK;
    }
    HR_TRY(executor_time(e->build->x, e->build->slots[BUILD_EVAL], err));
    e->eval.peak_in_use_bytes = 0;
    engine_begin_evaluation(e);
    while (e->eval.running) {
        HR_TRY(engine_evaluate_batch(e, err));
    }
    out->samples = e->eval.samples;
    out->loss = e->eval.loss;
    out->accuracy = e->eval.accuracy;
    out->peak_in_use_bytes = e->eval.peak_in_use_bytes;
    out->examples_per_second = median_rate(e);
    return HR_OK;
}

// With the products that whole numbers are deployed for, made of the weights at hand: bit for bit those of the file.
static hr_status quantize(hr_engine *e, hr_quantize mode, hr_err *err)
{
    hr_command turn = {
        .version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = HR_KNOB_COMPRESS_QUANTIZE};
    (void)text_copy(turn.text, sizeof turn.text, hr_quantize_name(mode));
    const hr_status status = hr_engine_command(e, &turn, err);
    if (status != HR_OK) {
        hr_err_try(err, "-s device.kind=cpu -s execution.as=headroom");
        return status;
    }
    return engine_rebuild(e, err);
}

// Once, while the engine has the model that was trained.
static hr_status evaluate_trained(deploying *d, hr_err *err)
{
    if (d->evaluated) {
        return HR_OK;
    }
    if (d->out->was_quantized) {
        HR_TRY(quantize(d->e, d->out->quantize, err));
    }
    HR_TRY(evaluate(d->e, &d->out->before, err));
    d->out->after = d->out->before;
    d->evaluated = true;
    return HR_OK;
}

static hr_status evaluate_deployed(deploying *d, hr_err *err)
{
    hr_deploy *out = d->out;
    const bool quantizes = out->quantize != HR_QUANTIZE_NONE && !out->was_quantized;
    HR_TRY(evaluate_trained(d, err));
    if (quantizes) {
        HR_TRY(quantize(d->e, out->quantize, err));
    }
    if (d->request->adapters) { // nothing is computed with them alone
        out->after = not_evaluated;
    }
    return quantizes || d->unevaluated ? evaluate(d->e, &out->after, err) : HR_OK;
}

// ---- another model --------------------------------------------------------------------------------------------

// An engine with these weights of another model takes the place of the one that has what was trained, as far as that has come.
static hr_status replace_engine(deploying *d, const hr_preset *preset, const hr_knobs *knobs,
                                const store *weights, hr_err *err)
{
    hr_engine *e = NULL;
    HR_TRY(evaluate_trained(d, err));
    HR_TRY(hr_engine_create(preset, knobs, NULL, &e, err));
    e->steps = d->e->steps;
    e->updates = d->e->updates;
    e->position = d->e->position;
    hr_engine_destroy(d->e);
    d->e = e;
    d->unevaluated = true;
    for (uint32_t k = 0; k < weights->tensors.count; k++) {
        const stored_tensor *from = &weights->tensors.data[k];
        stored_tensor *to = store_add_as(&e->carried, from->name, from, from->dtype);
        if (to == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for a copy of %s", from->name);
        }
        to->category = from->category;
    }
    return engine_rebuild(e, err);
}

// ---- adapters -------------------------------------------------------------------------------------------------

static hr_status end_adapters(hr_knobs *knobs, hr_err *err)
{
    static const hr_knob_id ids[] = {HR_KNOB_COMPRESS_LORA, HR_KNOB_COMPRESS_LORA_ALPHA,
                                     HR_KNOB_COMPRESS_LORA_TARGETS, HR_KNOB_COMPRESS_LORA_BASE};
    return set_defaults(knobs, ids, sizeof ids / sizeof *ids, err);
}

static hr_status merge(deploying *d, const hr_preset *preset, hr_err *err)
{
    d->adapted = d->stripped;
    d->stripped = (store){.tensors = {.data = NULL}};
    d->out->merged = true;
    HR_TRY(adapted_merge(&d->adapted, d->e->model, &d->stripped, err));
    HR_TRY(end_adapters(&d->knobs, err));
    HR_TRY(end_adapters(&d->asked, err));
    HR_TRY(hr_knobs_set(&d->knobs, HR_KNOB_TRAIN_RESUME, "", err));
    HR_TRY(replace_engine(d, preset, &d->knobs, &d->stripped, err));
    HR_TRY(evaluate(d->e, &d->out->after_merge, err));
    d->out->after = d->out->after_merge;
    d->unevaluated = false;
    return HR_OK;
}

static hr_status take_adapters(deploying *d, hr_err *err)
{
    HR_TRY(adapted_alone(&d->stripped, d->e->model, &d->deployed, err));
    d->about = adapted_about(&d->stripped, d->e->model);
    return d->about != NULL ? HR_OK : HR_FAIL(err, NOMEM, "no host memory for what adapters go with");
}

// ---- a narrower model -----------------------------------------------------------------------------------------

static bool is_one_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

// A name that is extended is looked for beside the file first: of that name itself it would lead back to it.
static bool extends_itself(const char *path, const char *words)
{
    char line[160];
    const char *slash = strrchr(path, '/'), *stem = slash == NULL ? path : slash + 1;
    (void)snprintf(line, sizeof line, "\nextends: %.*s\n", (int)strcspn(stem, "."), stem);
    return strstr(words, line) != NULL;
}

static bool is_needed(const deploying *d, const hr_preset *preset, const char *path)
{
    bool needed = is_one_file(path, d->request->save) || extends_itself(path, d->words.data);
    const char *file = NULL;
    for (uint32_t k = 0; (file = preset_file(preset, k)) != NULL; k++) {
        needed = needed || is_one_file(path, file);
    }
    return needed;
}

// Found out now, not behind the evaluations.
static hr_status check_preset(const deploying *d, const hr_preset *preset, const char *path, hr_err *err)
{
    file_writer *w = NULL;
    if (is_needed(d, preset, path)) {
        (void)HR_FAIL(err, WRITE, "%s: needed a file beside those that the preset and the save are read from",
                      path);
        hr_err_try(err, "-o ANOTHER.safetensors");
        return HR_WRITE;
    }
    hr_status status = d->request->replaces ? HR_OK : shrink_check_preset(path, err);
    if (status != HR_OK) {
        hr_err_try(err, "-o ANOTHER.safetensors, or --force to replace it");
        return status;
    }
    status = file_writer_open(path, &w, err);
    file_writer_abandon(w);
    return status;
}

// A preset of narrower weights would no longer be of what stands beside it.
static hr_status check_beside(const deploying *d, hr_err *err)
{
    char *path = d->request->out == NULL ? NULL : shrink_preset_path(d->request->out);
    hr_status status = HR_OK;
    if (d->request->out != NULL && path == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for the path of a preset");
    } else if (path != NULL && access(path, F_OK) == 0 && shrink_check_preset(path, NULL) == HR_OK) {
        status =
            HR_FAIL(err, WRITE, "%s is of narrower weights than these: needed to be another's or none", path);
        hr_err_try(err, "-o ANOTHER.safetensors");
    }
    hr_free(path);
    return status;
}

static hr_status write_preset_words(deploying *d, const hr_preset *preset, hr_err *err)
{
    static const char nowhere[] = "narrower.yaml";
    if (d->request->out != NULL) {
        d->out->preset = shrink_preset_path(d->request->out);
        if (d->out->preset == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for the path of a preset");
        }
    }
    const shrunk_preset p = {.preset = preset,
                             .knobs = &d->asked,
                             .layers = d->out->layers,
                             .layer_count = d->out->layer_count,
                             .path = d->out->preset != NULL ? d->out->preset : nowhere};
    HR_TRY(shrink_preset(&p, &d->words, err));
    HR_TRY(d->out->preset != NULL ? check_preset(d, preset, d->out->preset, err) : HR_OK);
    const hr_status status = hr_preset_open_text(p.path, d->words.data, false, &d->narrower, err);
    d->out->preset_needs_trust = status == HR_PRESET;
    return status == HR_PRESET ? hr_preset_open_text(p.path, d->words.data, true, &d->narrower, err) : status;
}

static hr_status narrow_engine(deploying *d, hr_err *err)
{
    hr_knobs knobs = d->knobs;
    HR_TRY(hr_knobs_set(&knobs, HR_KNOB_COMPRESS_PRUNE, "none", err));
    HR_TRY(hr_knobs_set(&knobs, HR_KNOB_TRAIN_RESUME, "", err));
    return replace_engine(d, d->narrower, &knobs, &d->left, err);
}

static hr_status narrow(deploying *d, const shrinking *s, const hr_preset *preset, hr_err *err)
{
    HR_TRY(shrink_weights(s, &d->stripped, &d->left, err));
    if (!s->any) {
        return check_beside(d, err);
    }
    HR_TRY(shrink_layers(s, &d->out->layers, &d->out->layer_count, err));
    HR_TRY(write_preset_words(d, preset, err));
    return narrow_engine(d, err);
}

static hr_status shrink(deploying *d, const hr_preset *preset, hr_err *err)
{
    shrinking s;
    hr_status status = shrink_open(d->e->model, &d->stripped, &s, err);
    status = status == HR_OK ? narrow(d, &s, preset, err) : status;
    shrink_close(&s);
    return status;
}

// ---- the whole ------------------------------------------------------------------------------------------------

static hr_status check_together(const hr_deploy_request *request, hr_err *err)
{
    const bool quantizes = request->quantize != HR_QUANTIZE_NONE;
    if (!request->adapters || (!request->merges && !quantizes)) {
        return HR_OK;
    }
    (void)HR_FAIL(err, USAGE, "--adapters deploys them alone, as they were trained: needed no %s",
                  request->merges ? "--merge" : "--quantize");
    hr_err_try(err, "--merge%s%s, or --adapters", quantizes ? " --quantize " : "",
               quantizes ? hr_quantize_name(request->quantize) : "");
    return HR_USAGE;
}

static hr_status check_request(const deploying *d, hr_err *err)
{
    const bool again = d->e->quantized != HR_QUANTIZE_NONE;
    if (again && (d->request->quantize != HR_QUANTIZE_NONE || d->request->out != NULL)) {
        (void)HR_FAIL(err, SAVE, "%s has %s weights already: needed those that were trained",
                      d->request->save, hr_quantize_name(d->e->quantized));
        hr_err_try(err, "--save FILE with the save that it was made of");
        return HR_SAVE;
    }
    const bool held = hr_knob_is_set(&d->e->knobs, HR_KNOB_COMPRESS_LORA) &&
                      !hr_knob_is(&d->e->knobs, HR_KNOB_COMPRESS_LORA_BASE, "none");
    if (held && d->request->quantize != HR_QUANTIZE_NONE && !d->request->merges) {
        (void)HR_FAIL(err, SAVE, "%s has the base of its adapters as %s: needed --quantize none, or --merge",
                      d->request->save, hr_knob_text(&d->e->knobs, HR_KNOB_COMPRESS_LORA_BASE));
        hr_err_try(err, "--merge --quantize %s", hr_quantize_name(d->request->quantize));
        return HR_SAVE;
    }
    return HR_OK;
}

static hr_status check_no_folder(const char *path, hr_err *err)
{
    struct stat facts;
    const size_t length = strlen(path);
    const bool slash = length > 0 && path[length - 1] == '/';
    if (!slash && (stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode))) {
        return HR_OK;
    }
    (void)HR_FAIL(err, WRITE, "%s is a folder: needed a file to write", path);
    hr_err_try(err, "-o %s%sNAME.safetensors", path, slash ? "" : "/");
    return HR_WRITE;
}

// Found out now, not behind the evaluations.
static hr_status check_out(const hr_deploy_request *request, hr_err *err)
{
    file_writer *w = NULL;
    if (request->out == NULL) {
        return HR_OK;
    }
    HR_TRY(check_no_folder(request->out, err));
    if (is_one_file(request->save, request->out)) {
        (void)HR_FAIL(err, WRITE, "%s is what --save names: needed another file to write", request->out);
        hr_err_try(err, "-o ANOTHER.safetensors");
        return HR_WRITE;
    }
    hr_status status = request->replaces ? HR_OK : save_check_deployed(request->out, err);
    if (status != HR_OK) {
        hr_err_try(err, "-o ANOTHER.safetensors, or --force to replace it");
        return status;
    }
    status = file_writer_open(request->out, &w, err);
    file_writer_abandon(w);
    return status;
}

static void describe_save(deploying *d)
{
    hr_deploy *out = d->out;
    const hr_model *m = d->e->model;
    out->was_quantized = d->e->quantized != HR_QUANTIZE_NONE;
    out->quantize = out->was_quantized ? d->e->quantized : d->request->quantize;
    out->steps = d->e->steps;
    out->parameters = m->parameters;
    out->decomposed = d->e->decomposed.count > 0;
    out->after_merge = not_evaluated;
    for (uint32_t k = 0; k < m->own_params; k++) {
        out->base = m->params[k].held != HELD_REAL ? held_name(m->params[k].held) : out->base;
    }
    (void)text_copy(out->model, sizeof out->model, m->name);
}

// Numbers as they are deployed, of the model that is.
static hr_status take_model(deploying *d, const hr_preset *preset, hr_err *err)
{
    HR_TRY(d->request->merges ? merge(d, preset, err) : HR_OK);
    HR_TRY(shrink(d, preset, err));
    HR_TRY(quantized_make(&d->left, d->e->model, d->out->quantize, &d->deployed, err));
    return quantized_back(&d->deployed, d->e->model, d->out->quantize, d->request->save, &d->back, err);
}

// What is deployed last: the header stays that of the file.
static hr_status weigh_deployed(deploying *d, hr_err *err)
{
    hr_deploy *out = d->out;
    const bool goes_on = out->quantize != HR_QUANTIZE_NONE || d->narrower != NULL;
    if (out->merged && goes_on) {
        HR_TRY(weigh(d, &d->stripped, HR_QUANTIZE_NONE, &out->with_adapters, err));
    }
    HR_TRY(weigh(d, &d->deployed, out->quantize, &out->deployed, err));
    out->with_adapters = out->merged && !goes_on ? out->deployed : out->with_adapters;
    return HR_OK;
}

static hr_status describe(deploying *d, hr_err *err)
{
    const deploy_stores stores = {.trained = d->out->merged          ? &d->adapted
                                             : d->out->was_quantized ? &d->deployed
                                                                     : &d->stripped,
                                  .stripped = &d->stripped,
                                  .left = &d->left,
                                  .deployed = &d->deployed,
                                  .back = &d->back};
    return deploy_describe(d->e->model, &stores, d->request->adapters, d->out, err);
}

static uint64_t adapter_parameters(const hr_model *m)
{
    uint64_t sum = 0, elements = 0;
    for (uint32_t k = 0; k < m->own_params; k++) {
        (void)shape_elements(&m->params[k].shape, &elements);
        sum += model_is_adapter_name(m->params[k].name) ? elements : 0;
    }
    return sum;
}

static hr_status make(deploying *d, const hr_preset *preset, hr_err *err)
{
    const bool alone = d->request->adapters;
    describe_save(d);
    HR_TRY(strip(d, err));
    store_deinit(&d->saved);
    HR_TRY(weigh_trained(d, err));
    HR_TRY(alone ? take_adapters(d, err) : take_model(d, preset, err));
    HR_TRY(d->request->ranks ? ranks_of_deployed(d->e, alone ? &d->stripped : &d->left, d->out, err) : HR_OK);
    d->out->deployed_parameters = alone ? adapter_parameters(d->e->model) : d->e->model->parameters;
    HR_TRY(describe(d, err));
    HR_TRY(weigh_deployed(d, err));
    return evaluate_deployed(d, err);
}

static hr_status write_both(const deploying *d, hr_err *err)
{
    file_writer *weights = NULL, *preset = NULL;
    HR_TRY(save_begin(d->request->out, &d->header, &d->deployed, &weights, err));
    hr_status status = file_writer_open(d->out->preset, &preset, err);
    status = status == HR_OK ? file_writer_add(preset, d->words.data, d->words.length, err) : status;
    if (status != HR_OK) {
        file_writer_abandon(weights);
        file_writer_abandon(preset);
        return status;
    }
    return file_writer_commit_both(weights, preset, err);
}

static hr_status deploy(deploying *d, const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    d->asked = *knobs;
    HR_TRY(check_together(d->request, err));
    HR_TRY(check_out(d->request, err));
    HR_TRY(open_engine(d, preset, knobs, err));
    HR_TRY(check_request(d, err));
    HR_TRY(make(d, preset, err));
    if (d->request->out == NULL) {
        return HR_OK;
    }
    return d->narrower != NULL ? write_both(d, err)
                               : save_write(d->request->out, &d->header, &d->deployed, err);
}

hr_status hr_deploy_run(const hr_preset *preset, const hr_knobs *knobs, const hr_deploy_request *request,
                        hr_deploy *out, hr_err *err)
{
    deploying d = {.request = request, .out = out};
    *out = (hr_deploy){.tensors = NULL};
    const hr_status status = deploy(&d, preset, knobs, err);
    store *const held[] = {&d.saved, &d.stripped, &d.adapted, &d.left, &d.deployed, &d.back};
    for (size_t k = 0; k < sizeof held / sizeof *held; k++) {
        store_deinit(held[k]);
    }
    text_deinit(&d.header);
    text_deinit(&d.words);
    json_decref(d.about);
    hr_engine_destroy(d.e);
    hr_preset_close(d.narrower);
    if (status != HR_OK) {
        hr_deploy_deinit(out);
    }
    return status;
}
