#include "host.h"

#include "driver.h"
#include "ladder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gives the size of the product: D has `m` rows and `n` columns, and A and B have `k` columns, i.e.
 * `k_blocks` k blocks. By default there are four k blocks, and D has two tiles along N, each as
 * large as the tile that a pair of thread blocks computes. The program's arguments may set other
 * sizes. */
static struct {
    uint32_t m, n, k, k_blocks;
    /* `checked` is true if the results are compared with those of the reference kernel. */
    bool checked;
} size = {2 * TILE_M, 2 * TILE_N, 0, 4, true};

/* Describes a pair of formats. `numbers` are the codes of the element types in the instruction
 * descriptor (PTX ISA, "Instruction descriptor"). e4m3 is 0, and e2m1 is 5, or 1 if all elements
 * have 4 bits. */
typedef struct pair {
    const char *names[2];
    ladder_kind kind;
    uint32_t numbers[2];
} pair;

static const pair pairs[] = {{{"mxfp8", "mxfp8"}, KIND_MXF8F6F4, {0, 0}},
                             {{"mxfp4", "mxfp4"}, KIND_MXF4, {1, 1}},
                             {{"mxfp8", "mxfp4"}, KIND_MXF8F6F4, {0, 5}},
                             {{"nvfp4", "nvfp4"}, KIND_NVF4, {1, 1}}};

static void need(bsmm_status status, const char *what) {
    if (status == BSMM_OK) return;
    fprintf(stderr, "%s: %s\n", what, bsmm_error_message());
    exit(1);
}

static void *new_bytes(uint64_t bytes) {
    void *memory = calloc(bytes, 1);
    if (!memory) fprintf(stderr, "out of memory\n"), exit(1);
    return memory;
}

static uint32_t random_below(uint32_t count) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % count;
}

/* Makes a matrix of random elements and scales. Every sum of their products is exact in fp32, so
 * that the results do not depend on the order of additions. */
static bsmm_matrix random_matrix(const char *name, int64_t rows, int64_t cols) {
    static const uint8_t e8m0[] = {126, 127, 128, 127}, e4m3[] = {0x30, 0x38, 0x3c, 0x40};
    bsmm_matrix m = {sizeof m, .rows = rows, .cols = cols};
    need(bsmm_format_from_name(name, &m.format), name);
    need(bsmm_data_bytes(&m, &m.data_bytes), "elements");
    need(bsmm_scale_bytes(&m, &m.scale_bytes), "scales");
    uint8_t *codes = m.data = new_bytes(m.data_bytes),
            *scales = m.scales = new_bytes(m.scale_bytes);
    for (uint64_t i = 0; i < m.data_bytes; i++)
        /* A byte is two e2m1 numbers, or an e4m3 number with a magnitude of 0.5 to 1.875. */
        codes[i] = m.format.elem == BSMM_ELEM_E2M1
                       ? (uint8_t)random_below(256)
                       : (uint8_t)(random_below(2) << 7 | (0x30 + random_below(16)));
    for (uint64_t i = 0; i < m.scale_bytes; i++)
        scales[i] = (m.format.scale == BSMM_SCALE_E8M0 ? e8m0 : e4m3)[random_below(4)];
    return m;
}

/* Returns the scales of an operand in the layout that the kernel of this step reads. */
static bsmm_matrix laid_out(const bsmm_matrix *from, const ladder_step *step, uint32_t tile_rows) {
    bsmm_matrix m = *from;
    m.scale_layout = step->layout, m.scale_bytes = 0;
    if (step->layout == BSMM_LAYOUT_TILE_CONTIGUOUS) {
        m.scale_tile_rows = tile_rows;
        m.scale_tile_cols = (uint32_t)(from->cols / from->format.block_cols / size.k_blocks);
    }
    need(bsmm_scale_bytes(&m, &m.scale_bytes), "scales");
    m.scales = new_bytes(m.scale_bytes);
    need(bsmm_relayout_scales(from, &m), "relayout");
    return m;
}

typedef struct operand {
    bsmm_matrix plain, laid;
    void *data, *scales; /* Both point to device memory. */
} operand;

static operand make_operand(const char *name, const ladder_step *step, int64_t rows, int64_t cols,
                            uint32_t tile_rows) {
    operand o = {.plain = random_matrix(name, rows, cols)};
    o.laid = laid_out(&o.plain, step, tile_rows);
    o.data = device_new(o.plain.data, o.plain.data_bytes);
    o.scales = device_new(o.laid.scales, o.laid.scale_bytes);
    return o;
}

static void free_operand(operand *o) {
    device_free(o->data), device_free(o->scales);
    free(o->plain.data), free(o->plain.scales), free(o->laid.scales);
}

/* Fills the tensor maps of an operand. If e2m1 elements are multiplied by e4m3 elements, TMA
 * spreads 16 e2m1 elements over 16 bytes of shared memory. Returns the number of bytes that TMA
 * counts for a box of elements. */
static uint32_t map_operand(ladder_params *p, int side, const operand *o, uint32_t box_rows) {
    const bool four = o->plain.format.elem == BSMM_ELEM_E2M1,
               spread = four && p->kind == KIND_MXF8F6F4;
    const uint64_t rows = (uint64_t)o->plain.rows, cols = (uint64_t)o->plain.cols;
    p->elements[side] = device_map(spread ? MAP_SPREAD_4_BITS : MAP_SWIZZLED_BYTES, o->data, rows,
                                   four && !spread ? cols / 2 : cols, box_rows, ROW_BYTES);
    p->scales[side] =
        device_map(MAP_BYTES, o->scales, o->laid.scale_bytes / 256, 256, 2 * p->scale_tiles, 256);
    p->plain_scales[side] = o->scales;
    return box_rows * ROW_BYTES / (spread ? 2 : 1);
}

static ladder_params params_of(const pair *formats, const operand *a, const operand *b, void *d,
                               uint32_t ctas) {
    const uint32_t scales = (uint32_t)a->plain.cols / a->plain.format.block_cols / size.k_blocks;
    ladder_params p = {.kind = formats->kind,
                       .k_blocks = size.k_blocks,
                       .step_scales = scales / 4,
                       .scale_tiles = scales / 4,
                       .tiles = size.m / TILE_M * (size.n / TILE_N) / ctas,
                       .tiles_n = size.n / TILE_N,
                       .d = device_map(MAP_F16, d, size.m, size.n, 32, 64)};
    p.form = formats->numbers[0] << 7 | formats->numbers[1] << 10 | TILE_N / 8 << 17 |
             (formats->kind == KIND_NVF4 ? 0 : 1u << 23) | ctas * TILE_M / 16 << 24;
    p.element_bytes = map_operand(&p, 0, a, TILE_M) + map_operand(&p, 1, b, TILE_N / ctas);
    return p;
}

static int count_differences(const operand *a, const operand *b, const uint16_t *d) {
    const size_t all = (size_t)size.m * size.n;
    uint16_t *reference = new_bytes(all * sizeof *reference);
    bsmm_matrix result = {sizeof result, .rows = size.m, .cols = size.n, .data = reference};
    result.format.elem = BSMM_ELEM_F16;
    const bsmm_matmul_desc desc = {sizeof desc, .a = &a->plain, .b = &b->plain, .d = &result,
                                   .kernel = "ref"};
    need(bsmm_matmul(&desc), "the reference");
    int differences = 0;
    for (size_t i = 0; i < all; i++)
        differences += d[i] != reference[i];
    free(reference);
    return differences;
}

/* Prints the time that the simulator's model predicts for the launch, if the device is simulated.
 */
static void print_model(double k) {
    device_model model;
    if (!device_read_model(&model)) return;
    printf(
        "    model: %.2f us, %.0f TFLOP/s, the tensor pipe is busy for %.0f%% of the main loop\n",
        model.seconds * 1e6, 2e-12 * size.m * size.n * k / model.seconds, 100 * model.busy);
}

static int run_pair(const ladder_step *step, const device_kernel *kernel, const pair *formats) {
    const uint32_t ctas = step->ctas ? step->ctas : 1;
    const uint32_t each = formats->kind == KIND_MXF8F6F4 ? ROW_BYTES : 2 * ROW_BYTES;
    if (size.k) size.k_blocks = size.k / each;
    const int64_t k = (int64_t)each * size.k_blocks;
    const size_t bytes = (size_t)size.m * size.n * sizeof(uint16_t);
    uint16_t *d = new_bytes(bytes);
    operand a = make_operand(formats->names[0], step, size.m, k, TILE_M),
            b = make_operand(formats->names[1], step, size.n, k, TILE_N);
    void *there = device_new(NULL, bytes);
    ladder_params p = params_of(formats, &a, &b, there, ctas);
    uint32_t blocks = p.tiles * ctas;
    if (step->persistent && blocks > kernel->multiprocessors)
        blocks = kernel->multiprocessors / ctas * ctas;
    device_launch(kernel, blocks, step->threads, ctas, SHARED_BYTES(step->stages, ctas), &p);
    int differences = 0;
    printf("%s x %s, %u x %u x %d", formats->names[0], formats->names[1], size.m, size.n, (int)k);
    if (size.checked) {
        device_read(d, there, bytes);
        differences = count_differences(&a, &b, d);
        printf(": %d of %u results differ from the reference", differences, size.m * size.n);
    }
    printf("\n");
    print_model((double)k);
    device_free(there);
    free_operand(&a), free_operand(&b), free(d);
    return differences != 0;
}

/* K must be a multiple of K_STEP, so that it consists of whole k blocks, and their scales fill
 * whole scale tiles. */
enum { K_STEP = 8 * ROW_BYTES };

static bool read_size(int count, char **arguments) {
    if (count != 5) return count == 2;
    size.m = (uint32_t)strtoul(arguments[2], NULL, 10);
    size.n = (uint32_t)strtoul(arguments[3], NULL, 10);
    size.k = (uint32_t)strtoul(arguments[4], NULL, 10);
    size.checked = false;
    return size.m && size.m % (2 * TILE_M) == 0 && size.n && size.n % TILE_N == 0 && size.k &&
           size.k % K_STEP == 0;
}

int ladder_run(const ladder_step *step, int count, char **arguments) {
    if (!read_size(count, arguments))
        return fprintf(
                   stderr,
                   "usage: %s KERNEL.ptx [M N K]\nM must be a multiple of %d, N of %d, and K of "
                   "%d. With sizes, the program prints only the model's time.\n",
                   arguments[0], 2 * TILE_M, TILE_N, K_STEP),
               2;
    const uint32_t ctas = step->ctas ? step->ctas : 1;
    const device_kernel kernel =
        device_open(arguments[1], "ladder", SHARED_BYTES(step->stages, ctas));
    int failed = 0;
    device_use_model(size.checked);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        failed |= run_pair(step, &kernel, &pairs[i]);
    return failed;
}
