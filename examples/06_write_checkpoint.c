/* Quantizes a weight directly into a new checkpoint file. An existing file of this name does not
 * change before bsmm_writer_commit.
 * usage: 06_write_checkpoint FILE.safetensors */
#include <bsmm.h>

#include <stdio.h>

enum { ROWS = 64, COLS = 128 };

static float values[ROWS * COLS];

/* Adds the weight to the checkpoint, gets the memory of its elements and scales in the mapped file,
 * and quantizes into that memory. */
static bsmm_status write_weight(bsmm_writer *writer, const bsmm_matrix *src) {
    uint64_t index;
    bsmm_matrix dst = {sizeof dst, .rows = ROWS, .cols = COLS};
    bsmm_status status = bsmm_format_from_name("nvfp4", &dst.format);
    if (status == BSMM_OK)
        status = bsmm_writer_add_weight(writer, "modelopt", "layers.0.weight", &dst, 1, &index);
    if (status == BSMM_OK) status = bsmm_writer_metadata(writer, "format", "pt");
    if (status == BSMM_OK) status = bsmm_writer_begin(writer);
    if (status == BSMM_OK) status = bsmm_writer_weight(writer, index, 0, &dst);
    if (status != BSMM_OK) return status;
    bsmm_quantize_desc desc = {sizeof desc, .src = src, .dst = &dst, .recipe = "modelopt"};
    bsmm_quantize_report report = BSMM_INIT(bsmm_quantize_report);
    status = bsmm_quantize(&desc, &report);
    if (status == BSMM_OK) printf("nvfp4: SQNR %.2f dB\n", report.sqnr_db);
    return status;
}

int main(int argc, char **argv) {
    for (int i = 0; i < ROWS * COLS; i++)
        values[i] = (float)(i * 37 % 101 - 50) / 100;
    bsmm_matrix src = {sizeof src, .rows = ROWS, .cols = COLS, .data = values};
    src.format.elem = BSMM_ELEM_F32;

    bsmm_writer *writer = NULL;
    if (argc == 2 && bsmm_writer_create(argv[1], "safetensors", &writer) == BSMM_OK) {
        if (write_weight(writer, &src) == BSMM_OK && bsmm_writer_commit(writer) == BSMM_OK) {
            printf("wrote %s\n", argv[1]);
            return 0;
        }
        fprintf(stderr, "%s\n", bsmm_error_message());
        bsmm_writer_abort(writer);
        return 1;
    }
    fprintf(stderr, "usage: %s FILE.safetensors: %s\n", argv[0], bsmm_error_message());
    return 1;
}
