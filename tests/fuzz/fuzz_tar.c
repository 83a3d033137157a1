// SPDX-License-Identifier: Apache-2.0
// Any bytes as a data set of images: headers of a tar and their extensions, names of classes, the pairs of a WebDataset; what is
// no tar goes through libarchive. With pipeline.bad=stop and skip.
#include "fuzz/fuzz_source.h"

static hr_status open_images(const char *path, const data_form *model, data_source **out, hr_err *err,
                             bool skips)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    fuzz_must(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_BAD, skips ? "skip" : "stop", NULL) == HR_OK,
              "no such choice");
    return source_images_open(&knobs, path, model, out, err);
}

static hr_status open_stopping(const char *path, const data_form *model, data_source **out, hr_err *err)
{
    return open_images(path, model, out, err, false);
}

static hr_status open_skipping(const char *path, const data_form *model, data_source **out, hr_err *err)
{
    return open_images(path, model, out, err, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const data_form images = {.count = 2,
                              .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {4, 4, 3}},
                                       {.type = DATA_IDS, .is_label = true, .classes = 10}}};
    fuzz_source(size % 2 == 0 ? open_stopping : open_skipping, &images, data, size);
    return 0;
}
