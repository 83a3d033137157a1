// SPDX-License-Identifier: Apache-2.0
// What the parts of the Keras reader share: the graph that a file says, the lines that its calls become, and the walk from
// one to the other. The layers, their names and what is left out are those of scripts/export/keras_to_headroom.py, which does the
// same with a live model; the plans are equal to the byte.
//
//   JSON ──keras_graph──▶ calls in Keras' order ──keras_walk, keras_rows──▶ lines ──keras_write──▶ model_text
#ifndef IMPORT_KERAS_H
#define IMPORT_KERAS_H

#include "base/intern.h"
#include "importer.h"

enum {
    KERAS_DIMS = 8,                 // of a tensor, without the batch
    KERAS_INPUTS = 6,               // of a line
    KERAS_LINES = 32768,            // of a model
    KERAS_DEPTH = 12,               // models within models
    KERAS_PARTS = 16 * KERAS_LINES, // of models within models, each counted whenever it is called
    KERAS_NAME_BYTES = 1024,
    KERAS_WINDOW_MAX = 65535,
};
#define KERAS_NONE UINT32_MAX

// The config.json in a .keras archive. DATA errors when it is no archive that has one; PRESET; NOMEM. keras_file.c
HR_MUST_CHECK hr_status keras_open(const char *path, config *out, hr_err *err);
// The layers and groups of m->c, whose root is an object {class_name, config}. PRESET, NOMEM.
HR_MUST_CHECK hr_status import_keras(importer *m, text *knobs);

// ---- the graph ------------------------------------------------------------------------------------------------

typedef struct keras_layer {
    const char *class_name, *name; // borrowed of the JSON
    const json_t *whole, *config;  // NULL: the input of a Sequential that names none
    uint32_t first_node, node_count;
} keras_layer;

typedef struct keras_ref { // the result of a call
    uint32_t node, output;
} keras_ref;

typedef struct keras_node { // one call of a layer
    uint32_t layer, first_ref, ref_count;
    const json_t *args, *kwargs; // NULL: none
} keras_node;

typedef struct keras_graph {
    VEC(keras_layer) layers;
    VEC(keras_node) nodes;
    VEC(keras_ref) refs;
    VEC(keras_ref) inputs;
    VEC(keras_ref) outputs;
    VEC(uint32_t) order; // calls as Keras goes through them; inputs are none
    uint64_t parts;      // layers, calls and their arguments that were gone through
    bool legacy;         // calls are lists, as Keras 2 writes them
} keras_graph;

// Of the object {class_name, config} of a Sequential or Functional model. PRESET errors name `path`; NOMEM.
HR_MUST_CHECK hr_status keras_graph_read(const char *path, const json_t *model, keras_graph *out,
                                         hr_err *err);
void keras_graph_deinit(keras_graph *g);
bool keras_is_model(const char *class_name);
// The calls in order, from the outputs; false: they go round in a circle, or *nomem. keras_order.c
HR_MUST_CHECK bool keras_graph_order(keras_graph *g, bool *nomem);

// ---- lines ----------------------------------------------------------------------------------------------------

typedef struct keras_shape {
    int64_t side[KERAS_DIMS];
    uint32_t rank;
} keras_shape;

typedef struct keras_line {
    const char *kind, *activation; // NULL: none
    uint32_t name, share;          // share: 1 + the line whose weights it has; 0: none
    uint32_t inputs[KERAS_INPUTS], input_count;
    keras_shape shape;
    uint64_t parameters;
    int64_t classes;           // of an input of ids, and of an embedding; 0: none
    char attrs[224];           // ", units: 10"
    uint32_t readers, instead; // instead: 1 + the line that took this activation
    bool alive, is_output;
    bool is_logits; // a loss reads it instead of its sigmoid
} keras_line;

typedef struct keras_problem {
    uint32_t text, count; // "Class\x1fwhy", by number; calls that have it
    const char *name;     // of the first
} keras_problem;

typedef enum keras_loss_kind {
    KERAS_LOSS_UNSAID,
    KERAS_LOSS_SOFTMAX,
    KERAS_LOSS_SQUARED,
    KERAS_LOSS_BINARY,
    KERAS_LOSS_FOCAL,
} keras_loss_kind;

// What was compiled. Binary losses have float labels of the outputs' shape, of logits unless a last sigmoid made them.
typedef struct keras_compiled {
    keras_loss_kind kind;
    bool of_logits;      // binary: said so
    double gamma, alpha; // of a focal one
} keras_compiled;

typedef struct keras_walk keras_walk;
// Writes the lines of a call, the result of keras_emit and so on; KERAS_NONE or a reason: refused.
typedef uint32_t (*keras_row)(keras_walk *w);

struct keras_walk {
    keras_row (*row_of)(const char *class_name, uint32_t *most_inputs); // keras_row_of
    const char *path;
    model_text *t;
    VEC(keras_line) lines;
    intern names, owners, reasons;
    VEC(uint32_t) name_counts, first_lines; // of names; of owners
    VEC(keras_problem) problems;
    const keras_graph *top;
    uint32_t work;   // layers that were looked at, those of a model that is called twice twice
    uint64_t parts;  // of the models within the model that were read
    uint32_t frozen; // layers
    int depth;
    bool nomem;
    keras_compiled loss;
    // The call at hand.
    const keras_layer *layer;
    const keras_node *node;
    const uint32_t *inputs;
    uint32_t input_count;
    char why[160]; // why it is refused; "": it is not
};

keras_row keras_row_of(const char *class_name, uint32_t *most_inputs); // keras_rows.c; NULL: none

void keras_walk_deinit(keras_walk *w);
// Lines for every input and call; outputs[k] is the line of each output. PRESET error with all that is refused.
HR_MUST_CHECK hr_status keras_walk_model(keras_walk *w, const keras_graph *g, uint32_t *outputs, hr_err *err);

// ---- for the rows ---------------------------------------------------------------------------------------------

uint32_t keras_refuse(keras_walk *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
const keras_line *keras_input(const keras_walk *w, uint32_t k);
// A line of `inputs[0..count)`, named as the layer with the suffix.
uint32_t keras_emit_of(keras_walk *w, const char *kind, const uint32_t *inputs, uint32_t count,
                       const keras_shape *shape, const char *suffix);
// The same of all that the call is given, without a suffix.
uint32_t keras_emit(keras_walk *w, const char *kind, const keras_shape *shape);
void keras_say(keras_walk *w, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void keras_say_pair(keras_walk *w, uint32_t line, const char *key, const int64_t pair[2], int64_t otherwise);
void keras_say_real(keras_walk *w, uint32_t line, const char *key, double value, double otherwise);
uint32_t keras_reshaped(keras_walk *w, uint32_t line, const keras_shape *shape, const char *suffix);
// The layer's weights: counted at its first call, shared by the others.
void keras_own(keras_walk *w, uint32_t line, uint64_t parameters);
// The line with Keras' word for an activation as its own.
uint32_t keras_activated(keras_walk *w, uint32_t line, const char *word);
const char *keras_activation_of(const char *word); // ours; NULL: none

// Values of the layer's config; one that does not do is a reason.
const json_t *keras_value(const keras_walk *w, const char *key); // NULL: missing or null
int64_t keras_int(keras_walk *w, const char *key, int64_t fallback, int64_t min, int64_t max);
double keras_real(keras_walk *w, const char *key, double fallback, double min, double max);
bool keras_flag(keras_walk *w, const char *key, bool fallback);
const char *keras_word(keras_walk *w, const char *key, const char *fallback);
void keras_pair(keras_walk *w, const char *key, int64_t fallback, int64_t min, int64_t out[2]);
// A note that one layer or a thousand give; no part of another.
void keras_note(keras_walk *w, const char *sentence);
// What a keyword of the call says.
bool keras_told(const keras_walk *w, const char *key);
const char *keras_function(const json_t *value, const char *fallback); // "relu", or an object that names it
bool keras_same_shape(const keras_shape *a, const keras_shape *b);
int64_t keras_product(const keras_shape *s);             // at most MODEL_TEXT_ELEMENTS
uint64_t keras_weights(const int64_t *sides, int count); // of one tensor, bounded too

// ---- the text -------------------------------------------------------------------------------------------------

// The last sigmoid is the binary loss's, activations go into the layers they follow, and what no output needs is left out;
// then the lines stand in w->t. An output may become another line.
void keras_write(keras_walk *w, uint32_t *outputs, uint32_t count);
// `compile_config`, the batch and the types as groups of a preset. keras_knobs.c
void keras_knobs(const json_t *model, const keras_graph *g, model_text *t, text *knobs);
// The compiled loss; UNSAID: there is none, or none of ours.
keras_compiled keras_loss(const json_t *model, model_text *t);

#endif
