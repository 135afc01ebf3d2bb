/* supervise_token.c - creates the supervise role's token and registers it.
 *
 * The file is written under another name and renamed, so an existing one is complete. */
#include "server/gateway/supervise_token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/vault/secret.h"
#include "base/vault/secret_file.h"
#include "server/gateway/command.h"

static enum err make(const char *path, const char *temporary, struct failure *why)
{
    char token[PERSONAL_TOKEN_MAX];
    bootstrap_generate_worker_token(token);
    size_t len = strlen(token);
    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool made = file >= 0 && write(file, token, len) == (ssize_t)len && fsync(file) == 0;
    if (file >= 0 && close(file))
        made = false;
    secret_wipe(token, sizeof(token));
    if (made && rename(temporary, path) == 0)
        return OK;
    return explain(why, ERR_INVALID, "cannot write %s: %s", path, strerror(errno));
}

static bool has_several(const struct list *organizations)
{
    return !list_empty(organizations) && organizations->next != organizations->prev;
}

enum err supervise_token_serve(const struct config *config, struct accounts *accounts,
                               struct failure *why)
{
    const struct list *organizations = accounts_organizations(accounts);
    const struct organization *only = NULL;
    if (has_several(organizations) && !config->execute_tenants)
        return explain(why, ERR_INVALID,
                       "several organizations would share this machine's kernel, network "
                       "and readable files; execute their tasks on separate machines "
                       "(runcast supervise), or isolate them with --execute-tenants");
    if (!list_empty(organizations) && !config->execute_tenants)
        only = container_of(organizations->next, const struct organization, link);
    char *path = gateway_path(config, "supervise.token"), *token = NULL;
    char *temporary = gateway_path(config, "supervise.token.new");
    enum err refused = OK;
    if (access(path, F_OK) && errno == ENOENT)
        refused = make(path, temporary, why);
    if (!refused)
        refused = secret_file_read(path, SECRET_FILE_PRIVATE, &token, why);
    if (!refused && accounts_serve_all(accounts, slice_of(token), only))
        refused = explain(
            why, ERR_INVALID,
            "%s: not a worker token; remove the file, and the next start creates another",
            path);
    secret_forget(token);
    free(path);
    free(temporary);
    return refused;
}
