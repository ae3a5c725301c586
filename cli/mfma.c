#include "mfma.h"
#include "common.h"
#include "mfma_drawing.h"
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

static const struct {
    const char *name, *title, *outer, *inner;
    uint32_t operand;
    bool transposed;
} operands[] = {
    {"A", "A(i, k): a row for each i", "i: row of A", "k: column of A", BSMM_MFMA_A, false},
    {"B", "B(k, j): a row for each j", "j: column of B", "k: row of B", BSMM_MFMA_B, true},
    {"C", "C(i, j): a row for each i", "i: row of C", "j: column of C", BSMM_MFMA_C, false},
    {"D", "D(i, j): a row for each i", "i: row of D", "j: column of D", BSMM_MFMA_D, false},
    {"scale_a", "scales of A(i, 32 q): a row for each i", "i: row of A",
     "q: block of 32 columns of A", BSMM_MFMA_SCALE_A, false},
    {"scale_b", "scales of B(32 q, j): a row for each j", "j: column of B",
     "q: block of 32 rows of B", BSMM_MFMA_SCALE_B, true},
};

static bool is_inside(const cli_mfma_drawing *d, uint32_t row, uint32_t col) {
    bsmm_mfma_place place = BSMM_INIT(bsmm_mfma_place);
    return !bsmm_mfma_find_place(d->info.name, d->type, d->kind, d->block, row, col, &place);
}

/* Finds the number of rows and columns of an operand. The function asks the library for one element
 * after another until an index is out of range. */
static void count_elements(cli_mfma_drawing *d) {
    uint32_t rows = 0, cols = 0;
    while (is_inside(d, rows, 0))
        rows++;
    while (rows && is_inside(d, 0, cols))
        cols++;
    d->rows = d->transposed ? cols : rows;
    d->cols = d->transposed ? rows : cols;
}

bsmm_mfma_place cli_mfma_place_at(const cli_mfma_drawing *d, uint32_t outer, uint32_t inner) {
    bsmm_mfma_place place = BSMM_INIT(bsmm_mfma_place);
    bsmm_mfma_find_place(d->info.name, d->type, d->kind, d->block, d->transposed ? inner : outer,
                         d->transposed ? outer : inner, &place);
    return place;
}

uint32_t cli_mfma_first_bit(bsmm_mfma_place place) {
    return place.reg * 32 + place.low_bit;
}

cli_text cli_mfma_registers(uint32_t low, uint32_t bits) {
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

static bool continues(const cli_mfma_drawing *d, uint32_t outer, const cli_mfma_run *r) {
    const bsmm_mfma_place next = cli_mfma_place_at(d, outer, r->from + r->count);
    const bool same_bits = cli_mfma_first_bit(next) == cli_mfma_first_bit(r->first);
    if (same_bits && next.lane == r->first.lane + r->count) return r->count == 1 || r->over_lanes;
    return next.lane == r->first.lane && !r->over_lanes &&
           cli_mfma_first_bit(next) == cli_mfma_first_bit(r->first) + r->count * next.bits;
}

cli_mfma_run cli_mfma_next_run(const cli_mfma_drawing *d, uint32_t outer, uint32_t from) {
    cli_mfma_run r = {from, 1, cli_mfma_place_at(d, outer, from), false};
    while (from + r.count < d->cols && continues(d, outer, &r)) {
        r.over_lanes = cli_mfma_place_at(d, outer, from + r.count).lane != r.first.lane;
        r.count++;
    }
    return r;
}

static cli_text run_text(const cli_mfma_run *r) {
    const uint32_t items = r->over_lanes ? 1 : r->count;
    const cli_text where = cli_mfma_registers(cli_mfma_first_bit(r->first), items * r->first.bits);
    cli_text text;
    if (r->over_lanes)
        snprintf(text.text, sizeof text.text, "lanes %u-%u %.100s", r->first.lane,
                 r->first.lane + r->count - 1, where.text);
    else
        snprintf(text.text, sizeof text.text, "lane %u %.100s", r->first.lane, where.text);
    return text;
}

static void print_heading(const cli_mfma_drawing *d) {
    printf("%s, operand %s", d->info.name, d->operand);
    if (d->type) printf(", type %s", d->type);
    if (d->info.blocks > 1) printf(", block %u of %u", d->block, d->info.blocks);
    printf("\n%s; a cell names its elements, their lanes, registers and bits\n", d->title);
}

static void draw_text(const cli_mfma_drawing *d) {
    print_heading(d);
    for (uint32_t outer = 0; outer < d->rows; outer++) {
        printf("%3u |", outer);
        for (uint32_t at = 0; at < d->cols;) {
            const cli_mfma_run r = cli_mfma_next_run(d, outer, at);
            if (r.count > 1)
                printf("  %u-%u: %s", at, at + r.count - 1, run_text(&r).text);
            else
                printf("  %u: %s", at, run_text(&r).text);
            at += r.count;
        }
        putchar('\n');
    }
}

static void list_places(const cli_mfma_drawing *d) {
    cli_rows *rows = cli_rows_open(cli_mfma_places, true);
    for (uint32_t outer = 0; outer < d->rows; outer++)
        for (uint32_t inner = 0; inner < d->cols; inner++) {
            const bsmm_mfma_place place = cli_mfma_place_at(d, outer, inner);
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

static bool find_instruction(const char *name, bsmm_mfma_info *info) {
    *info = BSMM_INIT(bsmm_mfma_info);
    for (uint32_t i = 0; !bsmm_mfma_at(i, info); i++)
        if (!strcmp(info->name, name)) return true;
    return false;
}

static bool find_operand(cli_mfma_drawing *d, const char *name) {
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++) {
        if (strcmp(operands[i].name, name)) continue;
        d->operand = operands[i].name, d->title = operands[i].title;
        d->outer_axis = operands[i].outer, d->inner_axis = operands[i].inner;
        d->kind = operands[i].operand, d->transposed = operands[i].transposed;
        return true;
    }
    return false;
}

int cli_mfma_draw(const char *name, const cli_mfma_values *options) {
    cli_mfma_drawing d = {.type = options->type, .block = (uint32_t)options->block};
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
    (options->json ? list_places : options->svg ? cli_mfma_draw_svg : draw_text)(&d);
    return CLI_OK;
}
