/* Quantizes the same values to every preset format with its default recipe, and prints the
 * errors. */
#include <bsmm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 128, COLS = 256 };

static float values[ROWS * COLS];

/* Fills `values` with numbers that are nearly normally distributed. Every 64th column has values
 * that are eight times as large, as trained models have in a few channels. */
static void fill(void) {
    uint32_t state = 1;
    for (int i = 0; i < ROWS * COLS; i++) {
        float sum = 0;
        for (int k = 0; k < 12; k++) {
            state = state * 1664525u + 1013904223u;
            sum += (float)(state >> 8) / 16777216.0f - 0.5f;
        }
        values[i] = i % 64 ? sum : 8 * sum;
    }
}

static bsmm_status quantize(const bsmm_preset_info *preset, bsmm_quantize_report *report) {
    bsmm_matrix src = {sizeof src, .format = {.elem = BSMM_ELEM_F32}, .rows = ROWS, .cols = COLS};
    src.data = values;
    float global = 0; /* Receives the scale of the whole tensor if the format has one. */
    bsmm_matrix dst = {sizeof dst, .format = preset->format, .rows = ROWS, .cols = COLS};
    dst.global_scale = preset->second_level[0] == 'n' ? NULL : &global;
    bsmm_status status = bsmm_data_bytes(&dst, &dst.data_bytes);
    if (status == BSMM_OK) status = bsmm_scale_bytes(&dst, &dst.scale_bytes);
    if (status != BSMM_OK) return status;
    dst.data = malloc(dst.data_bytes);
    dst.scales = aligned_alloc(4, (dst.scale_bytes + 3) / 4 * 4);
    bsmm_quantize_desc desc = {sizeof desc, .src = &src, .dst = &dst};
    status = bsmm_quantize(&desc, report);
    free(dst.data);
    free(dst.scales);
    return status;
}

int main(void) {
    fill();
    printf("%-14s %5s %9s %10s %8s\n", "format", "bits", "SQNR dB", "max error", "clipped");
    bsmm_preset_info preset = BSMM_INIT(bsmm_preset_info);
    for (uint32_t i = 0; bsmm_preset_at(i, &preset) == BSMM_OK; i++) {
        bsmm_quantize_report report = BSMM_INIT(bsmm_quantize_report);
        if (quantize(&preset, &report) != BSMM_OK) {
            fprintf(stderr, "%s: %s\n", preset.name, bsmm_error_message());
            return 1;
        }
        printf("%-14s %5.2f %9.2f %10.4f %8.5f\n", preset.name, preset.bits_per_weight,
               report.sqnr_db, report.max_error, report.clipped);
        if (!(report.sqnr_db > 10)) return 1;
    }
    return 0;
}
