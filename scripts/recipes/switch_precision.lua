-- SPDX-License-Identifier: Apache-2.0
-- Trains the first part in one precision and the rest in another, with the same weights: what each takes.
--
--   headroom script switch_precision [PRESET] [knob=value ...]
require "lib.args" {preset = "demo", ["train.steps"] = 40}

local half = hr.knobs.train.steps // 2
local function part(policy)
  hr.knobs.precision.policy = policy
  local r = hr.run{steps = half}
  print(("%-16s steps to %-4d peak %-10s loss %s"):format(policy, r.train.steps, r.memory.peak_in_use_bytes,
        r.train.loss_last and ("%.4f"):format(r.train.loss_last) or "-"))
  return r
end
local first = part("float32")
local second = part("mixed_bfloat16")
print(hr.compare(first, second))
hr.expect(second.train.steps == first.train.steps + half, "the training went on")
