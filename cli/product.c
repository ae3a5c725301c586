#include "product.h"
#include <string.h>

static bsmm_matrix describe(bsmm_format format, int64_t rows, int64_t cols) {
    bsmm_matrix matrix = BSMM_INIT(bsmm_matrix);
    matrix.format = format;
    matrix.rows = rows;
    matrix.cols = cols;
    return matrix;
}

void cli_product_describe(cli_product *product, const cli_format_pair *formats,
                          const int64_t sizes[3], bsmm_format out) {
    product->a = describe(formats->a, sizes[0], sizes[2]);
    product->b = describe(formats->b, sizes[1], sizes[2]);
    product->d = describe(out, sizes[0], sizes[1]);
    product->desc = BSMM_INIT(bsmm_matmul_desc);
    product->desc.a = &product->a;
    product->desc.b = &product->b;
    product->desc.d = &product->d;
}

uint32_t cli_packed_form(const char *name) {
    bsmm_packed_form_info info = BSMM_INIT(bsmm_packed_form_info);
    for (uint32_t i = 0; name && !bsmm_packed_form_at(i, &info); i++)
        if (!strcmp(info.name, name)) return info.form;
    return BSMM_PACKED_NONE;
}
