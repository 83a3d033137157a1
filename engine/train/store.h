// SPDX-License-Identifier: Apache-2.0
// Persistent tensors on the host: while a build is replaced, and on their way to and from a save file.
#ifndef TRAIN_STORE_H
#define TRAIN_STORE_H

#include <stdint.h>

#include "headroom/category.h"
#include "headroom/report.h"

#include "base/vec.h"
#include "model/names.h"
#include "train/build.h"

typedef struct stored_tensor {
    char *name; // owned
    hr_shape shape;
    hr_dtype dtype;
    hr_category category; // WEIGHTS, STATE or OPTIMIZER
    uint64_t bytes;
    void *data; // owned, plain layout
} stored_tensor;

// Zero-initialised is empty.
typedef struct store {
    VEC(stored_tensor) tensors;
    name_table places; // of the tensors, by their names
} store;

void store_deinit(store *s);
const stored_tensor *store_find(const store *s, const char *name); // NULL when absent
// Part k of weights that are held as whole numbers (train/held.h), in its type and shape; NULL when absent.
const stored_tensor *store_find_part(const store *s, const model_param *p, const held_parts *parts,
                                     uint32_t k);
bool store_has_parts(const store *s, const model_param *p); // all of them
// Appends a tensor of a new name with room for its bytes; NULL when memory is short.
stored_tensor *store_add(store *s, const char *name, const hr_shape *shape, hr_dtype dtype,
                         hr_category category);

// The same with the values of `from` in a real type that it converts to, or its own. NULL also where it does not convert.
stored_tensor *store_add_as(store *s, const char *name, const stored_tensor *from, hr_dtype dtype);
double store_value(const stored_tensor *t, uint64_t k); // its k-th number
// Its elements as float64.
void store_values(const stored_tensor *t, double *values);

// Adds the squares of the elements of `t`, which lies at `address`, to *sum. NOMEM and the device's errors.
HR_MUST_CHECK hr_status store_add_squares(const build *b, const tensor *t, uint64_t address, double *sum,
                                          hr_err *err);
// The elements of a persistent tensor that is kept become `values`, rounded to its type. STATE error where the build has none of that
// name that takes numbers, or it has not `count` elements.
HR_MUST_CHECK hr_status store_set_one(build *b, const char *name, const double *values, uint64_t count,
                                      hr_err *err);

uint64_t store_bytes(const build *b); // of what store_take copies
// Copies weights, state and optimizer slots out of a build, in canonical order; not those of a teacher.
HR_MUST_CHECK hr_status store_take(store *s, const build *b, hr_err *err);
// The same of one tensor; STATE error where the build has none of that name.
HR_MUST_CHECK hr_status store_take_one(store *s, const build *b, const char *name, hr_err *err);
// Fills the build's persistent tensors: from the store where name and shape agree (types are converted), else
// with the seeded initial values; optimizer slots that the store lacks are zero, averages the variables themselves. Those of a
// teacher in the same way from `teacher`, under the names that they have in its own save.
HR_MUST_CHECK hr_status store_fill(const store *s, const store *teacher, build *b, const hr_model *model,
                                   uint64_t seed, hr_err *err);
// Share of zeros among the weights that have a mask; NaN where none has.
double store_sparsity(const store *s);
// SHA-256 over the weights in canonical order, as they lie in memory.
void store_sha256(const store *s, char out[HR_SHA256_TEXT_MAX]);

#endif
