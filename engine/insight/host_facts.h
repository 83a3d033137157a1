// SPDX-License-Identifier: Apache-2.0
// What is known of the data sets that plans name. A data set is opened once and remembered until a file of it changes: many
// plans a second ask, and an archive takes seconds.
#ifndef INSIGHT_HOST_FACTS_H
#define INSIGHT_HOST_FACTS_H

#include "data/host_plan.h"

// As data_facts_read; what was refused is remembered too. Thread-safe.
HR_MUST_CHECK hr_status host_facts_for(const hr_knobs *knobs, const data_form *model, data_facts *out,
                                       hr_err *err);

#endif
