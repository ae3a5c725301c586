/* The library contains compiled GPU kernels. The build generates a table of them
 * (cmake/images.cmake).
 *
 * An image is the compiled form of one kernel. Many kernels are made from the same source with
 * other constants, so their images resemble each other. zstd therefore compresses all images of one
 * source for one architecture together. The result is called a pack. To load an image on a device,
 * the library decompresses the whole pack, which takes about a millisecond per megabyte. It does
 * not keep the decompressed pack. */
#ifndef BSMM_GPU_IMAGES_H
#define BSMM_GPU_IMAGES_H

#include "base/base.h"

typedef struct bsmm_gpu_image {
    /* `name` is the image's name, for example "sm90a/gemm_bf16". It is the path of the kernel's
     * source below src/cuda or src/amdgpu without its extension, or the name of an entry in
     * tiles.def. */
    const char *name;
    /* `code` names the GPU and the kind of machine code: "sm_90a" is a cubin, "compute_80" is PTX,
     * "gfx942" is an AMD code object. */
    const char *code;
    const unsigned char *pack;
    /* `packed_bytes` and `pack_bytes` are the sizes in bytes of the pack (several images that are
     * compressed together), first compressed and then decompressed. */
    size_t packed_bytes, pack_bytes;
    /* `offset` and `bytes` are the offset and size in bytes of this image in the decompressed pack,
     * which holds several images. */
    size_t offset, bytes;
    /* A pack is several images that are compressed together. It stores an image that is PTX in a
     * shortened form (gpu/ptx_text.h). `text_bytes` is then the size in bytes of the PTX text that
     * is restored from this form. It is 0 if the image is not PTX. */
    size_t text_bytes;
} bsmm_gpu_image;

/* Lists the embedded images, i.e. compiled kernels. The last entry has the name NULL. The table is
 * empty in a build that has no compiler for GPUs. */
extern const bsmm_gpu_image bsmm_gpu_images[];

/* Rates how well a device runs a kind of machine code. 0 means that the device cannot run it.
 * bsmm_gpu_image_find chooses the image with the highest rating. */
typedef int bsmm_gpu_rank(const void *device, const char *code);

/* Finds the image (the compiled kernels) with this name that runs best on the device. If `rank` is
 * NULL, the function finds the first image with this name.
 *
 * Returns NOT_FOUND for an unknown name. In a build that has no compiler for GPUs, every name is
 * unknown. If the device can run no image with this name, the function returns OK and sets *image
 * to NULL. Thread-safe. */
bsmm_status bsmm_gpu_image_find(const char *name, bsmm_gpu_rank *rank, const void *device,
                                const bsmm_gpu_image **image);

/* Holds a decompressed image. Its bytes are aligned to 64 bytes, and a zero byte follows them. */
typedef struct bsmm_gpu_unpacked {
    /* `memory` is the allocation that holds the decompressed image. The caller passes it to
     * free(). */
    void *memory;
    const void *bytes;
} bsmm_gpu_unpacked;

/* An image is compiled GPU code, and a pack is a compressed file of several images. Decompresses
 * the pack that contains `image`, and restores the image's text if it is PTX. Returns MEMORY if an
 * allocation fails, and FORMAT if the pack's checksum or the size of the text shows that the pack
 * is damaged. Thread-safe. */
bsmm_status bsmm_gpu_image_unpack(const bsmm_gpu_image *image, bsmm_gpu_unpacked *unpacked);

/* Embeds the bytes of a file in the library under the symbol bsmm_gpu_pack_SYMBOL. Only the table
 * of images uses it, which the build generates. */
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
