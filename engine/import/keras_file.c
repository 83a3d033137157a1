// SPDX-License-Identifier: Apache-2.0
// A .keras archive: a zip with config.json before its weights, which are passed over.
#include <inttypes.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/reader.h"
#include "keras.h"

enum { MEMBERS_MAX = 1024 };

// The bytes of config.json; *data stays NULL where there is none.
static hr_status take_config(reader *r, const char *path, char **data, uint64_t *bytes, hr_err *err)
{
    for (int k = 0; k < MEMBERS_MAX && *data == NULL; k++) {
        const char *leaf = NULL;
        HR_TRY(reader_next_path(r, &leaf, bytes, err));
        if (leaf == NULL) {
            return HR_OK;
        }
        if (strcmp(leaf, "config.json") != 0) {
            continue;
        }
        if (*bytes > CONFIG_MAX_BYTES) {
            return HR_FAIL(err, DATA, "%.200s: needed a config.json of at most %d bytes, had %" PRIu64, path,
                           CONFIG_MAX_BYTES, *bytes);
        }
        *data = hr_calloc(*bytes + 1, 1);
        return *data == NULL ? HR_FAIL(err, NOMEM, "%.200s: no memory to read it", path)
                             : reader_take(r, *data, *bytes, err);
    }
    return HR_OK;
}

hr_status keras_open(const char *path, config *out, hr_err *err)
{
    reader *r = NULL;
    char *data = NULL;
    uint64_t bytes = 0;
    *out = (config){.path = path, .err = err};
    hr_status status = reader_open(path, READER_ARCHIVE, &r, err);
    status = status == HR_OK ? take_config(r, path, &data, &bytes, err) : status;
    reader_close(r);
    if (status == HR_OK && data == NULL) {
        status = HR_FAIL(err, DATA,
                         "%.200s: needed a .keras archive, which has a config.json, had none in it", path);
    }
    status = status == HR_OK ? config_open_bytes(path, data, (size_t)bytes, out, err) : status;
    if (status == HR_DATA) {
        hr_err_try(err, "unzip -l '%.200s'; model.save('model.keras') of Keras 3 writes one", path);
    }
    hr_free(data);
    return status;
}
