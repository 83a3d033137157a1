-- SPDX-License-Identifier: Apache-2.0
-- The lever ladder: one lever after another, each on top of those before, with what it takes in bytes and in time.
--
--   headroom script lever_ladder [PRESET] [knob=value ...]
local name, knobs = require "lib.args" {plans = true, preset = "resnet50", ["device.kind"] = "plan",
                                        ["device.card"] = "rtx4090-24g"}
local wrap = require "lib.wrap"

local LEVERS = {
  {"as the preset says", {}},
  {"graph", {["execution.mode"] = "graph"}},
  {"mixed_bfloat16", {["precision.policy"] = "mixed_bfloat16"}},
  {"fused updates", {["optimizer.fused_backward"] = "on"}},
  {"checkpoints", {["checkpoint.strategy"] = "sqrt"}},
  {"optimizer on the host", {["offload.optimizer"] = "on"}},
}
local before
print(("%-24s %12s %8s %10s"):format(name, "peak", "", "step"))
for _, lever in ipairs(LEVERS) do
  local title, turned = lever[1], {}
  for key, value in pairs(knobs) do turned[key] = value end
  for key, value in pairs(lever[2]) do turned[key] = value end
  local fine, p = pcall(hr.plan, turned)
  if fine then
    knobs = turned
    local peak, seconds = p.memory.peak_in_use_bytes, p.step.seconds
    print(("%-24s %12s %8s %10s"):format(title, peak or p.oom.cause,
          peak and before and ("%+.1f%%"):format(100 * (peak / before - 1)) or "",
          seconds and ("%.4g ms"):format(1e3 * seconds) or "-"))
    before = peak or before
  else
    print(wrap(("%-24s refused:"):format(title), (p:gsub("^.-:%d+: ", ""))))
  end
end
