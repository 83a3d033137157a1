# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes of a model's file, for the scripts that read one by themselves."""
import re
from fractions import Fraction


def sized(value, sizes):
    """`value` with every product of $sizes written out as a number."""
    if isinstance(value, dict):
        return {key: sized(one, sizes) for key, one in value.items()}
    if isinstance(value, list):
        return [sized(one, sizes) for one in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    product = Fraction(1)
    for sign, factor in re.findall(r"([*/]?)([^*/]+)", value):
        number = sizes[factor[1:]] if factor[0] == "$" else int(factor)
        product = product / number if sign == "/" else product * number
        assert product.denominator == 1, value
    return int(product)


def with_sizes(model):
    return sized(model, model.get("sizes", {}))
