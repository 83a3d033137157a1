-- SPDX-License-Identifier: Apache-2.0
-- The words behind a recipe's name: a preset, and knobs. `defaults` has the preset that is meant without one (in the
-- workbench what is on the screen is), and knobs.
--
--   local name = require "lib.args" {preset = "demo", ["train.steps"] = 100}
--
-- With `plans = true` no knob is turned, so that a training on the screen stays as it is: they come behind the name, for
-- hr.plan and hr.fit.
return function(defaults)
  local name, turned, asked = hr.args.preset or defaults.preset, {}, {}
  for knob, value in pairs(defaults) do
    if knob ~= "preset" and knob ~= "plans" then
      asked[knob] = value
    end
  end
  for _, word in ipairs(hr.args) do
    local knob, value = word:match("^([%w_.]+)=(.*)$")
    if knob then
      turned[#turned + 1] = word
      asked[knob] = value
    else
      name = word
    end
  end
  hr.preset(name)
  if defaults.plans then
    return name, asked
  end
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
