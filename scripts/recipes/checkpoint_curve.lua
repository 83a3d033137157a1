-- SPDX-License-Identifier: Apache-2.0
-- Checkpointing: the peak against how many layers lie between two kept results. Too few keep much, too many recompute
-- much at once; the least lies near the root of the number of layers.
--
--   headroom script checkpoint_curve [PRESET] [knob=value ...]
local name = require "lib.args" {preset = "resnet50", ["device.kind"] = "plan", ["execution.mode"] = "graph"}

local every, peaks, values = {}, {}, {}
for k = 1, 40, 3 do
  values[#values + 1] = "every:" .. k
end
local best
for k, row in ipairs(hr.sweep{["checkpoint.strategy"] = values}) do
  every[k], peaks[k] = 3 * k - 2, row.peak_in_use_bytes or false
  if row.fits and (not best or row.peak_in_use_bytes < best.peak_in_use_bytes) then
    best = row
  end
end
hr.expect(best, "one of them fits")
local plot = hr.plot{x = every, y = peaks, title = "peak of " .. name, label = "every K layers"}
print(plot)
print(("least: %s with checkpoint.strategy=%s"):format(best.peak_in_use_bytes, best["checkpoint.strategy"]))
print("without: " .. tostring(hr.plan().memory.peak_in_use_bytes or "it does not fit"))
hr.export("checkpoint_curve.svg", plot)
