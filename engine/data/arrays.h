// SPDX-License-Identifier: Apache-2.0
// Arrays by name: NAME.npy in a folder, or in an .npz (a zip of such). Plain files and stored members are read in place,
// piece by piece; packed members are held.
#ifndef DATA_ARRAYS_H
#define DATA_ARRAYS_H

#include <stdbool.h>

#include "data/blob.h"
#include "data/npy.h"
#include "data/zip.h"

typedef struct array {
    npy npy;
    blob file;
    uint64_t offset; // in the file, where the values begin
} array;

typedef struct array_store {
    const char *path; // borrowed
    bool is_packed;   // an .npz, whose directory is held until arrays_close
    zip zip;
} array_store;

// arrays_close also after an error.
HR_MUST_CHECK hr_status arrays_open(const char *path, array_store *store, hr_err *err);
void arrays_close(array_store *store);

// Opens the array of that name: it has exactly the bytes its header says. When there is none, a->file stays closed. *held_bytes as in
// blob_hold. DATA errors name file and offset. The caller closes a->file, also after an error.
HR_MUST_CHECK hr_status arrays_take(const array_store *store, const char *name, uint64_t *held_bytes,
                                    array *a, hr_err *err);

#endif
