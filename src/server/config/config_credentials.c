/* config_credentials.c - reads secrets from the service manager's folder of credentials. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/log.h"
#include "base/vault/secret.h"
#include "base/vault/secret_file.h"
#include "server/config/config_value.h"

enum { PREFIX_LEN = 8 }; /* of "runcast_" and "runcast." */

/* Returns the variable's value, or NULL if it is not set. */
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

/* Returns the secret that a file of this name sets; -1: none. */
static int find_secret(const char *name)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        if (config_may_be_secret((enum config_setting)i) &&
            !strcmp(config_settings[i].name, name))
            return i;
    return -1;
}

static enum err take_file(struct config *config, const char *folder, const char *name,
                          struct failure *why)
{
    char path[PATH_MAX];
    int which = find_secret(name + PREFIX_LEN);
    if (which < 0) {
        log_warn("credential matches no setting", "name", name, NULL);
        return OK;
    }
    if (strcmp(config->origins[which], "default") != 0)
        return OK;
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return explain(why, ERR_INVALID, "%s: credential path too long", name);
    return read_credential(config, which, path, name, why);
}

enum err config_read_credentials(struct config *config, char **environment,
                                 struct failure *why)
{
    const char *folder = find_variable(environment, "CREDENTIALS_DIRECTORY");
    enum err err = OK;
    if (!folder)
        return OK;
    DIR *opened = opendir(folder);
    if (!opened)
        return explain(why, ERR_INVALID,
                       "CREDENTIALS_DIRECTORY: cannot open \"%.200s\": %s", folder,
                       strerror(errno));
    for (struct dirent *entry; !err && (entry = readdir(opened));)
        if (!strncmp(entry->d_name, "runcast_", PREFIX_LEN) ||
            !strncmp(entry->d_name, "runcast.", PREFIX_LEN))
            err = take_file(config, folder, entry->d_name, why);
    closedir(opened);
    return err;
}
