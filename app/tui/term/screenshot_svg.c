// SPDX-License-Identifier: Apache-2.0
// The screen as SVG 1.1: the ground, then one path for all cells of one background, one for all shapes of one colour,
// then the text in runs. A run has the length of its cells (textLength), so that no font can move it off them.
#include <stdlib.h>
#include <string.h>

#include "app/tui/term/paint.h"
#include "app/tui/term/screenshot_shapes.h"

enum {
    W = SHAPE_WIDTH,
    H = SHAPE_HEIGHT,
    BASELINE = 25,  // of text, from the cell's top
    FONT_SIZE = 26, // monospaced fonts are about 0.6 em wide
    SCALE = 2,      // units of the drawing per unit of the page
    DIM_PERCENT = 60,
    NO_FILL = -1,
    TEXT_MAX = 512, // cells of a run
};

typedef struct cell {
    wchar_t glyph;  // 0: the right half of the one before
    int ink, paper; // 0xrrggbb; paper may be NO_FILL
    bool bold, underline;
} cell;

typedef struct screenshot {
    int rows, columns;
    cell *cells;
    FILE *out;
} screenshot;

// ---- from the screen ------------------------------------------------------------------------------------------

static int packed(const int rgb[3])
{
    return rgb[0] << 16 | rgb[1] << 8 | rgb[2];
}

static int color_of(int index, const int otherwise[3])
{
    int rgb[3];
    if (index == COLOR_DEFAULT) {
        return packed(otherwise);
    }
    theme_rgb(index, rgb);
    return packed(rgb);
}

// `percent` of a over what is below.
static int blend(int a, int below, int percent)
{
    int sum = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        int top = a >> shift & 255, bottom = below >> shift & 255;
        sum |= ((top * percent + bottom * (100 - percent)) / 100) << shift;
    }
    return sum;
}

static cell cell_of(const theme *t, const drawn *d)
{
    int ink_rgb[3], paper_rgb[3];
    theme_ground(t, ink_rgb, paper_rgb);
    int ink = color_of(d->style.foreground, ink_rgb), paper = color_of(d->style.background, paper_rgb);
    bool reverse = (d->style.attributes & STYLE_REVERSE) != 0;
    cell c = {.glyph = d->glyph,
              .ink = reverse ? paper : ink,
              .paper = reverse ? ink : paper,
              .bold = (d->style.attributes & STYLE_BOLD) != 0,
              .underline = (d->style.attributes & STYLE_UNDERLINE) != 0};
    if (d->style.attributes & STYLE_DIM) {
        c.ink = blend(c.ink, c.paper, DIM_PERCENT);
    }
    return c;
}

static void read_screen(screenshot *p, const theme *t)
{
    for (int y = 0; y < p->rows; y++) {
        for (int x = 0; x < p->columns;) {
            drawn d = paint_read(y, x);
            cell c = cell_of(t, &d);
            p->cells[y * p->columns + x++] = c;
            c.glyph = L'\0';
            for (int i = 1; i < d.columns && x < p->columns; i++) {
                p->cells[y * p->columns + x++] = c;
            }
        }
    }
}

// Shades are a colour of their own; blanks have none.
static int shape_ink(const cell *c, shape_rect rects[SHAPE_RECTS_MAX], int *count)
{
    int percent;
    *count = c->glyph == L'\0' || c->glyph == L' ' ? 0 : screenshot_shape(c->glyph, rects, &percent);
    return *count == 0 ? NO_FILL : percent == 100 ? c->ink : blend(c->ink, c->paper, percent);
}

// ---- paths ----------------------------------------------------------------------------------------------------

static int paper_of(const cell *c)
{
    return c->paper;
}

static int shape_color_of(const cell *c)
{
    shape_rect rects[SHAPE_RECTS_MAX];
    int count;
    return shape_ink(c, rects, &count);
}

static void put_rect(const screenshot *p, int x, int y, int w, int h)
{
    fprintf(p->out, "M%d %dh%dv%dh%dz", x, y, w, h, -w);
}

static bool is_wide(const shape_rect *r, int count)
{
    return count == 1 && r->x == 0 && r->w == W;
}

// Cells [x, x + …) whose one rectangle goes from side to side become one.
static int put_shapes(const screenshot *p, int y, int x, int color)
{
    const cell *row = &p->cells[y * p->columns];
    shape_rect rects[SHAPE_RECTS_MAX], next[SHAPE_RECTS_MAX];
    int count, more, width = 1;
    shape_ink(&row[x], rects, &count);
    if (is_wide(rects, count)) {
        while (x + width < p->columns && row[x + width].glyph == row[x].glyph &&
               shape_ink(&row[x + width], next, &more) == color) {
            width++;
        }
        put_rect(p, x * W, y * H + rects->y, width * W, rects->h);
        return width;
    }
    for (int i = 0; i < count; i++) {
        put_rect(p, x * W + rects[i].x, y * H + rects[i].y, rects[i].w, rects[i].h);
    }
    return 1;
}

static int put_paper(const screenshot *p, int y, int x, int color)
{
    const cell *row = &p->cells[y * p->columns];
    int width = 1;
    while (x + width < p->columns && row[x + width].paper == color) {
        width++;
    }
    put_rect(p, x * W, y * H, width * W, H);
    return width;
}

typedef struct layer {
    int (*color)(const cell *c);
    int (*put)(const screenshot *p, int y, int x, int color); // returns the cells it took
} layer;

static const layer papers = {paper_of, put_paper}, shapes = {shape_color_of, put_shapes};

static void put_path(const screenshot *p, const layer *l, int color)
{
    fprintf(p->out, "<path fill=\"#%06x\" d=\"", (unsigned)color);
    for (int y = 0; y < p->rows; y++) {
        for (int x = 0; x < p->columns;) {
            bool of_this = l->color(&p->cells[y * p->columns + x]) == color;
            x += of_this ? l->put(p, y, x, color) : 1;
        }
    }
    fputs("\"/>\n", p->out);
}

// One path per colour, the darkest number first. `without` is not drawn.
static void put_layer(const screenshot *p, const layer *l, int without)
{
    for (int last = NO_FILL;;) {
        int next = NO_FILL;
        for (int i = 0; i < p->rows * p->columns; i++) {
            int color = l->color(&p->cells[i]);
            if (color > last && color != without && (next == NO_FILL || color < next)) {
                next = color;
            }
        }
        if (next == NO_FILL) {
            return;
        }
        put_path(p, l, next);
        last = next;
    }
}

// ---- text -----------------------------------------------------------------------------------------------------

static bool is_text(const cell *c)
{
    shape_rect rects[SHAPE_RECTS_MAX];
    int percent;
    return c->glyph != L'\0' && c->glyph != L' ' && screenshot_shape(c->glyph, rects, &percent) == 0;
}

static bool same_pen(const cell *a, const cell *b)
{
    return a->ink == b->ink && a->bold == b->bold && a->underline == b->underline;
}

// Cells of the run that begins at row[0] with text: ASCII with single blanks between; anything else stands alone, since
// it may come from a font with other widths.
static int run_length(const cell *row, int room)
{
    if (row[0].glyph >= 0x80) {
        return 1 + (room > 1 && row[1].glyph == L'\0');
    }
    int length = 1;
    while (length < room && length < TEXT_MAX) {
        int gap = row[length].glyph == L' ' && length + 1 < room ? 1 : 0;
        const cell *next = &row[length + gap];
        if (!is_text(next) || next->glyph >= 0x80 || !same_pen(next, row) || (gap == 1 && row->underline)) {
            break;
        }
        length += gap + 1;
    }
    return length;
}

static void put_glyph(FILE *out, wchar_t glyph)
{
    char text[4];
    if (glyph == L'&' || glyph == L'<' || glyph == L'>') {
        fputs(glyph == L'&' ? "&amp;" : glyph == L'<' ? "&lt;" : "&gt;", out);
    } else {
        fwrite(text, 1, utf8_put(glyph, text), out);
    }
}

static int put_run(const screenshot *p, int y, int x)
{
    const cell *row = &p->cells[y * p->columns + x];
    int length = run_length(row, p->columns - x);
    fprintf(p->out, "<text x=\"%d\" y=\"%d\" textLength=\"%d\" fill=\"#%06x\"%s%s>", x * W, y * H + BASELINE,
            length * W, (unsigned)row->ink, row->bold ? " font-weight=\"bold\"" : "",
            row->underline ? " text-decoration=\"underline\"" : "");
    for (int i = 0; i < length; i++) {
        if (row[i].glyph != L'\0') {
            put_glyph(p->out, row[i].glyph);
        }
    }
    fputs("</text>\n", p->out);
    return length;
}

static void put_text(const screenshot *p)
{
    for (int y = 0; y < p->rows; y++) {
        for (int x = 0; x < p->columns;) {
            x += is_text(&p->cells[y * p->columns + x]) ? put_run(p, y, x) : 1;
        }
    }
}

bool paint_dump_svg(const theme *t, FILE *out)
{
    screenshot p = {.out = out};
    int ink[3], paper[3];
    theme_ground(t, ink, paper);
    paint_size(&p.rows, &p.columns);
    p.cells = calloc((size_t)p.rows * (size_t)p.columns, sizeof *p.cells);
    if (p.cells == NULL) {
        return false;
    }
    read_screen(&p, t);
    int width = p.columns * W, height = p.rows * H;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
            "%s\n<title>headroom</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#%06x\"/>\n"
            "<g shape-rendering=\"crispEdges\">\n",
            width / SCALE, height / SCALE, width, height, PAINT_SVG_MARK, width, height,
            (unsigned)packed(paper));
    put_layer(&p, &papers, packed(paper));
    put_layer(&p, &shapes, NO_FILL);
    fprintf(out, "</g>\n<g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"%d\">\n",
            FONT_SIZE);
    put_text(&p);
    fputs("</g>\n</svg>\n", out);
    free(p.cells);
    return ferror(out) == 0;
}
