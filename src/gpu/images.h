/* The compiled kernels inside the library: one image for each src/cuda/ARCH/FILE.cu, as a table
 * that the build generates (cmake/cuda.cmake). */
#ifndef BSMM_GPU_IMAGES_H
#define BSMM_GPU_IMAGES_H

#include "base/base.h"

typedef struct bsmm_gpu_image {
    const char *name;           /* "sm90a/gemm": the source below src/cuda, without .cu */
    const unsigned char *bytes; /* sm90a: a cubin; sm80: a fatbin of PTX and a cubin */
} bsmm_gpu_image;

/* Ends with a row without a name. Empty in a build without nvcc. */
extern const bsmm_gpu_image bsmm_gpu_images[];

/* The image of a name. UNSUPPORTED in a build without nvcc; NOT_FOUND for an unknown name. */
bsmm_status bsmm_gpu_image_find(const char *name, const bsmm_gpu_image **image);

/* Puts a file's bytes into the library as bsmm_gpu_image_SYMBOL; for the generated table. */
#define BSMM_GPU_IMAGE(symbol, path)                                                               \
    __asm__(".pushsection .rodata\n"                                                               \
            ".balign 64\n"                                                                         \
            ".globl bsmm_gpu_image_" #symbol "\n"                                                  \
            ".hidden bsmm_gpu_image_" #symbol "\n"                                                 \
            "bsmm_gpu_image_" #symbol ":\n"                                                        \
            ".incbin \"" path "\"\n"                                                               \
            ".popsection\n");                                                                      \
    extern const unsigned char bsmm_gpu_image_##symbol[] __attribute__((visibility("hidden")))

#endif
