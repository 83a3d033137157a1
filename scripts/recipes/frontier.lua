-- SPDX-License-Identifier: Apache-2.0
-- What memory costs in time: the ways of Fit that no other beats in both, as a table, a plot and a .csv.
--
--   headroom script frontier [PRESET] [knob=value ...]
local name, knobs = require "lib.args" {plans = true, preset = "demo", ["device.kind"] = "plan",
                                        ["device.card"] = "rtx3070-8g"}
knobs.keep = "batch,precision,optimizer"

local wrap = require "lib.wrap"
local found = hr.fit(knobs)
local points = {}
for _, p in ipairs(found.points) do
  points[#points + 1] = p.frontier_same and p.step_seconds and p or nil
end
table.sort(points, function(a, b) return a.peak_in_use_bytes < b.peak_in_use_bytes end)

local peaks, times, rows = {}, {}, {}
for k, p in ipairs(points) do
  local turned = table.concat(p.knobs, " ")
  peaks[k], times[k] = p.peak_in_use_bytes, 1e3 * p.step_seconds
  rows[k] = {peak_in_use_bytes = p.peak_in_use_bytes, step_seconds = p.step_seconds, knobs = turned}
  print(wrap(("%12s %9.4g ms "):format(p.peak_in_use_bytes, 1e3 * p.step_seconds), turned))
end
hr.expect(#rows > 0, "a way with a time was found for " .. name)
local plot = hr.plot{x = peaks, y = times, title = "step time in ms by peak: " .. name, label = "bytes"}
print(plot)
hr.export("frontier.csv", rows)
hr.export("frontier.svg", plot)
