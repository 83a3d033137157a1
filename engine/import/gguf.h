// SPDX-License-Identifier: Apache-2.0
// The header of a GGUF file, versions 2 and 3, of either byte order: its metadata and what it says of each tensor. Facts of the
// format: docs/gguf.md of github.com/ggml-org/ggml, bytes of a block of each type: GGML_QUANT_SIZES of gguf-py in
// github.com/ggml-org/llama.cpp and ggml-common.h beside it, read in November 2026. At most 256 MiB of header are gone through, and little of it is in
// memory at a time: vocabularies are passed over.
#ifndef IMPORT_GGUF_H
#define IMPORT_GGUF_H

#include <jansson.h>

#include "tensors.h"

typedef struct gguf {
    tensors list;
    // The metadata: numbers, flags and short texts; a list of equal numbers as that number, another short one as a list, a
    // longer one as {"count": N}.
    json_t *keys;
    uint64_t vocabulary; // rows of token_embd.weight; 0: no such tensor
    bool has_output, has_query_bias, has_output_bias,
        has_inner_bias; // tensors of the head and of the first block
} gguf;

// Into *g, which starts zeroed and is the caller's to close, also after a failure. READ, PRESET, NOMEM. Any thread.
HR_MUST_CHECK hr_status gguf_read(const char *path, gguf *g, hr_err *err);
void gguf_close(gguf *g);

const char *gguf_word(const gguf *g, const char *key); // "" where there is none
// Of how many files it is one; 1: whole.
int64_t gguf_split_count(const gguf *g);
int64_t gguf_expert_count(const gguf *g); // 0: none
// What a config.json of Hugging Face would say of the network, but for its architecture: NULL with *g->list.err set (PRESET, the
// first key that is needed and missing; NOMEM). The caller's to decref.
json_t *gguf_config(const gguf *g, hr_status *status);

#endif
