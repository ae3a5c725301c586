/* Multiplies a matrix of one row by itself, with the installed library. The result is 1*1 + 2*2 +
 * 3*3 = 14. */
#include <bsmm.h>

#include <stdio.h>

int main(void) {
    float row[] = {1, 2, 3}, product = 0;
    bsmm_matrix a = BSMM_INIT(bsmm_matrix), d = BSMM_INIT(bsmm_matrix);
    bsmm_matmul_desc desc = BSMM_INIT(bsmm_matmul_desc);
    a.format.elem = d.format.elem = BSMM_ELEM_F32;
    a.rows = d.rows = d.cols = 1;
    a.cols = 3;
    a.data = row;
    d.data = &product;
    desc.a = desc.b = &a;
    desc.d = &d;
    if (bsmm_matmul(&desc) != BSMM_OK) {
        fprintf(stderr, "%s\n", bsmm_error_message());
        return 1;
    }
    printf("bsmm %u: %g\n", (unsigned)bsmm_version(), (double)product);
    return product != 14;
}
