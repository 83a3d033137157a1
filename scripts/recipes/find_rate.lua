-- SPDX-License-Identifier: Apache-2.0
-- Finds a learning rate: every step takes a larger one, until the loss explodes; the best is a tenth of where that is.
--
--   headroom script find_rate [PRESET] [knob=value ...]
require "lib.args" {preset = "demo", ["optimizer.schedule"] = "none"}

local STEPS, LEAST, MOST = 60, 1e-6, 10
local rates, losses, best, smooth = {}, {}, nil, nil

hr.on("step_begin", function(s)
  hr.knobs.optimizer.learning_rate = LEAST * (MOST / LEAST) ^ ((s.step - 1) / (STEPS - 1))
end)
hr.on("step", function(s)
  if s.loss then
    smooth = smooth and 0.7 * smooth + 0.3 * s.loss or s.loss
    rates[#rates + 1], losses[#losses + 1] = hr.knobs.optimizer.learning_rate, smooth
    best = math.min(best or smooth, smooth)
  end
  if s.step == STEPS or not s.loss or smooth > 3 * best then
    hr.stop()
  end
end)
hr.run{steps = STEPS, fresh = true} -- what trains on the screen keeps its weights and its rate
hr.on("step_begin", nil)
hr.on("step", nil)

hr.expect(#losses > 1, "a loss: a plan computes none, device.kind=cpu does")
local plot = hr.plot{x = rates, y = losses, log_x = true, log_y = true, title = "loss", label = "learning rate"}
print(plot)
print(("explodes at %.3g: optimizer.learning_rate=%.3g"):format(rates[#rates], rates[#rates] / 10))
hr.export("find_rate.svg", plot)
