/* Fuzzes the validation of products. The fuzzer builds a description from the input bytes and
 * passes it to every function that validates descriptions. No function may crash. If one function
 * refuses the description, all must refuse it with a message. The data pointers are invalid
 * addresses, because the validation must not read them. */
#include "bsmm.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
    if (!condition) abort();
}

/* Copies the next `size` bytes of the input to `to`. If the input has fewer bytes left, the rest
 * is filled with zeros. */
static void take(input *in, void *to, size_t size) {
    size_t have = size < in->left ? size : in->left;
    memset(to, 0, size);
    if (have) memcpy(to, in->at, have);
    in->at += have;
    in->left -= have;
}

static uint8_t take_byte(input *in) {
    uint8_t byte;
    take(in, &byte, sizeof byte);
    return byte;
}

/* Makes a number from the input. The number is mostly small, because most rules are about small
 * numbers. Otherwise it is near a power of two, or any number. */
static uint64_t take_number(input *in) {
    uint8_t kind = take_byte(in);
    if (kind < 192) return kind < 128 ? kind % 12 : 16ull << kind % 8;
    if (kind < 224) return (1ull << take_byte(in) % 64) - 1 + kind % 4;
    uint64_t number;
    take(in, &number, sizeof number);
    return number;
}

/* Copies a struct into an allocation of exactly struct_size bytes, as a caller that was built with
 * another version of the library would pass it. The copy may be shorter than the struct. It may
 * also be longer, and the additional bytes are then mostly zero. */
static void *versioned(input *in, void *known, size_t size) {
    uint8_t kind = take_byte(in);
    uint32_t says = (uint32_t)size;
    if (kind >= 224) says = (uint32_t)(kind - 224) * 16;
    memcpy(known, &says, sizeof says);
    size_t bytes = says < 8 ? 8 : says;
    uint8_t *copy = calloc(1, bytes);
    require(copy != NULL);
    memcpy(copy, known, bytes < size ? bytes : size);
    if (says > size && kind % 2) copy[says - 1] = kind;
    return copy;
}

static const bsmm_matrix *take_matrix(input *in) {
    if (take_byte(in) >= 250) return NULL;
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    m.order = (uint32_t)take_number(in);
    m.format.elem = (uint32_t)take_number(in);
    m.format.scale = (uint32_t)take_number(in);
    m.format.block_rows = (uint32_t)take_number(in);
    m.format.block_cols = (uint32_t)take_number(in);
    m.rows = (int64_t)take_number(in);
    m.cols = (int64_t)take_number(in);
    m.ld = (int64_t)take_number(in);
    m.data = (void *)(uintptr_t)take_number(in);
    m.data_bytes = take_number(in);
    m.scales = (void *)(uintptr_t)take_number(in);
    m.scale_bytes = take_number(in);
    m.scale_layout = (uint32_t)take_number(in);
    m.global_kind = (uint32_t)take_number(in);
    m.scale_tile_rows = (uint32_t)take_number(in);
    m.scale_tile_cols = (uint32_t)take_number(in);
    m.scale_ld = (int64_t)take_number(in);
    return versioned(in, &m, sizeof m);
}

/* Makes a matrix of a known format with the given size, so that the fuzzer soon finds descriptions
 * whose matrices fit together. */
static const bsmm_matrix *take_sound_matrix(input *in, int64_t rows, int64_t cols) {
    bsmm_matrix m = BSMM_INIT(bsmm_matrix);
    bsmm_preset_info preset = BSMM_INIT(bsmm_preset_info);
    uint8_t kind = take_byte(in);
    if (bsmm_preset_at(kind % 16, &preset) == BSMM_OK)
        m.format = preset.format;
    else
        m.format.elem = BSMM_ELEM_F32 + kind / 16 % 4;
    m.rows = rows;
    m.cols = cols;
    m.scale_layout = kind / 64;
    uint64_t bytes;
    if (bsmm_scale_bytes(&m, &bytes) == BSMM_OK) m.scale_bytes = bytes;
    return versioned(in, &m, sizeof m);
}

static void check_matrix(const bsmm_matrix *m, input *in) {
    uint64_t bytes = 0, offset = 0;
    bsmm_status data = bsmm_data_bytes(m, &bytes);
    bsmm_status scales = bsmm_scale_bytes(m, &bytes);
    require((data == BSMM_OK && scales == BSMM_OK) || bsmm_error_message()[0] != 0);
    int64_t row = (int64_t)take_number(in), col = (int64_t)take_number(in);
    if (bsmm_scale_offset(m, row, col, &offset) == BSMM_OK)
        require(scales == BSMM_OK && offset < bytes);
}

static const char *take_name(input *in, const char *const *names, size_t count, char *own) {
    uint8_t kind = take_byte(in);
    if (kind < 200) return NULL;
    if (kind < 240) return names[kind % count];
    take(in, own, 8);
    return own;
}

/* Checks that a plan without a forced kernel takes the first kernel that bsmm_explain reports as
 * accepting. */
static void check_product(const bsmm_matmul_desc *desc, int forced) {
    bsmm_plan *plan = NULL;
    bsmm_status made = bsmm_plan_create(desc, &plan);
    require((made == BSMM_OK) == (plan != NULL));
    require(made == BSMM_OK || bsmm_error_message()[0] != 0);
    bsmm_explanation said = BSMM_INIT(bsmm_explanation);
    uint32_t index = 0;
    bsmm_status explained;
    while ((explained = bsmm_explain(desc, index, &said)) == BSMM_OK && !said.accepts) {
        require(said.reason[0] != 0);
        index++;
    }
    if (plan && !forced) {
        require(explained == BSMM_OK && strcmp(said.kernel, bsmm_plan_kernel(plan)) == 0);
        (void)bsmm_plan_workspace_bytes(plan);
        (void)bsmm_plan_packed_b_bytes(plan);
    }
    bsmm_plan_destroy(plan);
}

/* Holds the objects to which the fields of a fuzzed description of a product point. These objects
 * must live as long as the description. */
typedef struct pointed {
    float alpha, beta;
    char names[3][9];
} pointed;

static void take_scalars(input *in, bsmm_matmul_desc *desc, pointed *values) {
    static const char *const recipes[] = {"ocp", "rceil", "torchao", "deepgemm", "ggml", ""};
    static const char *const devices[] = {"cpu", "cuda:0", "cpu:1", "hip:99999999999", ""};
    static const char *const kernels[] = {"ref", "cpu_f32", "none", ""};
    desc->compute = (uint32_t)take_number(in) % 3;
    take(in, &values->alpha, sizeof values->alpha);
    take(in, &values->beta, sizeof values->beta);
    if (take_byte(in) % 2) desc->alpha = &values->alpha;
    if (take_byte(in) % 2) desc->beta = &values->beta;
    desc->bias = (const void *)(uintptr_t)take_number(in);
    desc->bias_elem = (uint32_t)take_number(in);
    desc->threads = (uint32_t)take_number(in);
    desc->b_packed = take_byte(in) % 4;
    desc->recipe = take_name(in, recipes, COUNT(recipes), values->names[0]);
    desc->device = take_name(in, devices, COUNT(devices), values->names[1]);
    desc->kernel = take_name(in, kernels, COUNT(kernels), values->names[2]);
}

static const bsmm_epilogue *take_epilogue(input *in, const bsmm_matrix *residual) {
    bsmm_epilogue e = BSMM_INIT(bsmm_epilogue);
    if (take_byte(in) < 128) return NULL;
    e.activation = (uint32_t)take_number(in);
    e.halves = (uint32_t)take_number(in);
    e.scale_by = (uint32_t)take_number(in);
    /* This call also fills slope and up_offset, which follow limit in the struct. */
    if (take_byte(in) % 2) take(in, &e.limit, 3 * sizeof e.limit);
    e.residual = take_byte(in) % 2 ? residual : NULL;
    return versioned(in, &e, sizeof e);
}

static const bsmm_group *take_group(input *in) {
    bsmm_group g = BSMM_INIT(bsmm_group);
    if (take_byte(in) < 128) return NULL;
    int64_t *const numbers[] = {
        &g.count,  &g.align,         &g.expected_rows, &g.a_step,       &g.b_step,      &g.c_step,
        &g.d_step, &g.residual_step, &g.a_scale_step,  &g.b_scale_step, &g.d_scale_step};
    g.kind = (uint32_t)take_number(in);
    g.flags = (uint32_t)take_number(in);
    for (size_t i = 0; i < COUNT(numbers) && take_byte(in) % 4; i++)
        *numbers[i] = (int64_t)take_number(in);
    return versioned(in, &g, sizeof g);
}

static void check_group(const bsmm_group *group, const bsmm_matrix *matrix) {
    uint64_t bytes;
    if (bsmm_group_scale_bytes(group, matrix, &bytes) != BSMM_OK)
        require(bsmm_error_message()[0] != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    uint8_t sound = take_byte(&in), shape = take_byte(&in);
    int64_t m = 9ll * (shape % 5), n = 11ll * (shape / 5 % 5), k = 29ll * (shape / 25);
    const int64_t rows[] = {m, n, m, m}, cols[] = {k, k, n, n};
    const bsmm_matrix *matrices[4];
    for (int i = 0; i < 4; i++)
        matrices[i] = sound >> i & 1 ? take_sound_matrix(&in, rows[i], cols[i]) : take_matrix(&in);

    pointed values = {0};
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    desc.a = matrices[0];
    desc.b = matrices[1];
    desc.c = sound & 16 ? NULL : matrices[2];
    desc.d = matrices[3];
    if (!(sound & 32)) take_scalars(&in, &desc, &values);
    desc.flags = (uint32_t)take_number(&in) % 5;
    desc.epilogue = take_epilogue(&in, matrices[3]);
    desc.group = take_group(&in);
    if (desc.group) check_group(desc.group, matrices[take_byte(&in) % 4]);
    void *copy = versioned(&in, &desc, sizeof desc);

    check_product(copy, desc.kernel != NULL);
    free(copy);
    free((void *)(uintptr_t)desc.epilogue);
    free((void *)(uintptr_t)desc.group);
    for (size_t i = 0; i < 4; i++) {
        check_matrix(matrices[i], &in);
        free((void *)(uintptr_t)matrices[i]);
    }
    return 0;
}
