/* Opens a range of memory as a file and reads everything in it. Every tensor must lie inside the
 * range. Every weight must either report its error or be unpacked without one. */
#ifndef BSMM_FUZZ_READ_ALL_H
#define BSMM_FUZZ_READ_ALL_H

#include "io/io.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) abort();
}

static void read_tensors(const bsmm_file *file, const uint8_t *begin, const uint8_t *end) {
    for (uint64_t i = 0; i < bsmm_file_tensor_count(file); i++) {
        bsmm_tensor t = BSMM_INIT(bsmm_tensor), again = BSMM_INIT(bsmm_tensor);
        require(bsmm_file_tensor_at(file, i, &t) == BSMM_OK);
        require(bsmm_file_tensor_find(file, t.name, &again) == BSMM_OK && again.data == t.data);
        const uint8_t *at = t.data;
        require(at >= begin && at <= end && t.bytes <= (uint64_t)(end - at));
        require(t.ndim <= BSMM_MAX_DIMS && t.dtype[0] != 0);
        bsmm_file_metadata(file, t.name);
    }
}

static void unpack(const bsmm_file *file, uint64_t index, int64_t slice, bsmm_matrix m) {
    static const uint64_t most = 1u << 20;
    if (m.data_bytes > most || m.scale_bytes > most) return;
    m.data = malloc(m.data_bytes + 1);
    m.scales = m.format.scale ? malloc(m.scale_bytes + 1) : NULL;
    require(m.data != NULL);
    bsmm_status status = bsmm_weight_unpack(file, index, slice, &m);
    require(status == BSMM_OK || (status == BSMM_E_FORMAT && bsmm_error_message()[0]));
    free(m.data);
    free(m.scales);
}

static void read_weights(const bsmm_file *file) {
    for (uint64_t i = 0; i < bsmm_file_weight_count(file); i++) {
        bsmm_weight w = BSMM_INIT(bsmm_weight);
        bsmm_matrix m = BSMM_INIT(bsmm_matrix);
        uint64_t found;
        bsmm_status status = bsmm_file_weight_at(file, i, &w);
        require(w.name && w.family && w.dtype);
        require(bsmm_file_weight_find(file, w.name, &found) == BSMM_OK);
        if (status != BSMM_OK) {
            require(status == BSMM_E_FORMAT && bsmm_error_message()[0]);
            continue;
        }
        require(bsmm_weight_matrix(file, i, w.batch - 1, &m) == BSMM_OK);
        require((m.data != NULL) == (w.mapped != 0));
        unpack(file, i, w.batch - 1, m);
    }
}

static void read_all(const uint8_t *data, size_t size) {
    bsmm_file *file;
    bsmm_status status = bsmm_file_from_memory(data, size, &file);
    if (status != BSMM_OK) {
        require(!file && bsmm_error_message()[0]);
        return;
    }
    read_tensors(file, data, data + size);
    read_weights(file);
    bsmm_file_close(file);
}

#endif
