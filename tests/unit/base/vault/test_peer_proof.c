/* Gateways with one encryption key recognize each other, and every message of each other. A
 * proof or a message fits nowhere else. The vectors were
 * made by other programs (Python's hmac, node's crypto). */
#include "tests/support/world/unit.h"

#include "base/text.h"
#include "base/vault/peer_group.h"
#include "base/vault/peer_mac.h"
#include "base/vault/vault.h"

#define KEY_HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER_HEX "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e0"

static struct vault *open_vault(const char *key, const char *next)
{
    struct vault *vault = NULL;
    struct failure why;
    assert_int_equal(vault_open(slice_of(key), NULL, &vault, &why), OK);
    if (next)
        assert_int_equal(vault_rotation_begin(vault, slice_of(next), &why), OK);
    return vault;
}

static struct peer_keys keys_of(const char *key, const char *next)
{
    struct vault *vault = open_vault(key, next);
    struct peer_keys keys;
    vault_peer_keys(vault, &keys);
    vault_close(vault);
    return keys;
}

static struct peer_handshake some_handshake(void)
{
    struct peer_handshake handshake = { .leader = 7, .follower = 0x0102030405060708 };
    for (unsigned i = 0; i < PEER_RANDOM_LEN; i++) {
        handshake.leader_random[i] = (unsigned char)(0xa0 + i);
        handshake.follower_random[i] = (unsigned char)(0x20 + i);
    }
    return handshake;
}

static void assert_hex(const unsigned char *bytes, size_t len, const char *hex)
{
    char text[2 * PEER_KEY_LEN + 1];
    text_to_hex(bytes, len, text);
    assert_string_equal(text, hex);
}

static bool is_right(const struct peer_keys *keys, enum peer_role role,
                     const struct peer_handshake *handshake, const unsigned char *proof)
{
    struct slice proofs = { (const char *)proof, PEER_PROOF_LEN };
    return peer_proof_check(keys, role, handshake, proofs) != NULL;
}

/* ---- proofs ---- */

static void keys_proofs_and_session_key_are_as_specified(void **state)
{
    (void)state;
    struct peer_keys keys = keys_of(KEY_HEX, NULL);
    struct peer_handshake handshake = some_handshake();
    unsigned char proof[PEER_PROOF_LEN];
    struct peer_key session;
    assert_int_equal(keys.count, 1);
    assert_hex(keys.list[0].bytes, PEER_KEY_LEN,
               "7d38fa429b3b7ec40e2a930480f1976a2299519d30d4d412a1d39fec67e66d45");
    peer_proof_make(&keys.list[0], PEER_LEADER, &handshake, proof);
    assert_hex(proof, PEER_PROOF_LEN,
               "dcc9ff26a4541b109583ae7b791e74d602c565ab332a68a00603e325ffb155f1");
    peer_proof_make(&keys.list[0], PEER_FOLLOWER, &handshake, proof);
    assert_hex(proof, PEER_PROOF_LEN,
               "78355ea61795a2021ef1d525917623fd50ff51a8c941de1aa649f9fa28c4331a");
    peer_proof_session(&keys.list[0], &handshake, &session);
    assert_hex(session.bytes, PEER_KEY_LEN,
               "7e40e0128d8d8e916d019c9d9e11c70833437573785016571bd9d1a0fb75979a");
}

static void reflected_proof_is_wrong(void **state)
{
    (void)state;
    struct peer_keys keys = keys_of(KEY_HEX, NULL);
    struct peer_handshake handshake = some_handshake(), mirrored = handshake;
    unsigned char proof[PEER_PROOF_LEN];
    peer_proof_make(&keys.list[0], PEER_LEADER, &handshake, proof);
    assert_true(is_right(&keys, PEER_LEADER, &handshake, proof));
    assert_false(is_right(&keys, PEER_FOLLOWER, &handshake, proof));
    mirrored.leader = handshake.follower;
    mirrored.follower = handshake.leader;
    memcpy(mirrored.leader_random, handshake.follower_random, PEER_RANDOM_LEN);
    memcpy(mirrored.follower_random, handshake.leader_random, PEER_RANDOM_LEN);
    assert_false(is_right(&keys, PEER_FOLLOWER, &mirrored, proof));
    assert_false(is_right(&keys, PEER_LEADER, &mirrored, proof));
}

static void proof_fits_no_other_handshake(void **state)
{
    (void)state;
    struct peer_keys keys = keys_of(KEY_HEX, NULL);
    struct peer_handshake handshake = some_handshake();
    unsigned char proof[PEER_PROOF_LEN];
    peer_proof_make(&keys.list[0], PEER_FOLLOWER, &handshake, proof);
    for (size_t i = 0; i < sizeof(handshake); i++) {
        struct peer_handshake other = handshake;
        ((unsigned char *)&other)[i] ^= 1;
        assert_false(is_right(&keys, PEER_FOLLOWER, &other, proof));
    }
    for (size_t i = 0; i < PEER_PROOF_LEN; i++) {
        proof[i] ^= 1;
        assert_false(is_right(&keys, PEER_FOLLOWER, &handshake, proof));
        proof[i] ^= 1;
    }
    assert_true(is_right(&keys, PEER_FOLLOWER, &handshake, proof));
}

static void proof_of_another_encryption_key_is_wrong(void **state)
{
    (void)state;
    struct peer_keys keys = keys_of(KEY_HEX, NULL), others = keys_of(OTHER_HEX, NULL);
    struct peer_handshake handshake = some_handshake();
    unsigned char proof[PEER_PROOF_LEN];
    peer_proof_make(&others.list[0], PEER_FOLLOWER, &handshake, proof);
    assert_false(is_right(&keys, PEER_FOLLOWER, &handshake, proof));
}

/* Each side may have the old key, the new one, or both. */
static void either_key_of_a_rotation_is_recognized(void **state)
{
    (void)state;
    struct peer_keys both = keys_of(KEY_HEX, OTHER_HEX);
    struct peer_keys single[] = { keys_of(KEY_HEX, NULL), keys_of(OTHER_HEX, NULL) };
    struct peer_handshake handshake = some_handshake();
    unsigned char proofs[PEER_KEYS_MAX][PEER_PROOF_LEN];
    struct slice all = { (const char *)proofs, sizeof(proofs) };
    assert_int_equal(both.count, 2);
    for (size_t i = 0; i < 2; i++)
        peer_proof_make(&both.list[i], PEER_FOLLOWER, &handshake, proofs[i]);
    for (size_t i = 0; i < 2; i++) {
        assert_ptr_equal(peer_proof_check(&single[i], PEER_FOLLOWER, &handshake, all),
                         &single[i].list[0]);
        struct slice one = { (const char *)proofs[i], PEER_PROOF_LEN };
        assert_ptr_equal(peer_proof_check(&both, PEER_FOLLOWER, &handshake, one),
                         &both.list[i]);
    }
}

static void proofs_of_another_length_are_wrong(void **state)
{
    (void)state;
    static const size_t lengths[] = { 0, 1, 31, 33, 63, 65, 96 };
    struct peer_keys keys = keys_of(KEY_HEX, NULL);
    struct peer_handshake handshake = some_handshake();
    unsigned char proofs[3 * PEER_PROOF_LEN];
    for (size_t i = 0; i < 3; i++)
        peer_proof_make(&keys.list[0], PEER_LEADER, &handshake,
                        proofs + i * PEER_PROOF_LEN);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct slice given = { (const char *)proofs, lengths[i] };
        assert_null(peer_proof_check(&keys, PEER_LEADER, &handshake, given));
    }
}

static void drawn_bytes_differ(void **state)
{
    (void)state;
    unsigned char one[PEER_RANDOM_LEN], other[PEER_RANDOM_LEN];
    peer_proof_draw(one);
    peer_proof_draw(other);
    assert_memory_not_equal(one, other, PEER_RANDOM_LEN);
}

/* ---- MACs ---- */

/* One direction of a connection, at both ends. */
struct direction {
    struct peer_mac *sender, *receiver;
};

static struct peer_key session_key(void)
{
    struct peer_keys keys = keys_of(KEY_HEX, NULL);
    struct peer_handshake handshake = some_handshake();
    struct peer_key session;
    peer_proof_session(&keys.list[0], &handshake, &session);
    return session;
}

static struct direction open_direction(enum peer_role sender)
{
    struct peer_key session = session_key();
    return (struct direction){ peer_mac_create(&session, sender),
                               peer_mac_create(&session, sender) };
}

static void close_direction(struct direction *direction)
{
    peer_mac_destroy(direction->sender);
    peer_mac_destroy(direction->receiver);
}

static void hash_of(const char *message, unsigned char hash[HASH_LEN])
{
    vault_hash(slice_of(message), hash);
}

static void macs_are_as_specified(void **state)
{
    (void)state;
    static const char *const expected[][2] = {
        [PEER_LEADER] = { "8c2e84f3e6f0e1d84f500d96223ae330",
                          "eced267ec15026a8c541e42509f06e32" },
        [PEER_FOLLOWER] = { "9f93c4144c7e6d751c6146c3e05a8db2",
                            "65e05e14bce6fa3523acdc2185dfa0bc" },
    };
    unsigned char hash[HASH_LEN], mac[PEER_MAC_LEN];
    hash_of("a message", hash);
    for (unsigned role = PEER_LEADER; role <= PEER_FOLLOWER; role++) {
        struct direction direction = open_direction((enum peer_role)role);
        for (size_t i = 0; i < 2; i++) {
            peer_mac_next(direction.sender, hash, mac);
            assert_hex(mac, PEER_MAC_LEN, expected[role][i]);
            assert_true(peer_mac_check(direction.receiver, hash, mac));
        }
        close_direction(&direction);
    }
}

static void gmacs_are_as_specified(void **state)
{
    (void)state;
    static const char *const expected[][2] = {
        [PEER_LEADER] = { "30840444b5bca18ccf3bd5f8acbed6fd",
                          "49490215a1c2fa87ca5bf9be9203f58e" },
        [PEER_CALLER] = { "95cbebcc589ac949dc226ee34ead1b1d",
                          "8f1c092d5bc3e5fc817c387854c30784" },
    };
    unsigned char mac[PEER_MAC_LEN];
    for (unsigned role = PEER_LEADER; role <= PEER_CALLER; role += PEER_CALLER) {
        struct direction direction = open_direction((enum peer_role)role);
        for (size_t i = 0; i < 2; i++) {
            peer_mac_seal(direction.sender, SLICE("a message"), mac);
            assert_hex(mac, PEER_MAC_LEN, expected[role][i]);
            assert_true(peer_mac_check_seal(direction.receiver, SLICE("a message"), mac));
        }
        close_direction(&direction);
    }
}

static void changed_repeated_or_reflected_gmac_is_detected(void **state)
{
    (void)state;
    const struct slice message = SLICE("a message");
    unsigned char mac[PEER_MAC_LEN], hash[HASH_LEN] = { 0 };
    struct direction there = open_direction(PEER_CALLER);
    struct direction back = open_direction(PEER_CALLED);
    peer_mac_seal(there.sender, message, mac);
    assert_false(peer_mac_check_seal(back.receiver, message, mac));
    assert_true(peer_mac_check_seal(there.receiver, message, mac));
    assert_false(peer_mac_check_seal(there.receiver, message, mac));
    peer_mac_next(there.sender, hash, mac); /* it counts, too */
    peer_mac_seal(there.sender, message, mac);
    assert_true(peer_mac_check_seal(there.receiver, message, mac));
    for (size_t i = 0; i < PEER_MAC_LEN; i++) {
        peer_mac_seal(there.sender, message, mac);
        mac[i] ^= 0x80;
        assert_false(peer_mac_check_seal(there.receiver, message, mac));
    }
    peer_mac_seal(there.sender, message, mac);
    assert_false(peer_mac_check_seal(there.receiver, SLICE("a massage"), mac));
    close_direction(&there);
    close_direction(&back);
}

static void changed_message_is_detected(void **state)
{
    (void)state;
    unsigned char hash[HASH_LEN], other[HASH_LEN], mac[PEER_MAC_LEN];
    hash_of("a message", hash);
    hash_of("a massage", other);
    for (size_t i = 0; i <= PEER_MAC_LEN; i++) {
        struct direction direction = open_direction(PEER_LEADER);
        peer_mac_next(direction.sender, hash, mac);
        if (i < PEER_MAC_LEN)
            mac[i] ^= 0x80;
        assert_false(
            peer_mac_check(direction.receiver, i < PEER_MAC_LEN ? hash : other, mac));
        close_direction(&direction);
    }
}

static void repeated_missing_or_reflected_message_is_detected(void **state)
{
    (void)state;
    unsigned char hash[HASH_LEN], first[PEER_MAC_LEN], second[PEER_MAC_LEN];
    struct direction to_follower = open_direction(PEER_LEADER);
    struct direction to_leader = open_direction(PEER_FOLLOWER);
    struct direction behind = open_direction(PEER_LEADER);
    hash_of("a message", hash);
    peer_mac_next(to_follower.sender, hash, first);
    peer_mac_next(to_follower.sender, hash, second);
    assert_true(peer_mac_check(to_follower.receiver, hash, first));
    assert_false(peer_mac_check(to_follower.receiver, hash, first));
    assert_false(peer_mac_check(behind.receiver, hash, second));
    assert_false(peer_mac_check(to_leader.receiver, hash, first));
    close_direction(&to_follower);
    close_direction(&to_leader);
    close_direction(&behind);
}

/* ---- seals ---- */

/* A group whose key is 01 02 … 20. */
static struct peer_group *known_group(void)
{
    static const unsigned char wrapped[PEER_GROUP_KEY_LEN] = {
        0xf9, 0xbd, 0xd3, 0x72, 0xd9, 0x57, 0x4e, 0x81, 0x88, 0xf1, 0x9f,
        0x22, 0xed, 0xfe, 0x73, 0xd2, 0x17, 0x27, 0xb6, 0x32, 0x03, 0xd8,
        0xc5, 0x06, 0x1b, 0x4d, 0xfc, 0xe9, 0x16, 0xf2, 0x9f, 0x1c,
    };
    struct peer_key session = session_key();
    return peer_group_unwrap(wrapped, &session);
}

static void seals_are_as_specified(void **state)
{
    static const char *const expected[] = {
        "0000000000000000460ac0400c370ddd657f981f25c92853",
        "0000000000000001683fd1c22d1756902a9b441ab4b7a50e",
    };
    struct peer_group *group = known_group();
    struct peer_seal seal;
    unsigned char hash[HASH_LEN];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        peer_group_seal(group, SLICE("a message"), &seal);
        assert_hex(seal.bytes, PEER_SEAL_LEN, expected[i]);
        vault_hash((struct slice){ (const char *)seal.bytes, PEER_SEAL_LEN }, hash);
        assert_memory_equal(seal.hash, hash, HASH_LEN);
    }
    peer_group_destroy(group);
}

static void seal_fits_its_message_alone(void **state)
{
    struct peer_key session = session_key();
    struct peer_group *leader = peer_group_create(), *other = peer_group_create();
    unsigned char wrapped[PEER_GROUP_KEY_LEN];
    struct peer_seal seal;
    (void)state;
    peer_group_wrap(leader, &session, wrapped);
    struct peer_group *follower = peer_group_unwrap(wrapped, &session);
    peer_group_seal(leader, SLICE("a message"), &seal);
    assert_true(peer_group_check(follower, SLICE("a message"), seal.bytes));
    assert_true(peer_group_check(follower, SLICE("a message"), seal.bytes));
    assert_false(peer_group_check(follower, SLICE("a massage"), seal.bytes));
    assert_false(peer_group_check(follower, SLICE("a message "), seal.bytes));
    assert_false(peer_group_check(follower, SLICE(""), seal.bytes));
    assert_false(peer_group_check(other, SLICE("a message"), seal.bytes));
    for (size_t i = 0; i < PEER_SEAL_LEN; i++) {
        seal.bytes[i] ^= 1;
        assert_false(peer_group_check(follower, SLICE("a message"), seal.bytes));
        seal.bytes[i] ^= 1;
    }
    peer_group_destroy(leader);
    peer_group_destroy(other);
    peer_group_destroy(follower);
}

static void wrapped_key_is_hidden_and_fits_its_session_alone(void **state)
{
    struct peer_key session = session_key(), another = session_key();
    struct peer_group *leader = peer_group_create();
    unsigned char wrapped[PEER_GROUP_KEY_LEN], again[PEER_GROUP_KEY_LEN];
    struct peer_seal seal;
    (void)state;
    another.bytes[0] ^= 1;
    peer_group_wrap(leader, &session, wrapped);
    peer_group_wrap(leader, &another, again);
    assert_memory_not_equal(wrapped, again, sizeof(wrapped));
    peer_group_seal(leader, SLICE("a message"), &seal);
    struct peer_group *stranger = peer_group_unwrap(wrapped, &another);
    assert_false(peer_group_check(stranger, SLICE("a message"), seal.bytes));
    peer_group_destroy(stranger);
    wrapped[5] ^= 1;
    struct peer_group *changed = peer_group_unwrap(wrapped, &session);
    assert_false(peer_group_check(changed, SLICE("a message"), seal.bytes));
    peer_group_destroy(changed);
    peer_group_destroy(leader);
}

static void empty_message_is_sealed(void **state)
{
    struct peer_group *group = known_group();
    struct peer_seal seal;
    (void)state;
    peer_group_seal(group, SLICE(""), &seal);
    assert_true(peer_group_check(group, SLICE(""), seal.bytes));
    assert_true(peer_group_check(group, (struct slice){ 0 }, seal.bytes));
    assert_false(peer_group_check(group, SLICE("x"), seal.bytes));
    peer_group_destroy(group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_proofs_and_session_key_are_as_specified),
        cmocka_unit_test(reflected_proof_is_wrong),
        cmocka_unit_test(proof_fits_no_other_handshake),
        cmocka_unit_test(proof_of_another_encryption_key_is_wrong),
        cmocka_unit_test(either_key_of_a_rotation_is_recognized),
        cmocka_unit_test(proofs_of_another_length_are_wrong),
        cmocka_unit_test(drawn_bytes_differ),
        cmocka_unit_test(macs_are_as_specified),
        cmocka_unit_test(gmacs_are_as_specified),
        cmocka_unit_test(changed_repeated_or_reflected_gmac_is_detected),
        cmocka_unit_test(changed_message_is_detected),
        cmocka_unit_test(repeated_missing_or_reflected_message_is_detected),
        cmocka_unit_test(seals_are_as_specified),
        cmocka_unit_test(seal_fits_its_message_alone),
        cmocka_unit_test(wrapped_key_is_hidden_and_fits_its_session_alone),
        cmocka_unit_test(empty_message_is_sealed),
    };
    return cmocka_run_group_tests_name("peer_proof", tests, NULL, NULL);
}
