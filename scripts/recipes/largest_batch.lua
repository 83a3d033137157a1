-- SPDX-License-Identifier: Apache-2.0
-- Finds the largest batch that fits a cap, trains with it, and when the loss flattens doubles it under a raised cap.
--
--   headroom script largest_batch [PRESET] [knob=value ...]
--   headroom script largest_batch demo device.vram=96MiB train.steps=400
--   headroom script largest_batch mlp device.kind=plan

local STEPS = 200 -- unless train.steps says otherwise
local RATE = 0.003 -- learning rate, unless optimizer.learning_rate says otherwise
local ROUND = 8 -- batches are searched in multiples of this
local WINDOW = 10 -- steps in a moving average of the loss
local FELL = 0.5 -- a loss that is still above this share of where it began is no valley but the start
local FLAT = 0.03 -- flat: the newest window took off less than this share of where the loss began

-- The words behind the recipe's name: a preset, and knobs.
local name = "demo"
local turned = {["train.steps"] = STEPS, ["optimizer.learning_rate"] = RATE}
for _, word in ipairs(hr.args) do
  local knob, value = word:match("^([%w_.]+)=(.*)$")
  if knob then
    turned[knob] = value
  else
    name = word
  end
end
hr.preset(name)
for knob, value in pairs(turned) do
  hr.knobs[knob] = value
end
local steps = hr.knobs.train.steps
local cap = hr.plan().memory.limit_bytes

-- The largest multiple of ROUND that fits: double until one does not fit, then halve the gap.
local function largest_batch()
  local plans = 0
  local function fits(batch)
    plans = plans + 1
    return hr.plan{batch = {size = batch}, device = {vram = cap}}.fits
  end
  local good, bad = 0, ROUND
  while fits(bad) do
    good, bad = bad, bad * 2
  end
  while bad - good > ROUND do
    local middle = (good + bad) // 2 // ROUND * ROUND
    if fits(middle) then
      good = middle
    else
      bad = middle
    end
  end
  return good, plans
end

local losses = {} -- of every step; empty where nothing computes one

-- The mean loss of the newest window but `skip`.
local function window(skip)
  local sum = 0
  local last = #losses - skip * WINDOW
  for k = last - WINDOW + 1, last do
    sum = sum + losses[k]
  end
  return sum / WINDOW
end

local function is_flat(step)
  if #losses == 0 then
    return step >= 2 * WINDOW
  end
  if #losses < 2 * WINDOW or window(0) > FELL * losses[1] then
    return false
  end
  return window(1) - window(0) < FLAT * losses[1]
end

local batch, plans = largest_batch()
hr.expect(batch > 0, "a batch of " .. ROUND .. " fits " .. cap)
print(("%s under %s: batch %d fits, %d does not (%d plans)"):format(name, cap, batch, batch + ROUND, plans))
hr.knobs.device.vram = cap
hr.knobs.batch.size = batch

-- A card may have less than the raised cap.
local raised = {batch = {size = 2 * batch}, device = {vram = 2 * cap}}
local can_double, why_not = pcall(hr.plan, raised)
if not can_double then
  print("no doubling: " .. why_not:gsub("^.-:%d+: ", ""))
end

-- A large batch takes seconds a step: stderr says how far it is, ten times in all.
local tenths = 0
local function tell_progress(s)
  local now = s.step * 10 // steps
  if s.step == 1 or now > tenths then
    hr.note(("step %d of %d%s"):format(s.step, steps, s.loss and (", loss %.3f"):format(s.loss) or ""))
  end
  tenths = now
end

local doubled = false
local peak = {[false] = hr.bytes(0), [true] = hr.bytes(0)} -- before and after the doubling

hr.on("step", function(s)
  if s.peak_in_use_bytes > peak[doubled] then
    peak[doubled] = s.peak_in_use_bytes
  end
  losses[#losses + 1] = s.loss
  tell_progress(s)
  if can_double and not doubled and is_flat(s.step) then
    local loss = s.loss and ("the loss is flat at %.3f"):format(window(0)) or "no loss to wait for"
    print(("step %d: %s; batch %d under %s from here"):format(s.step, loss, 2 * batch, 2 * cap))
    hr.knobs.device = raised.device
    hr.knobs.batch = raised.batch
    doubled = true
  end
end)

hr.on("oom", function(o)
  print("out of memory: " .. o.sentence)
  hr.knobs.batch.size = hr.knobs.batch.size - ROUND
  return true
end)

local result = hr.run()
if result.train.loss_last then
  print(("loss %.3f -> %.3f in %d steps"):format(result.train.loss_first, result.train.loss_last, steps))
end
print(("peak %s under %s"):format(peak[false], cap))

hr.expect(result.train.steps == steps, "every step was done")
hr.expect(peak[false] <= cap, "the peak stayed under the cap")
hr.expect(#losses == 0 or losses[#losses] < losses[1], "the loss went down")
if doubled then
  print(("peak %s under %s"):format(peak[true], 2 * cap))
  hr.expect(peak[true] <= 2 * cap, "the peak stayed under the raised cap")
  hr.expect(hr.knobs.batch.size == 2 * batch, "twice the cap held twice the batch")
elseif can_double then
  print("the loss was still falling at the end: nothing was doubled")
end
