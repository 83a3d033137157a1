// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Keras file: a .keras archive where they begin as a zip, else JSON. What must hold: it is refused with a sentence, or
// what it becomes is a preset without a problem and a model, or that is refused with a sentence; and nothing is leaked; the same
// with a request for host memory failing, chosen by the bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "fuzz/fuzz.h"
#include "knobs/preset_import.h"
#include "knobs/preset_model.h"
#include "model/model.h"

static char paths[2][64];
static const char *path;

static void must(bool holds, const char *what, const char *more)
{
    if (!holds) {
        fprintf(stderr, "fuzz: %s: %s\n", what, more);
        abort();
    }
}

static void put(const uint8_t *data, size_t size)
{
    static const char *const endings[] = {".json", ".keras"};
    const int archive = size >= 2 && data[0] == 'P' && data[1] == 'K';
    char *own = paths[archive];
    if (own[0] == '\0') {
        (void)snprintf(own, sizeof paths[0], "/tmp/headroom-fuzz-XXXXXX%s", endings[archive]);
        const int fd = mkstemps(own, (int)strlen(endings[archive]));
        must(fd >= 0, "no file", own);
        close(fd);
    }
    path = own;
    FILE *f = fopen(path, "w");
    must(f != NULL && fwrite(data, 1, size, f) == size && fclose(f) == 0, "no file", path);
}

static void read_model(const hr_preset *preset)
{
    hr_model *model = NULL;
    hr_err err = {0};
    const hr_status status = model_create(preset, hr_preset_knobs(preset), &model, NULL, &err);
    must(status == HR_OK || err.sentence[0] != '\0', "a model refused without a sentence", "");
    model_destroy(model);
}

static void import(bool reads)
{
    text model = {0}, knobs = {0};
    hr_preset *preset = NULL;
    hr_err err = {0};
    const hr_status status = preset_import(path, "a name", &model, &knobs, &err);
    must(status == HR_OK || err.sentence[0] != '\0', "refused without a sentence", "");
    if (status == HR_OK && reads) {
        text_append_bytes(&model, knobs.data, knobs.length);
        must(preset_open_text("keras", model.data, &preset, &err) == HR_OK, "what was written is no preset",
             err.sentence);
        read_model(preset);
    }
    hr_preset_close(preset);
    text_deinit(&model);
    text_deinit(&knobs);
}

static void remove_file(void)
{
    (void)unlink(paths[0]);
    (void)unlink(paths[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool known;
    if (!known) {
        known = atexit(remove_file) == 0;
    }
    const int64_t live = hr_host_mem_live();
    put(data, size);
    import(true);
    (void)hr_host_mem_fail_at(1 + (size > 0 ? data[size / 2] % 32 : 0));
    import(false);
    (void)hr_host_mem_fail_at(0);
    must(hr_host_mem_live() == live, "memory that nobody gave back", "");
    return 0;
}
