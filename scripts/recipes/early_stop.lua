-- SPDX-License-Identifier: Apache-2.0
-- Stops when what is held out has not become better for some looks, and ends with the best weights there were.
--
--   headroom script early_stop [PRESET] [knob=value ...]
require "lib.args" {preset = "demo", ["train.steps"] = 400}

local EVERY, PATIENCE = 20, 3 -- steps from look to look; looks without a better one
local best, best_step, waited = math.huge, 0, 0

hr.on("step", function(s)
  if s.step % EVERY ~= 0 then
    return
  end
  local loss = hr.eval().eval_loss
  print(("step %4d: eval loss %.4f%s"):format(s.step, loss, loss < best and ", the best so far" or ""))
  if loss < best then
    best, best_step, waited = loss, s.step, 0
    hr.save("best.safetensors")
  else
    waited = waited + 1
  end
  if waited == PATIENCE then
    hr.stop()
  end
end)
hr.run()
hr.on("step", nil)

hr.expect(best < math.huge, "at least one look")
hr.load("best.safetensors")
print(("best of step %d: eval loss %.4f, in headroom-out/best.safetensors"):format(best_step, hr.eval().eval_loss))
