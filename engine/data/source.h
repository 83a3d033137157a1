// SPDX-License-Identifier: Apache-2.0
// A data set: labelled images of one shape, a training and a held-out set, readable in any order.
//
// A source is read by the producer and by the evaluation at once, so reading changes nothing in it: the caller
// brings the memory (`scratch`). Plain files are read record by record when asked, and none of their bytes is
// held or counted; archives and .gz files are held whole.
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"
#include "headroom/status.h"

#include "data/pipeline.h"
#include "data/slot.h"

typedef enum data_set { DATA_TRAIN, DATA_EVAL, DATA_SET_COUNT } data_set;

typedef struct data_shape {
    uint32_t height, width, channels, classes;
} data_shape;

// One image as its file has it: `channels` planes of height × width bytes, row by row.
typedef struct data_record {
    const uint8_t *planes; // in the source or in the caller's scratch
    int32_t label;         // 0..classes-1
} data_record;

typedef struct data_source data_source;

// Images with one label fill `read`; whatever else there is fills `write`.
typedef struct data_source_ops {
    hr_status (*read)(const data_source *s, data_set set, uint32_t index, uint8_t *scratch, data_record *out,
                      hr_err *err);
    // Writes one sample into to->slot, as the form says.
    hr_status (*write)(const data_source *s, data_set set, uint32_t index, uint8_t *scratch,
                       const data_room *to, hr_err *err);
    void (*close)(data_source *s);
} data_source_ops;

struct data_source {
    const data_source_ops *ops;
    data_form form;         // the model's
    pipeline_info info;     // sample counts are 1..UINT32_MAX
    uint64_t held_bytes;    // host memory of the data itself
    uint32_t scratch_bytes; // what read wants
};

// Opens what pipeline.source and pipeline.path name, and checks that it is what this model can be trained on.
// Thread-safe.
HR_MUST_CHECK hr_status data_source_open(const hr_knobs *knobs, const data_form *model, data_source **out,
                                         hr_err *err);
// NULL is fine.
void data_source_close(data_source *s);

// index < the set's samples; scratch has s->scratch_bytes. DATA errors name file and offset.
HR_MUST_CHECK hr_status data_source_read(const data_source *s, data_set set, uint32_t index, uint8_t *scratch,
                                         data_record *out, hr_err *err);

// Writes one sample into the slots of the model.
HR_MUST_CHECK hr_status data_source_write(const data_source *s, data_set set, uint32_t index,
                                          uint8_t *scratch, const data_room *to, hr_err *err);

// The images' shape when the model takes one image and one class, as floats and an id; false otherwise. A
// model that takes the pixels flat has height = width = 1.
bool data_form_is_image(const data_form *model, data_shape *shape);

// height × width × channels
uint32_t data_source_values(const data_source *s);

// "KIND (last part of path)", safe to print.
void data_source_label(char label[64], const char *kind, const char *path);

// The kinds of source. `path` is a folder or, for CIFAR-10, an archive.
HR_MUST_CHECK hr_status source_cifar_open(const char *path, data_source **out, hr_err *err);
HR_MUST_CHECK hr_status source_mnist_open(const char *path, data_source **out, hr_err *err);
bool source_mnist_is_at(const char *path); // some of its files, at least
HR_MUST_CHECK hr_status source_generated_open(const data_shape *model, data_source **out, hr_err *err);
// For every other form: what the slots hold depends on a class that is drawn for the sample.
HR_MUST_CHECK hr_status source_synthetic_open(const data_form *model, data_source **out, hr_err *err);

#endif
