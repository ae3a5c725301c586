#include "cuda/host/scaled_formats.h"

#include "cuda/sm100f/scaled_params.h"

#define FORMAT(scale, block, packed)                                                               \
    { scale, block, BSMM_SCALED_SCALE_TILES(block, packed), packed }
const bsmm_scaled_format bsmm_scaled_formats[BSMM_SCALED_KINDS] = {
    [BSMM_SCALED_MXF4] = FORMAT(BSMM_SCALE_E8M0, 32, true),
    [BSMM_SCALED_NVF4] = FORMAT(BSMM_SCALE_E4M3, 16, true),
    [BSMM_SCALED_MXF8F6F4] = FORMAT(BSMM_SCALE_E8M0, 32, false),
};

static bool takes(const bsmm_scaled_format *x, const bsmm_operand *o) {
    static const uint32_t elems[] = {BSMM_ELEM_E2M1, BSMM_ELEM_E2M3, BSMM_ELEM_E3M2, BSMM_ELEM_E4M3,
                                     BSMM_ELEM_E5M2};
    const bsmm_format *f = &o->m.format;
    if (f->scale != x->scale || f->block_rows != 1 || f->block_cols != x->block) return false;
    for (size_t i = 0; i < (x->packed ? 1 : BSMM_COUNT(elems)); i++)
        if (f->elem == elems[i]) return true;
    return false;
}

const char *bsmm_scaled_refuse_scales(const bsmm_product *p, int i, char *why, size_t size) {
    const bsmm_matrix *m = &bsmm_cuda_side(p, i)->m;
    return bsmm_reason(why, size,
                       "%c has %lld rows and %lld columns; the layout nv_128x4 holds fewer scales",
                       "AB"[i], (long long)m -> rows, (long long)m -> cols);
}

const char *bsmm_scaled_refuse(const bsmm_product *p, bsmm_scaled_kind *kind, char *why,
                               size_t size) {
    uint32_t k = 0;
    while (k < BSMM_SCALED_KINDS &&
           !(takes(&bsmm_scaled_formats[k], &p->a) && takes(&bsmm_scaled_formats[k], &p->b)))
        k++;
    if (k == BSMM_SCALED_KINDS)
        return bsmm_gpu_refuse_formats(p,
                                       "the kernel takes 4-, 6- and 8-bit floats with e8m0 scales "
                                       "of 1 x 32, or e2m1 with e4m3 scales of 1 x 16",
                                       why, size);
    *kind = (bsmm_scaled_kind)k;
    return bsmm_gpu_refuse_orders(p, why, size);
}

bsmm_status bsmm_scaled_scales_begin(const bsmm_operand *o, uint32_t multiple,
                                     bsmm_scaled_scales *s) {
    bsmm_matrix laid = o->m;
    laid.scale_layout = BSMM_LAYOUT_NV_128X4;
    laid.scale_ld = 0;
    laid.scale_tile_rows = laid.scale_tile_cols = 0;
    BSMM_TRY(bsmm_scale_map_make(&laid, "scales", &s->map));
    s->stored = o->m.scale_layout == BSMM_LAYOUT_NV_128X4 && o->map.cols % multiple == 0;
    s->bytes = s->stored ? 0 : (uint64_t)bsmm_round_up((int64_t)s->map.count, 256);
    return BSMM_OK;
}

/* Returns the job that copies an operand's scales to the layout nv_128x4. */
static bsmm_recode copy_of(const bsmm_product *p, const bsmm_operand *o,
                           const bsmm_scaled_scales *s) {
    bsmm_recode job = {.device = p->device, .src = *o, .dst = *o};
    job.dst.map = s->map;
    job.dst.m.scale_layout = BSMM_LAYOUT_NV_128X4;
    job.dst.scale_bytes = s->map.count;
    job.src.m.scales = job.dst.m.scales = NULL;
    return job;
}

bsmm_status bsmm_scaled_scales_make(const bsmm_product *p, const bsmm_scaled_scales s[2],
                                    bsmm_cuda_ready_relayouts *copies) {
    bsmm_recode jobs[2];
    const bsmm_recode *used[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        const bsmm_operand *o = bsmm_cuda_side(p, i);
        if (s[i].stored) continue;
        BSMM_TRY(bsmm_recode_check_size(o));
        jobs[i] = copy_of(p, o, &s[i]);
        used[i] = &jobs[i];
    }
    return bsmm_cuda_ready_relayouts_make(p->device, used, copies);
}

bsmm_status bsmm_scaled_scales_bind(const bsmm_product *p, const bsmm_scaled_scales s[2],
                                    const bsmm_cuda_ready_relayouts *copies, uint8_t *room,
                                    const uint8_t *scales[2]) {
    const void *from[2];
    void *to[2];
    for (int i = 0; i < 2; i++) {
        from[i] = bsmm_cuda_side(p, i)->m.scales;
        to[i] = room;
        scales[i] = s[i].stored ? from[i] : to[i];
        room += s[i].bytes;
    }
    return bsmm_cuda_ready_relayouts_launch(p->device, copies, p->stream, from, to);
}
