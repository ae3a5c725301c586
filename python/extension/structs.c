/* Holds the tables of those fields of bsmm.h's structs that Python sees. The tables leave out
 * fields that Python never sets, i.e. struct_size, reserved fields, and pools. A test compares
 * these tables with the header. */
#include "records.h"

#include <stddef.h>

#define ARRAY(struct_type, member, kind, nested, count)                                            \
    { #member, offsetof(struct_type, member), FIELD_##kind, nested, count }
#define NESTED(struct_type, member, kind, nested) ARRAY(struct_type, member, kind, nested, 0)
#define PLAIN(struct_type, member, kind)          ARRAY(struct_type, member, kind, NULL, 0)
#define END                                                                                        \
    { NULL, 0, 0, NULL, 0 }

static const field format_fields[] = {
    PLAIN(bsmm_format, elem, U32),
    PLAIN(bsmm_format, scale, U32),
    PLAIN(bsmm_format, block_rows, U32),
    PLAIN(bsmm_format, block_cols, U32),
    END,
};
const record bsmm_py_format = {"bsmm_format", sizeof(bsmm_format), 0, format_fields};

static const field matrix_fields[] = {
    PLAIN(bsmm_matrix, order, U32),
    NESTED(bsmm_matrix, format, RECORD, &bsmm_py_format),
    PLAIN(bsmm_matrix, rows, I64),
    PLAIN(bsmm_matrix, cols, I64),
    PLAIN(bsmm_matrix, ld, I64),
    PLAIN(bsmm_matrix, data, POINTER),
    PLAIN(bsmm_matrix, data_bytes, U64),
    PLAIN(bsmm_matrix, scales, POINTER),
    PLAIN(bsmm_matrix, scale_bytes, U64),
    PLAIN(bsmm_matrix, scale_layout, U32),
    PLAIN(bsmm_matrix, global_kind, U32),
    PLAIN(bsmm_matrix, scale_tile_rows, U32),
    PLAIN(bsmm_matrix, scale_tile_cols, U32),
    PLAIN(bsmm_matrix, scale_ld, I64),
    PLAIN(bsmm_matrix, global_scale, POINTER),
    END,
};
const record bsmm_py_matrix = {"bsmm_matrix", sizeof(bsmm_matrix), 1, matrix_fields};

static const field epilogue_fields[] = {
    PLAIN(bsmm_epilogue, activation, U32),
    PLAIN(bsmm_epilogue, halves, U32),
    PLAIN(bsmm_epilogue, scale_by, U32),
    PLAIN(bsmm_epilogue, limit, F32),
    PLAIN(bsmm_epilogue, slope, F32),
    PLAIN(bsmm_epilogue, up_offset, F32),
    NESTED(bsmm_epilogue, residual, RECORD_POINTER, &bsmm_py_matrix),
    PLAIN(bsmm_epilogue, row_scale, POINTER),
    PLAIN(bsmm_epilogue, col_scale, POINTER),
    END,
};
const record bsmm_py_epilogue = {"bsmm_epilogue", sizeof(bsmm_epilogue), 1, epilogue_fields};

static const field group_fields[] = {
    PLAIN(bsmm_group, kind, U32),
    PLAIN(bsmm_group, flags, U32),
    PLAIN(bsmm_group, count, I64),
    PLAIN(bsmm_group, align, I64),
    PLAIN(bsmm_group, expected_rows, I64),
    PLAIN(bsmm_group, a_step, I64),
    PLAIN(bsmm_group, b_step, I64),
    PLAIN(bsmm_group, c_step, I64),
    PLAIN(bsmm_group, d_step, I64),
    PLAIN(bsmm_group, residual_step, I64),
    PLAIN(bsmm_group, a_scale_step, I64),
    PLAIN(bsmm_group, b_scale_step, I64),
    PLAIN(bsmm_group, d_scale_step, I64),
    PLAIN(bsmm_group, sizes, POINTER),
    PLAIN(bsmm_group, gather, POINTER),
    PLAIN(bsmm_group, alpha, POINTER),
    END,
};
const record bsmm_py_group = {"bsmm_group", sizeof(bsmm_group), 1, group_fields};

static const field matmul_desc_fields[] = {
    PLAIN(bsmm_matmul_desc, compute, U32),
    NESTED(bsmm_matmul_desc, a, RECORD_POINTER, &bsmm_py_matrix),
    NESTED(bsmm_matmul_desc, b, RECORD_POINTER, &bsmm_py_matrix),
    NESTED(bsmm_matmul_desc, c, RECORD_POINTER, &bsmm_py_matrix),
    NESTED(bsmm_matmul_desc, d, RECORD_POINTER, &bsmm_py_matrix),
    PLAIN(bsmm_matmul_desc, alpha, F32_POINTER),
    PLAIN(bsmm_matmul_desc, beta, F32_POINTER),
    PLAIN(bsmm_matmul_desc, bias, POINTER),
    PLAIN(bsmm_matmul_desc, bias_elem, U32),
    PLAIN(bsmm_matmul_desc, threads, U32),
    PLAIN(bsmm_matmul_desc, recipe, TEXT),
    PLAIN(bsmm_matmul_desc, device, TEXT),
    PLAIN(bsmm_matmul_desc, kernel, TEXT),
    PLAIN(bsmm_matmul_desc, b_packed, U32),
    PLAIN(bsmm_matmul_desc, flags, U32),
    NESTED(bsmm_matmul_desc, epilogue, RECORD_POINTER, &bsmm_py_epilogue),
    NESTED(bsmm_matmul_desc, group, RECORD_POINTER, &bsmm_py_group),
    PLAIN(bsmm_matmul_desc, b_panels, TEXT),
    END,
};
const record bsmm_py_matmul_desc = {"bsmm_matmul_desc", sizeof(bsmm_matmul_desc), 1,
                                    matmul_desc_fields};

static const field buffers_fields[] = {
    PLAIN(bsmm_buffers, a, POINTER),
    PLAIN(bsmm_buffers, a_scales, POINTER),
    PLAIN(bsmm_buffers, a_global, POINTER),
    PLAIN(bsmm_buffers, b, POINTER),
    PLAIN(bsmm_buffers, b_scales, POINTER),
    PLAIN(bsmm_buffers, b_global, POINTER),
    PLAIN(bsmm_buffers, c, POINTER),
    PLAIN(bsmm_buffers, d, POINTER),
    PLAIN(bsmm_buffers, d_scales, POINTER),
    PLAIN(bsmm_buffers, d_global, POINTER),
    PLAIN(bsmm_buffers, bias, POINTER),
    PLAIN(bsmm_buffers, workspace, POINTER),
    PLAIN(bsmm_buffers, workspace_bytes, U64),
    PLAIN(bsmm_buffers, packed_b, POINTER),
    PLAIN(bsmm_buffers, packed_b_bytes, U64),
    PLAIN(bsmm_buffers, stream, POINTER),
    PLAIN(bsmm_buffers, residual, POINTER),
    PLAIN(bsmm_buffers, row_scale, POINTER),
    PLAIN(bsmm_buffers, col_scale, POINTER),
    PLAIN(bsmm_buffers, rows, I64),
    PLAIN(bsmm_buffers, device_rows, POINTER),
    PLAIN(bsmm_buffers, group_sizes, POINTER),
    PLAIN(bsmm_buffers, gather, POINTER),
    PLAIN(bsmm_buffers, group_alpha, POINTER),
    END,
};
const record bsmm_py_buffers = {"bsmm_buffers", sizeof(bsmm_buffers), 1, buffers_fields};

static const field quantize_desc_fields[] = {
    PLAIN(bsmm_quantize_desc, flags, U32),
    NESTED(bsmm_quantize_desc, src, RECORD_POINTER, &bsmm_py_matrix),
    NESTED(bsmm_quantize_desc, dst, RECORD_POINTER, &bsmm_py_matrix),
    PLAIN(bsmm_quantize_desc, recipe, TEXT),
    PLAIN(bsmm_quantize_desc, amax, POINTER),
    PLAIN(bsmm_quantize_desc, threads, U32),
    PLAIN(bsmm_quantize_desc, device, TEXT),
    PLAIN(bsmm_quantize_desc, stream, POINTER),
    END,
};
const record bsmm_py_quantize_desc = {"bsmm_quantize_desc", sizeof(bsmm_quantize_desc), 1,
                                      quantize_desc_fields};

static const field exec_fields[] = {
    PLAIN(bsmm_exec, threads, U32),
    PLAIN(bsmm_exec, device, TEXT),
    PLAIN(bsmm_exec, stream, POINTER),
    END,
};
const record bsmm_py_exec = {"bsmm_exec", sizeof(bsmm_exec), 1, exec_fields};

static const field report_fields[] = {
    PLAIN(bsmm_quantize_report, sqnr_db, F64), PLAIN(bsmm_quantize_report, max_error, F64),
    PLAIN(bsmm_quantize_report, clipped, F64), PLAIN(bsmm_quantize_report, underflowed, F64),
    PLAIN(bsmm_quantize_report, signal, F64),  PLAIN(bsmm_quantize_report, noise, F64),
    PLAIN(bsmm_quantize_report, count, I64),   END,
};
const record bsmm_py_report = {"bsmm_quantize_report", sizeof(bsmm_quantize_report), 1,
                               report_fields};

static const field explanation_fields[] = {
    PLAIN(bsmm_explanation, accepts, U32),  PLAIN(bsmm_explanation, kernel, TEXT),
    PLAIN(bsmm_explanation, reason, CHARS), PLAIN(bsmm_explanation, bound, F64),
    PLAIN(bsmm_explanation, device, TEXT),  PLAIN(bsmm_explanation, packed_b_bytes, U64),
    PLAIN(bsmm_explanation, k_parts, U32),  END,
};
const record bsmm_py_explanation = {"bsmm_explanation", sizeof(bsmm_explanation), 1,
                                    explanation_fields};

static const field packed_info_fields[] = {
    PLAIN(bsmm_packed_info, form, U32),
    PLAIN(bsmm_packed_info, version, U32),
    PLAIN(bsmm_packed_info, global_kind, U32),
    PLAIN(bsmm_packed_info, device, CHARS),
    PLAIN(bsmm_packed_info, panels, CHARS),
    NESTED(bsmm_packed_info, format, RECORD, &bsmm_py_format),
    PLAIN(bsmm_packed_info, rows, I64),
    PLAIN(bsmm_packed_info, cols, I64),
    PLAIN(bsmm_packed_info, groups, I64),
    PLAIN(bsmm_packed_info, bytes, U64),
    END,
};
const record bsmm_py_packed_info = {"bsmm_packed_info", sizeof(bsmm_packed_info), 1,
                                    packed_info_fields};

static const field sol_fields[] = {
    PLAIN(bsmm_sol_estimate, seconds, F64),        PLAIN(bsmm_sol_estimate, compute_seconds, F64),
    PLAIN(bsmm_sol_estimate, memory_seconds, F64), PLAIN(bsmm_sol_estimate, operations, F64),
    PLAIN(bsmm_sol_estimate, bytes, F64),          PLAIN(bsmm_sol_estimate, unit, TEXT),
    PLAIN(bsmm_sol_estimate, limit, TEXT),         END,
};
const record bsmm_py_sol = {"bsmm_sol_estimate", sizeof(bsmm_sol_estimate), 1, sol_fields};

static const field elem_info_fields[] = {
    PLAIN(bsmm_elem_info, elem, U32),          PLAIN(bsmm_elem_info, name, TEXT),
    PLAIN(bsmm_elem_info, bits, U32),          PLAIN(bsmm_elem_info, exponent_bits, U32),
    PLAIN(bsmm_elem_info, mantissa_bits, U32), PLAIN(bsmm_elem_info, bias, I32),
    PLAIN(bsmm_elem_info, max, F64),           PLAIN(bsmm_elem_info, min_normal, F64),
    PLAIN(bsmm_elem_info, min_subnormal, F64), PLAIN(bsmm_elem_info, nan, TEXT),
    PLAIN(bsmm_elem_info, inf, TEXT),          PLAIN(bsmm_elem_info, zeros, TEXT),
    PLAIN(bsmm_elem_info, used_by, TEXT),      END,
};
const record bsmm_py_elem_info = {"bsmm_elem_info", sizeof(bsmm_elem_info), 1, elem_info_fields};

static const field preset_info_fields[] = {
    PLAIN(bsmm_preset_info, name, TEXT),
    NESTED(bsmm_preset_info, format, RECORD, &bsmm_py_format),
    PLAIN(bsmm_preset_info, second_level, TEXT),
    PLAIN(bsmm_preset_info, used_by, TEXT),
    PLAIN(bsmm_preset_info, default_recipe, TEXT),
    PLAIN(bsmm_preset_info, bits_per_weight, F64),
    END,
};
const record bsmm_py_preset_info = {"bsmm_preset_info", sizeof(bsmm_preset_info), 1,
                                    preset_info_fields};

static const field digit_fields[] = {
    PLAIN(bsmm_digit, axis, U32),
    PLAIN(bsmm_digit, extent, U32),
    PLAIN(bsmm_digit, stride, U32),
    END,
};
static const record bsmm_py_digit = {"bsmm_digit", sizeof(bsmm_digit), 0, digit_fields};

static const field layout_info_fields[] = {
    PLAIN(bsmm_layout_info, layout, U32),
    PLAIN(bsmm_layout_info, name, TEXT),
    PLAIN(bsmm_layout_info, padding, TEXT),
    PLAIN(bsmm_layout_info, offset, TEXT),
    PLAIN(bsmm_layout_info, used_by, TEXT),
    PLAIN(bsmm_layout_info, tile_rows, U32),
    PLAIN(bsmm_layout_info, tile_cols, U32),
    PLAIN(bsmm_layout_info, digit_count, U32),
    ARRAY(bsmm_layout_info, digits, RECORD, &bsmm_py_digit, 6),
    END,
};
const record bsmm_py_layout_info = {"bsmm_layout_info", sizeof(bsmm_layout_info), 1,
                                    layout_info_fields};

static const field activation_info_fields[] = {
    PLAIN(bsmm_activation_info, activation, U32),
    PLAIN(bsmm_activation_info, name, TEXT),
    PLAIN(bsmm_activation_info, formula, TEXT),
    PLAIN(bsmm_activation_info, source, TEXT),
    PLAIN(bsmm_activation_info, is_gated, U32),
    PLAIN(bsmm_activation_info, has_slope, U32),
    END,
};
const record bsmm_py_activation_info = {"bsmm_activation_info", sizeof(bsmm_activation_info), 1,
                                        activation_info_fields};

static const field recipe_info_fields[] = {
    PLAIN(bsmm_recipe_info, flags, U32),    PLAIN(bsmm_recipe_info, name, TEXT),
    PLAIN(bsmm_recipe_info, formats, TEXT), PLAIN(bsmm_recipe_info, rule, TEXT),
    PLAIN(bsmm_recipe_info, source, TEXT),  END,
};
const record bsmm_py_recipe_info = {"bsmm_recipe_info", sizeof(bsmm_recipe_info), 1,
                                    recipe_info_fields};

static const field device_info_fields[] = {
    PLAIN(bsmm_device_info, cdna, U32),
    PLAIN(bsmm_device_info, name, TEXT),
    PLAIN(bsmm_device_info, title, TEXT),
    PLAIN(bsmm_device_info, f32, F64),
    PLAIN(bsmm_device_info, f16, F64),
    PLAIN(bsmm_device_info, f8, F64),
    PLAIN(bsmm_device_info, f6, F64),
    PLAIN(bsmm_device_info, f4, F64),
    PLAIN(bsmm_device_info, bandwidth, F64),
    PLAIN(bsmm_device_info, source, TEXT),
    PLAIN(bsmm_device_info, matrix_cores, U32),
    PLAIN(bsmm_device_info, megahertz, U32),
    END,
};
const record bsmm_py_device_info = {"bsmm_device_info", sizeof(bsmm_device_info), 1,
                                    device_info_fields};

static const field local_device_fields[] = {
    PLAIN(bsmm_local_device, cores, U32),
    PLAIN(bsmm_local_device, name, CHARS),
    PLAIN(bsmm_local_device, title, CHARS),
    PLAIN(bsmm_local_device, features, CHARS),
    END,
};
const record bsmm_py_local_device = {"bsmm_local_device", sizeof(bsmm_local_device), 1,
                                     local_device_fields};

static const field packed_form_info_fields[] = {
    PLAIN(bsmm_packed_form_info, form, U32),      PLAIN(bsmm_packed_form_info, name, TEXT),
    PLAIN(bsmm_packed_form_info, version, U32),   PLAIN(bsmm_packed_form_info, devices, TEXT),
    PLAIN(bsmm_packed_form_info, contents, TEXT), END,
};
const record bsmm_py_packed_form_info = {"bsmm_packed_form_info", sizeof(bsmm_packed_form_info), 1,
                                         packed_form_info_fields};

static const field family_info_fields[] = {
    PLAIN(bsmm_family_info, writes, U32),
    PLAIN(bsmm_family_info, name, TEXT),
    PLAIN(bsmm_family_info, formats, TEXT),
    PLAIN(bsmm_family_info, detected_by, TEXT),
    PLAIN(bsmm_family_info, source, TEXT),
    PLAIN(bsmm_family_info, written, TEXT),
    END,
};
const record bsmm_py_family_info = {"bsmm_family_info", sizeof(bsmm_family_info), 1,
                                    family_info_fields};

static const field mfma_info_fields[] = {
    PLAIN(bsmm_mfma_info, cdna, U32),
    PLAIN(bsmm_mfma_info, name, TEXT),
    PLAIN(bsmm_mfma_info, a, TEXT),
    PLAIN(bsmm_mfma_info, b, TEXT),
    PLAIN(bsmm_mfma_info, d, TEXT),
    PLAIN(bsmm_mfma_info, m, U32),
    PLAIN(bsmm_mfma_info, n, U32),
    PLAIN(bsmm_mfma_info, k, U32),
    PLAIN(bsmm_mfma_info, blocks, U32),
    PLAIN(bsmm_mfma_info, cycles, U32),
    PLAIN(bsmm_mfma_info, cu_operations, U32),
    PLAIN(bsmm_mfma_info, is_scaled, U32),
    PLAIN(bsmm_mfma_info, source, TEXT),
    END,
};
const record bsmm_py_mfma_info = {"bsmm_mfma_info", sizeof(bsmm_mfma_info), 1, mfma_info_fields};

static const field tensor_fields[] = {
    PLAIN(bsmm_tensor, elem, U32),
    PLAIN(bsmm_tensor, name, TEXT),
    PLAIN(bsmm_tensor, dtype, TEXT),
    PLAIN(bsmm_tensor, ndim, U32),
    PLAIN(bsmm_tensor, order, U32),
    ARRAY(bsmm_tensor, shape, I64, NULL, BSMM_MAX_DIMS),
    PLAIN(bsmm_tensor, data, POINTER),
    PLAIN(bsmm_tensor, bytes, U64),
    END,
};
const record bsmm_py_tensor = {"bsmm_tensor", sizeof(bsmm_tensor), 1, tensor_fields};

static const field weight_fields[] = {
    PLAIN(bsmm_weight, mapped, U32),
    PLAIN(bsmm_weight, name, TEXT),
    PLAIN(bsmm_weight, family, TEXT),
    PLAIN(bsmm_weight, dtype, TEXT),
    NESTED(bsmm_weight, format, RECORD, &bsmm_py_format),
    PLAIN(bsmm_weight, batch, I64),
    PLAIN(bsmm_weight, rows, I64),
    PLAIN(bsmm_weight, cols, I64),
    PLAIN(bsmm_weight, scale_layout, U32),
    END,
};
const record bsmm_py_weight = {"bsmm_weight", sizeof(bsmm_weight), 1, weight_fields};
