#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_fake_quant_values.py >fake_quant_values.h: what TensorFlow's fake_quant_with_min_max_vars makes of some values.

Needs TensorFlow 2 (written with 2.15.1 on CPU).
"""
import numpy
import tensorflow as tf

RANGES = [(-6, 6), (0, 1), (-1, 0), (-0.3, 2.7), (-6.02, 0.011), (0, 6), (-1e-3, 5e-4), (-100, 37.5)]
VALUES = 32


def rows(name, ranges, narrow):
    generator = numpy.random.Generator(numpy.random.PCG64(18))
    print(f"static const fake_quant_row {name}[] = {{")
    for low, high in ranges:
        x = (generator.random(VALUES) * 1.4 - 0.2) * (high - low) + low
        x[:3] = low, high, 0
        x = x.astype(numpy.float32)
        y = tf.quantization.fake_quant_with_min_max_vars(x, low, high, num_bits=8, narrow_range=narrow).numpy()
        with tf.GradientTape() as tape:
            v = tf.Variable(x)
            made = tf.quantization.fake_quant_with_min_max_vars(v, low, high, num_bits=8, narrow_range=narrow)
        passes = tape.gradient(made, v).numpy()
        low, high = numpy.float32(low), numpy.float32(high)
        print(f"    {{{{{float(-low).hex()}F, {float(high).hex()}F}}, {{", end="")
        print(", ".join(f"{float(v).hex()}F" for v in x), end="}, {")
        print(", ".join(f"{float(v).hex()}F" for v in y), end="}, {")
        print(", ".join(str(int(v)) for v in passes), end="}},\n")
    print("};")


print("// SPDX-License-Identifier: Apache-2.0")
print(f"// Made by make_fake_quant_values.py with TensorFlow {tf.__version__}.")
print("// clang-format off")
print(f"enum {{ FAKE_QUANT_VALUES = {VALUES} }};")
print("typedef struct fake_quant_row {")
print("    float range[2], x[FAKE_QUANT_VALUES], y[FAKE_QUANT_VALUES];")
print("    int passes[FAKE_QUANT_VALUES];")
print("} fake_quant_row;")
rows("fake_quant_activations", RANGES, False)
rows("fake_quant_weights", [(-a, a) for a in (1, 0.07, 3.3, 1e-4)], True)
