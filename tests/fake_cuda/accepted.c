/* Defines driver functions that succeed and do nothing. The library may call them, but no test
 * examines their effect. */
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
