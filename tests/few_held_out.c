// SPDX-License-Identifier: Apache-2.0
// Linked with --wrap (tests/CMakeLists.txt, hr_few_held_out): generated data hold out 100 samples, not 2000, where a test
// evaluates often and what it promises does not depend on how many they are. A rest of a batch is among them.
#include "data/source.h"

enum { FEW = 100 };

hr_status __real_source_generated_open(const data_shape *model, data_source **out, hr_err *err);
hr_status __wrap_source_generated_open(const data_shape *model, data_source **out, hr_err *err);
hr_status __real_source_synthetic_open(const data_form *model, data_source **out, hr_err *err);
hr_status __wrap_source_synthetic_open(const data_form *model, data_source **out, hr_err *err);

hr_status __wrap_source_generated_open(const data_shape *model, data_source **out, hr_err *err)
{
    const hr_status status = __real_source_generated_open(model, out, err);
    if (status == HR_OK) {
        (*out)->info.eval_samples = FEW;
    }
    return status;
}

hr_status __wrap_source_synthetic_open(const data_form *model, data_source **out, hr_err *err)
{
    const hr_status status = __real_source_synthetic_open(model, out, err);
    if (status == HR_OK) {
        (*out)->info.eval_samples = FEW;
    }
    return status;
}
