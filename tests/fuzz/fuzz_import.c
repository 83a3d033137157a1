// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "fuzz/fuzz.h"
#include "knobs/preset_import.h"
#include "model/model.h"

// One of so many first requests for host memory fails; a model of thousands of layers takes as long as they need, and says
// nothing new.
enum { FILES = 4, FAULTS_AMONG = 32, LAYERS_SHORT = 24, PATH_BYTES = 96 };

static char folder[32], paths[FILES][PATH_BYTES];

static void must(bool holds, const char *what, const char *more)
{
    if (!holds) {
        fprintf(stderr, "fuzz: %s: %s\n", what, more);
        abort();
    }
}

static void remove_files(void)
{
    for (int k = 0; k < FILES && paths[k][0] != '\0'; k++) {
        (void)unlink(paths[k]);
    }
    (void)rmdir(folder);
}

const char *fuzz_path(const char *leaf)
{
    int k = 0;
    while (k < FILES && paths[k][0] != '\0') {
        if (strcmp(strrchr(paths[k], '/') + 1, leaf) == 0) {
            return paths[k];
        }
        k++;
    }
    must(k < FILES, "no place for a file", leaf);
    if (k == 0) {
        (void)snprintf(folder, sizeof folder, "/tmp/headroom-fuzz-XXXXXX");
        must(mkdtemp(folder) != NULL && atexit(remove_files) == 0, "no folder", folder);
    }
    (void)snprintf(paths[k], PATH_BYTES, "%s/%.40s", folder, leaf);
    return paths[k];
}

void fuzz_put(const char *leaf, const void *data, size_t size)
{
    const char *path = fuzz_path(leaf);
    FILE *f = fopen(path, "w");
    must(f != NULL && fwrite(data, 1, size, f) == size && fclose(f) == 0, "no file", path);
}

static bool is_short(const char *words)
{
    const char *depth = strstr(words, "depth: ");
    return depth == NULL || strtol(depth + strlen("depth: "), NULL, 10) <= LAYERS_SHORT;
}

static void read_model(const char *words, bool needs_model)
{
    hr_preset *preset = NULL;
    hr_model *model = NULL;
    hr_err err = {0};
    hr_status status = hr_preset_open_text("imported", words, false, &preset, &err);
    must(status == HR_OK, "what was written is no preset", err.sentence);
    if (is_short(words)) {
        status = model_create(preset, hr_preset_knobs(preset), &model, NULL, &err);
        must(status == HR_OK || !needs_model, "what was written is no model", err.sentence);
        must(status == HR_OK || err.sentence[0] != '\0', "a model refused without a sentence", "");
    }
    model_destroy(model);
    hr_preset_close(preset);
}

static hr_status import(const char *path, bool reads, bool needs_model, bool lets_pass)
{
    text model = {0}, knobs = {0};
    hr_err err = {0};
    const hr_status status = preset_import(path, "a name", lets_pass, &model, &knobs, &err);
    must(status == HR_OK || err.sentence[0] != '\0', "refused without a sentence", "");
    if (status == HR_OK && reads) {
        text_append_bytes(&model, knobs.data, knobs.length);
        must(!model.failed, "no memory", path);
        read_model(model.data, needs_model);
    }
    text_deinit(&model);
    text_deinit(&knobs);
    return status;
}

hr_status fuzz_import(const char *leaf, bool needs_model, const uint8_t *data, size_t size)
{
    const int64_t live = hr_host_mem_live();
    fuzz_put(leaf, data, size);
    const hr_status status = import(fuzz_path(leaf), true, needs_model, false);
    if (status != HR_OK) {
        (void)import(fuzz_path(leaf), true, false, true); // opaque layers, whose shapes are a stranger's
    }
    (void)hr_host_mem_fail_at(1 + (size > 0 ? data[size / 2] % FAULTS_AMONG : 0));
    (void)import(fuzz_path(leaf), false, needs_model, true);
    (void)hr_host_mem_fail_at(0);
    must(hr_host_mem_live() == live, "memory that nobody gave back", "");
    return status;
}
