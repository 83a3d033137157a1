-- SPDX-License-Identifier: Apache-2.0
-- One trace on every allocator: what each took from the card, and what it refused.
--
--   headroom script compare_allocators [TRACE | SCENARIO]
local name = hr.args[1] or "growth_boundary"
local r = hr.replay(name)
print(("%s: %d requests, at most %s at once"):format(name, r.trace.allocations, r.trace.peak_requested_bytes))
print(("%-14s %12s %12s %8s %9s"):format("allocator", "pool", "in use", "waste", "refused"))
local best
for _, a in ipairs(r.allocators) do
  local m = a.memory
  print(("%-14s %12s %12s %7.1f%% %9d"):format(a.name, m.peak_pool_bytes, m.peak_in_use_bytes,
        100 * (m.peak_pool_bytes / r.trace.peak_requested_bytes - 1), a.failures_total))
  if a.failures_total == 0 and (not best or m.peak_pool_bytes < best.memory.peak_pool_bytes) then
    best = a
  end
end
print(best and "smallest pool of those that serve all: " .. best.name or "none of them serves all")
