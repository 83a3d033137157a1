-- SPDX-License-Identifier: Apache-2.0
-- The words behind a recipe's name: a preset, and knobs. `defaults` has the preset that is meant without one (in the
-- workbench what is on the screen is), and knobs.
--
--   local name = require "lib.args" {preset = "demo", ["train.steps"] = 100}
return function(defaults)
  local name, turned = hr.args.preset or defaults.preset, {}
  for _, word in ipairs(hr.args) do
    if word:match("^[%w_.]+=") then
      turned[#turned + 1] = word
    else
      name = word
    end
  end
  hr.preset(name)
  for knob, value in pairs(defaults) do
    if knob ~= "preset" then
      hr.knobs[knob] = value
    end
  end
  if #turned > 0 then
    hr.apply(turned)
  end
  return name
end
