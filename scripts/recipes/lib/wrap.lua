-- SPDX-License-Identifier: Apache-2.0
-- The head and the words behind it, in lines of 80 columns: those behind the first stand below the words.
--
--   print(require "lib.wrap"("graph        refused:", sentence))
return function(head, text)
  local lines, line = {}, head
  for word in text:gmatch("%S+") do
    if #line > #head and #line + 1 + #word > 80 then
      lines[#lines + 1] = line
      line = (" "):rep(#head)
    end
    line = line .. " " .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end
