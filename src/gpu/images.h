/* The compiled kernels inside the library: a table of images that the build generates
 * (cmake/images.cmake). Images of one source and code are compressed together, by zstd, as a pack:
 * instances of one body are alike. A pack is unpacked when one of its images is loaded on a device,
 * in about a millisecond for each megabyte, and not kept. */
#ifndef BSMM_GPU_IMAGES_H
#define BSMM_GPU_IMAGES_H

#include "base/base.h"

typedef struct bsmm_gpu_image {
    const char
        *name; /* "sm90a/gemm_bf16": the source below src/cuda, without .cu, or a row's name */
    const char *code; /* "sm_90a": a cubin; "compute_80": PTX; "gfx942": a code object */
    const unsigned char *pack;
    size_t packed_bytes, pack_bytes; /* of the pack: as it is stored, unpacked */
    size_t offset, bytes;            /* of the image in the unpacked pack */
} bsmm_gpu_image;

/* Ends with a row without a name. Empty in a build without compilers for GPUs. */
extern const bsmm_gpu_image bsmm_gpu_images[];

/* How well a device runs a code: 0 not at all; of two, the greater is better. */
typedef int bsmm_gpu_rank(const void *device, const char *code);

/* The image of a name that a device runs best; with rank NULL any of that name. NOT_FOUND for an
 * unknown name, and so in a build without compilers for GPUs; OK and *image NULL where the device
 * runs none. Thread-safe. */
bsmm_status bsmm_gpu_image_find(const char *name, bsmm_gpu_rank *rank, const void *device,
                                const bsmm_gpu_image **image);

/* An image's bytes, aligned to 64, a 0 behind them. */
typedef struct bsmm_gpu_unpacked {
    void *memory; /* for free() */
    const void *bytes;
} bsmm_gpu_unpacked;

/* MEMORY; FORMAT where the pack is damaged, which its checksum shows. Thread-safe. */
bsmm_status bsmm_gpu_image_unpack(const bsmm_gpu_image *image, bsmm_gpu_unpacked *unpacked);

/* Puts a file's bytes into the library as bsmm_gpu_pack_SYMBOL; for the generated table. */
#define BSMM_GPU_PACK(symbol, path)                                                                \
    __asm__(".pushsection .rodata\n"                                                               \
            ".balign 64\n"                                                                         \
            ".globl bsmm_gpu_pack_" #symbol "\n"                                                   \
            ".hidden bsmm_gpu_pack_" #symbol "\n"                                                  \
            "bsmm_gpu_pack_" #symbol ":\n"                                                         \
            ".incbin \"" path "\"\n"                                                               \
            ".popsection\n");                                                                      \
    extern const unsigned char bsmm_gpu_pack_##symbol[] __attribute__((visibility("hidden")))

#endif
