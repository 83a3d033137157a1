// SPDX-License-Identifier: Apache-2.0
// Any bytes as the header of a GGUF file, where they begin as one, else of safetensors with a config.json beside them and, of every
// other length, an index that lists the file. What is planned is read whole, and what is read has its network in the config.json.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/weights.h"

#include "fuzz/fuzz.h"

static const char config[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"vocab_size\": 64, \"hidden_size\": 32, "
    "\"intermediate_size\": 64, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2}";
static const char index_file[] =
    "{\"metadata\": {\"total_parameters\": 22688}, \"weight_map\": {\"a\": \"a.safetensors\"}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const bool gguf = size >= 4 && memcmp(data, "GGUF", 4) == 0;
    hr_weights weights;
    hr_err err = {0};
    if (gguf) {
        (void)fuzz_import("a.gguf", true, data, size);
        return 0;
    }
    fuzz_put("config.json", config, strlen(config));
    fuzz_put("model.safetensors.index.json", index_file, size % 2 == 0 ? strlen(index_file) : 0);
    const hr_status opened = fuzz_import("a.safetensors", true, data, size);
    if (hr_weights_read(fuzz_path("a.safetensors"), &weights, &err) != opened) {
        fprintf(stderr, "fuzz: a file is planned otherwise than it is read: %s\n", err.sentence);
        abort();
    }
    return 0;
}
