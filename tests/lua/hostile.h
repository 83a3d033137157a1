// SPDX-License-Identifier: Apache-2.0
// Functions of Lua's library that do not come back, or not soon.
#ifndef TESTS_LUA_HOSTILE_H
#define TESTS_LUA_HOSTILE_H

// Each begins on its third line.
#define READY "hr.note 'ready'\n\n"

static const char *const hostile[] = {
    READY "local t = {} for k = 0, 62 do t[1 << k], t[(1 << k) + 1] = 1, 1 end table.insert(t, 1, 1)",
    READY "local t = {} for k = 0, 62 do t[1 << k], t[(1 << k) + 1] = 1, 1 end table.remove(t, 1)",
    READY "table.insert(setmetatable({}, {__len = function() return 1 << 62 end}), 1, 1)",
    READY "table.remove(setmetatable({}, {__len = function() return 1 << 62 end}), 1)",
    READY "table.move({}, 1, 1 << 62, 2)",
    READY "table.move(setmetatable({}, {__index = rawlen, __newindex = rawlen}), 1, 1 << 62, 2)",
    READY "table.concat(setmetatable({}, {__index = function() return '' end}), '', 1, 1 << 62)",
    READY "string.rep('', 1 << 62)",
    READY "for i = 1, 1 << 40 do local s = ('x'):rep(1e8) end",
    READY "local s = ('x'):rep(1e8) for i = 1, 1 << 40 do utf8.len(s) end",
    READY "local s = ('\\0'):rep(2e7) for i = 1, 1 << 40 do pcall(string.format, '%q', s) end",
    READY "local a, t = ('x'):rep(5e7), {} for i = 1, 1000 do t[i] = a .. i if i == 3 then break end end "
          "for i = 4, 1 << 17 do t[i] = t[i % 3 + 1] end while true do table.sort(t) end",
    READY
    "local t = {} while true do pcall(function() while true do t[#t + 1] = ('x'):rep(1e6) .. #t end end) "
    "end",
    READY "coroutine.wrap(function() string.rep('', 1 << 62) end)()",
    READY "local co = coroutine.create(function() string.rep('', 1 << 62) end) coroutine.resume(co)",
    // Patterns that backtrack for hours.
    READY "string.find(('a'):rep(5000), ('a*'):rep(20) .. 'b')",
    READY "string.match(('a'):rep(5000), ('a-'):rep(20) .. 'b')",
    READY "for _ in string.gmatch(('a'):rep(5000), ('(a*)'):rep(20) .. 'b') do end",
    READY "string.gsub(('a'):rep(5000), ('a?'):rep(100) .. 'b', '')",
    READY "pcall(string.find, ('a'):rep(5000), ('a*'):rep(20) .. 'b')",
    READY "string.find(('('):rep(4000000), '%b()')",
    READY "string.find(('a'):rep(1 << 22), '(.*)%1b')",
};

#endif
