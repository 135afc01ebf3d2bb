/* served.c - picks the environments of a worker's token out of all environments.
 *
 * These include those of archived branches and deleted projects, until retention has
 * removed their data. */
#include "api/request/served.h"

struct account *served_next(const struct api *api, const struct identity *identity,
                            const struct account *last)
{
    struct accounts *accounts = api_accounts(api);
    struct account *account = accounts_next(accounts, last);
    while (account && !secret_serves(identity->secret, account))
        account = accounts_next(accounts, account);
    return account;
}

struct account *served_with_run(const struct api *api, const struct identity *identity,
                                struct slice run_id)
{
    struct account *account = NULL;
    while ((account = served_next(api, identity, account)))
        if (environment_find(served_runs(api, account), run_id))
            return account;
    return NULL;
}

struct environment *served_runs(const struct api *api, const struct account *account)
{
    return engine_environment(api_engine(api), account->number);
}
