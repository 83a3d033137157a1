// SPDX-License-Identifier: Apache-2.0
// A report as a Lua table: the names are those of "headroom.report/1", null is nil, sizes are hr.bytes. Beside them
// stands `fits`: whether it did not run out of memory.
#include "headroom/report_fields.h"

#include "app/lua/fields.h"
#include "app/lua/script.h"

void script_push_oom(lua_State *L, const hr_report_oom *oom)
{
    lua_newtable(L);
    script_set_fields(L, hr_oom_fields(), oom, NULL);
    script_guard_fields(L, hr_oom_fields());
}

void script_push_report(lua_State *L, const hr_report *r)
{
    lua_newtable(L);
    script_set_fields(L, hr_report_fields(), r, r);
    lua_pushboolean(L, r->oom.cause == HR_OOM_NONE);
    lua_setfield(L, -2, "fits");
    script_guard_fields(L, hr_report_fields());
}
