/* Defines the kernel for bf16 or f16 elements, of which those of A or B have fp32 scales. */
#define GROUPS_NAME wide_groups
#define GROUPS_KIND "f16"
#define GROUPS_WIDE 1
#include "cuda/sm100f/groups_body.h"
