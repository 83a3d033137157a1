-- SPDX-License-Identifier: Apache-2.0
-- What fits a card: a table of ways to run the same update, each with its peak and step time. Nothing is trained:
-- every row is a plan.
--
--   headroom script what_fits [PRESET] [CARD] [SIZE] [knob=value ...]
--   headroom script what_fits resnet50 rtx3070-8g batch.size=128
--   headroom script what_fits resnet50 8GiB
--   headroom script what_fits gpt2_355m rtx4090-24g optimizer.kind=adamw

-- Ways that leave the update as it is come first; each row turns only what it names.
local WAYS = {
  {"as the preset says"},
  {"eager", ["execution.mode"] = "eager"},
  {"graph", ["execution.mode"] = "graph"},
  {"graph, one static block", ["execution.mode"] = "graph", ["allocator.kind"] = "static", ["allocator.growth"] = "off"},
  {"graph, fused updates", ["execution.mode"] = "graph", ["optimizer.fused_backward"] = "on"},
  {"graph, selective", ["execution.mode"] = "graph", ["checkpoint.strategy"] = "selective"},
  {"graph, blocks", ["execution.mode"] = "graph", ["checkpoint.strategy"] = "blocks"},
  {"graph, sqrt", ["execution.mode"] = "graph", ["checkpoint.strategy"] = "sqrt"},
  {"graph, optimizer on the host", ["execution.mode"] = "graph", ["offload.optimizer"] = "on"},
  {"graph, activations on the host", ["execution.mode"] = "graph", ["offload.activations"] = "on"},
  {"graph, half the batch twice", ["execution.mode"] = "graph", halves = true},
  {"graph, mixed_bfloat16", ["execution.mode"] = "graph", ["precision.policy"] = "mixed_bfloat16"},
  {"graph, mixed_bfloat16, sqrt", ["execution.mode"] = "graph", ["precision.policy"] = "mixed_bfloat16",
   ["checkpoint.strategy"] = "sqrt"},
}

local wrap = require "lib.wrap"
local name, card, size = hr.args.preset or "resnet50", nil, nil
local turned, bare = {}, 0
for _, word in ipairs(hr.args) do
  local knob, value = word:match("^([%w_.]+)=(.*)$")
  if knob then
    turned[knob] = value
  elseif word:match("^%d") and word:match("B$") then
    size = word
  elseif bare == 0 then
    name, bare = word, 1
  else
    card = word
  end
end
hr.preset(name)
hr.knobs["device.kind"] = "plan"
if card or not size then -- a size alone is of the preset's own card
  hr.knobs["device.card"] = card or "rtx3070-8g"
end
hr.knobs["device.vram"] = size or ""
for knob, value in pairs(turned) do
  hr.knobs[knob] = value
end

local batch, rounds = hr.knobs.batch.size, hr.knobs.batch.accumulate

local function plan(way)
  local knobs = {}
  for key, value in pairs(way) do
    if type(key) == "string" and key ~= "halves" then
      knobs[key] = value
    end
  end
  if way.halves then
    hr.expect(batch % 2 == 0, "an even batch.size")
    knobs["batch.size"], knobs["batch.accumulate"] = batch // 2, 2 * rounds
  end
  return hr.plan(knobs)
end

local function seconds(s)
  return not s and "-" or s >= 1 and ("%.3g s"):format(s) or ("%.3g ms"):format(s * 1e3)
end

local limit = hr.plan().memory.limit_bytes -- here, so that a wrong card is this line's error and not thirteen rows
card = hr.knobs.device.card
print(("%s on %s with %s, %d samples an update"):format(name, card == "" and "no card" or card, limit, batch * rounds))
print(("%-32s %12s %10s  %s"):format("", "peak", "step", "fits"))
local fitting = 0
for _, way in ipairs(WAYS) do
  local legal, result = pcall(plan, way)
  if not legal then
    print(wrap(("%-32s refused:"):format(way[1]), (tostring(result):gsub("^.-:%d+: ", ""):gsub("\n.*", ""))))
  elseif result.fits then
    fitting = fitting + 1
    local left = limit - result.memory.peak_in_use_bytes
    print(("%-32s %12s %10s  yes, %s left"):format(way[1], tostring(result.memory.peak_in_use_bytes),
                                                   seconds(result.step.seconds), tostring(left)))
  else
    print(("%-32s %12s %10s  no: %s"):format(way[1], "> " .. tostring(limit), "-", result.oom.cause))
  end
end
print(("%d of %d fit; p planned, step times simulated from the card"):format(fitting, #WAYS))
