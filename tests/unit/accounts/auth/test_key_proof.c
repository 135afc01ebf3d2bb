/* Signatures of a browser's key: those of the Web Crypto API are accepted, others are not. */
#include "tests/support/world/unit.h"

#include "accounts/auth/key_proof.h"

/* Made with crypto.subtle of Node. */
static const unsigned char key[KEY_PROOF_KEY_LEN] = {
    0x04, 0x76, 0x83, 0x80, 0xc9, 0xe5, 0xed, 0xa1, 0x2e, 0xd0, 0x8d, 0xd6, 0x58,
    0xf0, 0x6c, 0xe8, 0x9a, 0x74, 0xe8, 0xf7, 0xad, 0x68, 0x51, 0x4c, 0x29, 0x2b,
    0x92, 0x1e, 0xd0, 0xbe, 0x7f, 0x11, 0x5b, 0xc0, 0x3e, 0x29, 0x08, 0xcc, 0x7c,
    0xc5, 0x92, 0xa5, 0x8d, 0x3c, 0xea, 0x20, 0xcc, 0xde, 0xf7, 0x58, 0x22, 0xc9,
    0x17, 0xd6, 0xfd, 0x36, 0xf6, 0xf2, 0xee, 0x2e, 0x5f, 0x8c, 0xc2, 0xdc, 0x69
};
static const unsigned char signature[KEY_PROOF_LEN] = {
    0x37, 0xfb, 0x09, 0x57, 0xb8, 0xb6, 0x8c, 0x44, 0x8b, 0xe8, 0x65, 0xb8, 0x36,
    0xe7, 0x1d, 0xcb, 0x74, 0x9a, 0xbb, 0x71, 0xd0, 0x89, 0x7f, 0x92, 0x44, 0xda,
    0x8d, 0xe1, 0x0b, 0xc2, 0xce, 0x29, 0xda, 0xd1, 0xfe, 0xb9, 0x64, 0xdc, 0x43,
    0x86, 0x42, 0xcd, 0x39, 0xab, 0xb9, 0x57, 0x69, 0x9d, 0xbc, 0xcb, 0x0b, 0xa3,
    0x36, 0x49, 0x67, 0x0d, 0x67, 0x1b, 0x77, 0xcc, 0x34, 0x43, 0x6e, 0x76
};

#define TEXT "runcast session"

static void signature_of_the_web_crypto_api_is_right(void **state)
{
    (void)state;
    assert_true(key_proof_key_is_right(key));
    assert_true(key_proof_is_right(key, SLICE(TEXT), signature));
}

static void altered_text_signature_or_key_is_wrong(void **state)
{
    (void)state;
    assert_false(key_proof_is_right(key, SLICE(TEXT "s"), signature));
    assert_false(key_proof_is_right(key, SLICE(""), signature));
    for (size_t i = 0; i < sizeof(signature); i++) {
        unsigned char altered[KEY_PROOF_LEN];
        memcpy(altered, signature, sizeof(altered));
        altered[i] ^= 0x80;
        assert_false(key_proof_is_right(key, SLICE(TEXT), altered));
    }
    for (size_t i = 0; i < sizeof(key); i++) {
        unsigned char altered[KEY_PROOF_KEY_LEN];
        memcpy(altered, key, sizeof(altered));
        altered[i] ^= 1;
        assert_false(key_proof_key_is_right(altered));
        assert_false(key_proof_is_right(altered, SLICE(TEXT), signature));
    }
}

static void zeros_are_wrong(void **state)
{
    static const unsigned char no_key[KEY_PROOF_KEY_LEN], no_signature[KEY_PROOF_LEN];
    unsigned char infinity[KEY_PROOF_KEY_LEN] = { 4 };
    (void)state;
    assert_false(key_proof_key_is_right(no_key));
    assert_false(key_proof_key_is_right(infinity));
    assert_false(key_proof_is_right(no_key, SLICE(TEXT), signature));
    assert_false(key_proof_is_right(key, SLICE(TEXT), no_signature));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signature_of_the_web_crypto_api_is_right),
        cmocka_unit_test(altered_text_signature_or_key_is_wrong),
        cmocka_unit_test(zeros_are_wrong),
    };
    return cmocka_run_group_tests_name("key_proof", tests, NULL, NULL);
}
