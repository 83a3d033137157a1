// SPDX-License-Identifier: Apache-2.0
// TensorFlow's column (execution.as=tensorflow): what the tape keeps of a layer of Keras', which composes most of them from
// smaller operations, each recorded by itself.
//
// The rows follow TensorFlow 2.21 and Keras 3.15: keras/src/backend/tensorflow and keras/src/layers say which operations a
// layer makes, python/eager/pywrap_gradient_exclusions.cc which of their inputs and outputs the tape leaves out.
// tests/bench/results/tensorflow_saved.json has what TensorFlow itself keeps, tensor by tensor.
#ifndef OPS_TENSORFLOW_H
#define OPS_TENSORFLOW_H

#include "ops/framework.h"

// Of a forward operation. NULL: nothing is known of it.
const framework_rule *tensorflow_rule_of(hr_op op);

#endif
