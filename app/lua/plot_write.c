// SPDX-License-Identifier: Apache-2.0
// The two pictures of a plot: in letters for a terminal, and as SVG.
#include <math.h>
#include <string.h>

#include "headroom/units.h"

#include "app/lua/plot.h"

enum {
    COLUMNS = 64,
    ROWS = 16,
    LABEL = 12,
    WIDTH = 640,
    HEIGHT = 400,
    LEFT = 90,
    TOP = 40,
    RIGHT = 20,
    BOTTOM = 50
};

static const char marks[PLOT_SERIES_MAX] = {'*', 'o', '+', 'x', '#', '%'};
static const char *const colours[PLOT_SERIES_MAX] = {"#0072b2", "#d55e00", "#009e73",
                                                     "#cc79a7", "#e69f00", "#56b4e9"};

// Where a point lies, 0 to 1 of either axis; false: nowhere.
static bool place(const plot *p, size_t series, size_t point, double *across, double *up)
{
    const double x = plot_x(p, point), y = plot_y(p, series, point);
    if (!isfinite(x) || !isfinite(y)) {
        return false;
    }
    const double width = p->x_most - p->x_least, height = p->y_most - p->y_least;
    *across = width > 0 ? (x - p->x_least) / width : 0.5;
    *up = height > 0 ? (y - p->y_least) / height : 0.5;
    return true;
}

// Of a value in the scale that is drawn.
static void y_text(const plot *p, double drawn, char text[24])
{
    const double value = p->log_y ? pow(10, drawn) : drawn;
    char human[HR_BYTES_TEXT_MAX];
    if (p->y_is_bytes && value >= 0) {
        (void)snprintf(text, 24, "%s", hr_bytes_human((uint64_t)value, human));
    } else {
        (void)snprintf(text, 24, "%.4g", value);
    }
}

// Of a value in the scale that is drawn.
static void x_text(const plot *p, double value, char text[24])
{
    (void)snprintf(text, 24, "%.4g", p->log_x ? pow(10, value) : value);
}

// ---- letters --------------------------------------------------------------------------------------------------------

static void draw_points(const plot *p, char grid[ROWS][COLUMNS + 1])
{
    for (size_t s = 0; s < p->series_count; s++) {
        for (size_t k = 0; k < p->point_count; k++) {
            double across = 0, up = 0;
            if (place(p, s, k, &across, &up)) {
                grid[ROWS - 1 - (int)lround(up * (ROWS - 1))][(int)lround(across * (COLUMNS - 1))] = marks[s];
            }
        }
    }
}

static void write_legend(const plot *p, FILE *to)
{
    for (size_t s = 0; s < p->series_count; s++) {
        if (p->series[s].name[0] != '\0') {
            fprintf(to, "%*s %c %s\n", LABEL, "", marks[s], p->series[s].name);
        }
    }
}

void plot_write_text(const plot *p, FILE *to)
{
    char grid[ROWS][COLUMNS + 1], label[24], last[24];
    for (int row = 0; row < ROWS; row++) {
        memset(grid[row], ' ', COLUMNS);
        grid[row][COLUMNS] = '\0';
    }
    draw_points(p, grid);
    if (p->title[0] != '\0') {
        fprintf(to, "%*s  %s\n", LABEL, "", p->title);
    }
    for (int row = 0; row < ROWS; row++) {
        label[0] = '\0';
        if (row == 0 || row == ROWS - 1 || row == ROWS / 2) {
            y_text(p, p->y_most - (p->y_most - p->y_least) * row / (ROWS - 1), label);
        }
        size_t length = COLUMNS;
        while (length > 0 && grid[row][length - 1] == ' ') {
            length--;
        }
        fprintf(to, "%*s |%.*s\n", LABEL, label, (int)length, grid[row]);
    }
    x_text(p, p->x_least, label);
    x_text(p, p->x_most, last);
    fprintf(to, "%*s +", LABEL, "");
    for (int k = 0; k < COLUMNS; k++) {
        fputc('-', to);
    }
    const int middle = COLUMNS - (int)strlen(label) - (int)strlen(last);
    const int before = (middle - (int)strlen(p->x_label)) / 2;
    fprintf(to, "\n%*s  %s%*s%s%*s%s\n", LABEL, "", label, before > 0 ? before : 1, "", p->x_label,
            middle - before - (int)strlen(p->x_label) > 0 ? middle - before - (int)strlen(p->x_label) : 1, "",
            last);
    write_legend(p, to);
}

// ---- SVG ------------------------------------------------------------------------------------------------------------

static void write_escaped(const char *text, FILE *to)
{
    for (; *text != '\0'; text++) {
        const char *entity = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : NULL;
        if (entity != NULL) {
            fputs(entity, to);
        } else {
            fputc((unsigned char)*text < ' ' ? ' ' : *text, to);
        }
    }
}

static void write_label(FILE *to, double x, double y, const char *anchor, const char *text)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    write_escaped(text, to);
    fputs("</text>\n", to);
}

static void write_axes(const plot *p, FILE *to)
{
    enum { TICKS = 4 };
    char label[24];
    const double width = WIDTH - LEFT - RIGHT, height = HEIGHT - TOP - BOTTOM;
    for (int k = 0; k <= TICKS; k++) {
        const double y = TOP + height - height * k / TICKS, x = LEFT + width * k / TICKS;
        fprintf(to, "<path d=\"M%d %.1fH%d\" stroke=\"#ccc\"/>\n", LEFT, y, WIDTH - RIGHT);
        y_text(p, p->y_least + (p->y_most - p->y_least) * k / TICKS, label);
        write_label(to, LEFT - 8, y + 4, "end", label);
        x_text(p, p->x_least + (p->x_most - p->x_least) * k / TICKS, label);
        write_label(to, x, HEIGHT - BOTTOM + 18, "middle", label);
    }
    fprintf(to, "<path d=\"M%d %dV%dH%d\" stroke=\"#333\" fill=\"none\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
            WIDTH - RIGHT);
    write_label(to, LEFT + width / 2, HEIGHT - 12, "middle", p->x_label);
    write_label(to, LEFT + width / 2, 20, "middle", p->title);
}

static void write_series(const plot *p, size_t s, FILE *to)
{
    const double width = WIDTH - LEFT - RIGHT, height = HEIGHT - TOP - BOTTOM;
    bool joins = false;
    fprintf(to, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", colours[s]);
    for (size_t k = 0; k < p->point_count; k++) {
        double across = 0, up = 0;
        if (!place(p, s, k, &across, &up)) {
            joins = false;
            continue;
        }
        fprintf(to, "%c%.1f %.1f", joins ? 'L' : 'M', LEFT + across * width, TOP + (1 - up) * height);
        joins = true;
    }
    fputs("\"/>\n", to);
    if (p->series[s].name[0] != '\0') {
        const double y = TOP + 14 + 16 * (double)s;
        fprintf(to, "<path d=\"M%d %.1fh16\" stroke=\"%s\" stroke-width=\"2\"/>\n", WIDTH - 160, y - 4,
                colours[s]);
        write_label(to, WIDTH - 138, y, "start", p->series[s].name);
    }
}

void plot_write_svg(const plot *p, FILE *to)
{
    fprintf(
        to,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    write_axes(p, to);
    for (size_t s = 0; s < p->series_count; s++) {
        write_series(p, s, to);
    }
    fputs("</svg>\n", to);
}
