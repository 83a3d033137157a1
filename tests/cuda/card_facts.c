// SPDX-License-Identifier: Apache-2.0
// What a real card says of itself: the properties that cuDNN plans with, to stand in presets/cards, and what our context and
// libraries take before the first allocation. Written as JSON to a file, and in words to standard output.
//
// usage: card_facts FILE.json
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "graph_library.h"
#include "properties.h"

enum { SKIPPED = 77 };

static int say(const hr_err *err, int code)
{
    char text[2 * HR_ERR_TEXT_MAX];
    (void)hr_err_format(err, text, sizeof text);
    (void)fputs(text, stderr);
    return code;
}

static hr_status write_text(const char *path, const char *text, hr_err *err)
{
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return HR_FAIL(err, WRITE, "%s", path);
    }
    const bool written = fprintf(file, "%s\n", text) > 0;
    return fclose(file) == 0 && written ? HR_OK : HR_FAIL(err, WRITE, "%s", path);
}

// The text is kept as cuDNN gave it, also when it is not what we take properties to be.
static hr_status write_facts(void *context, const char *path, hr_err *err)
{
    cuda_properties properties;
    device_outside outside = {0};
    char isa[96], text[CUDA_PROPERTIES_MAX];
    device_cuda.isa(context, isa, sizeof isa);
    device_cuda.outside(context, &outside);
    (void)printf("%s\ncontext and libraries %" PRIu64 " B, process %" PRIu64 " B, others %" PRIu64 " B\n",
                 isa, outside.context_bytes, outside.process_bytes, outside.others_bytes);
    HR_TRY(graph_library_property_text(cuda_device_graphs(context), text, err));
    HR_TRY(write_text(path, text, err));
    return cuda_properties_parse(text, strlen(text), "cuDNN", &properties, err);
}

int main(int argc, char **argv)
{
    const device_options options = {0};
    void *context = NULL;
    hr_err err = {0};
    if (argc != 2) {
        (void)fputs("usage: card_facts FILE.json\n", stderr);
        return 2;
    }
    hr_status status = device_cuda.open(&options, &context, &err);
    if (status != HR_OK) {
        return say(&err, status == HR_DEPENDENCY ? SKIPPED : 1);
    }
    status = write_facts(context, argv[1], &err);
    device_cuda.close(context);
    return status == HR_OK ? 0 : say(&err, 1);
}
