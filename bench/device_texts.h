/* Defines parts of help texts and examples that contain the names of the devices in devices.def. */
#ifndef BENCH_DEVICE_TEXTS_H
#define BENCH_DEVICE_TEXTS_H

#define BENCH_EXAMPLE_DEVICE "cuda:0"
#define BENCH_EXAMPLE_PEER   "cublaslt"
#define BENCH_PEER_TITLE     "cuBLASLt"

#define BENCH_PEER_HELP   "cublaslt too: fp8 unscaled and with 128-wide scales, and bf16"
#define BENCH_PEER_COLUMN "cublaslt_fp8, cublaslt_vec128, cublaslt_bf16"
#define BENCH_PEER_CEILINGS                                                                        \
    "cublaslt_fp8, or cublaslt_bf16 where an operand has 16 bits and more: its product of the "    \
    "same shape; without it the unit of the device's data sheet, h200_sheet"

#endif
