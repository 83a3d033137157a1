// SPDX-License-Identifier: Apache-2.0
#include "importer.h"

#include <inttypes.h>
#include <string.h>

const char *import_activation(importer *m, const char *key, const char *fallback)
{
    static const char *const rows[][2] = {
        {"silu", "silu"},
        {"swish", "silu"},
        {"gelu", "gelu"},
        {"gelu_new", "gelu_tanh"},
        {"gelu_pytorch_tanh", "gelu_tanh"},
        {"gelu_fast", "gelu_tanh"},
        {"gelu_python", "gelu"},
        {"relu", "relu"},
        {"relu6", "relu6"},
        {"tanh", "tanh"},
        {"sigmoid", "sigmoid"},
    };
    static const char *const composed[] = {"gelu_new", "gelu_fast", "gelu_python"};
    const char *word = config_word(&m->c, key, fallback);
    for (size_t k = 0; k < sizeof composed / sizeof *composed; k++) {
        if (strcmp(composed[k], word) == 0) {
            model_note(
                &m->t,
                "%s is planned as one operation: the library's own is made of several, for which PyTorch "
                "keeps three more tensors of its size.",
                word);
        }
    }
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(rows[k][0], word) == 0) {
            return rows[k][1];
        }
    }
    config_refuse_value(
        &m->c, key,
        "needs an activation of the layer language: silu, gelu, gelu_new, gelu_pytorch_tanh, relu, "
        "relu6, tanh or sigmoid");
    return "relu";
}

int64_t import_labels(importer *m)
{
    const json_t *names = config_find(&m->c, "id2label");
    const int64_t counted = config_count(&m->c, "num_labels", 2, 1, MODEL_TEXT_COUNT);
    const int64_t named = json_is_object(names) ? (int64_t)json_object_size(names) : counted;
    return named < 1 ? 1 : named;
}

void import_token_lines(importer *m, int64_t depth, int64_t vocabulary)
{
    model_line(&m->t, "sizes: {sequence: %" PRId64 ", depth: %" PRId64 "}", m->sequence, depth);
    model_line(&m->t, "input: {type: int32, classes: %" PRId64 ", shape: [$sequence]}", vocabulary);
    model_line(&m->t, "classes: %" PRId64, vocabulary);
    model_line(&m->t, "loss: softmax_cross_entropy");
}

void import_say_length(importer *m, int64_t positions)
{
    if (positions > m->sequence) {
        model_note(&m->t, "The model takes %" PRId64 " tokens: model.sequence begins at %" PRId64 ".",
                   positions, m->sequence);
    }
}

void import_dropout(importer *m, const char *name, double rate)
{
    char word[CONFIG_REAL_TEXT];
    if (rate > 0) {
        model_layer(&m->t, "name: %s, kind: dropout, rate: %s", name, config_real_text(rate, word));
    }
}
