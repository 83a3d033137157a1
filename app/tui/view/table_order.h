// SPDX-License-Identifier: Apache-2.0
// Which rows of a table are shown, and in which order.
#ifndef TUI_TABLE_ORDER_H
#define TUI_TABLE_ORDER_H

#include "app/tui/view/table_view.h"

// Makes `order` and `count` of a view anew. Each cell is asked for once: a sort compares what it was told, and a filter of
// plain text that grows looks at the rows that are left. Host memory short: the old order stays, cut to the rows that
// exist, or the rows stand unsorted.
void table_order(table_view *v, const table_source *s, const void *of, uint64_t version);

#endif
