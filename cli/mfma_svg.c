/* Draws an operand of an AMD matrix instruction as SVG. A line of the drawing is a row of the
 * operand, or a column of B. A cell has neighboring elements of a line that one lane holds in
 * adjacent bits. Lines that are too long for the picture's width are cut into panels, which stand
 * below one another. All lengths are in pixels. */
#include "mfma_drawing.h"
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 900,   /* width of the picture */
    LEFT = 52,     /* distance from the picture's left edge to the cells */
    LINE = 18,     /* height of a cell, and of a line of text */
    LEGEND = 34,   /* top of the legend */
    FIRST = 146,   /* top of the first panel */
    HEAD = 40,     /* height of the axis title and indices above a panel's cells */
    GLYPH = 29,    /* width of a character of the text, in quarters of a pixel */
    LANES = 64,    /* lanes of a wave */
    SAMPLES = 8,   /* largest number of samples of color in each half of the legend */
    SAMPLE_W = 36, /* width of a sample */
    LIGHTEST = 90, /* lightness of register 0, in percent */
    SHADES = 34    /* difference in lightness between register 0 and the highest, in percent */
};

/* Describes how the cells are laid out. */
typedef struct grid {
    uint32_t length;    /* elements in a cell */
    uint32_t width;     /* width of a cell */
    uint32_t cells;     /* cells of a line in a panel */
    uint32_t registers; /* registers that a lane needs for the operand */
} grid;

/* Returns a channel of the color with hue `degrees`, saturation 65% and the given lightness, as a
 * number below 256. `channel` is 0 for red, 8 for green and 4 for blue. */
static uint32_t channel_of(int degrees, int lightness, int channel) {
    const int angle = (channel * 30 + degrees) % 360;
    const int rise = angle - 90, fall = 270 - angle;
    int slope = rise < fall ? rise : fall;
    slope = slope > 30 ? 30 : slope < -30 ? -30 : slope;
    const int range = 65 * (lightness < 50 ? lightness : 100 - lightness);
    return (uint32_t)((lightness * 3000 - range * slope) * 255 / 300000);
}

/* Returns a color whose hue depends on the lane and whose lightness depends on the register. */
static cli_text color_of(const grid *g, uint32_t lane, uint32_t reg) {
    const int hue = (int)(lane * 360 / LANES),
              light = LIGHTEST - (int)(SHADES * reg / g->registers);
    cli_text text;
    snprintf(text.text, sizeof text.text, "#%02x%02x%02x", channel_of(hue, light, 0),
             channel_of(hue, light, 8), channel_of(hue, light, 4));
    return text;
}

/* Returns how many elements a cell has: as many as one lane holds in adjacent bits, if this is the
 * same number throughout the operand, and otherwise 1. */
static uint32_t cell_length(const cli_mfma_drawing *d) {
    const uint32_t length = cli_mfma_next_run(d, 0, 0).count;
    for (uint32_t outer = 0; outer < d->rows; outer++)
        for (uint32_t inner = 0; inner < d->cols; inner += length) {
            const cli_mfma_run r = cli_mfma_next_run(d, outer, inner);
            if (r.over_lanes || r.count < length) return 1;
        }
    return length;
}

static cli_text cell_text(const cli_mfma_drawing *d, const grid *g, uint32_t outer, uint32_t cell) {
    const bsmm_mfma_place p = cli_mfma_place_at(d, outer, cell * g->length);
    cli_text text;
    snprintf(text.text, sizeof text.text, "%u %.100s", p.lane,
             cli_mfma_registers(cli_mfma_first_bit(p), g->length * p.bits).text);
    return text;
}

static uint32_t cells_of(const cli_mfma_drawing *d, const grid *g) {
    return d->cols / g->length;
}

static grid make_grid(const cli_mfma_drawing *d) {
    grid g = {.length = cell_length(d)};
    size_t longest = 0;
    for (uint32_t outer = 0; outer < d->rows; outer++)
        for (uint32_t cell = 0; cell < cells_of(d, &g); cell++) {
            const bsmm_mfma_place p = cli_mfma_place_at(d, outer, cell * g.length);
            const uint32_t end = (cli_mfma_first_bit(p) + g.length * p.bits + 31) / 32;
            const size_t characters = strlen(cell_text(d, &g, outer, cell).text);
            if (characters > longest) longest = characters;
            if (end > g.registers) g.registers = end;
        }
    g.width = (uint32_t)longest * GLYPH / 4 + 8;
    const uint32_t fitting = (WIDTH - LEFT) / g.width;
    const uint32_t panels = (cells_of(d, &g) + fitting - 1) / fitting;
    g.cells = (cells_of(d, &g) + panels - 1) / panels;
    return g;
}

static void draw_cell(uint32_t x, uint32_t y, uint32_t width, cli_text fill, const char *text) {
    printf("<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%d\" fill=\"%s\"/>\n", x, y, width - 1,
           LINE - 1, fill.text);
    printf("<text x=\"%u\" y=\"%u\">%s</text>\n", x + width / 2, y + 13, text);
}

static const char *const notes[] = {
    "A cell has one element, or the elements that the label above it gives as a range.",
    "Its first number is the lane, 0 to 63, of the wave that holds the elements.",
    "v and a number is a register of the lane, 32 bits wide, counted from the operand's first.",
    "[high:low] are the bits of the register, if the elements do not fill it. Bit 0 is the lowest.",
};

static void draw_legend(const grid *g) {
    const uint32_t registers_x = 460, step = (g->registers + SAMPLES - 1) / SAMPLES;
    printf("<g id=\"legend\">\n");
    printf("<text x=\"8\" y=\"%d\" text-anchor=\"start\">Hue: lane</text>\n", LEGEND + 13);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        const uint32_t lane = i * LANES / SAMPLES;
        char text[12];
        snprintf(text, sizeof text, "%u", lane);
        draw_cell(84 + i * SAMPLE_W, LEGEND, SAMPLE_W, color_of(g, lane, 0), text);
    }
    printf("<text x=\"%u\" y=\"%d\" text-anchor=\"end\">Lightness: first register</text>\n",
           registers_x + 140, LEGEND + 13);
    for (uint32_t reg = 0; reg < g->registers; reg += step)
        draw_cell(registers_x + 148 + reg / step * SAMPLE_W, LEGEND, SAMPLE_W, color_of(g, 0, reg),
                  cli_mfma_registers(reg * 32, 32).text);
    for (uint32_t i = 0; i < sizeof notes / sizeof notes[0]; i++)
        printf("<text x=\"8\" y=\"%u\" text-anchor=\"start\">%s</text>\n", LEGEND + 36 + i * LINE,
               notes[i]);
    printf("</g>\n");
}

/* Draws one panel of the picture: for each line, as many cells as fit into the panel, beginning
 * with cell `first`, and the axes. */
static void draw_panel(const cli_mfma_drawing *d, const grid *g, uint32_t first, uint32_t top) {
    const uint32_t rest = cells_of(d, g) - first, cells = rest < g->cells ? rest : g->cells;
    const uint32_t y = top + HEAD, middle = y + d->rows * LINE / 2;
    printf("<text x=\"%d\" y=\"%u\" text-anchor=\"start\" class=\"axis-title\" "
           "font-style=\"italic\">%s</text>\n",
           LEFT, top + 13, d->inner_axis);
    printf("<text x=\"14\" y=\"%u\" transform=\"rotate(-90 14 %u)\" class=\"axis-title\" "
           "font-style=\"italic\">%s</text>\n",
           middle, middle, d->outer_axis);
    for (uint32_t i = 0; i < cells; i++) {
        const uint32_t from = (first + i) * g->length;
        char range[32];
        snprintf(range, sizeof range, g->length > 1 ? "%u-%u" : "%u", from, from + g->length - 1);
        printf("<text x=\"%u\" y=\"%u\" class=\"index\">%s</text>\n",
               LEFT + i * g->width + g->width / 2, y - 6, range);
    }
    for (uint32_t outer = 0; outer < d->rows; outer++) {
        printf("<text x=\"%d\" y=\"%u\" text-anchor=\"end\" class=\"index\">%u</text>\n", LEFT - 6,
               y + outer * LINE + 13, outer);
        for (uint32_t i = 0; i < cells; i++) {
            const bsmm_mfma_place p = cli_mfma_place_at(d, outer, (first + i) * g->length);
            draw_cell(LEFT + i * g->width, y + outer * LINE, g->width, color_of(g, p.lane, p.reg),
                      cell_text(d, g, outer, first + i).text);
        }
    }
}

static void draw_title(const cli_mfma_drawing *d) {
    printf("<text x=\"8\" y=\"20\" font-size=\"14\" font-weight=\"bold\" text-anchor=\"start\">%s, "
           "operand %s",
           d->info.name, d->operand);
    if (d->type) printf(", type %s", d->type);
    if (d->info.blocks > 1) printf(", block %u of %u", d->block, d->info.blocks);
    printf("</text>\n");
}

void cli_mfma_draw_svg(const cli_mfma_drawing *d) {
    const grid g = make_grid(d);
    const uint32_t panels = (cells_of(d, &g) + g.cells - 1) / g.cells;
    const uint32_t panel = HEAD + d->rows * LINE + LINE, height = FIRST + panels * panel;
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
           "viewBox=\"0 0 %d %u\" font-family=\"monospace\" font-size=\"12\" "
           "text-anchor=\"middle\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
           WIDTH, height, WIDTH, height);
    draw_title(d);
    draw_legend(&g);
    for (uint32_t i = 0; i < panels; i++)
        draw_panel(d, &g, i * g.cells, FIRST + i * panel);
    printf("</svg>\n");
}
