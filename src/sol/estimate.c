/* Estimates the speed of light of a matrix product: a time that no kernel can beat on a device. It
 * is the larger of two times. The compute time is that of all operations at the peak rate of the
 * device's fastest matrix unit that accepts A and B. The memory time is that of moving all bytes
 * once at the memory's bandwidth. */
#include "core/describe.h"
#include "sol/sol.h"

static double matrix_bytes(const bsmm_operand *operand) {
    return (double)operand->data_bytes + (double)operand->scale_bytes;
}

/* Returns the number of rows of D that are computed over all groups. If groups compute only some of
 * their rows (kind MASKED), the function uses the number of rows that the caller expects
 * (expected_rows). */
static double count_rows(const bsmm_product *p) {
    const bsmm_groups *g = p->groups;
    if (!g || g->kind == BSMM_GROUP_ROWS || g->kind == BSMM_GROUP_K) return (double)p->d.m.rows;
    bool masked = g->kind == BSMM_GROUP_MASKED && g->expected_rows;
    return (double)g->count * (double)(masked ? g->expected_rows : p->d.m.rows);
}

static double count_bytes(const bsmm_product *p) {
    double bytes = matrix_bytes(&p->a) + matrix_bytes(&p->b) + matrix_bytes(&p->d);
    if (p->has_c) bytes += matrix_bytes(&p->c);
    if (p->finish) bytes += matrix_bytes(&p->finish->residual);
    if (p->bias_elem != BSMM_ELEM_NONE)
        bytes += (double)p->b.m.rows * bsmm_elem_row(p->bias_elem)->bits / 8;
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
