/* Validates a bsmm_epilogue. */
#include "core/describe.h"

#include "base/choices.h"
#include "core/epilogue.h"

#include <math.h>

/* Checks that a field which the activation does not use is 0. Without the check, a caller's value
 * would have no effect and the caller would not notice. */
static bsmm_status check_unused(const bsmm_activation_row *row, const char *field, double value,
                                bool is_used) {
    if (is_used || value == 0) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "epilogue.%s: value is %g; must be 0 for activation %s", field,
                     value, row->info.name);
}

static bsmm_status check_number(const char *field, float value, double least) {
    if (isfinite(value) && (double)value >= least) return BSMM_OK;
    return bsmm_fail(BSMM_E_INVALID, "epilogue.%s: value is %g; must be finite%s", field,
                     (double)value, least == 0 ? " and not negative" : "");
}

static bsmm_status check_numbers(const bsmm_epilogue *e, const bsmm_activation_row *row) {
    bool gated = row->info.is_gated;
    BSMM_TRY(check_unused(row, "halves", e->halves, gated));
    BSMM_TRY(check_unused(row, "limit", (double)e->limit, gated));
    BSMM_TRY(check_unused(row, "up_offset", (double)e->up_offset, gated));
    BSMM_TRY(check_unused(row, "slope", (double)e->slope, row->info.has_slope));
    BSMM_TRY(check_number("limit", e->limit, 0));
    BSMM_TRY(check_number("slope", e->slope, -INFINITY));
    return check_number("up_offset", e->up_offset, -INFINITY);
}

static bsmm_status check_fields(const bsmm_epilogue *e, const bsmm_activation_row *row) {
    if (!row)
        return bsmm_fail(BSMM_E_INVALID,
                         "epilogue.activation: value is %u; bsmm_activation_at lists the values",
                         e->activation);
    if (e->halves >= BSMM_HALVES_COUNT)
        return bsmm_fail(BSMM_E_INVALID, "epilogue.halves: value is %u; must be at most %d",
                         e->halves, BSMM_HALVES_COUNT - 1);
    if (e->scale_by & ~(uint32_t)BSMM_ALL_SCALES_BY)
        return bsmm_fail(BSMM_E_INVALID, "epilogue.scale_by: value is %u; must be 0 to %d",
                         e->scale_by, BSMM_ALL_SCALES_BY);
    if (e->reserved)
        return bsmm_fail(BSMM_E_INVALID, "epilogue.reserved: value is %u; must be 0", e->reserved);
    return check_numbers(e, row);
}

static bsmm_status take_residual(const bsmm_epilogue *e, bsmm_product_epilogue *to) {
    to->has_residual = e->residual != NULL;
    if (!to->has_residual) return BSMM_OK;
    BSMM_TRY(bsmm_operand_take(e->residual, "residual", &to->residual));
    return bsmm_check_addend(&to->residual, "residual");
}

bsmm_status bsmm_epilogue_take(const bsmm_epilogue *from, bsmm_product_epilogue *to) {
    bsmm_epilogue e;
    BSMM_TRY(bsmm_take_struct(&e, sizeof e, from, "epilogue"));
    const bsmm_activation_row *row = bsmm_activation_row_of(e.activation);
    BSMM_TRY(check_fields(&e, row));
    *to = (bsmm_product_epilogue){
        .activation = row,
        .interleaved = e.halves == BSMM_HALVES_INTERLEAVED,
        .limit = e.limit > 0 ? (double)e.limit : (double)INFINITY,
        .slope = e.slope != 0 ? (double)e.slope : 1,
        .up_offset = (double)e.up_offset,
        .scale_by = e.scale_by,
        .row_scale = e.row_scale,
        .col_scale = e.col_scale,
    };
    return take_residual(&e, to);
}
