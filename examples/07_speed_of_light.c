/* Prints for each known device the shortest time that a product can take on it. */
#include <bsmm.h>

#include <stdio.h>

int main(void) {
    bsmm_matrix a = {sizeof a, .rows = 1024, .cols = 7168};
    bsmm_matrix b = {sizeof b, .rows = 1536, .cols = 7168};
    bsmm_matrix d = {sizeof d, .rows = 1024, .cols = 1536, .format = {.elem = BSMM_ELEM_BF16}};
    if (bsmm_format_from_name("fp8_group128", &a.format) != BSMM_OK ||
        bsmm_format_from_name("fp8_block128", &b.format) != BSMM_OK) {
        fprintf(stderr, "%s\n", bsmm_error_message());
        return 1;
    }
    bsmm_matmul_desc product = {sizeof product, .a = &a, .b = &b, .d = &d};

    bsmm_device_info device = BSMM_INIT(bsmm_device_info);
    for (uint32_t i = 0; bsmm_device_at(i, &device) == BSMM_OK; i++) {
        bsmm_sol_estimate sol = BSMM_INIT(bsmm_sol_estimate);
        if (bsmm_estimate_sol(device.name, &product, &sol) != BSMM_OK) {
            fprintf(stderr, "%s: %s\n", device.name, bsmm_error_message());
            return 1;
        }
        printf("%-28s %9.2f us, limited by %s (%s units)\n", device.title, sol.seconds * 1e6,
               sol.limit, sol.unit);
        if (!(sol.seconds > 0)) return 1;
    }
    return 0;
}
