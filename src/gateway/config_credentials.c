/* config_credentials.c - secrets from the folder that a service manager makes for this service. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "gateway/config_value.h"
#include "vault/secret.h"
#include "vault/secret_file.h"

/* The variable's value; NULL: it is not there. */
static const char *find_variable(char **environment, const char *name)
{
    size_t len = strlen(name);
    for (char **entry = environment; *entry; entry++)
        if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=')
            return *entry + len + 1;
    return NULL;
}

static enum err read_credential(struct config *config, int which, const char *path,
                                const char *name, struct failure *why)
{
    char *secret;
    enum err err = secret_file_read(path, SECRET_FILE_MOUNTED, &secret, why);
    if (err)
        return err;
    err = config_set(config, (enum config_setting)which, secret, name, why);
    secret_forget(secret);
    return err;
}

enum err config_read_credentials(struct config *config, char **environment,
                                 struct failure *why)
{
    const char *folder = find_variable(environment, "CREDENTIALS_DIRECTORY");
    enum err err = OK;
    for (int i = 0; !err && folder && i < 2 * SETTING_COUNT; i++) {
        int which = i / 2;
        char path[PATH_MAX], name[CONFIG_NAME_MAX + 16];
        snprintf(name, sizeof(name), "runcast%c%s", i % 2 ? '.' : '_',
                 config_settings[which].name);
        int len = snprintf(path, sizeof(path), "%s/%s", folder, name);
        if (config_settings[which].type == SETTING_IS_SECRET && len < (int)sizeof(path) &&
            !strcmp(config->origins[which], "default") && !access(path, F_OK))
            err = read_credential(config, which, path, name, why);
    }
    return err;
}
