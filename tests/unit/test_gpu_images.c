/* Tests the GPU code that is embedded in the library. An image is the compiled code of a kernel,
 * and a pack is several compressed images. The test reads valid and damaged packs, and checks
 * which image each device gets. */
#include "cuda.h"
#include "cuda/runtime/device.h"
#include "gpu/images.h"
#include "gpu/ptx_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

enum { SECOND_AT = 4096, WHOLE = 8192 };

typedef struct pack {
    unsigned char raw[WHOLE], bytes[WHOLE + 512];
    bsmm_gpu_image images[2];
} pack;

/* Makes a pack of two compressed images with checksums, in the same way as the build. */
static void pack_make(pack *p) {
    for (size_t i = 0; i < WHOLE; i++)
        p->raw[i] = (unsigned char)(i * i >> 6);
    ZSTD_CCtx *c = ZSTD_createCCtx();
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1)));
    const size_t packed = ZSTD_compress2(c, p->bytes, sizeof p->bytes, p->raw, WHOLE);
    ZSTD_freeCCtx(c);
    assert_false(ZSTD_isError(packed));
    for (size_t i = 0; i < 2; i++)
        p->images[i] = (bsmm_gpu_image){.name = i ? "test/second" : "test/first",
                                        .code = "sm_90",
                                        .pack = p->bytes,
                                        .packed_bytes = packed,
                                        .pack_bytes = WHOLE,
                                        .offset = i * SECOND_AT,
                                        .bytes = 4000};
}

static void images_are_unpacked(void **state) {
    (void)state;
    static pack p;
    pack_make(&p);
    for (size_t i = 0; i < 2; i++) {
        bsmm_gpu_unpacked unpacked;
        assert_int_equal(bsmm_gpu_image_unpack(&p.images[i], &unpacked), BSMM_OK);
        assert_int_equal((uintptr_t)unpacked.bytes % 64, 0);
        assert_memory_equal(unpacked.bytes, p.raw + i * SECOND_AT, p.images[i].bytes);
        free(unpacked.memory);
    }
}

static void expect_damage(const bsmm_gpu_image *image) {
    bsmm_gpu_unpacked unpacked;
    assert_int_equal(bsmm_gpu_image_unpack(image, &unpacked), BSMM_E_FORMAT);
    assert_null(unpacked.memory);
    assert_non_null(
        strstr(bsmm_error_message(), "test/second (sm_90): the library's image is damaged"));
}

/* Tests damaged packs, i.e. damaged files of compressed GPU code, in which one bit is changed or
 * the end is missing. Reading them must return an error that names the image. A change of one
 * particular bit is not found, because zstd does not use this bit. */
static void damaged_images_are_named(void **state) {
    (void)state;
    /* DESCRIPTOR is the index of the byte of zstd's frame header that is called descriptor, and
     * UNUSED_BIT is the number of this byte's unused bit (RFC 8878, section 3.1.1.1.1). */
    enum { DESCRIPTOR = 4, UNUSED_BIT = 4 };
    static pack p;
    pack_make(&p);
    for (size_t i = 0; i < 8 * p.images[1].packed_bytes; i++) {
        if (i == 8 * DESCRIPTOR + UNUSED_BIT) continue;
        p.bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        expect_damage(&p.images[1]);
        p.bytes[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    bsmm_gpu_image cut = p.images[1];
    for (cut.packed_bytes = 0; cut.packed_bytes < p.images[1].packed_bytes; cut.packed_bytes++)
        expect_damage(&cut);
    cut.pack_bytes =
        /* This case states fewer compressed bytes in the table of images than the pack has. */
        WHOLE - 64;
    expect_damage(&cut);
    cut.pack_bytes = WHOLE + 64;
    expect_damage(&cut);
}

/* This text declares the classes r and rd of registers twice, as two functions do. Most PTX numbers
 * the registers of a class in the order in which they first occur. Here, some registers follow this
 * order and others do not, because the code for storing PTX treats the two cases differently. %rs4,
 * %p1 and %SP0 are not declared. */
static const char ptx[] =
    ".visible .entry f(.param .u64 f_param_0)\n{\n\t.reg .b32 %r<4000000000>;\n\t.reg .b64 "
    "%rd<9>;\n"
    "$L1:\n\tmov.u32 %r1, %tid.x;\n\tadd.s32 %r2, %r1, 5;\n\tmov.u64 %rd7, %clock64;\n"
    "\tld.u64 %rd3, [%rd7+-16];\n\tadd.s64 %SPL, %SP0, 4294967295;\n\tmov.b16 %rs4, %rs4;\n"
    "\t@%p1 bra $L3;\n\tmov.u32 %r0, %r4294967295;\n\tst.u32 [%rd7+16], %r2;\n$L0:\n$L3:\n}\n"
    "\t.reg .b64 %rd<3>;\n\t.reg .b32 %r<3>;\n\tadd.s32 %r1, %r2, %r1;\n\tst.u64 [%rd2], %rd1;\n%r";

static const char stored_ptx[] =
    ".visible .entry f(.param .u64 f_param_0)\n{\n\t.reg .b32 %r<4000000000>;\n\t.reg .b64 "
    "%rd<9>;\n"
    "$L+:\n\tmov.u32 %r+, %tid.x;\n\tadd.s32 %r+, %r1, 5;\n\tmov.u64 %rd=7, %clock64;\n"
    "\tld.u64 %rd=3, [%rd1+-16];\n\tadd.s64 %SPL, %SP0, 4294967295;\n\tmov.b16 %rs4, %rs4;\n"
    "\t@%p1 bra $L=3;\n\tmov.u32 %r=0, %r=4294967295;\n\tst.u32 [%rd0+16], %r3;\n$L=0:\n$L1:\n}\n"
    "\t.reg .b64 %rd<3>;\n\t.reg .b32 %r<3>;\n\tadd.s32 %r+, %r+, %r1;\n\tst.u64 [%rd=2], "
    "%rd=1;\n%r";

static void text_is_stored(void **state) {
    (void)state;
    char stored[2 * sizeof ptx];
    const size_t bytes =
        bsmm_ptx_text_convert(BSMM_PTX_TEXT_STORED, ptx, sizeof ptx, stored, sizeof stored);
    assert_int_equal(bytes, sizeof stored_ptx);
    assert_string_equal(stored, stored_ptx);
}

/* Tests that numbers are restored that the text names again after more others than the list of
 * recent numbers holds, and that damaged text is converted without faults. */
static void long_and_damaged_texts_are_converted(void **state) {
    (void)state;
    enum { NUMBERS = 600, ROOM = 1 << 16 };
    char *text = calloc(1, ROOM), *stored = calloc(1, ROOM), *again = calloc(1, ROOM);
    assert_true(text && stored && again);
    size_t bytes = (size_t)sprintf(text, "%%r<1>");
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < NUMBERS; i++)
            bytes += (size_t)sprintf(text + bytes, " %%r%d $L%d", i % 2 ? i : NUMBERS - i, i);
    const size_t stored_bytes =
        bsmm_ptx_text_convert(BSMM_PTX_TEXT_STORED, text, bytes, stored, ROOM);
    assert_in_range(stored_bytes, 1, ROOM);
    assert_int_equal(
        bsmm_ptx_text_convert(BSMM_PTX_TEXT_ORDINARY, stored, stored_bytes, again, ROOM), bytes);
    assert_memory_equal(again, text, bytes);
    /* With one byte changed, the stored text names positions that the list does not have. */
    for (size_t i = 6; i < stored_bytes; i += 7) {
        const char byte = stored[i];
        stored[i] = '9';
        bsmm_ptx_text_convert(BSMM_PTX_TEXT_ORDINARY, stored, i + 1, again, ROOM);
        stored[i] = byte;
    }
    free(text);
    free(stored);
    free(again);
}

/* Tests that the text of PTX kernels is restored from the shortened form in which the library's
 * packs of compiled kernels store it. If the size of the restored text is wrong, the pack counts as
 * damaged. */
static void text_is_restored(void **state) {
    (void)state;
    char stored[2 * sizeof ptx], packed[4 * sizeof ptx];
    const size_t text_bytes = sizeof ptx - 1;
    const size_t bytes =
        bsmm_ptx_text_convert(BSMM_PTX_TEXT_STORED, ptx, text_bytes, stored, sizeof stored);
    assert_in_range(bytes, 1, sizeof stored);
    const size_t packed_bytes = ZSTD_compress(packed, sizeof packed, stored, bytes, 1);
    assert_false(ZSTD_isError(packed_bytes));
    bsmm_gpu_image image = {.name = "test/text",
                            .code = "compute_80",
                            .pack = (const unsigned char *)packed,
                            .packed_bytes = packed_bytes,
                            .pack_bytes = bytes,
                            .bytes = bytes,
                            .text_bytes = text_bytes};
    bsmm_gpu_unpacked unpacked;
    assert_int_equal(bsmm_gpu_image_unpack(&image, &unpacked), BSMM_OK);
    assert_string_equal((const char *)unpacked.bytes, ptx);
    free(unpacked.memory);
    for (int more = -1; more <= 1; more += 2) {
        image.text_bytes = text_bytes + (size_t)more;
        assert_int_equal(bsmm_gpu_image_unpack(&image, &unpacked), BSMM_E_FORMAT);
        assert_null(unpacked.memory);
        assert_non_null(strstr(bsmm_error_message(), "its text has the wrong size"));
    }
}

static bool is_ptx(const bsmm_gpu_image *image) {
    return strncmp(image->code, "compute_", 8) == 0;
}

static void the_librarys_images_are_whole(void **state) {
    (void)state;
    static const unsigned char elf[] = {0x7F, 'E', 'L', 'F'};
    for (const bsmm_gpu_image *i = bsmm_gpu_images; i->name; i++) {
        bsmm_gpu_unpacked unpacked;
        if (bsmm_gpu_image_unpack(i, &unpacked) != BSMM_OK) fail_msg("%s", bsmm_error_message());
        assert_true(i->offset + i->bytes < i->pack_bytes);
        const char *text = unpacked.bytes;
        if (is_ptx(i)) {
            assert_int_equal(strlen(text), i->text_bytes);
            assert_non_null(strstr(text, ".version"));
        } else {
            assert_memory_equal(text, elf, sizeof elf);
        }
        free(unpacked.memory);
    }
}

/* Tests which code a device gets: a cubin for its compute capability if there is one, otherwise
 * PTX, which the driver compiles. */
static void devices_take_what_they_run(void **state) {
    (void)state;
    if (!test_cuda_is_built()) skip();
    static const struct {
        int capability;
        /* `words` and `probe` name the code (e.g. a cubin "sm_90" or PTX "compute_80") of the
         * modules sm80/words and sm90a/small_m that a device of this compute capability gets. NULL
         * means that it gets none. */
        const char *words, *probe;
    } cases[] = {{75, NULL, NULL},          {80, "compute_80", NULL}, {86, "compute_80", NULL},
                 {89, "compute_80", NULL},  {90, "sm_90", "sm_90a"},  {100, "compute_80", NULL},
                 {103, "compute_80", NULL}, {120, "compute_80", NULL}};
    for (size_t i = 0; i < BSMM_COUNT(cases); i++) {
        const bsmm_cuda_device device = {.capability = cases[i].capability, .name = "GPU"};
        const bsmm_gpu_image *words, *probe;
        assert_int_equal(bsmm_cuda_image_find(&device, "sm80/words", &words), BSMM_OK);
        assert_int_equal(bsmm_cuda_image_find(&device, "sm90a/small_m", &probe), BSMM_OK);
        assert_string_equal(words ? words->code : "", cases[i].words ? cases[i].words : "");
        assert_string_equal(probe ? probe->code : "", cases[i].probe ? cases[i].probe : "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_unpacked),
        cmocka_unit_test(damaged_images_are_named),
        cmocka_unit_test(text_is_stored),
        cmocka_unit_test(text_is_restored),
        cmocka_unit_test(long_and_damaged_texts_are_converted),
        cmocka_unit_test(the_librarys_images_are_whole),
        cmocka_unit_test(devices_take_what_they_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
