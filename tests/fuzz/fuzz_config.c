// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Hugging Face config.json. What must hold: it is refused with a sentence, or what it becomes is a preset
// without a problem and a model without one, and nothing is leaked; the same with a request for host memory failing, chosen
// by the bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "fuzz/fuzz.h"
#include "knobs/preset_import.h"
#include "knobs/preset_model.h"
#include "model/model.h"

// A model of thousands of layers takes as long as they need, and says nothing new.
enum { LAYERS_SHORT = 24 };

static void must(bool holds, const char *what, const char *more)
{
    if (!holds) {
        fprintf(stderr, "fuzz: %s: %s\n", what, more);
        abort();
    }
}

static bool is_short(const char *words)
{
    const char *depth = strstr(words, "depth: ");
    return depth == NULL || strtol(depth + strlen("depth: "), NULL, 10) <= LAYERS_SHORT;
}

static void read_model(const char *words)
{
    hr_preset *preset = NULL;
    hr_model *model = NULL;
    hr_err err = {0};
    hr_status status = preset_open_text("config", words, &preset, &err);
    must(status == HR_OK, "what was written is no preset", err.sentence);
    if (is_short(words)) {
        status = model_create(preset, hr_preset_knobs(preset), &model, NULL, &err);
        must(status == HR_OK, "what was written is no model", err.sentence);
    }
    model_destroy(model);
    hr_preset_close(preset);
}

static hr_status import(const char *path, bool reads)
{
    text model = {0}, knobs = {0};
    hr_err err = {0};
    const hr_status status = preset_import(path, "a name", &model, &knobs, &err);
    must(status == HR_OK || err.sentence[0] != '\0', "refused without a sentence", "");
    if (status == HR_OK && reads) {
        text_append_bytes(&model, knobs.data, knobs.length);
        read_model(model.data);
    }
    text_deinit(&model);
    text_deinit(&knobs);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    if (memmem(data, size, "class_name", strlen("class_name")) != NULL) {
        return 0; // of Keras: fuzz_keras.c
    }
    const int64_t live = hr_host_mem_live();
    const int fd = memfd_create("config.json", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file in memory", "");
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)import(path, true);
    (void)hr_host_mem_fail_at(1 + (size > 0 ? data[size / 2] % 8 : 0));
    (void)import(path, false);
    (void)hr_host_mem_fail_at(0);
    must(hr_host_mem_live() == live, "memory that nobody gave back", "");
    close(fd);
    return 0;
}
