// SPDX-License-Identifier: Apache-2.0
// Batches as they travelled, made numbers on a device: the bits that the host would have written. Include it once.
#ifndef TESTS_TRAVELLED_H
#define TESTS_TRAVELLED_H

#include <check.h>
#include <string.h>

#include "base/half.h"
#include "data/pixels.h"
#include "numeric/op_harness.h"

static const struct {
    hr_dtype dtype;
    pixels_type pixels;
} travelled_types[] = {
    {HR_F32, PIXELS_F32}, {HR_F16, PIXELS_F16}, {HR_BF16, PIXELS_BF16}, {HR_F64, PIXELS_F64}};

static double value_at(const void *values, hr_dtype dtype, uint32_t k)
{
    return dtype == HR_F32   ? (double)((const float *)values)[k]
           : dtype == HR_F64 ? ((const double *)values)[k]
           : dtype == HR_F16 ? (double)float_of_f16(((const uint16_t *)values)[k])
                             : (double)float_of_bf16(((const uint16_t *)values)[k]);
}

// Of `count` values, every byte among them; as bytes and as float64 quotients.
static void travel(op_device device, size_t type, uint32_t count)
{
    enum { MOST = 8192 };
    static uint8_t bytes[MOST];
    static double host[MOST], wide[MOST];
    const hr_dtype to = travelled_types[type].dtype;
    ck_assert_uint_le(count, MOST);
    for (uint32_t k = 0; k < count; k++) {
        bytes[k] = (uint8_t)(k * 7 + k / 256);
    }
    pixels_write(host, travelled_types[type].pixels, bytes, count, false);
    pixels_write(wide, PIXELS_F64, bytes, count, false);
    for (int from_bytes = 0; from_bytes < 2; from_bytes++) {
        op_trial t = op_trial_make(from_bytes ? HR_OP_NORMALISE : HR_OP_CAST, (op_attr){0});
        op_trial_add_in(&t, from_bytes ? HR_U8 : HR_F64, (const int64_t[OP_MAX_RANK]){count});
        op_trial_add_out(&t, to, (const int64_t[OP_MAX_RANK]){count});
        for (uint32_t k = 0; k < count; k++) {
            t.in[0][k] = from_bytes ? (double)bytes[k] : wide[k];
        }
        op_trial_run(&t, device, NULL);
        for (uint32_t k = 0; k < count; k++) {
            const double expected = value_at(host, to, k);
            ck_assert_msg(memcmp(&t.out[0][k], &expected, sizeof expected) == 0,
                          "%s, value %u of %u, byte %u: %.17g, the host has %.17g", dtype_name(to), k, count,
                          bytes[k], t.out[0][k], expected);
        }
        op_trial_deinit(&t);
    }
}

// One value, those around a vector, and some for every thread.
static void travel_all(op_device device, size_t type)
{
    for (uint32_t count = 1; count < 70; count++) {
        travel(device, type, count);
    }
    travel(device, type, 8191);
}

#endif
