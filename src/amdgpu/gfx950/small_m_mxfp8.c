/* These are the kernels of gfx950 for few rows of A whose weights are mxfp8. */
#include "amdgpu/cdna/small_m_mxfp8.h"
