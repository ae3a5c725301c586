/* An image is a compiled kernel that is embedded in the library. The functions in this file find an
 * image and decompress it. */
#include "gpu/images.h"
#include "gpu/ptx_text.h"

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

static bsmm_status allocate(const bsmm_gpu_image *image, size_t bytes, void **memory) {
    *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (*memory) return BSMM_OK;
    return bsmm_fail(BSMM_E_MEMORY, "%s: out of memory: %zu bytes", image->name, bytes);
}

static bsmm_status fail_damaged(const bsmm_gpu_image *image, const char *why) {
    return bsmm_fail(BSMM_E_FORMAT, "%s (%s): the library's image is damaged: %s", image->name,
                     image->code, why);
}

static bsmm_status decompress(const bsmm_gpu_image *image, void *memory) {
    const size_t bytes =
        ZSTD_decompress(memory, image->pack_bytes, image->pack, image->packed_bytes);
    if (bytes == image->pack_bytes) return BSMM_OK;
    return fail_damaged(image, ZSTD_isError(bytes) ? ZSTD_getErrorName(bytes) : "it is too short");
}

/* Restores PTX text from its stored form, and ends it with a zero byte. */
static bsmm_status restore_text(const bsmm_gpu_image *image, const char *stored, char *text) {
    const size_t bytes = bsmm_ptx_text_convert(BSMM_PTX_TEXT_ORDINARY, stored, image->bytes, text,
                                               image->text_bytes);
    if (bytes != image->text_bytes) return fail_damaged(image, "its text has the wrong size");
    text[bytes] = 0;
    return BSMM_OK;
}

/* Replaces the decompressed pack (several images) in *unpacked by the PTX text of one image. */
static bsmm_status unpack_text(const bsmm_gpu_image *image, bsmm_gpu_unpacked *unpacked) {
    void *text, *pack = unpacked->memory;
    BSMM_TRY(allocate(image, image->text_bytes + 1, &text));
    const bsmm_status status = restore_text(image, unpacked->bytes, text);
    if (status != BSMM_OK) {
        free(text);
        return status;
    }
    free(pack);
    *unpacked = (bsmm_gpu_unpacked){.memory = text, .bytes = text};
    return BSMM_OK;
}

bsmm_status bsmm_gpu_image_unpack(const bsmm_gpu_image *image, bsmm_gpu_unpacked *unpacked) {
    *unpacked = (bsmm_gpu_unpacked){0};
    BSMM_TRY(allocate(image, image->pack_bytes, &unpacked->memory));
    unpacked->bytes = (const char *)unpacked->memory + image->offset;
    bsmm_status status = decompress(image, unpacked->memory);
    if (status == BSMM_OK && image->text_bytes) status = unpack_text(image, unpacked);
    if (status != BSMM_OK) {
        free(unpacked->memory);
        *unpacked = (bsmm_gpu_unpacked){0};
    }
    return status;
}
