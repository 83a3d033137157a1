-- SPDX-License-Identifier: Apache-2.0
-- Two models: the first is trained and saved, the second learns from its answers and from the labels; then the second again
-- from the labels alone. Both models have to take the same input.
--
--   headroom script distill [TEACHER [STUDENT [STEPS]]] [knob=value ...]
local words, turned = {}, {}
for _, word in ipairs(hr.args) do
  table.insert(word:match("^[%w_.]+=") and turned or words, word)
end
local teacher = words[1] or hr.args.preset or "mlp_tiny"
local student = words[2] or teacher
local STEPS = math.tointeger(words[3] or 60)

local function take(name)
  hr.preset(name)
  if #turned > 0 then
    hr.apply(turned)
  end
end

take(teacher)
hr.run{steps = STEPS}
print(("teacher  %s: eval loss %.4f"):format(teacher, hr.eval().eval_loss))
local weights = hr.save("teacher.safetensors")

take(student)
local function learn(what, knobs)
  return hr.with(knobs, function()
    local r = hr.run{steps = STEPS, fresh = true}
    local e = hr.eval()
    print(("%-8s %s: eval loss %.4f, peak %s"):format(what, student, e.eval_loss, r.memory.peak_in_use_bytes))
    return e.eval_loss
  end)
end
learn("taught", {compress = {distill = teacher, distill_weights = weights}})
learn("alone", {})
