// SPDX-License-Identifier: Apache-2.0
// What can be asked of any source that is open, and of any model.
#include "headroom/units.h"

#include "base/host_mem.h"
#include "data/source.h"

bool data_form_is_image(const data_form *model, data_shape *shape)
{
    const data_slot *x = &model->slot[0], *label = &model->slot[1];
    if (model->count != 2 || x->type != DATA_FLOAT || (x->rank != 1 && x->rank != 3) ||
        label->type != DATA_IDS || label->rank != 0) {
        return false;
    }
    *shape = x->rank == 3 ? (data_shape){x->dim[0], x->dim[1], x->dim[2], label->classes}
                          : (data_shape){1, 1, x->dim[0], label->classes};
    return true;
}

hr_status data_source_check_form(const data_source *s, const data_form *batches, hr_err *err)
{
    if (batches->slot[0].type != DATA_BYTES || s->ops->decode != NULL) {
        return HR_OK;
    }
    const hr_status status = HR_FAIL(
        err, DATA, "%s: needed images of bytes for pipeline.normalise=device, had values", s->info.label);
    hr_err_try(err, "-s pipeline.normalise=host");
    return status;
}

void data_source_close(data_source *s)
{
    if (s != NULL) {
        s->ops->close(s);
    }
}

hr_status data_source_fetch(const data_source *s, data_set set, uint32_t index, uint8_t *room, data_raw *out,
                            hr_err *err)
{
    return s->ops->fetch(s, set, index, room, out, err);
}

uint64_t data_source_samples(const data_source *s, data_set set)
{
    return set == DATA_EVAL ? s->info.eval_samples : s->info.train_samples;
}

hr_status data_source_check_first(const data_source *s, uint32_t count, hr_err *err)
{
    hr_status status = HR_OK;
    uint8_t *room = hr_calloc(s->room_bytes, 1);
    if (room == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %u bytes, had less", s->info.label, s->room_bytes);
    }
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        const uint64_t samples = data_source_samples(s, set);
        for (uint32_t k = 0; k < count && k < samples && status == HR_OK; k++) {
            data_raw raw;
            status = s->ops->fetch(s, set, k, room, &raw, err);
        }
    }
    hr_free(room);
    return status;
}

uint64_t data_source_part_begin(const data_source *s, uint32_t part)
{
    const uint64_t samples = s->info.train_samples;
    const uint64_t begin = part < s->parts ? s->ops->part_begin(s, part) : samples;
    return begin < samples ? begin : samples;
}

uint64_t data_source_size(const data_source *s, data_set set, uint32_t index)
{
    return s->ops->size != NULL ? s->ops->size(s, set, index) : s->raw_bytes;
}

uint64_t data_source_set_bytes(const data_source *s, data_set set)
{
    const uint64_t samples = data_source_samples(s, set);
    uint64_t sum = 0;
    if (s->ops->size == NULL) {
        (void)hr_mul_bytes(samples, s->raw_bytes, &sum);
        return sum;
    }
    for (uint64_t k = 0; k < samples; k++) {
        (void)hr_add_bytes(sum, s->ops->size(s, set, (uint32_t)k), &sum);
    }
    return sum;
}
