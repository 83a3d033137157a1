-- SPDX-License-Identifier: Apache-2.0
-- Grows the batch while it trains: twice as large every so many steps, as long as a plan says that it fits.
--
--   headroom script grow_batch [PRESET] [knob=value ...]
require "lib.args" {preset = "demo", ["batch.size"] = 16, ["train.steps"] = 60}

local EVERY = 10
local grows = true
hr.on("step", function(s)
  if grows and s.step % EVERY == 0 then
    local next_size = 2 * hr.knobs.batch.size
    local plan = hr.plan{batch = {size = next_size}}
    grows = plan.fits
    if grows then
      hr.knobs.batch.size = next_size
    end
    local peak = grows and plan.memory.peak_in_use_bytes or plan.oom.cause
    print(("step %d: batch %d %s (%s)"):format(s.step, next_size, grows and "from here" or "does not fit", peak))
  end
end)
local result = hr.run()
hr.on("step", nil)
print(("ended with batch %d, peak %s of %s"):format(hr.knobs.batch.size, result.memory.peak_in_use_bytes,
                                                    result.memory.limit_bytes))
hr.expect(result.memory.peak_in_use_bytes <= result.memory.limit_bytes, "it stayed within its limit")
