// SPDX-License-Identifier: Apache-2.0
// The lines of PyTorch (2.15) and Keras (3.9 and later, on TensorFlow) that do what knobs do, in the order of a script.
#include <inttypes.h>
#include <string.h>

#include "knobs/export.h"
#include "knobs/prune.h"

typedef enum framework { PYTORCH, KERAS, FRAMEWORKS } framework;

// ---- the table ------------------------------------------------------------------------------------------------

// Lines for one value of a knob. "{batch.size}" is that knob's value; "{vram_mib}" and its like are computed. NULL: the
// framework has no such thing.
typedef struct framework_row {
    hr_knob_id id;
    const char *value; // "*" at the end: any that begins so; a number's row has "*"
    const char *lines[FRAMEWORKS];
} framework_row;

static const framework_row before_import[] = {
    {HR_KNOB_ALLOCATOR_KIND,
     "async*",
     {"os.environ[\"PYTORCH_ALLOC_CONF\"] = \"backend:cudaMallocAsync\"",
      "os.environ[\"TF_GPU_ALLOCATOR\"] = \"cuda_malloc_async\""}},
    {HR_KNOB_ALLOCATOR_GARBAGE_COLLECTION,
     "off",
     {NULL, "os.environ[\"TF_ENABLE_GPU_GARBAGE_COLLECTION\"] = \"false\""}},
    {HR_KNOB_WORKSPACE_SEARCH, "on", {NULL, "os.environ[\"TF_CUDNN_USE_AUTOTUNE\"] = \"1\""}},
    {HR_KNOB_WORKSPACE_SEARCH, "off", {NULL, "os.environ[\"TF_CUDNN_USE_AUTOTUNE\"] = \"0\""}},
    {HR_KNOB_WORKSPACE_LIMIT,
     "*",
     {NULL, "os.environ[\"TF_CUDNN_WORKSPACE_LIMIT_IN_MB\"] = \"{workspace_mib}\""}},
};

static const framework_row before_model[] = {
    {HR_KNOB_TRAIN_SEED,
     "*",
     {"torch.manual_seed({train.seed})", "keras.utils.set_random_seed({train.seed})"}},
    {HR_KNOB_ALLOCATOR_GROWTH,
     "on",
     {NULL, "tf.config.experimental.set_memory_growth(tf.config.list_physical_devices(\"GPU\")[0], True)"}},
    {HR_KNOB_DEVICE_VRAM,
     "*",
     {"total_bytes = torch.cuda.get_device_properties(0).total_memory\n"
      "torch.cuda.set_per_process_memory_fraction({vram_bytes} / total_bytes)",
      "gpu = tf.config.list_physical_devices(\"GPU\")[0]\n"
      "limit = tf.config.LogicalDeviceConfiguration(memory_limit={vram_mib})\n"
      "tf.config.set_logical_device_configuration(gpu, [limit])"}},
    {HR_KNOB_ALLOCATOR_FRACTION,
     "*",
     {"torch.cuda.set_per_process_memory_fraction({allocator.fraction})",
      "config = tf.compat.v1.ConfigProto()\n"
      "config.gpu_options.per_process_gpu_memory_fraction = {allocator.fraction}\n"
      "session = tf.compat.v1.Session(config=config)"}},
    {HR_KNOB_EXECUTION_DETERMINISTIC,
     "on",
     {"torch.use_deterministic_algorithms(True)", "tf.config.experimental.enable_op_determinism()"}},
    {HR_KNOB_WORKSPACE_SEARCH, "on", {"torch.backends.cudnn.benchmark = True", NULL}},
    {HR_KNOB_PRECISION_TF32,
     "on",
     {"torch.backends.cuda.matmul.allow_tf32 = True\ntorch.backends.cudnn.allow_tf32 = True",
      "tf.config.experimental.enable_tensor_float_32_execution(True)"}},
    {HR_KNOB_PRECISION_TF32,
     "off",
     {"torch.backends.cudnn.allow_tf32 = False",
      "tf.config.experimental.enable_tensor_float_32_execution(False)"}},
    {HR_KNOB_EXECUTION_CUDNN_TF32, "off", {"torch.backends.cudnn.allow_tf32 = False", NULL}},
    {HR_KNOB_PRECISION_POLICY,
     "mixed_float16",
     {"autocast = torch.autocast(\"cuda\", dtype=torch.float16)",
      "keras.config.set_dtype_policy(\"mixed_float16\")"}},
    {HR_KNOB_PRECISION_POLICY,
     "mixed_bfloat16",
     {"autocast = torch.autocast(\"cuda\", dtype=torch.bfloat16)",
      "keras.config.set_dtype_policy(\"mixed_bfloat16\")"}},
    {HR_KNOB_PRECISION_POLICY,
     "*",
     {"torch.set_default_dtype(torch.{precision.policy})",
      "keras.config.set_dtype_policy(\"{precision.policy}\")"}},
    {HR_KNOB_CHECKPOINT_STRATEGY,
     "blocks",
     {"from torch.utils.checkpoint import checkpoint\n# where a block is called: y = checkpoint(block, x, "
      "use_reentrant=False)",
      "# where a block is called: y = keras.remat(block)(x)"}},
    {HR_KNOB_CHECKPOINT_STRATEGY,
     "selective",
     {"from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts\n"
      "# keep products and convolutions, compute normalisations and activations again:\n"
      "# y = checkpoint(block, x, use_reentrant=False, context_fn=lambda: "
      "create_selective_checkpoint_contexts(KEPT))",
      "scope = keras.RematScope(mode=\"activations\")  # with scope: y = model(x)"}},
    {HR_KNOB_CHECKPOINT_STRATEGY,
     "*",
     {"from torch.utils.checkpoint import checkpoint_sequential\n"
      "# {checkpoint.strategy}: y = checkpoint_sequential(layers, SEGMENTS, x, use_reentrant=False)",
      "# {checkpoint.strategy}: y = keras.remat(segment)(x) around each segment of layers"}},
    {HR_KNOB_COMPRESS_LORA,
     "*",
     {"# behind the model: model = peft.get_peft_model(\n#     model, peft.LoraConfig(r={compress.lora}, "
      "lora_alpha={lora_alpha}, target_modules=MODULES))",
      "# behind the model, of its dense layers and embeddings: layer.enable_lora({compress.lora}, "
      "lora_alpha={lora_alpha})"}},
    {HR_KNOB_COMPRESS_LORA_ALPHA, "*", {"# lora_alpha of that", "# lora_alpha of that"}},
    {HR_KNOB_COMPRESS_LORA_TARGETS, "*", {"# target_modules of that", "# which layers"}},
    {HR_KNOB_COMPRESS_PRUNE,
     "constant*",
     {"# torch.nn.utils.prune.l1_unstructured(layer, \"weight\", amount={prune_to}) of each layer makes such "
      "a "
      "mask\n# once; here masks are made again every {prune_frequency} updates",
      "# behind the model, in Keras 2 (tf_keras): tfmot.sparsity.keras.prune_low_magnitude(\n"
      "#     model, tfmot.sparsity.keras.ConstantSparsity({prune_to}, {prune_begin}, {prune_end}, "
      "{prune_frequency}))"}},
    {HR_KNOB_COMPRESS_PRUNE,
     "polynomial*",
     {"# torch.nn.utils.prune has no schedule: its masks are made once",
      "# behind the model, in Keras 2 (tf_keras): tfmot.sparsity.keras.prune_low_magnitude(\n"
      "#     model, tfmot.sparsity.keras.PolynomialDecay({prune_from}, {prune_to}, {prune_begin}, "
      "{prune_end},\n#     power={prune_power}, frequency={prune_frequency}))"}},
    {HR_KNOB_COMPRESS_PRUNE_STRUCTURE,
     "block*",
     {NULL, "# block_size=({prune_rows}, {prune_columns}) of that, block_pooling_type=\"AVG\""}},
    {HR_KNOB_COMPRESS_PRUNE_STRUCTURE,
     "filter",
     {"# torch.nn.utils.prune.ln_structured(layer, \"weight\", amount={prune_to}, n=1, dim=0) instead",
      NULL}},
    {HR_KNOB_COMPRESS_QUANTIZE,
     "qat",
     {"# torch.ao.quantization has another scheme: its observers, ranges and levels differ",
      "# behind the model, in Keras 2 (tf_keras): model = "
      "tfmot.quantization.keras.quantize_model(model)"}},
    {HR_KNOB_COMPRESS_QUANTIZE,
     "int8",
     {"# torch.ao.quantization has another scheme: its scales and roundings differ",
      "# before an evaluation, of each Dense and Embedding: layer.quantize(\"int8\")"}},
    {HR_KNOB_COMPRESS_LORA_BASE,
     "*",
     {"# {compress.lora_base}: from_pretrained(…, quantization_config=transformers.BitsAndBytesConfig(…))",
      "# {compress.lora_base}: model.quantize(\"{compress.lora_base}\") behind enable_lora"}},
    {HR_KNOB_OFFLOAD_ACTIVATIONS,
     "on",
     {"offload = torch.autograd.graph.save_on_cpu(pin_memory=True)  # with offload: loss", NULL}},
    {HR_KNOB_THREADS_COUNT,
     "*",
     {"torch.set_num_threads({threads.count})",
      "tf.config.threading.set_intra_op_parallelism_threads({threads.count})"}},
};

static const framework_row behind_optimizer[] = {
    {HR_KNOB_EXECUTION_MODE, "eager", {NULL, "model.compile(optimizer=optimizer, run_eagerly=True)"}},
    {HR_KNOB_EXECUTION_MEMORY_FORMAT,
     "channels_last",
     {"model = model.to(memory_format=torch.channels_last)  # and the images of each batch", NULL}},
    {HR_KNOB_EXECUTION_CUDA_GRAPH, "on", {"model = torch.compile(model, mode=\"reduce-overhead\")", NULL}},
    {HR_KNOB_EXECUTION_MODE,
     "graph",
     {"model = torch.compile(model)", "model.compile(optimizer=optimizer, jit_compile=True)"}},
    {HR_KNOB_OPTIMIZER_CLIP_NORM,
     "*",
     {"# before optimizer.step(): torch.nn.utils.clip_grad_norm_(model.parameters(), {optimizer.clip_norm})",
      "optimizer.global_clipnorm = {optimizer.clip_norm}"}},
    {HR_KNOB_OPTIMIZER_EMA,
     "*",
     {"average = torch.optim.swa_utils.AveragedModel(\n    model, "
      "multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn({optimizer.ema}))",
      "optimizer.use_ema, optimizer.ema_momentum = True, {optimizer.ema}"}},
    {HR_KNOB_OPTIMIZER_SCHEDULE,
     "cosine",
     {"schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max={optimizer.schedule_updates})",
      "optimizer.learning_rate = keras.optimizers.schedules.CosineDecay({optimizer.learning_rate}, "
      "{optimizer.schedule_updates})"}},
    {HR_KNOB_OPTIMIZER_SCHEDULE,
     "linear",
     {"schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1e-8, {optimizer.schedule_updates})",
      "optimizer.learning_rate = keras.optimizers.schedules.PolynomialDecay({optimizer.learning_rate}, "
      "{optimizer.schedule_updates}, 0.0)"}},
    {HR_KNOB_OPTIMIZER_SCHEDULE,
     "step",
     {"schedule = torch.optim.lr_scheduler.StepLR(optimizer, {optimizer.schedule_updates})",
      "optimizer.learning_rate = keras.optimizers.schedules.ExponentialDecay(\n    "
      "{optimizer.learning_rate}, {optimizer.schedule_updates}, 0.1, staircase=True)"}},
    {HR_KNOB_OPTIMIZER_FUSED_BACKWARD,
     "on",
     {"# one optimizer a parameter, stepped by parameter.register_post_accumulate_grad_hook(step)", NULL}},
    {HR_KNOB_PRECISION_LOSS_SCALE,
     "dynamic",
     {"scaler = torch.amp.GradScaler()", "optimizer = keras.optimizers.LossScaleOptimizer(optimizer)"}},
    {HR_KNOB_BATCH_ACCUMULATE,
     "*",
     {"# (loss / {batch.accumulate}).backward(), and optimizer.step() every {batch.accumulate} batches",
      "optimizer.gradient_accumulation_steps = {batch.accumulate}"}},
    {HR_KNOB_BATCH_REMAINDER, "drop", {"drop_last = True", "drop_remainder = True"}},
    {HR_KNOB_BATCH_REMAINDER, "keep", {"drop_last = False", "drop_remainder = False"}},
    {HR_KNOB_PIPELINE_MAP_THREADS,
     "*",
     {"num_workers = {pipeline.map_threads}", "num_parallel_calls = {pipeline.map_threads}"}},
    {HR_KNOB_PIPELINE_PREFETCH,
     "*",
     {"prefetch_factor = {pipeline.prefetch}",
      "prefetch = {pipeline.prefetch}  # dataset.prefetch(prefetch)"}},
    {HR_KNOB_PIPELINE_PINNED, "on", {"pin_memory = True", NULL}},
    {HR_KNOB_PIPELINE_PINNED, "off", {"pin_memory = False", NULL}},
    {HR_KNOB_PIPELINE_SHUFFLE,
     "*",
     {"# pipeline.shuffle: DataLoader(shuffle=True) shuffles all indices",
      "# dataset.shuffle({pipeline.shuffle}) in front of batch"}},
};

// ---- values ---------------------------------------------------------------------------------------------------

static bool is_default(const hr_knobs *knobs, const hr_knob_row *row)
{
    hr_knobs defaults;
    char one[HR_KNOB_TEXT_MAX], other[HR_KNOB_TEXT_MAX];
    hr_knobs_init(&defaults);
    return strcmp(hr_knob_format(knobs, row->id, one), hr_knob_format(&defaults, row->id, other)) == 0;
}

static bool is_meant(const framework_row *row, const char *value)
{
    const size_t length = strlen(row->value);
    const bool begins = length > 0 && row->value[length - 1] == '*';
    return begins ? strncmp(row->value, value, length - 1) == 0 : strcmp(row->value, value) == 0;
}

// A number of compress.prune or compress.prune_structure, defaults among them; false where it is none of them.
static bool put_prune(const hr_knobs *knobs, const char *key, text *out)
{
    prune_choice c;
    (void)prune_choice_of(knobs, &c);
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"prune_from", c.from},           {"prune_to", c.to},
                   {"prune_begin", c.begin},         {"prune_end", c.end},
                   {"prune_power", c.power},         {"prune_rows", c.rows},
                   {"prune_frequency", c.frequency}, {"prune_columns", c.columns}};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        if (strcmp(key, numbers[k].key) == 0) {
            text_append(out, "%.12g", numbers[k].value);
            return true;
        }
    }
    return false;
}

static void put_name(const hr_knobs *knobs, const char *name, size_t length, text *out)
{
    char key[64], value[HR_KNOB_TEXT_MAX];
    (void)snprintf(key, sizeof key, "%.*s", (int)length, name);
    const uint64_t vram_bytes = hr_knob_bytes(knobs, HR_KNOB_DEVICE_VRAM, 0);
    const hr_knob_row *row = hr_knob_find(key, NULL);
    if (strcmp(key, "vram_bytes") == 0) {
        text_append(out, "%" PRIu64, vram_bytes);
    } else if (strcmp(key, "vram_mib") == 0) {
        text_append(out, "%" PRIu64, vram_bytes >> 20);
    } else if (strcmp(key, "workspace_mib") == 0) {
        text_append(out, "%" PRIu64, hr_knob_bytes(knobs, HR_KNOB_WORKSPACE_LIMIT, 0) >> 20);
    } else if (strcmp(key, "lora_alpha") == 0) {
        const bool set = hr_knob_is_set(knobs, HR_KNOB_COMPRESS_LORA_ALPHA);
        const hr_knob_id id = set ? HR_KNOB_COMPRESS_LORA_ALPHA : HR_KNOB_COMPRESS_LORA;
        text_append(out, "%s", hr_knob_format(knobs, id, value));
    } else if (row != NULL) {
        text_append(out, "%s", hr_knob_format(knobs, row->id, value));
    } else {
        (void)put_prune(knobs, key, out);
    }
}

static void put_lines(const hr_knobs *knobs, const char *lines, text *out)
{
    while (*lines != '\0') {
        const size_t plain = strcspn(lines, "{");
        text_append_bytes(out, lines, plain);
        lines += plain;
        if (*lines == '{') {
            const size_t length = strcspn(lines, "}");
            put_name(knobs, lines + 1, length - 1, out);
            lines += length + 1;
        }
    }
    text_append(out, "\n");
}

// ---- sections -------------------------------------------------------------------------------------------------

typedef struct export_state {
    const hr_knobs *knobs;
    framework to;
    bool said[HR_KNOB_COUNT];
    text *out;
} export_state;

static void put_row(export_state *s, const framework_row *row, const char *value)
{
    const hr_knob_row *knob = &hr_knob_rows(NULL)[row->id];
    s->said[row->id] = true;
    text_append(s->out, "# %s=%s%s\n", knob->key, value,
                row->lines[s->to] == NULL
                    ? s->to == PYTORCH ? ": PyTorch has no such thing" : ": Keras has no such thing"
                    : "");
    if (row->lines[s->to] != NULL) {
        put_lines(s->knobs, row->lines[s->to], s->out);
    }
}

// The first row of each knob that means its value. A default has a row of its own value, or is not said.
static void put_section(export_state *s, const framework_row *rows, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        char value[HR_KNOB_TEXT_MAX];
        const hr_knob_row *knob = &hr_knob_rows(NULL)[rows[k].id];
        const bool any = strcmp(rows[k].value, "*") == 0;
        (void)hr_knob_format(s->knobs, rows[k].id, value);
        const bool silent = any || rows[k].lines[s->to] == NULL; // at a default
        if (!s->said[rows[k].id] && is_meant(&rows[k], value) && !(silent && is_default(s->knobs, knob))) {
            put_row(s, &rows[k], value);
        }
    }
}

// What is left: knobs that only headroom has, or that a framework has no word for.
static void put_rest(export_state *s)
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    for (size_t k = 0; k < HR_KNOB_COUNT; k++) {
        char value[HR_KNOB_TEXT_MAX];
        if (!s->said[k] && !is_default(s->knobs, &rows[k])) {
            text_append(s->out, "# %s=%s: no counterpart\n", rows[k].key,
                        hr_knob_format(s->knobs, rows[k].id, value));
        }
    }
}

// ---- PyTorch's allocator --------------------------------------------------------------------------------------

// Knobs that PYTORCH_ALLOC_CONF says, beside what allocator.conf holds of it already.
static const struct {
    hr_knob_id id;
    const char *option;
} conf_options[] = {
    {HR_KNOB_ALLOCATOR_CONF, NULL},
    {HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS, "expandable_segments"},
    {HR_KNOB_ALLOCATOR_MAX_SPLIT, "max_split_size_mb"},
    {HR_KNOB_ALLOCATOR_MAX_NON_SPLIT_ROUNDING, "max_non_split_rounding_mb"},
    {HR_KNOB_ALLOCATOR_LARGE_SEGMENT, "large_segment_size_mb"},
    {HR_KNOB_ALLOCATOR_GC_THRESHOLD, "garbage_collection_threshold"},
    {HR_KNOB_ALLOCATOR_ROUNDUP, "roundup_power2_divisions"},
};

static void put_conf_option(const hr_knobs *knobs, const hr_knob_row *row, const char *option, text *conf)
{
    char value[HR_KNOB_TEXT_MAX];
    text_append(conf, "%s%s%s", conf->length > 0 ? "," : "", option == NULL ? "" : option,
                option == NULL ? "" : ":");
    if (row->type == HR_KNOB_BYTES) {
        text_append(conf, "%" PRIu64, hr_knob_bytes(knobs, row->id, 0) >> 20);
    } else {
        text_append(conf, "%s", hr_knob_is_switch(row) ? "True" : hr_knob_format(knobs, row->id, value));
    }
}

static void put_torch_allocator(export_state *s)
{
    text conf = {0};
    char value[HR_KNOB_TEXT_MAX];
    text_append(s->out, "# allocator.kind=caching");
    s->said[HR_KNOB_ALLOCATOR_KIND] = true;
    for (size_t k = 0; k < sizeof conf_options / sizeof *conf_options; k++) {
        const hr_knob_row *row = &hr_knob_rows(NULL)[conf_options[k].id];
        if (!is_default(s->knobs, row)) {
            text_append(s->out, " %s=%s", row->key, hr_knob_format(s->knobs, row->id, value));
            put_conf_option(s->knobs, row, conf_options[k].option, &conf);
            s->said[row->id] = true;
        }
    }
    text_append(s->out,
                conf.length > 0 ? "\nos.environ[\"PYTORCH_ALLOC_CONF\"] = \"%s\"\n" : ": PyTorch's own%s\n",
                conf.length > 0 ? conf.data : "");
    s->out->failed = s->out->failed || conf.failed;
    text_deinit(&conf);
}

// ---- the optimizer --------------------------------------------------------------------------------------------

// `keras_constants`: epsilon and decay are Keras' unless optimizer.form says torch.
static const struct {
    const char *kind, *name[FRAMEWORKS];
    bool has_forms;
} optimizers[] = {
    {"sgd", {"torch.optim.SGD", "keras.optimizers.SGD"}, false},
    {"momentum", {"torch.optim.SGD", "keras.optimizers.SGD"}, false},
    {"rmsprop", {"torch.optim.RMSprop", "keras.optimizers.RMSprop"}, false},
    {"adam", {"torch.optim.Adam", "keras.optimizers.Adam"}, true},
    {"adamw", {"torch.optim.AdamW", "keras.optimizers.AdamW"}, true},
    {"adafactor", {"torch.optim.Adafactor", NULL}, false},
    {"adafactor_keras", {NULL, "keras.optimizers.Adafactor"}, false},
    {"lion", {NULL, "keras.optimizers.Lion"}, false},
    {"adam8bit", {"bitsandbytes.optim.Adam8bit", NULL}, true},
};

static void put_constant(export_state *s, const char *name, hr_knob_id id, const char *otherwise)
{
    char value[HR_KNOB_TEXT_MAX];
    if (hr_knob_is_set(s->knobs, id)) {
        text_append(s->out, ", %s=%s", name, hr_knob_format(s->knobs, id, value));
    } else if (otherwise != NULL) {
        text_append(s->out, ", %s=%s", name, otherwise);
    }
}

static void put_betas(export_state *s)
{
    char one[HR_KNOB_TEXT_MAX], other[HR_KNOB_TEXT_MAX];
    const bool first = hr_knob_is_set(s->knobs, HR_KNOB_OPTIMIZER_BETA1),
               second = hr_knob_is_set(s->knobs, HR_KNOB_OPTIMIZER_BETA2);
    if (s->to == KERAS) {
        put_constant(s, "beta_1", HR_KNOB_OPTIMIZER_BETA1, NULL);
        put_constant(s, "beta_2", HR_KNOB_OPTIMIZER_BETA2, NULL);
    } else if (first || second) {
        text_append(s->out, ", betas=(%s, %s)",
                    first ? hr_knob_format(s->knobs, HR_KNOB_OPTIMIZER_BETA1, one) : "0.9",
                    second ? hr_knob_format(s->knobs, HR_KNOB_OPTIMIZER_BETA2, other) : "0.999");
    }
}

static void put_optimizer_call(export_state *s, const char *name, bool has_forms)
{
    char value[HR_KNOB_TEXT_MAX];
    const bool torch = s->to == PYTORCH,
               form_differs = has_forms && hr_knob_is(s->knobs, HR_KNOB_OPTIMIZER_FORM, "torch") != torch;
    const bool decays = strstr(name, "AdamW") != NULL;
    // As PyTorch holds it, its epsilon is PyTorch's too; the rate of decay stays the one that was asked for.
    const bool own = !form_differs || (torch && hr_knob_is(s->knobs, HR_KNOB_EXECUTION_AS, "pytorch"));
    text_append(s->out, "optimizer = %s(%s%s", name, torch ? "model.parameters(), lr=" : "learning_rate=",
                hr_knob_format(s->knobs, HR_KNOB_OPTIMIZER_LEARNING_RATE, value));
    if (hr_knob_is(s->knobs, HR_KNOB_OPTIMIZER_KIND, "momentum")) {
        text_append(s->out, ", momentum=%s", hr_knob_format(s->knobs, HR_KNOB_OPTIMIZER_MOMENTUM, value));
    }
    if (has_forms) {
        put_betas(s);
    }
    put_constant(s, torch ? "eps" : "epsilon", HR_KNOB_OPTIMIZER_EPSILON,
                 own     ? NULL
                 : torch ? "1e-7"
                         : "1e-8");
    put_constant(s, "weight_decay", HR_KNOB_OPTIMIZER_WEIGHT_DECAY,
                 !form_differs || !decays ? NULL
                 : torch                  ? "0.004"
                                          : "0.01");
    text_append(s->out, ")%s\n", !own ? "  # epsilon stands elsewhere in its formula" : "");
}

static void put_optimizer(export_state *s)
{
    static const hr_knob_id ids[] = {HR_KNOB_OPTIMIZER_KIND,         HR_KNOB_OPTIMIZER_LEARNING_RATE,
                                     HR_KNOB_OPTIMIZER_FORM,         HR_KNOB_OPTIMIZER_BETA1,
                                     HR_KNOB_OPTIMIZER_BETA2,        HR_KNOB_OPTIMIZER_EPSILON,
                                     HR_KNOB_OPTIMIZER_WEIGHT_DECAY, HR_KNOB_OPTIMIZER_MOMENTUM};
    const char *kind = hr_knob_text(s->knobs, HR_KNOB_OPTIMIZER_KIND);
    char value[HR_KNOB_TEXT_MAX];
    text_append(s->out, "#");
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
        if (k == 0 || !is_default(s->knobs, &hr_knob_rows(NULL)[ids[k]])) {
            text_append(s->out, " %s=%s", hr_knob_rows(NULL)[ids[k]].key,
                        hr_knob_format(s->knobs, ids[k], value));
        }
        s->said[ids[k]] = true;
    }
    text_append(s->out, "\n");
    for (size_t k = 0; k < sizeof optimizers / sizeof *optimizers; k++) {
        if (strcmp(optimizers[k].kind, kind) == 0 && optimizers[k].name[s->to] != NULL) {
            put_optimizer_call(s, optimizers[k].name[s->to], optimizers[k].has_forms);
        } else if (strcmp(optimizers[k].kind, kind) == 0) {
            text_append(s->out, "# %s has no %s of its own\n", s->to == PYTORCH ? "PyTorch" : "Keras", kind);
        }
    }
}

// ---- the whole ------------------------------------------------------------------------------------------------

static void put_framework(const hr_preset *preset, const hr_knobs *knobs, framework to, text *out)
{
    export_state s = {.knobs = knobs, .to = to, .out = out};
    char value[HR_KNOB_TEXT_MAX];
    const bool torch = to == PYTORCH;
    // What is written for a framework is its own anyway.
    s.said[HR_KNOB_EXECUTION_AS] = hr_knob_is(knobs, HR_KNOB_EXECUTION_AS, torch ? "pytorch" : "tensorflow");
    text_append(out,
                "# The configuration of %s in the words of %s; every comment names the knob it stands "
                "for.\nimport os\n\n",
                hr_preset_name(preset), torch ? "PyTorch" : "Keras on TensorFlow");
    if (torch && hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "caching")) {
        put_torch_allocator(&s);
    }
    put_section(&s, before_import, sizeof before_import / sizeof *before_import);
    text_append(out, torch ? "\nimport torch\n\n" : "\nimport keras\nimport tensorflow as tf\n\n");
    put_section(&s, before_model, sizeof before_model / sizeof *before_model);
    text_append(out, "\nmodel = ...  # %s\n", hr_preset_name(preset));
    put_optimizer(&s);
    put_section(&s, behind_optimizer, sizeof behind_optimizer / sizeof *behind_optimizer);
    text_append(out, "# batch.size=%s\nbatch_size = %s\n", hr_knob_format(knobs, HR_KNOB_BATCH_SIZE, value),
                value);
    s.said[HR_KNOB_BATCH_SIZE] = true;
    put_rest(&s);
}

void export_pytorch(const hr_preset *preset, const hr_knobs *knobs, const char *path, text *out)
{
    (void)path;
    put_framework(preset, knobs, PYTORCH, out);
}

void export_keras(const hr_preset *preset, const hr_knobs *knobs, const char *path, text *out)
{
    (void)path;
    put_framework(preset, knobs, KERAS, out);
}
