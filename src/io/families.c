/* This file has the tables of checkpoint families, i.e. of the conventions by which quantization
 * tools name and store weights. docs/ARCHITECTURE.md shows how to add a family. Each family's entry
 * names the source of its rules. */
#include "io/family.h"

#include <string.h>

/* This table describes the checkpoint families for the command `bsmm families` and the
 * documentation. The field `writes` is not set in this table, but follows from the table `rows`
 * below: it is true if `rows` has an entry of the family that the writer can use. The field
 * `written` lists the formats that the writer accepts, and a test compares it with the writer. */
/* clang-format off */
static const bsmm_family_info families[] = {
    {.name = "plain", .formats = "f32 f16 bf16 e4m3 e4m3fnuz e5m2 e5m2fnuz e3m2 e2m3 e2m1",
     .written = "f32 f16 bf16",
     .detected_by = "a float tensor of two dimensions or more that no other family takes",
     .source = "safetensors, GGUF, numpy"},
    {.name = "deepseek", .formats = "fp8_block128 fp8_block128_fnuz",
     .written = "fp8_block128 fp8_block128_fnuz",
     .detected_by = "X.weight F8_E4M3 [N, K] with X.weight_scale_inv F32 [N/128, K/128]",
     .source = "DeepSeek-V3 README_WEIGHTS.md, inference/fp8_cast_bf16.py"},
    {.name = "deepseek-v4", .formats = "fp8_block128 mxfp4, and e4m3 in 128x128 with e8m0",
     .written = "",
     .detected_by = "X.weight F8_E4M3 with X.scale F8_E8M0 or F32 [N/128, K/128]; "
                    "X.weight I8 [N, K/2] with X.scale F8_E8M0 [N, K/32]",
     .source = "vLLM models/deepseek_v4/fp4_dequant.py, quant_config.py"},
    {.name = "gpt-oss", .formats = "mxfp4",
     .written = "mxfp4",
     .detected_by = "X.blocks U8 [E, rows, G, 16] with X.scales U8 [E, rows, G]",
     .source = "openai/gpt-oss gpt_oss/torch/weights.py"},
    {.name = "gpt-oss-hf", .formats = "mxfp4",
     .written = "mxfp4",
     .detected_by = "X_blocks U8 [E, rows, G, 16] with X_scales U8 [E, rows, G]",
     .source = "transformers integrations/mxfp4.py, llama.cpp conversion/gpt_oss.py"},
    {.name = "modelopt", .formats = "nvfp4 mxfp4 fp8_tensor",
     .written = "nvfp4 fp8_tensor",
     .detected_by = "X.weight U8 [N, K/2] with X.weight_scale F8_E4M3 [N, K/16] and X.weight_scale_2 "
                    "F32 (multiplier); or with X.weight_scale U8 [N, K/32] unless config.json says "
                    "quark; X.weight F8_E4M3 with X.weight_scale F32 []",
     .source = "Model-Optimizer qtensor/nvfp4_tensor.py, qtensor/mxfp4_tensor.py"},
    {.name = "compressed-tensors",
     .formats = "nvfp4 mxfp4 mxfp6_e2m3 mxfp8 fp8_block128 fp8_channel fp8_tensor",
     .written = "nvfp4 mxfp4 mxfp6_e2m3 mxfp8 fp8_block128 fp8_channel fp8_tensor",
     .detected_by = "X.weight_packed U8 [N, K/2] with X.weight_scale F8_E4M3 [N, K/16] and "
                    "X.weight_global_scale F32 (divisor), or with X.weight_scale U8 [N, K/32]; "
                    "X.weight_packed U8 [N, 3K/4] with X.weight_scale U8 [N, K/32]; X.weight "
                    "F8_E4M3 with X.weight_scale U8 [N, K/32], or F32 [N/128, K/128], [N, 1] or [1]",
     .source = "compressed-tensors compressors/nvfp4, mxfp4, mxfp6, mxfp8, naive_quantized"},
    {.name = "quark", .formats = "mxfp4 mxfp6_e2m3 mxfp6_e3m2",
     .written = "mxfp4 mxfp6_e2m3 mxfp6_e3m2",
     .detected_by = "X.weight U8 [N, K/2] or [N, 3K/4] with X.weight_scale U8 [N, K/32], and "
                    "quantization_config of quark with weight dtype fp4, fp6_e2m3 or fp6_e3m2",
     .source = "Quark quark/torch/utils/pack.py Pack_fp4, Pack_fp6"},
    {.name = "quark-legacy", .formats = "mxfp4 mxfp6_e2m3 mxfp6_e3m2",
     .written = "",
     .detected_by = "X.weight U8 of 17- or 25-byte blocks, and quantization_config of quark with "
                    "weight dtype mx",
     .source = "Quark quark/torch/utils/pack.py Pack_mxfp4, Pack_mxfp6"},
    {.name = "gguf",
     .formats = "mxfp4 nvfp4, and as f32 every other quantized type of ggml",
     .written = "mxfp4 nvfp4",
     .detected_by = "tensor type MXFP4 (39), or NVFP4 (40) with X.scale F32 as global scale, or a "
                    "quantized type that ggml decodes to f32",
     .source = "ggml ggml-common.h, ggml-quants.c"},
    {.name = "bsmm", .formats = "every format, block shape, order and scale layout",
     .written = "every format, block shape, order and scale layout",
     .detected_by = "metadata bsmm.X declares tensor X, with X_scale and X_scale_2; or MX and nvfp4 "
                    "in native types, X.weight with X.weight_scale",
     .source = "this library, src/io/declaration.c"},
};

#define MX(element) {BSMM_ELEM_##element, BSMM_SCALE_E8M0, 1, 32}
#define NVFP4       {BSMM_ELEM_E2M1, BSMM_SCALE_E4M3, 1, 16}
#define FP8_128     {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 128, 128}
#define FNUZ_128    {BSMM_ELEM_E4M3FNUZ, BSMM_SCALE_F32, 128, 128}
#define E8M0_128    {BSMM_ELEM_E4M3, BSMM_SCALE_E8M0, 128, 128}
#define FP8_CHANNEL {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 1, 0}
#define FP8_TENSOR  {BSMM_ELEM_E4M3, BSMM_SCALE_F32, 0, 0}

/* The macro GGML makes an entry of the table `rows` below. The entry is for a weight type of the
 * ggml library that this library has no format for, such as Q4_K. The reader decodes a weight of
 * this type to an fp32 matrix with the values that ggml would decode. */
#define GGML(type)                                                                                 \
    {.family = "gguf", .data = "", .name = "", .data_dtype = type,                                 \
     .format = {.elem = BSMM_ELEM_F32}, .unpack = bsmm_unpack_gguf_plain, .in_gguf = true}

/* Each entry describes one way in which a checkpoint family stores a weight (bsmm_storage). The
 * order matters: the reader uses the first entry that fits a tensor, and the writer the first one
 * that fits a matrix and has `writes` set. */
static const bsmm_storage rows[] = {
    {.family = "deepseek", .data = ".weight", .scale = ".weight_scale_inv", .name = ".weight",
     .data_dtype = "F8_E4M3", .scale_dtype = "F32", .format = FP8_128, .writes = true},
    {.family = "deepseek", .data = ".weight", .scale = ".weight_scale_inv", .name = ".weight",
     .data_dtype = "F8_E4M3FNUZ", .scale_dtype = "F32", .format = FNUZ_128, .writes = true},
    {.family = "deepseek-v4", .data = ".weight", .scale = ".scale", .name = ".weight",
     .data_dtype = "F8_E4M3", .scale_dtype = "F8_E8M0", .format = E8M0_128},
    {.family = "deepseek-v4", .data = ".weight", .scale = ".scale", .name = ".weight",
     .data_dtype = "F8_E4M3", .scale_dtype = "F32", .format = FP8_128},
    {.family = "deepseek-v4", .data = ".weight", .scale = ".scale", .name = ".weight",
     .data_dtype = "I8", .scale_dtype = "F8_E8M0", .format = MX(E2M1),
     .pack_bytes = 1, .pack_elems = 2},
    {.family = "modelopt", .data = ".weight", .scale = ".weight_scale",
     .global = ".weight_scale_2", .name = ".weight", .data_dtype = "U8", .scale_dtype = "F8_E4M3",
     .format = NVFP4, .pack_bytes = 1, .pack_elems = 2, .writes = true},
    {.family = "compressed-tensors", .data = ".weight_packed", .scale = ".weight_scale",
     .global = ".weight_global_scale", .name = ".weight", .data_dtype = "U8",
     .scale_dtype = "F8_E4M3", .format = NVFP4, .pack_bytes = 1, .pack_elems = 2,
     .global_kind = BSMM_GLOBAL_DIVISOR, .global_ndim = 1, .unmistakable = true, .writes = true},
    {.family = "compressed-tensors", .data = ".weight_packed", .scale = ".weight_scale",
     .name = ".weight", .data_dtype = "U8", .scale_dtype = "U8", .format = MX(E2M3),
     .pack_bytes = 3, .pack_elems = 4, .by_shape = true, .unmistakable = true, .writes = true},
    {.family = "compressed-tensors", .data = ".weight_packed", .scale = ".weight_scale",
     .name = ".weight", .data_dtype = "U8", .scale_dtype = "U8", .format = MX(E2M1),
     .pack_bytes = 1, .pack_elems = 2, .unmistakable = true, .writes = true},
    {.family = "compressed-tensors", .data = ".weight", .scale = ".weight_scale",
     .name = ".weight", .data_dtype = "F8_E4M3", .scale_dtype = "U8", .format = MX(E4M3),
     .writes = true},
    {.family = "modelopt", .data = ".weight", .scale = ".weight_scale", .name = ".weight",
     .data_dtype = "F8_E4M3", .scale_dtype = "F32", .format = FP8_TENSOR,
     .scale_shape = BSMM_SCALES_SCALAR, .by_shape = true, .writes = true},
    {.family = "compressed-tensors", .data = ".weight", .scale = ".weight_scale",
     .name = ".weight", .data_dtype = "F8_E4M3", .scale_dtype = "F32", .format = FP8_TENSOR,
     .scale_shape = BSMM_SCALES_ONE, .by_shape = true, .writes = true},
    {.family = "compressed-tensors", .data = ".weight", .scale = ".weight_scale",
     .name = ".weight", .data_dtype = "F8_E4M3", .scale_dtype = "F32", .format = FP8_CHANNEL,
     .by_shape = true, .writes = true},
    {.family = "compressed-tensors", .data = ".weight", .scale = ".weight_scale",
     .name = ".weight", .data_dtype = "F8_E4M3", .scale_dtype = "F32", .format = FP8_128,
     .writes = true},
    {.family = "quark", .data = ".weight", .scale = ".weight_scale", .name = ".weight",
     .data_dtype = "U8", .scale_dtype = "U8", .format = MX(E2M1), .evidence = "quark fp4",
     .pack_bytes = 1, .pack_elems = 2, .writes = true},
    {.family = "quark", .data = ".weight", .scale = ".weight_scale", .name = ".weight",
     .data_dtype = "U8", .scale_dtype = "U8", .format = MX(E2M3), .evidence = "quark fp6_e2m3",
     .pack_bytes = 3, .pack_elems = 4, .writes = true},
    {.family = "quark", .data = ".weight", .scale = ".weight_scale", .name = ".weight",
     .data_dtype = "U8", .scale_dtype = "U8", .format = MX(E3M2), .evidence = "quark fp6_e3m2",
     .pack_bytes = 3, .pack_elems = 4, .writes = true},
    {.family = "quark-legacy", .data = ".weight", .name = ".weight", .data_dtype = "U8",
     .format = MX(E2M1), .evidence = "quark mx fp4", .pack_bytes = 17, .pack_elems = 32,
     .unpack = bsmm_unpack_quark_mxfp4},
    {.family = "quark-legacy", .data = ".weight", .name = ".weight", .data_dtype = "U8",
     .format = MX(E2M3), .evidence = "quark mx fp6_e2m3", .pack_bytes = 25, .pack_elems = 32,
     .unpack = bsmm_unpack_quark_mxfp6},
    {.family = "quark-legacy", .data = ".weight", .name = ".weight", .data_dtype = "U8",
     .format = MX(E3M2), .evidence = "quark mx fp6_e3m2", .pack_bytes = 25, .pack_elems = 32,
     .unpack = bsmm_unpack_quark_mxfp6},
    {.family = "modelopt", .data = ".weight", .scale = ".weight_scale", .name = ".weight",
     .data_dtype = "U8", .scale_dtype = "U8", .format = MX(E2M1), .pack_bytes = 1,
     .pack_elems = 2},
    {.family = "gpt-oss", .data = ".blocks", .scale = ".scales", .name = "", .data_dtype = "U8",
     .scale_dtype = "U8", .format = MX(E2M1), .pack_bytes = 1, .pack_elems = 2, .trailing = 16,
     .unmistakable = true, .writes = true},
    {.family = "gpt-oss-hf", .data = "_blocks", .scale = "_scales", .name = "",
     .data_dtype = "U8", .scale_dtype = "U8", .format = MX(E2M1), .pack_bytes = 1,
     .pack_elems = 2, .trailing = 16, .unmistakable = true, .writes = true},
    {.family = "gguf", .data = ".weight", .global = ".scale", .name = ".weight",
     .data_dtype = "NVFP4", .format = NVFP4, .global_ndim = 1, .global_optional = true,
     .unpack = bsmm_unpack_gguf_nvfp4, .pack = bsmm_pack_gguf_nvfp4, .in_gguf = true,
     .writes = true},
    {.family = "gguf", .data = "", .name = "", .data_dtype = "NVFP4", .format = NVFP4,
     .unpack = bsmm_unpack_gguf_nvfp4, .in_gguf = true},
    {.family = "gguf", .data = "", .name = "", .data_dtype = "MXFP4", .format = MX(E2M1),
     .unpack = bsmm_unpack_gguf_mxfp4, .pack = bsmm_pack_gguf_mxfp4, .in_gguf = true,
     .writes = true},
    GGML("Q4_0"), GGML("Q4_1"), GGML("Q5_0"), GGML("Q5_1"), GGML("Q8_0"), GGML("IQ4_NL"),
    GGML("Q2_K"), GGML("Q3_K"), GGML("Q4_K"), GGML("Q5_K"), GGML("Q6_K"), GGML("IQ4_XS"),
    GGML("IQ3_S"), GGML("IQ3_XXS"), GGML("IQ2_S"), GGML("IQ2_XS"), GGML("IQ2_XXS"), GGML("IQ1_M"),
    GGML("IQ1_S"), GGML("TQ2_0"), GGML("TQ1_0"), GGML("Q2_0"), GGML("Q1_0"), GGML("Q8_1"),
    GGML("Q8_K"),
    {.family = "bsmm", .data = ".weight", .scale = ".weight_scale", .name = ".weight",
     .data_dtype = "F4", .scale_dtype = "F8_E8M0", .format = MX(E2M1)},
    {.family = "bsmm", .data = ".weight", .scale = ".weight_scale", .global = ".weight_scale_2",
     .name = ".weight", .data_dtype = "F4", .scale_dtype = "F8_E4M3", .format = NVFP4,
     .global_optional = true},
    {.family = "bsmm", .data = ".weight", .scale = ".weight_scale", .name = ".weight",
     .data_dtype = "F6_E2M3", .scale_dtype = "F8_E8M0", .format = MX(E2M3)},
    {.family = "bsmm", .data = ".weight", .scale = ".weight_scale", .name = ".weight",
     .data_dtype = "F6_E3M2", .scale_dtype = "F8_E8M0", .format = MX(E3M2)},
    {.family = "bsmm", .data = ".weight", .scale = ".weight_scale", .name = ".weight",
     .data_dtype = "F8_E4M3", .scale_dtype = "F8_E8M0", .format = MX(E4M3)},
    {.family = "bsmm", .data = ".weight", .scale = ".weight_scale", .name = ".weight",
     .data_dtype = "F8_E5M2", .scale_dtype = "F8_E8M0", .format = MX(E5M2)},
};

static const bsmm_storage plain = {.family = "plain", .data = "", .name = "", .writes = true};
static const bsmm_storage declared = {.family = "bsmm", .data = "", .scale = "_scale",
                                      .global = "_scale_2", .name = "", .global_optional = true,
                                      .declared = true, .writes = true};
/* clang-format on */

_Static_assert(BSMM_COUNT(rows) <= BSMM_STORAGE_LIMIT, "recognising keeps a bit for each row");

const bsmm_storage *bsmm_storage_at(size_t index) {
    return index < BSMM_COUNT(rows) ? &rows[index] : NULL;
}

const bsmm_storage *bsmm_storage_plain(void) {
    return &plain;
}

const bsmm_storage *bsmm_storage_declared(void) {
    return &declared;
}

const bsmm_storage *bsmm_storage_to_write(size_t index) {
    if (index == 0) return &plain;
    if (index <= BSMM_COUNT(rows)) return &rows[index - 1];
    return index == BSMM_COUNT(rows) + 1 ? &declared : NULL;
}

bool bsmm_family_exists(const char *name) {
    for (size_t i = 0; i < BSMM_COUNT(families); i++)
        if (strcmp(families[i].name, name) == 0) return true;
    return false;
}

/* Returns the number of rows or columns of a scale block. `size` is this number in the table of
 * storage formats, where 0 means that a block covers all rows or columns of the matrix. `extent` is
 * the number of rows or columns of the matrix. For a `size` of 0 the function returns `extent`, but
 * at least `least`. */
static uint32_t block_size(uint32_t size, int64_t extent, uint32_t least) {
    if (size) return size;
    return extent < least ? least : extent > UINT32_MAX ? UINT32_MAX : (uint32_t)extent;
}

bsmm_format bsmm_storage_format(const bsmm_storage *row, int64_t height, int64_t width) {
    bsmm_format format = row->format;
    if (format.scale == BSMM_SCALE_NONE) return format;
    format.block_rows = block_size(format.block_rows, height, 1);
    format.block_cols = block_size(format.block_cols, width, 2);
    return format;
}

static uint32_t family_writes(const char *name) {
    if (strcmp(name, plain.family) == 0 || strcmp(name, declared.family) == 0) return 1;
    for (size_t i = 0; i < BSMM_COUNT(rows); i++)
        if (rows[i].writes && strcmp(rows[i].family, name) == 0) return 1;
    return 0;
}

bsmm_status bsmm_family_at(uint32_t index, bsmm_family_info *info) {
    if (index >= BSMM_COUNT(families))
        return bsmm_fail(BSMM_E_NOT_FOUND, "index: value is %u; there are %zu families", index,
                         BSMM_COUNT(families));
    bsmm_family_info found = families[index];
    found.writes = family_writes(found.name);
    return bsmm_give_struct(info, &found, sizeof found, "info");
}
