-- SPDX-License-Identifier: Apache-2.0
-- Batch by precision by checkpoint: every combination planned, those that fit trained for some steps, all in one .csv.
--
--   headroom script sweep_csv [PRESET] [knob=value ...]
require "lib.args" {preset = "demo", ["train.steps"] = 2}

local size = hr.knobs.batch.size
local rows = hr.sweep({
  ["batch.size"] = {size // 4, size // 2, size},
  ["precision.policy"] = {"float32", "mixed_bfloat16"},
  ["checkpoint.strategy"] = {"none", "sqrt"},
}, {steps = hr.knobs.train.steps})

print(("%6s %-16s %-8s %12s %12s"):format("batch", "precision", "keeps", "planned", "measured"))
for _, row in ipairs(rows) do
  print(("%6d %-16s %-8s %12s %12s"):format(row["batch.size"], row["precision.policy"], row["checkpoint.strategy"],
        row.peak_in_use_bytes or row.cause or "refused", row.run_peak_in_use_bytes or "-"))
  hr.expect(not row.run or row.run_peak_in_use_bytes == row.peak_in_use_bytes, "the plan is the run")
end
print(hr.export("sweep.csv", rows, {columns = {"batch.size", "precision.policy", "checkpoint.strategy", "fits", "cause",
  "peak_in_use_bytes", "run_peak_in_use_bytes", "seconds", "run_seconds", "loss_last", "error"}}))
