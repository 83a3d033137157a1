// SPDX-License-Identifier: Apache-2.0
#include "numeric/fixture.h"

#include <check.h>
#include <math.h>
#include <stdio.h>

#include "base/philox.h"
#include "numeric/op_harness.h"

enum { MAX_ENTRIES = 64 };

json_t *fixture_open(const char *name)
{
    char path[256];
    json_error_t error;
    (void)snprintf(path, sizeof path, "tests/numeric/fixtures/%s", name);
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "%s:%d: %s", path, error.line, error.text);
    return root;
}

double fixture_entries_distance(const json_t *stored, const double *values, uint64_t count)
{
    const json_t *entries = json_object_get(stored, "entries");
    const uint64_t stride = count > MAX_ENTRIES ? count / MAX_ENTRIES : 1;
    const uint64_t kept = count > MAX_ENTRIES ? MAX_ENTRIES : count;
    double ours[MAX_ENTRIES], theirs[MAX_ENTRIES];
    ck_assert_uint_eq(json_array_size(entries), kept);
    for (uint64_t i = 0; i < kept; i++) {
        ours[i] = values[i * stride];
        theirs[i] = json_real_value(json_array_get(entries, i));
    }
    return op_distance(ours, theirs, kept);
}

double fixture_distance(const json_t *stored, const double *values, uint64_t count)
{
    const double norm = json_real_value(json_object_get(stored, "norm"));
    const json_t *zero_below = json_object_get(stored, "zero_below");
    double squares = 0.0;
    for (uint64_t i = 0; i < count; i++) {
        squares += values[i] * values[i];
    }
    const double ours = sqrt(squares);
    if (zero_below != NULL) {
        return ours <= json_real_value(zero_below) ? 0.0 : (double)INFINITY;
    }
    return fmax(op_distance(&ours, &norm, 1), fixture_entries_distance(stored, values, count));
}

void fixture_uniform(uint64_t seed, const char *purpose, float *values, uint64_t count)
{
    const philox_key key = philox_key_of(seed, purpose);
    uint32_t word[4];
    for (uint64_t i = 0; i < count; i++) {
        if (i % 4 == 0) {
            philox(key, i / 4, 0, word);
        }
        values[i] = philox_uniform(word[i % 4]);
    }
}
