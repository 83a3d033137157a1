// SPDX-License-Identifier: Apache-2.0
// pipeline.resize as image_decode takes it.
#ifndef DATA_RESIZE_FILTER_H
#define DATA_RESIZE_FILTER_H

#include "headroom/knobs.h"

#include "data/image.h"

static inline image_filter resize_filter_of(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_PIPELINE_RESIZE, "nearest") ? IMAGE_NEAREST
           : hr_knob_is(knobs, HR_KNOB_PIPELINE_RESIZE, "area")  ? IMAGE_AREA
                                                                 : IMAGE_BILINEAR;
}

#endif
