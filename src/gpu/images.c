/* Finds a compiled kernel (an image) that is embedded in the library, and decompresses it. */
#include "gpu/images.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

bsmm_status bsmm_gpu_image_find(const char *name, bsmm_gpu_rank *rank, const void *device,
                                const bsmm_gpu_image **image) {
    bool known = false;
    int best = 0;
    *image = NULL;
    for (const bsmm_gpu_image *i = bsmm_gpu_images; i->name; i++) {
        if (strcmp(i->name, name) != 0) continue;
        known = true;
        const int rank_here = rank ? rank(device, i->code) : 1;
        if (rank_here > best) best = rank_here, *image = i;
    }
    return known ? BSMM_OK : bsmm_fail(BSMM_E_NOT_FOUND, "%s: no such GPU module", name);
}

bsmm_status bsmm_gpu_image_unpack(const bsmm_gpu_image *image, bsmm_gpu_unpacked *unpacked) {
    *unpacked = (bsmm_gpu_unpacked){.memory = aligned_alloc(64, image->pack_bytes)};
    if (!unpacked->memory)
        return bsmm_fail(BSMM_E_MEMORY, "%s: out of memory: %zu bytes", image->name,
                         image->pack_bytes);
    const size_t bytes =
        ZSTD_decompress(unpacked->memory, image->pack_bytes, image->pack, image->packed_bytes);
    if (bytes != image->pack_bytes) {
        free(unpacked->memory);
        *unpacked = (bsmm_gpu_unpacked){0};
        return bsmm_fail(BSMM_E_FORMAT, "%s (%s): the library's image is damaged: %s", image->name,
                         image->code,
                         ZSTD_isError(bytes) ? ZSTD_getErrorName(bytes) : "it is too short");
    }
    unpacked->bytes = (const char *)unpacked->memory + image->offset;
    return BSMM_OK;
}
