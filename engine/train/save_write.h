// SPDX-License-Identifier: Apache-2.0
// How a save is written: safetensors of the tensors of a store, with metadata that is checked by a sum (save.c has the drawing).
// Engine's thread.
#ifndef TRAIN_SAVE_WRITE_H
#define TRAIN_SAVE_WRITE_H

#include <jansson.h>

#include "headroom/deploy.h"
#include "headroom/engine.h"

#include "base/file.h"
#include "base/text.h"
#include "train/store.h"

#define SAVE_SCHEMA       "headroom.save/2"
#define SAVE_CHECKSUM_KEY "checksum"
#define SAVE_PRUNED_KEY   "pruned_from" // updates that were done when pruning began; 0 where it is missing
#define SAVE_PRUNES_KEY   "pruned_by"   // the knobs of it, as they are typed; none of a save without
#define SAVE_STRIPPED_KEY "stripped"    // of a deployed one: without slots
// The knobs that made the model another one than its file says, as they are typed; it has none without them.
#define SAVE_SHAPED_KEY   "shaped_by"
#define SAVE_QUANTIZE_KEY "quantize"  // hr_quantize_name of one with whole numbers
#define SAVE_ADAPTERS_KEY "adapters"  // of one that has no weights but adapters: "1" (train/adapted.h)
#define SAVE_CATEGORY_KEY "category:" // begins the keys of what slot or state a tensor is

// What a save is beside what the engine says of itself.
typedef struct save_kind {
    hr_quantize mode;
    bool stripped;
    const json_t *more; // keys of its own; borrowed, NULL: none
} save_kind;

// Of these tensors of the engine's: counters, seed, what shaped the model, and last the checksum of all. NULL: no host memory.
json_t *save_make_metadata(const hr_engine *e, const store *s, const save_kind *kind);

// Of the names and bytes of tensors and of all other metadata (NULL: not of that), in any order; 63 bits, so that it is a
// count like the others.
uint64_t save_checksum(const store *s, const json_t *metadata);
bool save_type(const char *word, hr_dtype *dtype); // "BF16"; false: none of ours, or NULL

// The length of the header in its first bytes and the header, blanks appended so that the tensors begin at a multiple of 8.
HR_MUST_CHECK hr_status save_make_header(const json_t *metadata, const store *s, text *out, hr_err *err);
// All of a save but its name: the caller commits or abandons *out. WRITE errors.
HR_MUST_CHECK hr_status save_begin(const char *path, const text *header, const store *s, file_writer **out,
                                   hr_err *err);
// WRITE errors; whole or not at all.
HR_MUST_CHECK hr_status save_write(const char *path, const text *header, const store *s, hr_err *err);
// A file that stands there already must be a save of ours. WRITE error, with nothing to try. Opening does not wait: it may be a pipe.
HR_MUST_CHECK hr_status save_check_replaceable(const char *path, hr_err *err);
// Of those, one that was deployed: a training's is refused, too. SAVE error where it is damaged.
HR_MUST_CHECK hr_status save_check_deployed(const char *path, hr_err *err);

// save_open (save_header.h) of a save of whatever model.
HR_MUST_CHECK hr_status save_open_any(const char *path, int *fd, json_t **root, hr_err *err);

#endif
