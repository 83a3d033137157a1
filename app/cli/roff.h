// SPDX-License-Identifier: Apache-2.0
// Manual pages in the macros of man(7), on stdout. Every text is a plain one: what roff would obey in it is escaped.
#ifndef APP_CLI_ROFF_H
#define APP_CLI_ROFF_H

// `date` may be ""; then readers show none.
void roff_title(const char *name, int section, const char *about);
void roff_section(const char *heading);
void roff_subsection(const char *heading);
void roff_paragraph(const char *text);
// A paragraph under a heading that hangs out to the left.
void roff_item(const char *heading, const char *text);
// One more paragraph under the same heading: "values: 1 to 8".
void roff_more(const char *label, const char *text);
// Lines that stay as they are.
void roff_example(const char *lines);
// "NAME(SECTION), NAME(SECTION)": ended by a NULL name.
typedef struct roff_page {
    const char *name;
    int section;
} roff_page;
void roff_see_also(const roff_page *pages);

#endif
