// SPDX-License-Identifier: Apache-2.0
// A model while it is read: what its parts know of each other. Private to the read_*.c files.
//
//   read.c         the mapping itself, in this order:
//   read_inputs.c  inputs become slots and values
//   read_layers.c  layers, one after the other; repeat blocks
//   read_attrs.c   what a layer's mapping says beside name, kind and inputs
//   read_losses.c  labels become slots and values, losses become nodes
//   reader.c       names: what an input, a label or a layer is called, and what a reference means
#ifndef MODEL_READER_H
#define MODEL_READER_H

#include "model/layer_kind.h"
#include "model/names.h"

// A round of a repeat block in progress.
typedef struct repeat_round {
    const struct repeat_round *outer;
    const char *index;    // its name, NULL when it has none
    int64_t number;       // of this round, from 0
    uint32_t first_layer; // of this round
} repeat_round;

typedef struct layer_note {
    uint32_t line, column; // where the layer stands
    bool used;             // some later layer or a loss reads it
    param_span params;     // that it uses, its own or another's
    model_width width;     // that its readers may have a problem for
} layer_note;

// What `defaults:` says of one kind.
typedef struct layer_defaults {
    attr_value value[ATTR_ID_COUNT];
    uint32_t written; // bit k: that at place k of the kind's list
    bool broken;      // something is wrong with them: layers of the kind are checked, not expanded
} layer_defaults;

typedef struct model_reader {
    model_builder *b;
    name_table names;         // of inputs (NAME_IS_SLOT + slot) and of the layers so far
    VEC(layer_note) notes;    // one for each layer
    layer_defaults *defaults; // [LAYER_KIND_COUNT]
    const yaml_node *layers;  // the whole list
    const repeat_round *round;
    uint32_t unnamed[LAYER_KIND_COUNT];          // per kind, for Keras-style names
    const yaml_node *slot_node[MODEL_MAX_SLOTS]; // of the inputs
    bool slot_used[MODEL_MAX_SLOTS];
    bool unresolved; // some input names no layer: which layers feed nothing cannot be told
    bool cut;        // layers were left out after a problem: a name that is missing is no further problem
} model_reader;

#define NAME_IS_SLOT UINT32_C(0x80000000)

// What layers, inputs and models may be called: 1 to MODEL_NAME_MAX of these characters.
bool model_is_name(const char *word); // false for NULL
#define MODEL_NAME_RULE "a name has 1 to 64 letters, digits, '_', '-' or '.', and nothing else"
// A copy that lives as long as the model; NULL (b->nomem) when memory is short.
const char *model_keep_name(model_builder *b, const char *name);

enum { READER_WORD_MAX = 256 };
// The scalar's text with every {i}, {i+1}, {i-1} replaced under the rounds in progress; NULL when it is no scalar,
// too long, or names an index that is none (then said).
const char *reader_word(model_reader *r, const yaml_node *node, char out[READER_WORD_MAX]);

// The value of an input or layer that the reference names, HR_NO_ID (and b->broken) when there is none: then said,
// unless the layer is broken itself.
uint32_t reader_use(model_reader *r, const yaml_node *reference);
uint32_t reader_use_previous(model_reader *r); // the layer above, or the first input
// The layer that the reference names, HR_NO_ID with a problem said.
uint32_t reader_layer(model_reader *r, const yaml_node *reference);

// The keys of `mapping` that are none of `words`; reported in order.
void reader_refuse_other_keys(model_builder *b, const yaml_node *mapping, const char *what,
                              const char *const *words, size_t count);

void read_inputs(model_reader *r, const yaml_node *root);
void read_defaults(model_reader *r, const yaml_node *defaults);
void read_layers(model_reader *r);
void read_attrs(model_reader *r, layer_kind_id kind, const yaml_node *node, layer_spec *spec);
bool read_is_common_key(const char *key);

// The `labels`, `classes` and `losses` (or `loss`) of the model.
typedef struct label_spec {
    const yaml_node *node; // NULL in the short form
    const char *name;
    hr_dtype dtype;
    bool typed;     // the type was written
    hr_shape shape; // of a sample; rank 0: from the prediction
    bool shaped;
    uint32_t classes;
} label_spec;

typedef struct loss_spec {
    const yaml_node *node; // the loss, or the model's mapping
    int64_t kind;
    const yaml_node *prediction; // NULL: the last layer
    uint32_t label;
    double weight, temperature, gamma, alpha;
} loss_spec;

typedef struct losses_spec {
    label_spec labels[MODEL_MAX_SLOTS];
    loss_spec losses[MODEL_MAX_LOSSES];
    uint32_t label_count, loss_count;
} losses_spec;

void read_losses(model_reader *r, const yaml_node *root,
                 losses_spec *out);                        // before the layers: what was written
void add_losses(model_reader *r, const losses_spec *spec); // behind them: what it means

#endif
