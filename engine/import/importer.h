// SPDX-License-Identifier: Apache-2.0
// What the families of architectures share while one config.json is turned into a preset.
#ifndef IMPORT_IMPORTER_H
#define IMPORT_IMPORTER_H

#include "config.h"
#include "model_text.h"
#include "tensors.h"

enum { IMPORT_SEQUENCE = 4096 }; // tokens of a sample, where the model takes so many

typedef struct importer {
    config c;
    model_text t;
    const char *architecture; // "LlamaForCausalLM"
    const char *file;         // what the file is called: "Keras file"
    int64_t sequence;         // tokens of a sample; 0: images
    const char *knobs;        // `batch` and `optimizer` as the shipped presets of the family have them
    // What the parameters are held against: the tensors of the file itself, or a file of weights that was named beside the
    // config.json. NULL: what lies there.
    const tensors *weights;
    const tensors *weights_named;
} importer;

// Writes the model of m->architecture. What it cannot express it refuses (config_refuse) or says (model_note).
typedef void (*import_family)(importer *m);
void import_decoder(importer *m); // decoder.c: the families around Llama
void import_gpt2(importer *m);    // gpt2.c
void import_opt(importer *m);     // opt.c
void import_encoder(importer *m); // encoder.c: the families around BERT
void import_t5(importer *m);      // t5.c
void import_vit(importer *m);     // vision.c
void import_resnet(importer *m);  // resnet.c

// Our word for an activation of the library; "" with a refusal where there is none.
const char *import_activation(importer *m, const char *key, const char *fallback);
// As many as `id2label` has, or `num_labels`; the library's 2.
int64_t import_labels(importer *m);
// The lines `sizes:`, `input:` of ids, `classes:` and `loss:` of a model of `depth` blocks that predicts one of `vocabulary` ids
// at each place.
void import_token_lines(importer *m, int64_t depth, int64_t vocabulary);
// Says that a sample has fewer tokens than the model takes.
void import_say_length(importer *m, int64_t positions);
// A dropout layer where the rate is not 0.
void import_dropout(importer *m, const char *name, double rate);

#define IMPORT_RATE_MAX 0.999

#endif
