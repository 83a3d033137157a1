// SPDX-License-Identifier: Apache-2.0
#include "properties.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "base/text.h"

// What tells two cards of one kind apart is no part of their hash.
typedef enum field_kind { FIELD_COUNT_OF, FIELD_FLAG, FIELD_TRIPLE, FIELD_NAME } field_kind;
typedef struct property_field {
    const char *key;
    field_kind kind;
    bool own; // of this one card
    int64_t low, high;
} property_field;

#define BYTES_HIGH ((int64_t)1 << 50)

// In the order in which cuDNN 9.19 writes them.
static const property_field fields[] = {
    {"maxGridSize", FIELD_TRIPLE, false, 1, INT32_MAX},
    {"maxBlockSize", FIELD_TRIPLE, false, 1, 65536},
    {"regsPerBlock", FIELD_COUNT_OF, false, 1, INT32_MAX},
    {"multiProcessorCount", FIELD_COUNT_OF, false, 1, 65536},
    {"warpSize", FIELD_COUNT_OF, false, 32, 32},
    {"maxSharedMemoryPerBlock", FIELD_COUNT_OF, false, 1, INT32_MAX},
    {"maxSharedMemoryPerBlockOptin", FIELD_COUNT_OF, false, 1, INT32_MAX},
    {"reservedSharedMemoryPerBlock", FIELD_COUNT_OF, false, 0, INT32_MAX},
    {"maxRegistersPerSM", FIELD_COUNT_OF, false, 1, INT32_MAX},
    {"maxCtasPerSM", FIELD_COUNT_OF, false, 1, 65536},
    {"maxThreadsPerBlock", FIELD_COUNT_OF, false, 1, 65536},
    {"maxThreadsPerSM", FIELD_COUNT_OF, false, 1, 65536},
    {"pciDeviceId", FIELD_COUNT_OF, true, 0, INT32_MAX},
    {"isTccDriver", FIELD_FLAG, false, 0, 1},
    {"supportCoopLaunch", FIELD_FLAG, false, 0, 1},
    {"smClockRateKHz", FIELD_COUNT_OF, false, 1, INT32_MAX},
    {"memClockRateKHz", FIELD_COUNT_OF, false, 1, INT32_MAX},
    {"l2CacheSize", FIELD_COUNT_OF, false, 1, INT32_MAX},
    {"deviceName", FIELD_NAME, false, 0, 0},
    {"deviceVer", FIELD_COUNT_OF, false, 500, 9990},
    {"driverVer", FIELD_COUNT_OF, true, 1000, INT32_MAX},
    {"cudaDeviceId", FIELD_COUNT_OF, true, 0, 1024},
    {"totalGlobalMem", FIELD_COUNT_OF, false, 1, BYTES_HIGH},
};
enum { FIELDS = sizeof fields / sizeof *fields };

// ---- checks -------------------------------------------------------------------------------------------------------

static bool is_within(const property_field *f, const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= f->low &&
           json_integer_value(value) <= f->high;
}

static bool is_triple(const property_field *f, const json_t *value)
{
    bool good = json_is_array(value) && json_array_size(value) == 3;
    for (size_t k = 0; good && k < 3; k++) {
        good = is_within(f, json_array_get(value, k));
    }
    return good;
}

static bool is_name(const json_t *value)
{
    const char *name = json_string_value(value);
    return name != NULL && name[0] != '\0' && strlen(name) < CUDA_DEVICE_NAME_MAX;
}

static hr_status check_field(const property_field *f, const json_t *value, const char *path, hr_err *err)
{
    if (value == NULL) {
        return HR_FAIL(err, PRESET, "%s: device properties need '%s', the file does not say it", path,
                       f->key);
    }
    const bool good = f->kind == FIELD_TRIPLE ? is_triple(f, value)
                      : f->kind == FIELD_NAME ? is_name(value)
                                              : is_within(f, value);
    if (good) {
        return HR_OK;
    }
    char had[96] = "";
    const size_t written = json_dumpb(value, had, sizeof had - 1, JSON_COMPACT | JSON_ENCODE_ANY);
    had[written < sizeof had ? written : 0] = '\0';
    if (f->kind == FIELD_NAME) {
        return HR_FAIL(err, PRESET, "%s: '%s' needs a name of at most %d bytes, had %s", path, f->key,
                       CUDA_DEVICE_NAME_MAX - 1, had);
    }
    return HR_FAIL(err, PRESET, "%s: '%s' needs %s from %lld to %lld, had %s", path, f->key,
                   f->kind == FIELD_TRIPLE ? "three integers" : "an integer", (long long)f->low,
                   (long long)f->high, had);
}

// ---- text ---------------------------------------------------------------------------------------------------------

// The known fields in their order, compact, into text; 0: no memory, or too long.
static size_t write_known(const json_t *root, bool with_own, char to[CUDA_PROPERTIES_MAX])
{
    json_t *kept = json_object();
    bool good = kept != NULL;
    for (size_t k = 0; good && k < FIELDS; k++) {
        good = (fields[k].own && !with_own) ||
               json_object_set(kept, fields[k].key, json_object_get(root, fields[k].key)) == 0;
    }
    const size_t written =
        good ? json_dumpb(kept, to, CUDA_PROPERTIES_MAX - 1, JSON_COMPACT | JSON_PRESERVE_ORDER) : 0;
    json_decref(kept);
    to[written < CUDA_PROPERTIES_MAX ? written : 0] = '\0';
    return written < CUDA_PROPERTIES_MAX ? written : 0;
}

static hr_status take(const json_t *root, const char *path, cuda_properties *out, hr_err *err)
{
    if (!json_is_object(root)) {
        return HR_FAIL(err, PRESET, "%s: device properties need an object of %d fields", path, FIELDS);
    }
    for (size_t k = 0; k < FIELDS; k++) {
        HR_TRY(check_field(&fields[k], json_object_get(root, fields[k].key), path, err));
    }
    const json_int_t version = json_integer_value(json_object_get(root, "deviceVer")); // 860: 8.6
    out->traits = (cuda_traits){
        .compute_major = (uint32_t)(version / 100),
        .compute_minor = (uint32_t)(version % 100 / 10),
        .multiprocessors = (uint32_t)json_integer_value(json_object_get(root, "multiProcessorCount")),
        .shared_bytes_per_block =
            (uint64_t)json_integer_value(json_object_get(root, "maxSharedMemoryPerBlockOptin"))};
    out->memory_bytes = (uint64_t)json_integer_value(json_object_get(root, "totalGlobalMem"));
    (void)text_copy(out->name, sizeof out->name, json_string_value(json_object_get(root, "deviceName")));
    const size_t shared_bytes = write_known(root, false, out->text);
    out->hash = hash64(out->text, shared_bytes, 0);
    if (shared_bytes == 0 || write_known(root, true, out->text) == 0) {
        return HR_FAIL(err, NOMEM, "no host memory for device properties");
    }
    return HR_OK;
}

// ---- public -------------------------------------------------------------------------------------------------------

hr_status cuda_properties_parse(const char *json, size_t bytes, const char *path, cuda_properties *out,
                                hr_err *err)
{
    json_error_t where;
    *out = (cuda_properties){0};
    json_t *root = json_loadb(json, bytes, JSON_REJECT_DUPLICATES, &where);
    const hr_status status =
        root != NULL ? take(root, path, out, err)
                     : HR_FAIL(err, PRESET, "%s:%d:%d: %s", path, where.line, where.column, where.text);
    json_decref(root);
    if (status == HR_PRESET) {
        hr_err_try(err, "a file as presets/cards/PROPERTIES.md describes it; headroom cards");
    }
    return status;
}

hr_status cuda_properties_read(const char *path, cuda_properties *out, hr_err *err)
{
    char *json = NULL;
    size_t bytes = 0;
    HR_TRY(file_read(path, CUDA_PROPERTIES_MAX, &json, &bytes, err));
    const hr_status status = cuda_properties_parse(json, bytes, path, out, err);
    hr_free(json);
    return status;
}
