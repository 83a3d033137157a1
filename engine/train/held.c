// SPDX-License-Identifier: Apache-2.0
#include "train/held.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"

enum { PART_NAME_BYTES = 256 };

static void name_part(const model_param *p, const char *suffix, char name[PART_NAME_BYTES])
{
    (void)snprintf(name, PART_NAME_BYTES, "%s%s%s", p->name, suffix == NULL ? "" : ":",
                   suffix == NULL ? "" : suffix);
}

static const stored_tensor *find_real(const store *s, const model_param *p)
{
    const stored_tensor *t = store_find(s, p->name);
    return t != NULL && dtype_is_real(t->dtype) && shape_equal(&t->shape, &p->shape) ? t : NULL;
}

bool held_is_there(const store *s, const model_param *p)
{
    return store_has_parts(s, p) || find_real(s, p) != NULL;
}

const char *held_beside_real(const store *s, const model_param *p)
{
    static const char *const suffixes[] = {"scale", "zero"};
    const stored_tensor *beside = NULL;
    for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes && beside == NULL; k++) {
        char name[PART_NAME_BYTES];
        name_part(p, suffixes[k], name);
        beside = store_find(s, name);
    }
    return beside == NULL || find_real(s, p) == NULL ? NULL : beside->name;
}

hr_status held_copy_scales(const store *s, const model_param *p, store *to, hr_err *err)
{
    held_parts parts = {.count = 0};
    if (p->held != HELD_REAL) {
        held_parts_of(&p->shape, p->held, &parts);
    }
    for (uint32_t k = 1; k < parts.count; k++) {
        char name[PART_NAME_BYTES];
        name_part(p, parts.suffix[k], name);
        const stored_tensor *t = store_find_part(s, p, &parts, k);
        if (t == NULL) {
            return HR_FAIL(err, SAVE, "%s as %s lacks its %s", p->name, held_name(p->held), parts.suffix[k]);
        }
        if (store_add_as(to, name, t, t->dtype) == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for %s", name);
        }
    }
    return HR_OK;
}

hr_status held_real(const store *s, const model_param *p, float **w, hr_err *err)
{
    held_parts parts;
    const void *part[HELD_PARTS] = {NULL};
    uint64_t elements = 0;
    *w = NULL;
    held_parts_of(&p->shape, p->held, &parts);
    for (uint32_t k = 0; k < parts.count; k++) {
        const stored_tensor *t = store_find_part(s, p, &parts, k);
        if (t == NULL) {
            return HR_FAIL(err, SAVE, "%s as %s lacks a part", p->name, held_name(p->held));
        }
        part[k] = t->data;
    }
    (void)shape_elements(&p->shape, &elements);
    *w = hr_calloc(elements + 1, sizeof **w);
    if (*w == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the weights of %s", p->name);
    }
    held_back(&p->shape, p->held, part, *w);
    return HR_OK;
}

hr_status held_zeros(const store *s, const model_param *p, uint64_t *zeros, hr_err *err)
{
    uint64_t elements = 0;
    float *w = NULL;
    HR_TRY(held_real(s, p, &w, err));
    (void)shape_elements(&p->shape, &elements);
    *zeros = 0;
    for (uint64_t k = 0; k < elements; k++) {
        *zeros += fpclassify(w[k]) == FP_ZERO;
    }
    hr_free(w);
    return HR_OK;
}
