-- SPDX-License-Identifier: Apache-2.0
-- Prunes while it trains, then evaluates with whole-number weights: accuracy and deployed bytes of each.
--
--   headroom script prune_quantize [PRESET] [knob=value ...]
require "lib.args" {preset = "demo", ["train.steps"] = 60}

local steps = hr.knobs.train.steps
local function tell(what)
  local e = hr.eval()
  local deployed = hr.plan().deploy.deployed_bytes
  print(("%-22s eval loss %.4f  accuracy %s  deployed %s"):format(what, e.eval_loss,
        e.eval_accuracy and ("%.1f %%"):format(100 * e.eval_accuracy) or "-", deployed))
end
hr.run{steps = steps}
tell("dense")
hr.knobs.compress.prune = ("polynomial:0:0.7:0:%d:5"):format(steps)
local pruned = hr.run{steps = steps}
tell(("pruned to %.0f %%"):format(100 * (pruned.train.sparsity or 0)))
hr.knobs.compress.quantize = "int8_weights"
tell("pruned, int8 weights")
