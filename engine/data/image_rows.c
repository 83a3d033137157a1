// SPDX-License-Identifier: Apache-2.0
#include "data/image_rows.h"

#include <stddef.h>

hr_status image_row(image_rows *rows, uint32_t y, const uint8_t **row, hr_err *err)
{
    if (rows->whole != NULL) {
        *row = rows->whole + (uint64_t)y * rows->width * rows->channels;
        return HR_OK;
    }
    while (rows->count <= y) {
        HR_TRY(rows->next(rows->context, rows->count, &rows->last[rows->count & 1], err));
        rows->count++;
    }
    *row = rows->last[y & 1];
    return HR_OK;
}

hr_status image_finish_rows(image_rows *rows, hr_err *err)
{
    const uint8_t *row;
    return image_row(rows, rows->height - 1, &row, err);
}

void image_grey_of_rgb(uint8_t *to, const uint8_t *from, uint64_t pixels)
{
    for (uint64_t k = 0; k < pixels; k++, from += 3) {
        const uint32_t sum = 19595u * from[0] + 38470u * from[1] + 7471u * from[2]; // 0.299, 0.587, 0.114
        to[k] = (uint8_t)((sum + 32768) >> 16);
    }
}
