/* These are the kernels of gfx942 for few rows of A whose weights are mxfp4. */
#include "amdgpu/cdna/small_m_mxfp4.h"
