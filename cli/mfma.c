#include "mfma.h"
#include "common.h"
#include "nearest.h"
#include "rows.h"
#include "words.h"
#include <stdio.h>
#include <string.h>

const cli_column cli_mfma_places[] = {
    {.key = "instruction", .help = "name of the instruction drawn"},
    {.key = "operand", .help = "name of the operand"},
    {.key = "block", .help = "number of the product in the instruction"},
    {.key = "row", .help = "row of the element in the operand"},
    {.key = "col", .help = "column of the element in the operand"},
    {.key = "lane", .help = "lane of the wave that holds it"},
    {.key = "register", .help = "register, counted from the operand's first"},
    {.key = "low_bit", .help = "lowest bit in that register"},
    {.key = "bits", .help = "bits of the element; those beyond 32 are in the next register"},
    {0},
};

enum { CELL = 60, ROW_HEIGHT = 22, MARGIN = 40, LANES = 64 };

/* Describes the drawing of one operand of a matrix instruction D(i, j) = sum over k of A(i, k)
 * B(k, j). The drawing of A, C or D has a line for each i, and the drawing of B has a line for
 * each j. The functions below call the index of the line `outer`. */
typedef struct drawing {
    bsmm_mfma_info info;
    const char *operand, *type;
    uint32_t kind, block, rows, cols;
    /* `transposed` is true if the operand is B. A line of the drawing is then a column of the
     * operand. */
    bool transposed;
    const char *title;
} drawing;

static const struct {
    const char *name, *title;
    uint32_t operand;
    bool transposed;
} operands[] = {
    {"A", "A(i, k): a row for each i", BSMM_MFMA_A, false},
    {"B", "B(k, j): a row for each j", BSMM_MFMA_B, true},
    {"C", "C(i, j): a row for each i", BSMM_MFMA_C, false},
    {"D", "D(i, j): a row for each i", BSMM_MFMA_D, false},
    {"scale_a", "scales of A(i, 32 q): a row for each i", BSMM_MFMA_SCALE_A, false},
    {"scale_b", "scales of B(32 q, j): a row for each j", BSMM_MFMA_SCALE_B, true},
};

static bool is_inside(const drawing *d, uint32_t row, uint32_t col) {
    bsmm_mfma_place place = BSMM_INIT(bsmm_mfma_place);
    return !bsmm_mfma_find_place(d->info.name, d->type, d->kind, d->block, row, col, &place);
}

/* Finds the number of rows and columns of an operand. The function asks the library for one element
 * after another until an index is out of range. */
static void count_elements(drawing *d) {
    uint32_t rows = 0, cols = 0;
    while (is_inside(d, rows, 0))
        rows++;
    while (rows && is_inside(d, 0, cols))
        cols++;
    d->rows = d->transposed ? cols : rows;
    d->cols = d->transposed ? rows : cols;
}

static bsmm_mfma_place place_at(const drawing *d, uint32_t outer, uint32_t inner) {
    bsmm_mfma_place place = BSMM_INIT(bsmm_mfma_place);
    bsmm_mfma_find_place(d->info.name, d->type, d->kind, d->block, d->transposed ? inner : outer,
                         d->transposed ? outer : inner, &place);
    return place;
}

static uint32_t first_bit(bsmm_mfma_place place) {
    return place.reg * 32 + place.low_bit;
}

/* Returns the name of a range of register bits: "v0[7:0]"; "v0" for a whole register;
 * "v0[31:30]-v1[3:0]" across two registers; "v2-v5" for several whole registers. */
static cli_text registers(uint32_t low, uint32_t bits) {
    const uint32_t high = low + bits - 1, first = low / 32, last = high / 32;
    cli_text text;
    if (low % 32 == 0 && high % 32 == 31)
        snprintf(text.text, sizeof text.text, first == last ? "v%u" : "v%u-v%u", first, last);
    else if (first == last)
        snprintf(text.text, sizeof text.text, "v%u[%u:%u]", first, high % 32, low % 32);
    else
        snprintf(text.text, sizeof text.text, "v%u[31:%u]-v%u[%u:0]", first, low % 32, last,
                 high % 32);
    return text;
}

/* Describes neighboring elements of a line that share one cell of the drawing. Either one lane
 * holds all of them in adjacent bits, or adjacent lanes hold them in the same bits (over_lanes). */
typedef struct run {
    uint32_t from, count;
    bsmm_mfma_place first;
    bool over_lanes;
} run;

static bool continues(const drawing *d, uint32_t outer, const run *r) {
    const bsmm_mfma_place next = place_at(d, outer, r->from + r->count);
    const bool same_bits = first_bit(next) == first_bit(r->first);
    if (same_bits && next.lane == r->first.lane + r->count) return r->count == 1 || r->over_lanes;
    return next.lane == r->first.lane && !r->over_lanes &&
           first_bit(next) == first_bit(r->first) + r->count * next.bits;
}

static run next_run(const drawing *d, uint32_t outer, uint32_t from) {
    run r = {from, 1, place_at(d, outer, from), false};
    while (from + r.count < d->cols && continues(d, outer, &r)) {
        r.over_lanes = place_at(d, outer, from + r.count).lane != r.first.lane;
        r.count++;
    }
    return r;
}

static cli_text run_text(const run *r) {
    const uint32_t items = r->over_lanes ? 1 : r->count;
    const cli_text where = registers(first_bit(r->first), items * r->first.bits);
    cli_text text;
    if (r->over_lanes)
        snprintf(text.text, sizeof text.text, "lanes %u-%u %.100s", r->first.lane,
                 r->first.lane + r->count - 1, where.text);
    else
        snprintf(text.text, sizeof text.text, "lane %u %.100s", r->first.lane, where.text);
    return text;
}

static void print_heading(const drawing *d) {
    printf("%s, operand %s", d->info.name, d->operand);
    if (d->type) printf(", type %s", d->type);
    if (d->info.blocks > 1) printf(", block %u of %u", d->block, d->info.blocks);
    printf("\n%s; a cell names its elements, their lanes, registers and bits\n", d->title);
}

static void draw_text(const drawing *d) {
    print_heading(d);
    for (uint32_t outer = 0; outer < d->rows; outer++) {
        printf("%3u |", outer);
        for (uint32_t at = 0; at < d->cols;) {
            const run r = next_run(d, outer, at);
            if (r.count > 1)
                printf("  %u-%u: %s", at, at + r.count - 1, run_text(&r).text);
            else
                printf("  %u: %s", at, run_text(&r).text);
            at += r.count;
        }
        putchar('\n');
    }
}

static void list_places(const drawing *d) {
    cli_rows *rows = cli_rows_open(cli_mfma_places, true);
    for (uint32_t outer = 0; outer < d->rows; outer++)
        for (uint32_t inner = 0; inner < d->cols; inner++) {
            const bsmm_mfma_place place = place_at(d, outer, inner);
            cli_row_text(rows, d->info.name);
            cli_row_text(rows, d->operand);
            cli_row_integer(rows, d->block);
            cli_row_integer(rows, d->transposed ? inner : outer);
            cli_row_integer(rows, d->transposed ? outer : inner);
            cli_row_integer(rows, place.lane);
            cli_row_integer(rows, place.reg);
            cli_row_integer(rows, place.low_bit);
            cli_row_integer(rows, place.bits);
        }
    cli_rows_close(rows);
}

static void draw_cell(const drawing *d, uint32_t outer, uint32_t inner) {
    const bsmm_mfma_place p = place_at(d, outer, inner);
    const uint32_t x = MARGIN + inner * CELL, y = MARGIN + outer * ROW_HEIGHT;
    printf("<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"hsl(%u,60%%,%u%%)\"/>\n", x,
           y, CELL - 1, ROW_HEIGHT - 1, p.lane * 360 / LANES, 92 - p.reg % 4 * 6);
    printf("<text x=\"%u\" y=\"%u\">%u %s</text>\n", x + CELL / 2, y + 15, p.lane,
           registers(first_bit(p), p.bits).text);
}

/* Draws the operand as SVG. Each lane has its own colour, which is darker for higher registers. */
static void draw_svg(const drawing *d) {
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
           "font-family=\"sans-serif\" font-size=\"9\" text-anchor=\"middle\">\n",
           MARGIN + d->cols * CELL, MARGIN + d->rows * ROW_HEIGHT);
    printf("<text x=\"%d\" y=\"14\" font-size=\"12\" text-anchor=\"start\">%s, %s; cells: lane, "
           "register and bits</text>\n",
           MARGIN, d->info.name, d->title);
    for (uint32_t inner = 0; inner < d->cols; inner++)
        printf("<text x=\"%u\" y=\"%d\">%u</text>\n", MARGIN + inner * CELL + CELL / 2, MARGIN - 6,
               inner);
    for (uint32_t outer = 0; outer < d->rows; outer++) {
        printf("<text x=\"%d\" y=\"%u\">%u</text>\n", MARGIN / 2, MARGIN + outer * ROW_HEIGHT + 15,
               outer);
        for (uint32_t inner = 0; inner < d->cols; inner++)
            draw_cell(d, outer, inner);
    }
    printf("</svg>\n");
}

static bool find_instruction(const char *name, bsmm_mfma_info *info) {
    *info = BSMM_INIT(bsmm_mfma_info);
    for (uint32_t i = 0; !bsmm_mfma_at(i, info); i++)
        if (!strcmp(info->name, name)) return true;
    return false;
}

static bool find_operand(drawing *d, const char *name) {
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++) {
        if (strcmp(operands[i].name, name)) continue;
        d->operand = operands[i].name, d->title = operands[i].title;
        d->kind = operands[i].operand, d->transposed = operands[i].transposed;
        return true;
    }
    return false;
}

int cli_mfma_draw(const char *name, const cli_mfma_values *options) {
    drawing d = {.type = options->type, .block = (uint32_t)options->block};
    bsmm_mfma_place place = BSMM_INIT(bsmm_mfma_place);
    if (!find_instruction(name, &d.info))
        return cli_usage("INSTRUCTION: value is %s; must be one that 'bsmm mfma' lists%s", name,
                         cli_did_you_mean(cli_words_of("INSTRUCTION"), name).text);
    if (!find_operand(&d, options->operand ? options->operand : "A"))
        return cli_usage_word("OPERAND", options->operand);
    if (d.kind >= BSMM_MFMA_SCALE_A && !d.info.is_scaled)
        return cli_usage("--operand: value is %s; %s takes no scales", d.operand, name);
    if (options->block >= d.info.blocks)
        return cli_usage("--block: value is %lld; must be below %u", (long long)options->block,
                         d.info.blocks);
    if (bsmm_mfma_find_place(name, d.type, d.kind, d.block, 0, 0, &place))
        return cli_usage("%s", bsmm_error_message());
    count_elements(&d);
    (options->json ? list_places : options->svg ? draw_svg : draw_text)(&d);
    return CLI_OK;
}
