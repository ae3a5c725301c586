/* Declares how the fake drivers find the sizes of a kernel's parameters. A launch gives only
 * pointers to the parameters; their sizes are in the kernel's image. */
#ifndef FAKE_PARAMETERS_H
#define FAKE_PARAMETERS_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_MOST_PARAMETERS = 8, FAKE_MOST_KERNEL_NAME = 96 };

/* Describes a kernel that a program loaded from an image into a fake driver: the name of the kernel
 * and the size of each of its `count` parameters in bytes. */
typedef struct fake_kernel {
    char name[FAKE_MOST_KERNEL_NAME];
    uint32_t sizes[FAKE_MOST_PARAMETERS], count;
    int attribute, value; /* The attribute of the kernel that the host set last, and its value. */
} fake_kernel;

/* Fills the sizes of the parameters of `kernel->name` from an image, which is a cubin, the text of
 * PTX or a code object for AMD GPUs. The kernel has no parameters if the image lacks it. */
void fake_parameters_find(const void *image, fake_kernel *kernel);

/* Returns a new description of the kernel `name` of an image, in static memory. Returns NULL if the
 * static memory has no room for it. */
fake_kernel *fake_kernel_new(const void *image, const char *name);

#endif
