/* config_value.h - one setting's value as text: read, checked, printed. */
#pragma once

#include "server/config/config.h"

enum setting_type {
    SETTING_IS_TEXT,
    SETTING_IS_LIST, /* words with spaces between */
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
    const char *choices; /* the words of which a text is one; NULL: it is any */
    const char *help;
};

/* The rows of config.def. */
extern const struct setting config_settings[SETTING_COUNT];

/* The variable that sets it: RUNCAST_LOG_LEVEL. */
void config_variable_of(enum config_setting which, char out[CONFIG_NAME_MAX]);

/* Whether it may be read from a file of its own: a secret, or a text that may have one in it. */
bool config_may_be_secret(enum config_setting which);

/* Whether an address of a database has a password in it. */
bool config_has_password(const char *database);

/* Reads the value into the field and notes its origin. ERR_INVALID begins with the origin
 * and never shows a secret. */
enum err config_set(struct config *config, enum config_setting which, const char *value,
                    const char *origin, struct failure *why);

/* Appends the value as config_set reads it; a secret as ***. */
void config_print_value(const struct config *config, enum config_setting which,
                        struct buf *out);

/* Texts with a form: public-url, allow-origin, prices, the choices, the encryption key. */
enum err config_check_texts(const struct config *config, struct failure *why);

/* Reads secrets that nothing else sets from $CREDENTIALS_DIRECTORY (systemd.exec(5), CREDENTIALS):
 * the file runcast_NAME, as LoadCredential=runcast:FOLDER makes it, or runcast.NAME. */
enum err config_read_credentials(struct config *config, char **environment,
                                 struct failure *why);
