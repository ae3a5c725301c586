/* Defines the kernel for e4m3 and e5m2 elements with fp32 scales. */
#define GROUPS_NAME fp8_groups
#define GROUPS_KIND "f8f6f4"
#define GROUPS_WIDE 0
#include "cuda/sm100f/groups_body.h"
