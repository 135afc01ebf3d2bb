/* config_value.h - the values of settings as text: reads, checks and prints them. */
#pragma once

#include "server/config/config.h"

enum setting_type {
    SETTING_IS_TEXT,
    SETTING_IS_LIST, /* words, separated by spaces */
    SETTING_IS_SECRET,
    SETTING_IS_NUMBER,
    SETTING_IS_BYTES,
    SETTING_IS_DURATION,
    SETTING_IS_FLAG
};

enum { CONFIG_NAME_MAX = 40 };

struct setting {
    const char *name;
    enum setting_type type;
    size_t offset; /* of its field in struct config */
    const char *def;
    int64_t min, max;
    const char *choices; /* valid words of a text; NULL: any text */
    const char *help;
};

/* The rows of config.def. */
extern const struct setting config_settings[SETTING_COUNT];

/* Writes the variable that sets it: RUNCAST_LOG_LEVEL. */
void config_variable_of(enum config_setting which, char out[CONFIG_NAME_MAX]);

/* Returns true if it may be read from a separate file: a secret, or a text that may contain
 * one. */
bool config_may_be_secret(enum config_setting which);

/* Returns true if the address of a database contains a password. */
bool config_has_password(const char *database);

/* Sets the field to the value and records its origin. The text of ERR_INVALID begins with
 * the origin and never reveals a secret. */
enum err config_set(struct config *config, enum config_setting which, const char *value,
                    const char *origin, struct failure *why);

/* Appends the value in the form that config_set reads; a secret as ***. */
void config_print_value(const struct config *config, enum config_setting which,
                        struct buf *out);

/* Checks texts with a syntax: public-url, allow-origin, prices, choices, the encryption
 * key. */
enum err config_check_texts(const struct config *config, struct failure *why);

/* Reads secrets from $CREDENTIALS_DIRECTORY (systemd.exec(5), CREDENTIALS), unless set
 * elsewhere: files runcast_NAME, as LoadCredential=runcast:FOLDER makes them, or
 * runcast.NAME. */
enum err config_read_credentials(struct config *config, char **environment,
                                 struct failure *why);
