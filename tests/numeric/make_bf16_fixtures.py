#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/numeric/fixtures/ops_bf16.json with PyTorch: the cases of the other scripts once more, in bfloat16.

Operands are those of the float64 cases rounded to bfloat16, but what is float32 in a mixed policy. A fixture holds of
the first output and of every gradient what PyTorch's CPU kernels give in bfloat16, what float64 gives for the same
rounded operands, and how far the first is from the second. Run by hand: python3 tests/numeric/make_bf16_fixtures.py.
"""
import numpy as np
import torch

import make_attention_fixtures
import make_fixtures
import make_optim_fixtures
import make_sequence_fixtures
from make_fixtures import entries, operand, write

SCRIPTS = [make_fixtures, make_sequence_fixtures, make_attention_fixtures, make_optim_fixtures]
WIDE = {"layer_norm": (1, 2), "rms_norm": (1,), "batch_norm": (1, 2, 3, 4)}  # inputs that stay float32
EXACT = {"embedding": (0,)}  # stand for whole numbers


def evaluate(case, rounded):
    """Output 0 and the gradients, `rounded`: in bfloat16, else in float64."""
    name, op, _, shapes, forward = case
    inputs = []
    for k, shape in enumerate(shapes):
        values = operand(name, k, shape).detach()
        if k in EXACT.get(op, ()):
            wanted = torch.float64
        elif k in WIDE.get(op, ()):
            values, wanted = values.float(), torch.float32 if rounded else torch.float64
        else:
            values, wanted = values.bfloat16(), torch.bfloat16 if rounded else torch.float64
        inputs.append(values.to(wanted).requires_grad_(True))
    y = forward(*inputs)[0]
    y = y.bfloat16() if rounded else y
    gradient = operand(name, 9, y.shape).detach().bfloat16().to(y.dtype)
    grads = torch.autograd.grad(y, inputs, gradient, allow_unused=True)
    return [None if t is None else entries(t.detach().double().numpy().reshape(-1)) for t in (y, *grads)]


def packed(exact, torchs):
    if exact is None:
        return None
    norm = np.linalg.norm(exact)
    return {
        "exact": {"entries": [float(f"{v:.7g}") for v in exact]},
        "torch": {"entries": [float(f"{v:.7g}") for v in torchs]},
        "distance": float(f"{np.linalg.norm(torchs - exact) / norm if norm > 0 else 0.0:.4g}"),
    }


def recorder(cases):
    """Takes the place of op_fixture: notes the case, and leaves out what it would compute."""

    def note(name, op, attr, shapes, forward):
        fixture = {"name": name, "op": op, "attr": attr, "in": [list(shape) for shape in shapes]}
        cases.append((fixture, (name, op, attr, shapes, forward)))
        return fixture

    return note


def recorded():
    cases = []
    for script in SCRIPTS:
        script.op_fixture = recorder(cases)
        script.write = lambda name, fixture: numbers.update({c["name"]: c for c in fixture["cases"]})
    numbers = {c["name"]: c for c in make_fixtures.op_fixtures()["cases"]}
    make_sequence_fixtures.main()
    make_attention_fixtures.main()
    make_optim_fixtures.main()
    return [(numbers.get(fixture["name"], fixture), case) for fixture, case in cases]


def main():
    torch.set_num_threads(1)
    cases = []
    for fixture, case in recorded():
        tensors = [packed(*pair) for pair in zip(evaluate(case, False), evaluate(case, True))]
        cases.append(fixture | {"out": tensors[0], "grad": tensors[1:]})
    fixture = {
        "schema": "headroom.bf16_fixtures/1",
        "made_by": f"PyTorch {torch.__version__.split('+')[0]}",
        "cases": cases,
    }
    write("ops_bf16.json", fixture)


if __name__ == "__main__":
    main()
