/* Defines driver functions that do nothing and report success. The library may call them, but the
 * tests do not depend on them. */
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
