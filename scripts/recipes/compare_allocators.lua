-- SPDX-License-Identifier: Apache-2.0
-- One trace, or one step of a preset, on every allocator: what each took from the card, and what it refused.
--
--   headroom script compare_allocators [TRACE | SCENARIO]
--   headroom script compare_allocators PRESET [knob=value ...]
local wrap = require "lib.wrap"
local word = hr.args[1] or hr.args.preset or "growth_boundary"
local fine, r = pcall(hr.replay, word)
local best

local function head(title)
  print(title)
  print(("%-14s %12s %12s %8s  refused"):format("allocator", "pool", "in use", "waste"))
end

local function tell(name, memory, asked, refused)
  local pool = memory.peak_pool_bytes
  print(wrap(("%-14s %12s %12s %8s "):format(name, pool or "-", pool and memory.peak_in_use_bytes or "-",
             pool and ("%.1f%%"):format(100 * (pool / asked - 1)) or "-"), tostring(refused)))
  best = refused == 0 and (not best or pool < best.pool) and {name = name, pool = pool} or best
end

if fine then
  head(("%s: %d requests, at most %s at once"):format(word, r.trace.allocations, r.trace.peak_requested_bytes))
  for _, a in ipairs(r.allocators) do
    tell(a.name, a.memory, r.trace.peak_requested_bytes, a.failures_total)
  end
elseif word == hr.args.preset or r:find("no such file or scenario") or word:find("%.yaml$") or word:find("^[%w_.]+=") then
  local name = require "lib.args" {preset = "demo"}
  head(("%s: a step of batch %d under %s"):format(name, hr.knobs.batch.size, hr.plan().memory.limit_bytes))
  for _, row in ipairs(hr.sweep{["allocator.kind"] = {"bfc", "caching", "async", "direct", "static"}}) do
    local m = row.fits and row.plan.memory or {}
    tell(row["allocator.kind"], m, m.peak_requested_bytes, row.fits and 0 or row.cause or row.error:match("needed .*")
         or row.error)
  end
else
  error(r, 0)
end
print(best and "smallest pool of those that serve all: " .. best.name or "none of them serves all")
