/* Driver functions that a run may call and whose effect no test examines. They succeed and do
 * nothing. */
#define ACCEPT(symbol)                                                                             \
    __attribute__((visibility("default"))) int symbol(void);                                       \
    int symbol(void) {                                                                             \
        return 0;                                                                                  \
    }

ACCEPT(cuTensorMapEncodeTiled)
ACCEPT(cuTensorMapReplaceAddress)
ACCEPT(cuMemsetD8Async)
ACCEPT(cuMemsetD32Async)
ACCEPT(cuMemcpyDtoDAsync_v2)
