-- SPDX-License-Identifier: Apache-2.0
-- For CI: ends with exit code 1 when a training step would take more than it may. Nothing is trained.
--
--   headroom script memory_check PRESET MOST [knob=value ...]
--   headroom script memory_check demo 64MiB batch.size=128
local most, words = "64MiB", {}
for _, word in ipairs(hr.args) do
  if word:match("^%d[%w.]*B$") then
    most = word
  else
    words[#words + 1] = word
  end
end
hr.preset(words[1] and not words[1]:find("=") and table.remove(words, 1) or hr.args.preset or "demo")
hr.knobs.device.kind = "plan"
if #words > 0 then
  hr.apply(words)
end
local plan = hr.plan()
hr.expect(plan.fits, plan.oom and plan.oom.sentence)
print(("peak %s, may be %s"):format(plan.memory.peak_in_use_bytes, hr.bytes(most)))
hr.expect(plan.memory.peak_in_use_bytes <= most, "the peak is at most " .. most)
