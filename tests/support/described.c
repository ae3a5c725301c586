#include "described.h"

#include <string.h>

void described_make(described *f) {
    memset(f, 0, sizeof *f);
    f->alpha = f->beta = 1;
    f->am = describe(format_named("mxfp8"), M, K);
    f->bm = describe(format_named("mxfp4"), N, K);
    f->cm = describe(format_named("f32"), M, N);
    f->dm = describe(format_named("f32"), M, N);
    f->am.data = f->a;
    f->am.scales = f->a_scales;
    f->bm.data = f->b;
    f->bm.scales = f->b_scales;
    f->cm.data = f->c;
    f->dm.data = f->d;
    f->desc = (bsmm_matmul_desc){.struct_size = sizeof f->desc,
                                 .a = &f->am,
                                 .b = &f->bm,
                                 .c = &f->cm,
                                 .d = &f->dm,
                                 .alpha = &f->alpha,
                                 .beta = &f->beta,
                                 .bias = f->bias,
                                 .bias_elem = BSMM_ELEM_F32};
    memset(f->d, 0xa5, sizeof f->d);
}

/* clang-format off: each line breaks one rule */
