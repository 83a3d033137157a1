-- SPDX-License-Identifier: Apache-2.0
-- Recovers from an out-of-memory: half the batch, twice the rounds, so that an update is of as many samples as before.
--
--   headroom script recover_oom [PRESET] [knob=value ...]
require "lib.args" {preset = "demo", ["batch.size"] = 512, ["train.steps"] = 10}

local effective = hr.knobs.batch.size * hr.knobs.batch.accumulate
hr.on("oom", function(o)
  local size, rounds = hr.knobs.batch.size, hr.knobs.batch.accumulate
  print(("batch %d x %d: %s, needed %s"):format(size, rounds, o.cause, o.requested_bytes))
  if size % 2 == 0 then
    hr.apply{"batch.size=" .. size // 2, "batch.accumulate=" .. 2 * rounds}
    return true
  end
end)
local done = 0
local count = hr.on("step", function() done = done + 1 end)
local r = hr.run()
count:off()
hr.on("oom", nil)
print(("trained %d steps as batch %d x %d, peak %s"):format(done, hr.knobs.batch.size,
                                                           hr.knobs.batch.accumulate, r.memory.peak_in_use_bytes))
hr.expect(r.step.effective_batch == effective, "the effective batch is what it was")
