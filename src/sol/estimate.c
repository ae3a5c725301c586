/* Estimates the speed of light of a matrix product: a time that no kernel can beat on a device. It
 * is the larger of two times. The compute time is that of all operations at the peak rate of the
 * device's fastest matrix unit that accepts A and B. The memory time is that of moving all bytes
 * once at the memory's bandwidth. */
#include "core/describe.h"
#include "sol/sol.h"

/* Returns the number of bytes of the elements of one matrix with `rows` rows, without the gaps that
 * a leading dimension leaves. */
static double element_bytes(const bsmm_operand *o, double rows) {
    bool by_rows = o->m.order == BSMM_ORDER_ROW;
    int64_t contiguous = by_rows ? o->m.cols : o->m.rows;
    int64_t padded = bsmm_round_up(contiguous, bsmm_elem_group(o->m.format.elem));
    double share = o->m.rows ? rows / (double)o->m.rows : 0;
    double lines = (double)(by_rows ? o->m.rows : o->m.cols);
    return share * lines * (double)padded * bsmm_elem_row(o->m.format.elem)->bits / 8;
}

/* Returns the number of bytes of the scales of one matrix with `rows` rows. The padding of the
 * scale layout counts, but gaps that scale_ld leaves do not. */
static double scale_bytes(const bsmm_operand *o, double rows) {
    if (o->m.format.scale == BSMM_SCALE_NONE || !o->m.rows) return 0;
    double whole = (double)o->map.rows * (double)o->map.cols;
    return (o->m.scale_ld ? whole : (double)o->map.count) * rows / (double)o->m.rows *
           bsmm_scale_row_of(o->m.format.scale)->bytes;
}

/* Returns the bytes of a matrix, or of the matrices of all groups, that a product reads or writes.
 * The product uses `rows` rows of each matrix. `step` is the distance between the matrices of two
 * groups. Matrices that all groups share count once. */
static double matrix_bytes(const bsmm_product *p, const bsmm_operand *o, double rows,
                           bsmm_group_step step) {
    double count = p->groups ? (double)p->groups->count : 1;
    return element_bytes(o, rows) * (step.elements ? count : count > 0) +
           scale_bytes(o, rows) * (step.scales ? count : count > 0);
}

/* Returns the number of rows of D that a group computes. If groups compute only some of their rows
 * (kind MASKED), the function uses the number of rows that the caller expects (expected_rows). */
static double rows_of_group(const bsmm_product *p) {
    const bsmm_groups *g = p->groups;
    bool masked = g && g->kind == BSMM_GROUP_MASKED && g->expected_rows;
    return (double)(masked ? bsmm_min_i64(g->expected_rows, p->d.m.rows) : p->d.m.rows);
}

/* Returns the number of rows of D that are computed over all groups. */
static double count_rows(const bsmm_product *p) {
    const bsmm_groups *g = p->groups;
    bool one = !g || g->kind == BSMM_GROUP_ROWS || g->kind == BSMM_GROUP_K;
    return rows_of_group(p) * (one ? 1 : (double)g->count);
}

static double bias_bytes(const bsmm_product *p) {
    bool each = p->groups && p->groups->flags & BSMM_GROUP_EACH_BIAS;
    if (p->bias_elem == BSMM_ELEM_NONE) return 0;
    return (double)p->b.m.rows * bsmm_elem_row(p->bias_elem)->bits / 8 *
           (each ? (double)p->groups->count : 1);
}

static double count_bytes(const bsmm_product *p) {
    static const bsmm_groups none;
    const bsmm_groups *g = p->groups ? p->groups : &none;
    double rows = rows_of_group(p);
    /* If A's rows are gathered, A is one matrix with its own number of rows. */
    double a_rows = g->flags & BSMM_GROUP_GATHER_A ? (double)p->a.m.rows : rows;
    double bytes = matrix_bytes(p, &p->a, a_rows, g->a) +
                   matrix_bytes(p, &p->b, (double)p->b.m.rows, g->b) +
                   matrix_bytes(p, &p->d, rows, g->d) + bias_bytes(p);
    if (p->has_c) bytes += matrix_bytes(p, &p->c, rows, g->c);
    if (p->epilogue && p->epilogue->has_residual)
        bytes += matrix_bytes(p, &p->epilogue->residual, rows, g->residual);
    return bytes;
}

/* Returns the matrix unit with the highest peak in `units`, a set of bits 1 << unit. Among equally
 * fast units it returns the one for the narrowest elements. Every set contains BSMM_UNIT_F32,
 * because every device computes in fp32. */
static bsmm_sol_unit fastest_unit(const bsmm_sol_device *device, uint32_t units) {
    bsmm_sol_unit best = BSMM_UNIT_F32;
    for (bsmm_sol_unit unit = BSMM_UNIT_F32; unit < BSMM_UNIT_COUNT; unit++)
        if (units >> unit & 1 && bsmm_sol_peak(device, unit) >= bsmm_sol_peak(device, best))
            best = unit;
    return best;
}

static bsmm_sol_estimate estimate_on(const bsmm_sol_device *device, const bsmm_product *p) {
    uint32_t units = bsmm_sol_units(p->a.m.format, device->traits) &
                     bsmm_sol_units(p->b.m.format, device->traits);
    bsmm_sol_unit unit = fastest_unit(device, units);
    bsmm_sol_estimate e = {.unit = bsmm_sol_unit_name(unit), .bytes = count_bytes(p)};
    e.operations = 2.0 * count_rows(p) * (double)p->b.m.rows * (double)p->a.m.cols;
    e.compute_seconds = e.operations / bsmm_sol_peak(device, unit);
    e.memory_seconds = e.bytes / device->info.bandwidth;
    e.limit = e.compute_seconds >= e.memory_seconds ? "compute" : "memory";
    e.seconds = e.compute_seconds >= e.memory_seconds ? e.compute_seconds : e.memory_seconds;
    return e;
}

bsmm_status bsmm_estimate_sol(const char *device, const bsmm_matmul_desc *desc,
                              bsmm_sol_estimate *estimate) {
    if (!device) return bsmm_fail(BSMM_E_INVALID, "device: value is NULL; must be a name");
    const bsmm_sol_device *row = bsmm_sol_device_row(device);
    if (!row)
        return bsmm_fail(BSMM_E_NOT_FOUND,
                         "device: value is \"%.64s\"; must be one that bsmm_device_at lists",
                         device);
    bsmm_request request;
    BSMM_TRY(bsmm_describe(desc, &request));
    bsmm_sol_estimate e = estimate_on(row, &request.product);
    return bsmm_give_struct(estimate, &e, sizeof e, "estimate");
}
