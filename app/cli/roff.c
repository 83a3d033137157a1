// SPDX-License-Identifier: Apache-2.0
#include "app/cli/roff.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SOURCE_LINE = 78 }; // of the page's source: mandoc finds fault with 80 and more

// Marks of Markdown and control lines are no business of a text; a hyphen is one of the keyboard's.
static void put(const char *text, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        switch (text[k]) {
        case '\\':
            fputs("\\e", stdout);
            break;
        case '-':
            fputs("\\-", stdout);
            break;
        case '\'':
            fputs("\\(aq", stdout);
            break;
        case '^':
            fputs("\\(ha", stdout);
            break;
        case '~':
            fputs("\\(ti", stdout);
            break;
        case '`':
            fputs("\\(ga", stdout);
            break;
        default:
            putchar(text[k]);
        }
    }
}

static void put_text(const char *text)
{
    put(text, strlen(text));
}

// Words, filled into lines. What lies between two ` is bold, as in every sentence of the program.
static void put_words(const char *text)
{
    size_t column = 0;
    bool bold = false;
    for (const char *word = text; *word != '\0';) {
        const size_t bytes = strcspn(word, " \n");
        if (column > 0 && column + 1 + bytes > SOURCE_LINE) {
            putchar('\n');
            column = 0;
        } else if (column > 0) {
            putchar(' ');
            column++;
        }
        if (column == 0 && (*word == '.' || *word == '\'')) {
            fputs("\\&", stdout);
        }
        for (size_t at = 0; at < bytes;) {
            const size_t plain = strcspn(word + at, "` \n");
            put(word + at, plain);
            at += plain;
            if (at < bytes) {
                bold = !bold;
                fputs(bold ? "\\fB" : "\\fR", stdout);
                at++;
            }
        }
        column += bytes;
        word += bytes;
        word += strspn(word, " \n");
    }
    puts(bold ? "\\fR" : "");
}

// Behind a heading a paragraph begins by itself, and a macro that begins one is said to be superfluous.
static bool begins_paragraph;

static void end_heading(void)
{
    putchar('\n');
    begins_paragraph = true;
}

static void begin_paragraph(void)
{
    if (!begins_paragraph) {
        puts(".PP");
    }
    begins_paragraph = false;
}

void roff_title(const char *name, int section, const char *about)
{
    fputs(".TH ", stdout);
    for (const char *c = name; *c != '\0'; c++) {
        putchar(toupper((unsigned char)*c));
    }
    printf(" %d %s \"headroom %s\" \"headroom\"\n.SH NAME\n", section, HEADROOM_DATE, HEADROOM_VERSION);
    put_text(name);
    fputs(" \\- ", stdout);
    put_words(about);
}

void roff_section(const char *heading)
{
    fputs(".SH ", stdout);
    for (const char *c = heading; *c != '\0'; c++) {
        putchar(toupper((unsigned char)*c));
    }
    end_heading();
}

void roff_subsection(const char *heading)
{
    fputs(".SS ", stdout);
    put_text(heading);
    end_heading();
}

void roff_paragraph(const char *text)
{
    begin_paragraph();
    put_words(text);
}

void roff_item(const char *heading, const char *text)
{
    begins_paragraph = false;
    fputs(".TP\n\\fB", stdout);
    put_text(heading);
    puts("\\fR");
    put_words(text);
}

void roff_more(const char *label, const char *text)
{
    fputs(".br\n\\fI", stdout);
    put_text(label);
    puts("\\fR:");
    put_words(text);
}

void roff_example(const char *lines)
{
    begin_paragraph();
    puts(".nf\n.RS");
    for (const char *line = lines; *line != '\0';) {
        const size_t bytes = strcspn(line, "\n");
        if (*line == '.' || *line == '\'') {
            fputs("\\&", stdout);
        }
        put(line, bytes);
        putchar('\n');
        line += bytes + (line[bytes] == '\n');
    }
    puts(".RE\n.fi");
}

void roff_see_also(const roff_page *pages)
{
    roff_section("see also");
    for (const roff_page *p = pages; p->name != NULL; p++) {
        fputs(".BR ", stdout);
        put_text(p->name);
        printf(" (%d)%s\n", p->section, p[1].name != NULL ? "," : "");
    }
}
