// SPDX-License-Identifier: Apache-2.0
// A data set: samples in a training and a held-out set, readable in any order.
//
// A sample comes in two steps, because what lies between them may be kept: `fetch` gives its bytes as its file has them,
// `decode` or `write` turns those into values. A source is read by several threads at once, so reading changes nothing
// in it: the caller brings the memory. Plain files are read sample by sample when asked, and none of their bytes is
// held or counted; archives and .gz files are held whole.
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"
#include "headroom/status.h"

#include "data/pipeline.h"
#include "data/slot.h"
#include "knobs/class_filter.h"

typedef enum data_set { DATA_TRAIN, DATA_EVAL, DATA_SET_COUNT } data_set;

typedef struct data_shape {
    uint32_t height, width, channels, classes;
} data_shape;

// One sample as its file has it.
typedef struct data_raw {
    const uint8_t *bytes; // in the source or in the caller's room
    uint64_t size_bytes;
    int32_t label; // 0..classes-1, of images
    data_set set;  // whose it is, for sentences: set by the map
    uint32_t sample;
} data_raw;

typedef struct data_source data_source;

// One of decode and write is there: decode for images with one class each, write for all else.
typedef struct data_source_ops {
    // Looks at labels when it was opened, so that a bad one is found before the first step; NULL: there is nothing to look at. Not
    // asked for with pipeline.bad=skip, and fetch looks again.
    hr_status (*check)(const data_source *s, hr_err *err);
    // Takes what it holds, on `threads` threads, before the first sample is asked for; NULL: nothing. A source that is only to
    // describe itself is not loaded.
    hr_status (*load)(data_source *s, uint32_t threads, hr_err *err);
    // room has s->room_bytes. DATA errors name file and offset.
    hr_status (*fetch)(const data_source *s, data_set set, uint32_t index, uint8_t *room, data_raw *out,
                       hr_err *err);
    // The image as height × width × channels bytes, pixel by pixel; scratch has s->scratch_bytes.
    hr_status (*decode)(const data_source *s, const data_raw *raw, uint8_t *scratch, uint8_t *image,
                        hr_err *err);
    // The sample's values into to->slot, as s->form says; scratch has s->scratch_bytes.
    hr_status (*write)(const data_source *s, const data_raw *raw, uint8_t *scratch, const data_room *to,
                       hr_err *err);
    // The class of a sample without the sample; NULL: it is known only with it.
    hr_status (*label)(const data_source *s, data_set set, uint32_t index, int32_t *out, hr_err *err);
    // Of a source of several files (s->parts): the number of the first training sample of file `part`; of part == parts how many
    // there are.
    uint64_t (*part_begin)(const data_source *s, uint32_t part);
    // Bytes of a sample as fetch gives it; NULL: s->raw_bytes each.
    uint64_t (*size)(const data_source *s, data_set set, uint32_t index);
    void (*close)(data_source *s);
} data_source_ops;

// What a sample costs a thread: its bytes as its file has them, lying in memory or in the page cache, and its values in a batch.
// All 0: not known. Measured with tests/bench/bench_pipeline on one thread of an Intel Xeon with AMX; another processor
// takes another time.
typedef struct data_cost {
    double fetch_ns, fetch_byte_ns;
    double make_byte_ns, make_value_ns; // by the byte of what was fetched, and by the value
} data_cost;

struct data_source {
    const data_source_ops *ops;
    data_form form;         // the model's
    pipeline_info info;     // sample counts are 1..UINT32_MAX
    uint64_t held_bytes;    // host memory that it keeps: of the data itself, of its index
    uint64_t opening_bytes; // beside them, while it is loaded
    uint32_t raw_bytes;     // of the largest sample, as fetch gives it
    uint32_t room_bytes;    // what fetch wants
    uint32_t scratch_bytes; // what decode or write wants
    uint32_t parts;         // files that training samples come from, in their order; 0: it tells of none
    bool is_endless;        // samples are drawn, not read: a set has as many as are wanted
    bool skips_bad;         // pipeline.bad=skip
    uint64_t left_out;      // with it: names and folders that were passed over when it was opened
    data_cost cost;
};

// Opens what pipeline.source and pipeline.path name, and checks that it is what this model can be trained on.
// Thread-safe.
HR_MUST_CHECK hr_status data_source_open(const hr_knobs *knobs, const data_form *model, data_source **out,
                                         hr_err *err);
// NULL is fine.
void data_source_close(data_source *s);

// Whether that knob says which data there is, and how a source has it: the others are of the stages behind it.
bool data_source_depends_on(hr_knob_id id);

// Of pipeline.array the bytes of a value, 0: there is none; and whether it is stacked from a list.
uint32_t data_source_array_bytes(const hr_knobs *knobs);
bool data_source_is_stacked(const hr_knobs *knobs);

// index < the set's samples; room has s->room_bytes. DATA errors name file and offset.
HR_MUST_CHECK hr_status data_source_fetch(const data_source *s, data_set set, uint32_t index, uint8_t *room,
                                          data_raw *out, hr_err *err);
uint64_t data_source_samples(const data_source *s, data_set set);
// Fetches the first `count` samples of each set: what is wrong with all of them is said before the first step. NOMEM, and what
// its ops' fetch says.
HR_MUST_CHECK hr_status data_source_check_first(const data_source *s, uint32_t count, hr_err *err);
// Bytes that fetch gives of this sample, and of all of a set; UINT64_MAX where that does not hold them.
uint64_t data_source_size(const data_source *s, data_set set, uint32_t index);
uint64_t data_source_set_bytes(const data_source *s, data_set set);

// Where the training samples of file `part` begin, and, of part == s->parts, where they end: within pipeline.samples.
uint64_t data_source_part_begin(const data_source *s, uint32_t part);

// The images' shape when the model takes one image and one class, as floats and an id; false otherwise. A
// model that takes the pixels flat has height = width = 1.
bool data_form_is_image(const data_form *model, data_shape *shape);

// Whether there is what batches of this form are made of: bytes for the device to normalise are those of images alone.
HR_MUST_CHECK hr_status data_source_check_form(const data_source *s, const data_form *batches, hr_err *err);

// height × width × channels
uint32_t data_source_values(const data_source *s);

// "KIND (last part of path)", safe to print.
void data_source_label(char label[64], const char *kind, const char *path);

// The kinds of source (the table in source.c). `path` is a folder or a file, as the kind says. The form of what was
// opened is set by data_source_open, which also holds images against the model; all else is held against it here.
typedef hr_status source_open(const char *path, const data_form *model, data_source **out, hr_err *err);

HR_MUST_CHECK source_open source_cifar_open;                       // a folder or an archive
HR_MUST_CHECK source_open source_mnist_open;                       // a folder
bool source_mnist_is_at(const char *path, const data_form *model); // some of its files, at least
HR_MUST_CHECK source_open source_tokens_open;                      // a folder or a .bin
bool source_tokens_is_at(const char *path, const data_form *model);
HR_MUST_CHECK source_open source_text_open; // a folder of .txt, or any file
bool source_text_is_at(const char *path, const data_form *model);
HR_MUST_CHECK source_open source_csv_open; // a folder or a .csv
bool source_csv_is_at(const char *path, const data_form *model);
HR_MUST_CHECK source_open source_npy_open; // a folder or an .npz
bool source_npy_is_at(const char *path, const data_form *model);
// Images of any size; pipeline.resize says how they become the model's.
HR_MUST_CHECK hr_status source_images_open(const hr_knobs *knobs, const char *path, const data_form *model,
                                           data_source **out, hr_err *err);
bool source_images_is_at(const char *path, const data_form *model);
HR_MUST_CHECK hr_status source_tfrecord_open(const hr_knobs *knobs, const char *path, const data_form *model,
                                             data_source **out, hr_err *err);
bool source_tfrecord_is_at(const char *path, const data_form *model);
HR_MUST_CHECK hr_status source_generated_open(const data_shape *model, data_source **out, hr_err *err);
// For every other form: what the slots hold depends on a class that is drawn for the sample.
HR_MUST_CHECK hr_status source_synthetic_open(const data_form *model, data_source **out, hr_err *err);

// The training set as one array in memory, of 1 (bytes), 4 or 8 (floats) bytes a value of images; what is no image is held as
// the model's slots take it. On success it owns `inner`.
// What it would say of itself: of `inner` nothing but its own description is used.
HR_MUST_CHECK hr_status source_array_describe(const data_source *inner, uint32_t value_bytes, bool as_list,
                                              data_source *out, hr_err *err);
HR_MUST_CHECK hr_status source_array_open(data_source *inner, uint32_t value_bytes, bool as_list,
                                          data_source **out, hr_err *err);

// Of images the samples of some classes, of both sets (source_filter.c). On success it owns `inner`.
HR_MUST_CHECK hr_status source_filter_open(data_source *inner, const class_filter *wanted, data_source **out,
                                           hr_err *err);

#endif
