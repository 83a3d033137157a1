// SPDX-License-Identifier: Apache-2.0
// A config.json of strangers: at most 4 MiB of JSON, one object, and typed values under limits. A key that is missing or
// null means the library's default, which the caller gives; where null is a value of its own config_is_null tells. The first value that does not do is refused in one sentence;
// what is read after that stays within its limits and means nothing, so that keys are read without a test after each.
// Ask config_status behind them.
#ifndef IMPORT_CONFIG_H
#define IMPORT_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum { CONFIG_MAX_BYTES = 4 << 20, CONFIG_ABSENT_TEXT = 320 };

typedef struct config {
    const char *path; // borrowed
    json_t *root;     // an object; owned
    hr_status status; // of the first refusal
    hr_err *err;
    // The keys of the network's sizes that were asked for and are not there, with what was given instead: "hidden_size 4096,
    // num_hidden_layers 32". As many as have room.
    char absent[CONFIG_ABSENT_TEXT];
} config;

// READ, PRESET (no JSON, no object) and NOMEM errors. config_close in every case.
HR_MUST_CHECK hr_status config_open(const char *path, config *out, hr_err *err);
// The same of bytes, which say they are of `path`. PRESET, NOMEM.
HR_MUST_CHECK hr_status config_open_bytes(const char *path, const char *data, size_t bytes, config *out,
                                          hr_err *err);
void config_close(config *c);
static inline hr_status config_status(const config *c)
{
    return c->status;
}

// JSON of any kind, no key of an object twice; NULL with *error, or *nomem. The caller's to decref. Any thread.
json_t *config_parse(const char *data, size_t bytes, json_error_t *error, bool *nomem);

const json_t *config_find(const config *c, const char *key); // NULL: missing, or null
bool config_is_null(const config *c, const char *key);       // it is there, and null
// The one of both names that is there, `alias` before `key`: the library sets a name's alias last.
const char *config_either(const config *c, const char *alias, const char *key);
int64_t config_count(config *c, const char *key, int64_t fallback, int64_t min, int64_t max);
// A list of 1 to `most` counts, each within the limits, into list; returns how many. `list` holds the fallback's `count`.
size_t config_counts(config *c, const char *key, int64_t *list, size_t count, size_t most, int64_t max);
double config_real(config *c, const char *key, double fallback, double min, double max);
bool config_flag(config *c, const char *key, bool fallback);
const char *config_word(config *c, const char *key, const char *fallback); // borrowed; NULL only as fallback

// "PATH: KEY SENTENCE", where nothing was refused before.
void config_refuse(config *c, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
// The same, and the value that the key has behind it: "…, had 17".
void config_refuse_value(config *c, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// A real number as a preset and a person write it: 0.02, 1e-05.
enum { CONFIG_REAL_TEXT = 32 };
const char *config_real_text(double value, char out[CONFIG_REAL_TEXT]);

#endif
