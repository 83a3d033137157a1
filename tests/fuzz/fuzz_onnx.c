// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX file. What must hold: it is refused with a sentence, or what it becomes is a preset without a problem,
// and nothing is leaked; the same with a request for host memory failing, chosen by the bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "fuzz/fuzz.h"
#include "knobs/preset_import.h"
#include "knobs/preset_model.h"

static char path[64];

static void must(bool holds, const char *what, const char *more)
{
    if (!holds) {
        fprintf(stderr, "fuzz: %s: %s\n", what, more);
        abort();
    }
}

static void put(const uint8_t *data, size_t size)
{
    if (path[0] == '\0') {
        (void)strcpy(path, "/tmp/headroom-fuzz-XXXXXX.onnx");
        const int fd = mkstemps(path, 5);
        must(fd >= 0, "no file", path);
        close(fd);
    }
    FILE *f = fopen(path, "w");
    must(f != NULL && fwrite(data, 1, size, f) == size && fclose(f) == 0, "no file", path);
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
        must(preset_open_text("onnx", model.data, &preset, &err) == HR_OK, "what was written is no preset",
             err.sentence);
    }
    hr_preset_close(preset);
    text_deinit(&model);
    text_deinit(&knobs);
}

static void remove_file(void)
{
    (void)unlink(path);
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
