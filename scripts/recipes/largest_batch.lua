-- SPDX-License-Identifier: Apache-2.0
-- Finds the largest batch that fits, by plans alone, trains with it, and checks that the run's peak is the plan's.
--
--   headroom script largest_batch [PRESET] [knob=value ...]
--   headroom script largest_batch demo device.vram=96MiB train.steps=400
local name = require "lib.args" {preset = "demo", ["train.steps"] = 200}

local ROUND, plans = 8, 0 -- batches are searched in multiples of 8

local function plan(batch)
  plans = plans + 1
  return hr.plan{["batch.size"] = batch}
end

-- Double until one does not fit, then halve the gap.
local good, bad = 0, ROUND
while plan(bad).fits do
  good, bad = bad, 2 * bad
end
while bad - good > ROUND do
  local middle = (good + bad) // 2 // ROUND * ROUND
  if plan(middle).fits then good = middle else bad = middle end
end

local cap = hr.plan().memory.limit_bytes
hr.expect(good > 0, ("a batch of %d fits %s"):format(ROUND, cap))
print(("%s under %s: batch %d fits, %d does not (%d plans)"):format(name, cap, good, bad, plans))
hr.knobs.batch.size = good

local steps, done = hr.knobs.train.steps, 0 -- of this recipe: what trained before it stays trained
local notes = hr.on("step", function(s) -- a large batch takes seconds a step
  done = done + 1
  if done == 1 or done * 10 % steps < 10 then
    hr.note(("step %d of %d%s"):format(done, steps, s.loss and (", loss %.3f"):format(s.loss) or ""))
  end
end)
local planned, run = hr.plan().memory.peak_in_use_bytes, hr.run()
notes:off()
print(("%d steps, peak %s"):format(done, run.memory.peak_in_use_bytes))
hr.expect(run.memory.peak_in_use_bytes == planned, ("the peak is the planned one, %s"):format(planned))
