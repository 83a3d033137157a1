-- SPDX-License-Identifier: Apache-2.0
-- The lever ladder: one lever after another, each on top of those before, with what it takes in bytes and in time.
--
--   headroom script lever_ladder [PRESET] [knob=value ...]
local name = require "lib.args" {preset = "resnet50", ["device.kind"] = "plan", ["device.card"] = "rtx4090-24g"}

local LEVERS = {
  {"as the preset says"},
  {"graph", "execution.mode=graph"},
  {"mixed_bfloat16", "precision.policy=mixed_bfloat16"},
  {"fused updates", "optimizer.fused_backward=on"},
  {"checkpoints", "checkpoint.strategy=sqrt"},
  {"optimizer on the host", "offload.optimizer=on"},
}
local before
print(("%-24s %12s %8s %10s"):format(name, "peak", "", "step"))
for _, lever in ipairs(LEVERS) do
  local old = {}
  local fine, e = pcall(function()
    if lever[2] then
      local key = lever[2]:match("^[^=]+")
      old = {key, hr.knobs[key]}
      hr.apply{lever[2]}
    end
    local p = hr.plan()
    local peak, seconds = p.memory.peak_in_use_bytes, p.step.seconds
    print(("%-24s %12s %8s %10s"):format(lever[1], peak or p.oom.cause,
          peak and before and ("%+.1f%%"):format(100 * (peak / before - 1)) or "",
          seconds and ("%.4g ms"):format(1e3 * seconds) or "-"))
    before = peak or before
  end)
  if not fine then
    print(("%-24s refused: %s"):format(lever[1], e:gsub("^.-:%d+: ", "")))
    hr.knobs[old[1]] = old[2]
  end
end
